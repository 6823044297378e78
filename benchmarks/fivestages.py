"""The work that several experiments compare: select, project, apply, distinct and union on plain tuples.

Imports nothing but the standard library: environments without aioflow do this work too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class Work:
    """Rows (key, group, value), and what the stages do to them.

    Select drops the rows of one group, project takes key and value, apply adds a function of the value,
    distinct drops duplicates, and the union merges `known`, rows (key, value, result).
    """

    rows: Sequence[Row]
    known: Sequence[Row]
    unwanted: str | int
    function: Callable[[Any], int]


def read_price(text: str) -> int:
    """A price as web pages show it, as a number."""
    return int(text.strip("$ ").replace(",", ""))


def fifth(number: int) -> int:
    """Next to no work."""
    return number // 5


def houses(count: int) -> Work:
    """Houses as web pages show them; one in 50 is a duplicate."""
    numbers = (n - n % 50 // 49 for n in range(count))
    rows = [(f"https://homes.example/{n}", f"city {n % 100}", f"$ {n % 1000},500") for n in numbers]
    known = [(f"https://homes.example/{n}", f"$ {n},500", n * 1000 + 500) for n in range(1000)]
    return Work(rows, known, "city 7", read_price)


def numbers(count: int) -> Work:
    """Numbers, each twice, and a function that does next to nothing: what is left is handing on."""
    rows = [(n, n % 100, n * 7 % 1000) for n in (*range(count // 2), *range(count // 2))]
    known = [(n, n * 7 % 1000, n * 7 % 1000 // 5) for n in range(1000)]
    return Work(rows, known, 7, fifth)


# --- as chained generators ----------------------------------------------------------------------


def select(rows: Iterable[Row], unwanted: str | int) -> Iterator[Row]:
    for row in rows:
        if row[1] != unwanted:
            yield row


def project(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        yield (row[0], row[2])


def apply(rows: Iterable[Row], function: Callable[[Any], int]) -> Iterator[Row]:
    for row in rows:
        yield (*row, function(row[1]))


def distinct(rows: Iterable[Row]) -> Iterator[Row]:
    seen = set()
    for row in rows:
        if row not in seen:
            seen.add(row)
            yield row


def union(*inputs: Iterable[Row]) -> Iterator[Row]:
    seen = set()
    for rows in inputs:
        for row in rows:
            if row not in seen:
                seen.add(row)
                yield row


def chained(work: Work) -> int:
    """How many rows come out of the five generators."""
    brief = project(select(work.rows, work.unwanted))
    count = 0
    for _ in union(distinct(apply(brief, work.function)), work.known):
        count += 1
    return count


# --- as functions of one row --------------------------------------------------------------------


def is_wanted(work: Work) -> Callable[[Row], bool]:
    unwanted = work.unwanted
    return lambda row: bool(row[1] != unwanted)


def brief(row: Row) -> Row:
    return (row[0], row[2])


def computed(work: Work) -> Callable[[Row], Row]:
    function = work.function
    return lambda row: (*row, function(row[1]))


def is_new() -> Callable[[Row], bool]:
    """A function that says whether it is called with a row for the first time."""
    seen: set[Row] = set()

    def first_time(row: Row) -> bool:
        if row in seen:
            return False
        seen.add(row)
        return True

    return first_time
