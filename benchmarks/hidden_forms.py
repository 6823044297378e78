"""Search forms over data sets in memory, and crawls of them that must find every tuple."""

from __future__ import annotations

import asyncio
import csv
import gzip
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

from aioflow.benchmarks.harness.processes import ROOT
from aioflow.errors import InputError
from aioflow.hidden import Categorical, CrawlReport, Numeric, crawl
from aioflow.hidden.algorithms.choice import Algorithm

Row = tuple[Any, ...]
ADULT, DIAMONDS, NSF = "adult.csv.gz", "diamonds.csv.gz", "nsf_awards_2017.csv.gz"
MENUS = {ADULT: 8, DIAMONDS: 3, NSF: 9}
_DATA = ROOT / "tests" / "data" / "hidden"


@dataclass(frozen=True)
class Table:
    """Tuples whose first attributes are menus; the others are ranges."""

    names: tuple[str, ...]
    rows: Sequence[Row]
    domains: tuple[tuple[Any, ...], ...] = ()  # of the menus

    def __len__(self) -> int:
        return len(self.rows)

    def sampled(self, share: float) -> Table:
        """Return a table that has each tuple with the same probability. The menus keep their values."""
        random = Random(1)
        return replace(self, rows=[row for row in self.rows if random.random() < share])

    def without_first(self, count: int) -> Table:
        """Return a table without the first attributes."""
        return Table(self.names[count:], [row[count:] for row in self.rows], self.domains[count:])

    def without_last(self, count: int) -> Table:
        """Return a table without the last attributes."""
        kept = len(self.names) - count
        return Table(self.names[:kept], [row[:kept] for row in self.rows], self.domains[:kept])

    def attributes(self, *, bounds: bool = False) -> list[Categorical | Numeric]:
        """Return the attributes of a form; its ranges have the ends of the data, or none."""
        menus = [Categorical(*each) for each in zip(self.names, self.domains, strict=False)]
        ranges = range(len(menus), len(self.names))
        return [*menus, *(self._range(place, bounds) for place in ranges)]

    def _range(self, place: int, bounds: bool) -> Numeric:
        if not bounds:
            return Numeric(self.names[place])
        values = [row[place] for row in self.rows]
        return Numeric(self.names[place], low=min(values), high=max(values))


def made_table(names: Sequence[str], rows: Sequence[Row], menus: int) -> Table:
    """Return a table whose menus have the values of the tuples."""
    domains = tuple(tuple(sorted({row[place] for row in rows})) for place in range(menus))
    return Table(tuple(names), rows, domains)


@cache
def read_table(name: str, at_most: int | None = None) -> Table:
    """Return a data set, or tuples from all parts of it."""
    try:
        with gzip.open(_DATA / name, "rt", encoding="utf-8", newline="") as file:
            head, *rows = csv.reader(file)
    except OSError as error:
        raise InputError(f"the data set {name} cannot be read: {error}") from error
    menus = MENUS[name]
    rows = rows[:: 1 if at_most is None else max(1, -(-len(rows) // at_most))]
    return made_table(head, [(*row[:menus], *map(int, row[menus:])) for row in rows], menus)


class Form:
    """A form that answers as the paper says: all tuples, or the k with the highest priorities and True.

    Priorities are random, and the same for the same tuples.
    """

    def __init__(self, table: Table, k: int) -> None:
        self.k = k
        self.queries = 0
        self._rows = list(table.rows)
        Random(0).shuffle(self._rows)
        columns = zip(*self._rows, strict=True)
        self._columns = {name: _Column(values) for name, values in zip(table.names, columns, strict=True)}

    async def __call__(self, query: Mapping[str, Any]) -> tuple[list[Row], bool]:
        self.queries += 1
        found = self._matching(query)
        return [self._rows[place] for place in found[: self.k].tolist()], len(found) > self.k

    def _matching(self, query: Mapping[str, Any]) -> Any:
        """Return the places of the tuples that a query asks for, the highest priorities first."""
        import numpy as np

        parts = [(self._columns[name], wanted) for name, wanted in query.items()]
        if not parts:
            return np.arange(len(self._rows))
        spans = [(column, *column.span(wanted)) for column, wanted in parts]
        spans.sort(key=lambda each: each[2] - each[1])
        (first, low, high), *others = spans
        found = first.places[low:high]
        for column, low, high in others:
            ranks = column.ranks[found]
            found = found[(ranks >= low) & (ranks < high)]
        return np.sort(found)


class _Column:
    """The places of tuples in the order of their values, and their ranks in it."""

    def __init__(self, values: Sequence[Any]) -> None:
        import numpy as np

        self._values = np.array(values)
        self.places = np.argsort(self._values, kind="stable")
        self.ranks = np.empty(len(values), dtype=int)
        self.ranks[self.places] = np.arange(len(values))
        self._values = self._values[self.places]

    def span(self, wanted: Any) -> tuple[int, int]:
        """Return the first rank that a condition covers, and the one after the last."""
        low, high = wanted if isinstance(wanted, tuple) else (wanted, wanted)
        first = 0 if low is None else int(self._values.searchsorted(low, "left"))
        last = len(self._values) if high is None else int(self._values.searchsorted(high, "right"))
        return first, last


@dataclass(frozen=True)
class Crawled:
    """A crawl that found every tuple."""

    queries: int
    n: int
    k: int
    report: CrawlReport

    @property
    def least(self) -> float:
        """The queries that no algorithm can do without: no answer has more than k tuples."""
        return self.n / self.k

    @property
    def of_bound(self) -> float:
        """The queries as a multiple of those that theorem 1 allows."""
        return self.queries / self.report.bound(self.n)


def crawl_table(table: Table, k: int, algorithm: Algorithm, *, known: Iterable[Row] = ()) -> Crawled:
    """Crawl a form over a table with one worker; raises when a tuple is missing."""
    return asyncio.run(crawl_form(table, Form(table, k), algorithm, known=known))


async def crawl_form(
    table: Table,
    form: Form,
    algorithm: Algorithm,
    *,
    workers: int = 1,
    known: Iterable[Row] = (),
    query: Any = None,
    found: Callable[[int], None] = lambda count: None,
) -> Crawled:
    """Crawl a form; `query` asks it in its own way, and `found` gets the number of tuples so far."""
    attributes = table.attributes(bounds=algorithm == "binary-shrink")
    rows: list[Row] = []
    async with crawl(
        query or form, attributes, k=form.k, algorithm=algorithm, workers=workers, known=known
    ) as crawled:
        async for row in crawled:
            rows.append(row)
            found(len(rows))
    report = crawled.report
    expect_all(table, rows, report)
    if report.queries != form.queries:
        raise AssertionError(f"{algorithm} tells {report.queries} queries, but asked {form.queries}")
    return Crawled(form.queries, len(table), form.k, report)


def expect_all(table: Table, rows: Sequence[Row], report: CrawlReport) -> None:
    """Raise unless a crawl found every tuple as often as it is there, and says so."""
    if Counter(rows) != Counter(table.rows) or not report.complete:
        raise AssertionError(f"{report.algorithm} found {len(rows)} of {len(table)}: {report.statement()}")
