"""The built-in aggregate functions, as functions of lists and as accumulators that need no list.

Sums of numbers are exact until the end, so they do not depend on the order of the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

from aioflow import Relation, aggregate_function
from aioflow.expressions import Counters, Projection, SortKeys, quotient
from aioflow.relation import LIST, Value, value_identities
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.spill import KeySet, RowBuffer

Number: TypeAlias = int | float | Decimal

# Sums of Decimals of any ordinary size are exact with so many digits. The limit bounds the time of 1E+999999
# + 1.
_EXACT = Context(prec=4000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
_MOST_PARTS = 64


class ExactSum:
    """Adds up integers, floats and Decimals.

    The sum of integers is an integer. A sum with floats is the float nearest to the exact sum. Among
    Decimals, the sum of all floats counts as the Decimal of its `repr`.
    """

    def __init__(self) -> None:
        self.count = 0
        self._integers = 0
        self._floats: list[float] = []  # their exact sum plus `_past_floats` is that of all floats so far
        self._past_floats = Fraction(0)
        self._special = 0.0  # the sum of infinities and NaNs
        self._decimals = Decimal(0)
        self._has_floats = False
        self._has_decimals = False

    def add(self, numbers: Sequence[Number]) -> None:
        """Add some numbers."""
        self.count += len(numbers)
        integers = [number for number in numbers if isinstance(number, int)]
        self._integers += sum(integers)
        if len(integers) == len(numbers):
            return
        if floats := [number for number in numbers if isinstance(number, float)]:
            self._add_floats(floats)
        if decimals := [number for number in numbers if isinstance(number, Decimal)]:
            self._add_decimals(decimals)

    def _add_floats(self, floats: list[float]) -> None:
        self._has_floats = True
        if not all(map(math.isfinite, floats)):
            self._special = sum([number for number in floats if not math.isfinite(number)], self._special)
            floats = [number for number in floats if math.isfinite(number)]
        self._floats += floats
        if len(self._floats) > _MOST_PARTS:
            try:
                self._floats = _parts(self._floats)
            except OverflowError:  # past the largest float
                self._past_floats += sum(map(Fraction, self._floats))
                self._floats = []

    def _add_decimals(self, decimals: Iterable[Decimal]) -> None:
        self._has_decimals = True
        for number in decimals:
            self._decimals = _EXACT.add(self._decimals, number)

    @property
    def total(self) -> Number:
        """The sum; 0 if there are no numbers."""
        if self._has_decimals:
            return self._decimal_total()
        if not self._has_floats:
            return self._integers
        if self._special:  # also NaN, which is true
            return self._special
        return _nearest(self._integers + self._exact_floats())

    @property
    def mean(self) -> Number | None:
        """The average; None if there are no numbers."""
        if not self.count:
            return None
        if self._has_decimals:
            total = self._decimal_total()
            digits = len(total.as_tuple().digits)
            return Context(prec=digits + 28, traps=[]).divide(total, Decimal(self.count))
        if not self._has_floats:
            return quotient(self._integers, self.count)
        return self._special or _nearest((self._integers + self._exact_floats()) / self.count)

    def _exact_floats(self) -> Fraction:
        return sum(map(Fraction, self._floats), self._past_floats)

    def _decimal_total(self) -> Decimal:
        total = _EXACT.add(self._decimals, Decimal(self._integers))
        if self._has_floats:
            floats = self._special or _nearest(self._exact_floats())
            total = _EXACT.add(total, Decimal(repr(floats)))
        return total


def _parts(floats: list[float]) -> list[float]:
    """Return a few floats with the same exact sum: the float nearest to it, the one nearest to the rest, …"""
    parts: list[float] = []
    while rest := math.fsum([*floats, *(-part for part in parts)]):
        parts.append(rest)
    return parts


def _nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


_NUMBERS = frozenset({int, float, Decimal})
_NOT_A_NUMBER = "not a number"
_ASCENDING = SortKeys.bind("value", [LIST])
_DESCENDING = SortKeys.bind("value desc", [LIST])


class Accumulator(Protocol):
    """The state of an aggregate function, which takes values in any number of portions."""

    def add(self, values: Sequence[Value]) -> None: ...
    def result(self) -> Value: ...
    def close(self) -> None: ...


class ValueCount:
    """The number of values."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, values: Sequence[Value]) -> None:
        self._count += len(values)

    def result(self) -> Value:
        return self._count

    def close(self) -> None:
        pass


class Sum:
    """The exact sum or mean; null if there are no values. Texts are read as numbers, as in expressions."""

    def __init__(self, counters: Counters, *, mean: bool = False) -> None:
        self._sum = ExactSum()
        self._counters = counters
        self._mean = mean

    def add(self, values: Sequence[Value]) -> None:
        if not _NUMBERS.issuperset(map(type, values)):
            values = _numbers(values, self._counters)
        self._sum.add(values)

    def result(self) -> Value:
        if not self._sum.count:
            return None
        return self._sum.mean if self._mean else self._sum.total

    def close(self) -> None:
        pass


def _numbers(values: Sequence[Value], counters: Counters) -> list[Number]:
    reading = Projection.bind("value + 0 as value", [LIST])
    numbers: list[Number] = []
    for value in values:
        number = value if type(value) in _NUMBERS else reading.row((value,))[0]
        if type(number) in _NUMBERS:
            numbers.append(number)
        else:
            counters[_NOT_A_NUMBER] += 1
    return numbers


class Extreme:
    """The smallest or the largest value, in the order of `sort`."""

    def __init__(self, *, largest: bool = False) -> None:
        self._best: Callable[..., Value] = max if largest else min
        self._place = (_DESCENDING if largest else _ASCENDING).key
        self._values: list[Value] = []

    def add(self, values: Sequence[Value]) -> None:
        if not values:
            return
        candidates = [*self._values, *values]
        kinds = set(map(type, candidates))
        if kinds <= {int} or kinds <= {str}:
            self._values = [self._best(candidates)]
        else:
            self._values = [min(candidates, key=lambda value: self._place((value,)))]

    def result(self) -> Value:
        return self._values[0] if self._values else None

    def close(self) -> None:
        pass


class First:
    """The value that arrived first."""

    def __init__(self) -> None:
        self._values: list[Value] = []

    def add(self, values: Sequence[Value]) -> None:
        if not self._values:
            self._values = list(values[:1])

    def result(self) -> Value:
        return self._values[0] if self._values else None

    def close(self) -> None:
        pass


class Collected:
    """All values, on disk past the memory limit, for a function that takes a list."""

    def __init__(self, function: Callable[[Sequence[Value]], Value], memory: MemoryBudget) -> None:
        self._function = function
        self._rows = RowBuffer(memory)

    @property
    def is_on_disk(self) -> bool:
        return self._rows.is_on_disk

    def add(self, values: Sequence[Value]) -> None:
        self._rows.append([(value,) for value in values])

    def result(self) -> Value:
        return self._function([value for batch in self._rows.batches() for (value,) in batch])

    def close(self) -> None:
        self._rows.close()


class Listed:
    """All values, as a list."""

    def __init__(self, memory: MemoryBudget) -> None:
        self._rows: RowBuffer | None = RowBuffer(memory)

    def add(self, values: Sequence[Value]) -> None:
        assert self._rows is not None
        self._rows.append([(value,) for value in values])

    def result(self) -> Value:
        # The relation owns the rows now, and outlives this accumulator.
        rows, self._rows = self._rows, None
        assert rows is not None
        return rows.relation(LIST, is_list=True)

    def close(self) -> None:
        if self._rows is not None:
            self._rows.close()


class Distinct:
    """Passes each value to another accumulator once."""

    def __init__(self, accumulator: Accumulator, memory: MemoryBudget) -> None:
        self._accumulator = accumulator
        self._seen = KeySet(memory)

    @property
    def is_on_disk(self) -> bool:
        return self._seen.is_on_disk or (
            isinstance(self._accumulator, Collected) and self._accumulator.is_on_disk
        )

    def add(self, values: Sequence[Value]) -> None:
        self._accumulator.add(self._seen.add_new(value_identities(values), values))

    def result(self) -> Value:
        return self._accumulator.result()

    def close(self) -> None:
        self._seen.close()
        self._accumulator.close()


# --- the same as functions of lists -------------------------------------------------------------


def _whole(accumulator: Accumulator, values: Sequence[Value]) -> Value:
    accumulator.add(values)
    return accumulator.result()


@aggregate_function(name="count", type="number")
def count(values: Sequence[Any]) -> Value:
    """The number of values; without argument, the number of tuples."""
    return len(values)


@aggregate_function(name="sum", type="number")
def sum_of(values: Sequence[Any]) -> Value:
    """The sum, exact for all kinds of numbers; null if there are no values."""
    return _whole(Sum(Counters()), values)


@aggregate_function(name="avg", type="number")
def average(values: Sequence[Any]) -> Value:
    """The mean; null if there are no values."""
    return _whole(Sum(Counters(), mean=True), values)


@aggregate_function(name="min", same_type=True)
def minimum(values: Sequence[Any]) -> Value:
    """The smallest value, in the order of sort; null if there are no values."""
    return _whole(Extreme(), values)


@aggregate_function(name="max", same_type=True)
def maximum(values: Sequence[Any]) -> Value:
    """The largest value, in the order of sort; null if there are no values."""
    return _whole(Extreme(largest=True), values)


@aggregate_function(name="first", same_type=True, depends_on_arrival=True)
def first(values: Sequence[Any]) -> Value:
    """The value that arrived first; null if there are no values."""
    return _whole(First(), values)


@aggregate_function(name="list", type="relation")
def list_of(values: Sequence[Any]) -> Value:
    """The values as a list, which `unpack` turns into tuples."""
    return Relation.of_values(values)


# The functions that need no more memory for more values.
SMALL: dict[Callable[..., Any], Callable[[Counters], Accumulator]] = {
    count: lambda counters: ValueCount(),
    sum_of: lambda counters: Sum(counters),
    average: lambda counters: Sum(counters, mean=True),
    minimum: lambda counters: Extreme(),
    maximum: lambda counters: Extreme(largest=True),
    first: lambda counters: First(),
}
