"""The data of theorems 3 and 4 (figures 7 and 8), on which every algorithm needs many queries."""

from __future__ import annotations

from math import comb

from tests.hidden.crawls import Row


def hard_numeric(d: int, k: int, m: int) -> list[Row]:
    """Return m groups of k tuples on the diagonal and d tuples next to them, one an attribute."""
    rows: list[Row] = []
    for group in range(1, m + 1):
        rows += [(group,) * d] * k
        rows += [_with(group, place, group + 1, d) for place in range(d)]
    return rows


def least_numeric(d: int, m: int) -> int:
    """Return the queries that any algorithm needs by theorem 3."""
    return d * m


def hard_categorical(d: int, size: int) -> list[Row]:
    """Return a group of d tuples for each value, each with the next value on one attribute."""
    return [_with(group, place, (group + 1) % size, d) for group in range(size) for place in range(d)]


def least_categorical(d: int, size: int) -> float:
    """Return the queries that any algorithm needs by the proof of theorem 4.

    Fewer diverse queries leave one bichromatic set that needs 2 ** (d / 4) monotonic ones.
    """
    return min(d / 8 * comb(size, 2), 2 ** (d / 4))


def _with(value: int, place: int, other: int, d: int) -> Row:
    return tuple(other if each == place else value for each in range(d))
