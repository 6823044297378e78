"""Predicates of the common shape "column compared with a constant", for rows and for whole batches.

They are written out one by one, since a call through `operator.lt` costs more than the comparison. Values of
classes that Python compares as the language does are compared directly; all others go to `slow`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from aioflow.expressions.operations import PLAIN_NUMBERS
from aioflow.relation import Batch, Predicate, Row

Filter: TypeAlias = Callable[[Batch], Batch]
Slow: TypeAlias = Callable[[Any], bool]


class Truth(msgspec.Struct, frozen=True):
    """A condition on a row: as a predicate, and as a filter of batches if that is faster."""

    predicate: Predicate
    filter: Filter | None = None

    @property
    def rows(self) -> Filter:
        """The rows of a batch for which it is true."""
        if self.filter is not None:
            return self.filter
        predicate = self.predicate
        return lambda batch: [row for row in batch if predicate(row)]


# `for value in (row[position],)` is compiled to a plain assignment; `:=` would make a cell of it.


def number_equal(position: int, number: Any, slow: Slow) -> Truth:
    def predicate(row: Row) -> bool:
        value = row[position]
        return value == number if value.__class__ in PLAIN_NUMBERS else slow(value)

    def keep(batch: Batch) -> Batch:
        return [
            row
            for row in batch
            for value in (row[position],)
            if (value == number if value.__class__ in PLAIN_NUMBERS else slow(value))
        ]

    return Truth(predicate, keep)


def number_unequal(position: int, number: Any, slow: Slow) -> Truth:
    def predicate(row: Row) -> bool:
        value = row[position]
        return value != number if value.__class__ in PLAIN_NUMBERS else slow(value)

    def keep(batch: Batch) -> Batch:
        return [
            row
            for row in batch
            for value in (row[position],)
            if (value != number if value.__class__ in PLAIN_NUMBERS else slow(value))
        ]

    return Truth(predicate, keep)


def number_less(position: int, number: Any, slow: Slow) -> Truth:
    def predicate(row: Row) -> bool:
        value = row[position]
        return value < number if value.__class__ in PLAIN_NUMBERS else slow(value)

    def keep(batch: Batch) -> Batch:
        return [
            row
            for row in batch
            for value in (row[position],)
            if (value < number if value.__class__ in PLAIN_NUMBERS else slow(value))
        ]

    return Truth(predicate, keep)


def number_at_most(position: int, number: Any, slow: Slow) -> Truth:
    def predicate(row: Row) -> bool:
        value = row[position]
        return value <= number if value.__class__ in PLAIN_NUMBERS else slow(value)

    def keep(batch: Batch) -> Batch:
        return [
            row
            for row in batch
            for value in (row[position],)
            if (value <= number if value.__class__ in PLAIN_NUMBERS else slow(value))
        ]

    return Truth(predicate, keep)


# NaN is greater than every number here, hence `not <=`.


def number_greater(position: int, number: Any, slow: Slow) -> Truth:
    def predicate(row: Row) -> bool:
        value = row[position]
        return not value <= number if value.__class__ in PLAIN_NUMBERS else slow(value)

    def keep(batch: Batch) -> Batch:
        return [
            row
            for row in batch
            for value in (row[position],)
            if (not value <= number if value.__class__ in PLAIN_NUMBERS else slow(value))
        ]

    return Truth(predicate, keep)


def number_at_least(position: int, number: Any, slow: Slow) -> Truth:
    def predicate(row: Row) -> bool:
        value = row[position]
        return not value < number if value.__class__ in PLAIN_NUMBERS else slow(value)

    def keep(batch: Batch) -> Batch:
        return [
            row
            for row in batch
            for value in (row[position],)
            if (not value < number if value.__class__ in PLAIN_NUMBERS else slow(value))
        ]

    return Truth(predicate, keep)


def number_between(position: int, low: Any, high: Any, slow: Slow) -> Truth:
    def predicate(row: Row) -> bool:
        value = row[position]
        return low <= value <= high if value.__class__ in PLAIN_NUMBERS else slow(value)

    def keep(batch: Batch) -> Batch:
        return [
            row
            for row in batch
            for value in (row[position],)
            if (low <= value <= high if value.__class__ in PLAIN_NUMBERS else slow(value))
        ]

    return Truth(predicate, keep)


NUMBER_SHAPES = {
    "=": number_equal,
    "!=": number_unequal,
    "<": number_less,
    "<=": number_at_most,
    ">": number_greater,
    ">=": number_at_least,
}


def text_equal(position: int, text: str, slow: Slow) -> Truth:
    def predicate(row: Row) -> bool:
        value = row[position]
        return value == text if value.__class__ is str else slow(value)

    def keep(batch: Batch) -> Batch:
        return [
            row
            for row in batch
            for value in (row[position],)
            if (value == text if value.__class__ is str else slow(value))
        ]

    return Truth(predicate, keep)


def text_unequal(position: int, text: str, slow: Slow) -> Truth:
    def predicate(row: Row) -> bool:
        value = row[position]
        return value != text if value.__class__ is str else slow(value)

    def keep(batch: Batch) -> Batch:
        return [
            row
            for row in batch
            for value in (row[position],)
            if (value != text if value.__class__ is str else slow(value))
        ]

    return Truth(predicate, keep)


TEXT_SHAPES = {"=": text_equal, "!=": text_unequal}


def text_test(position: int, test: Callable[[str], bool], slow: Slow) -> Truth:
    """A test of a text column, as `like` and `in` make them."""

    def predicate(row: Row) -> bool:
        value = row[position]
        return test(value) if value.__class__ is str else slow(value)

    def keep(batch: Batch) -> Batch:
        return [
            row
            for row in batch
            for value in (row[position],)
            if (test(value) if value.__class__ is str else slow(value))
        ]

    return Truth(predicate, keep)


def number_test(position: int, test: Callable[[Any], bool], slow: Slow) -> Truth:
    """A test of a number column, as `in` makes it."""

    def predicate(row: Row) -> bool:
        value = row[position]
        return test(value) if value.__class__ in PLAIN_NUMBERS else slow(value)

    def keep(batch: Batch) -> Batch:
        return [
            row
            for row in batch
            for value in (row[position],)
            if (test(value) if value.__class__ in PLAIN_NUMBERS else slow(value))
        ]

    return Truth(predicate, keep)


def is_null(position: int) -> Truth:
    def keep(batch: Batch) -> Batch:
        return [row for row in batch if row[position] is None]

    return Truth(lambda row: row[position] is None, keep)


def is_not_null(position: int) -> Truth:
    def keep(batch: Batch) -> Batch:
        return [row for row in batch if row[position] is not None]

    return Truth(lambda row: row[position] is not None, keep)


def all_true(parts: tuple[Truth, ...]) -> Truth:
    """Rows for which all parts are true; the filters run one after the other."""
    predicates = tuple(part.predicate for part in parts)
    if not any(part.filter for part in parts):
        return Truth(_and(predicates))
    filters = tuple(part.rows for part in parts)

    def keep(batch: Batch) -> Batch:
        for each in filters:
            batch = each(batch)
        return batch

    return Truth(_and(predicates), keep)


def _and(predicates: tuple[Predicate, ...]) -> Predicate:
    first, second, *rest = predicates
    if not rest:
        return lambda row: first(row) and second(row)
    if len(rest) == 1:
        third = rest[0]
        return lambda row: first(row) and second(row) and third(row)

    def every(row: Row) -> bool:
        for predicate in predicates:  # noqa: SIM110  # all() with a generator costs twice as much
            if not predicate(row):
                return False
        return True

    return every


def any_true(parts: tuple[Truth, ...]) -> Truth:
    """Rows for which one of the parts is true."""
    predicates = tuple(part.predicate for part in parts)
    first, second, *rest = predicates
    if not rest:
        return Truth(
            lambda row: first(row) or second(row),
            lambda batch: [row for row in batch if first(row) or second(row)],
        )

    def some(row: Row) -> bool:
        for predicate in predicates:  # noqa: SIM110
            if predicate(row):
                return True
        return False

    return Truth(some)
