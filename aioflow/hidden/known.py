"""The tuples that an earlier crawl found: they say where to ask, and what has changed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from aioflow.hidden.space import Codes, Extent, QueryAnswer, Region, Space, counted


class Known:
    """Known tuples by their places in the space of a form. The source may have changed since."""

    def __init__(self, space: Space, rows: Iterable[Sequence[Any]] = ()) -> None:
        self._space = space
        self.rows: list[tuple[Any, ...]] = []
        self._codes: list[Codes] = []
        self._by_value: dict[tuple[int, int], list[int]] = {}  # list axis and value -> numbers of tuples
        self._by_rank: dict[int, tuple[list[int], list[int]]] = {}  # range axis -> values, numbers of tuples
        for row in rows:
            self._add(tuple(row))

    def _add(self, row: tuple[Any, ...]) -> None:
        try:
            codes = tuple(
                None if value is None else axis.encode(value)
                for axis, value in zip(self._space.axes, row, strict=False)
            )
        except (TypeError, ValueError):  # the form was described differently then
            return
        number = len(self.rows)
        self.rows.append(row)
        self._codes.append(codes)
        for place in self._space.lists:
            value = codes[place]
            if value is not None:
                self._by_value.setdefault((place, value), []).append(number)

    def __len__(self) -> int:
        return len(self.rows)

    def within(self, region: Region) -> list[int]:
        """Return the numbers of the known tuples in a region."""
        chosen = [(place, value) for place in self._space.lists if isinstance(value := region[place], int)]
        if not chosen and not any(region):
            return list(range(len(self.rows)))
        lists = [self._by_value.get(each, []) for each in chosen]
        lists += [
            self._between(place, each)
            for place in self._space.ranges
            if isinstance(each := region[place], tuple)
        ]
        candidates: Sequence[int] = min(lists, key=len) if lists else range(len(self.rows))
        holds = self._space.holds
        return [number for number in candidates if holds(region, self._codes[number])]

    def _between(self, place: int, extent: Extent) -> list[int]:
        """Return the numbers of the known tuples in a range of an attribute."""
        if place not in self._by_rank:
            pairs = ((codes[place], number) for number, codes in enumerate(self._codes))
            ranked = sorted((value, number) for value, number in pairs if value is not None)
            self._by_rank[place] = [value for value, _ in ranked], [number for _, number in ranked]
        values, numbers = self._by_rank[place]
        low, high = extent
        first = 0 if low is None else bisect_left(values, low)
        return numbers[first : len(values) if high is None else bisect_right(values, high)]

    def overflowing(self, region: Region, k: int | None) -> QueryAnswer | None:
        """Return known tuples in the place of an answer, if a query would surely have overflowed then."""
        if k is None or len(self.rows) <= k:
            return None
        numbers = self.within(region)
        if len(numbers) <= k:
            return None
        codes = [self._codes[number] for number in numbers]
        return QueryAnswer(codes, [self.rows[number] for number in numbers], overflows=True, is_known=True)

    def values(self, region: Region, place: int) -> list[int]:
        """Return the sorted values of an attribute in a region."""
        codes = (self._codes[number][place] for number in self.within(region))
        return sorted(value for value in codes if value is not None)


def end_for(values: Sequence[int], start: int, k: int) -> int | None:
    """Return the last end of an interval from `start` with at most k of some sorted values.

    None stands for no end: all that follow are at most k. The interval has one value at least.
    """
    first = bisect_left(values, start)
    if first + k >= len(values):
        return None
    return max(start, values[first + k] - 1)


def compared(
    before: Iterable[tuple[Any, ...]], after: Iterable[tuple[Any, ...]]
) -> tuple[Counter[tuple[Any, ...]], Counter[tuple[Any, ...]]]:
    """Return the tuples that were added and those that were removed."""
    old, new = counted(before), counted(after)
    return new - old, old - new
