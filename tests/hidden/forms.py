"""Search forms over tuples in memory: at most k results a query, the ones with the highest priorities."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

DATA = Path(__file__).parents[1] / "data" / "hidden"
ADULT, DIAMONDS, NSF = "adult.csv.gz", "diamonds.csv.gz", "nsf_awards_2017.csv.gz"
CATEGORICAL = {ADULT: 8, DIAMONDS: 3, NSF: 9}


@cache
def read_data(name: str) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    """Return the names of the attributes and the tuples of a data set, in which numbers are numbers."""
    with gzip.open(DATA / name, "rt", encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    menus = CATEGORICAL[name]
    return tuple(head), tuple((*row[:menus], *map(int, row[menus:])) for row in rows)


class Form:
    """A form that answers as the paper says: all tuples, or k of them and a sign that there are more."""

    def __init__(
        self,
        names: Sequence[str],
        rows: Sequence[tuple[Any, ...]],
        k: int,
        *,
        seed: int = 0,
        ranked_by: Callable[[tuple[Any, ...]], Any] | None = None,
    ) -> None:
        order = list(range(len(rows)))
        Random(seed).shuffle(order)
        if ranked_by is not None:
            order.sort(key=lambda number: ranked_by(rows[number]))
        self.names = tuple(names)
        self.rows = [rows[number] for number in order]
        self.k = k
        self.queries: list[dict[str, Any]] = []
        self.under_way = self.most_under_way = 0
        self._columns = {name: _column(self.rows, place) for place, name in enumerate(names)}

    async def __call__(self, query: dict[str, Any]) -> tuple[list[tuple[Any, ...]], Any]:
        self.queries.append(query)
        found = self.matching(query)
        return [self.rows[number] for number in found[: self.k]], len(found) > self.k

    def matching(self, query: Mapping[str, Any]) -> Sequence[int]:
        """Return the places of the tuples that a query asks for, the most important first."""
        if not query:
            return range(len(self.rows))
        holds = np.ones(len(self.rows), bool)
        for name, wanted in query.items():
            column, numbers = self._columns[name]
            if numbers is not None:
                holds &= column == numbers.get(wanted, -1)
            elif isinstance(wanted, tuple):
                low, high = wanted
                if low is not None:
                    holds &= column >= low
                if high is not None:
                    holds &= column <= high
            else:
                holds &= column == wanted
        return np.flatnonzero(holds).tolist()


def _column(rows: Sequence[tuple[Any, ...]], place: int) -> tuple[Any, dict[Any, int] | None]:
    """Return a column as an array: of its numbers, or of the numbers of its texts."""
    values = [row[place] for row in rows]
    if not any(isinstance(value, str) for value in values):
        return np.array(values), None
    numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return np.array([numbers[value] for value in values]), numbers
