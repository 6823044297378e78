"""The work that several experiments compare: select, project, apply, distinct and union on plain tuples.

Imports nothing but the standard library: environments without aioflow do this work too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

Row: TypeAlias = tuple[Any, ...]
Stage: TypeAlias = Callable[[Row], Row | None]  # None for a row that goes no further

NAMES = ("url", "city", "price-text")
KNOWN_NAMES = ("url", "price-text", "price")
UNWANTED = "city 7"


def make_rows(count: int) -> list[Row]:
    """Houses as web pages show them, rows of NAMES: one in 100 is unwanted, one in 50 a duplicate."""
    numbers = (n - n % 50 // 49 for n in range(count))
    return [(f"https://homes.example/{n}", f"city {n % 100}", f"$ {n % 1000},500") for n in numbers]


def make_known() -> list[Row]:
    """The second input of the union, rows of KNOWN_NAMES: some of them come through the pipeline too."""
    return [(f"https://homes.example/{n}", f"$ {n},500", n * 1000 + 500) for n in range(1000)]


def read_price(text: str) -> int:
    """The function of the apply stage."""
    return int(text.strip("$ ").replace(",", ""))


# --- as chained generators ----------------------------------------------------------------------


def select(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        if row[1] != UNWANTED:
            yield row


def project(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        yield (row[0], row[2])


def apply(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        yield (*row, read_price(row[1]))


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


def chained(rows: Sequence[Row], known: Sequence[Row]) -> int:
    """How many rows come out of the five generators."""
    count = 0
    for _ in union(distinct(apply(project(select(rows)))), known):
        count += 1
    return count


# --- as functions of one row --------------------------------------------------------------------


def is_wanted(row: Row) -> bool:
    city: str = row[1]
    return city != UNWANTED


def brief(row: Row) -> Row:
    return (row[0], row[2])


def priced(row: Row) -> Row:
    return (*row, read_price(row[1]))


def is_new() -> Callable[[Row], bool]:
    """A function that says whether it is called with a row for the first time."""
    seen: set[Row] = set()

    def first_time(row: Row) -> bool:
        if row in seen:
            return False
        seen.add(row)
        return True

    return first_time


def stages() -> list[Stage]:
    """The first four stages; the fifth, the union, reads two inputs."""
    new = is_new()
    return [
        lambda row: row if is_wanted(row) else None,
        brief,
        priced,
        lambda row: row if new(row) else None,
    ]
