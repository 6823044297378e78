"""The work that several experiments compare: select, project, apply, distinct and union on plain tuples.

Imports nothing but the standard library: environments without aioflow do this work too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

Row: TypeAlias = tuple[Any, ...]
Stage: TypeAlias = Callable[[Row], Row | None]  # None for a row that goes no further

NAMES = ("n", "city", "price")
KNOWN_NAMES = ("n", "price", "tax")
LEAST_PRICE = 100


def make_rows(count: int) -> list[Row]:
    """Rows of NAMES, each of them twice; one in ten is too cheap for `select`."""
    return [(n, f"city {n % 1000}", n * 7 % 1000) for n in chain(range(count // 2), range(count // 2))]


def make_known() -> list[Row]:
    """The second input of the union, rows of KNOWN_NAMES: some of them come through the pipeline too."""
    return [(n, n * 7 % 1000, n * 7 % 1000 // 5) for n in range(1000)]


def tax_of_row(row: Row) -> int:
    """The function of the apply stage, of a tuple."""
    price: int = row[1]
    return price // 5


def tax_of_mapping(row: Mapping[str, Any]) -> int:
    """The function of the apply stage, of a mapping."""
    price: int = row["price"]
    return price // 5


# --- as chained generators ----------------------------------------------------------------------


def select(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        if row[2] >= LEAST_PRICE:
            yield row


def project(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        yield (row[0], row[2])


def apply(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        yield (*row, tax_of_row(row))


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


def is_dear(row: Row) -> bool:
    price: int = row[2]
    return price >= LEAST_PRICE


def brief(row: Row) -> Row:
    return (row[0], row[2])


def taxed(row: Row) -> Row:
    return (*row, tax_of_row(row))


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
        lambda row: row if is_dear(row) else None,
        brief,
        taxed,
        lambda row: row if new(row) else None,
    ]
