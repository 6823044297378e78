"""The aggregate functions that are built in, as functions of lists and as accumulators that need no list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Protocol

from aioflow import Relation, aggregate_function
from aioflow.expressions import Counters, Projection, SortKeys
from aioflow.operators.exact_sum import ExactSum, Number
from aioflow.relation import LIST, Value, value_identities
from aioflow.spill import KeySet, Memory, RowBuffer

_NUMBERS = frozenset({int, float, Decimal})
_NOT_A_NUMBER = "not a number"
_ASCENDING = SortKeys.bind("value", [LIST])
_DESCENDING = SortKeys.bind("value desc", [LIST])


class Accumulator(Protocol):
    """An aggregate function at work: takes values in any number of portions."""

    def add(self, values: Sequence[Value]) -> None: ...
    def result(self) -> Value: ...
    def close(self) -> None: ...


class Count:
    """How many values."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, values: Sequence[Value]) -> None:
        self._count += len(values)

    def result(self) -> Value:
        return self._count

    def close(self) -> None:
        pass


class Sum:
    """The exact sum or mean; null of nothing. Texts are read as numbers, as expressions do."""

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
    """The value that sort would put first: the smallest, or the largest."""

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
    """The value that came first."""

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
    """All values, on disk past the memory limit, for a function of a list of them."""

    def __init__(self, function: Callable[[Sequence[Value]], Value], memory: Memory) -> None:
        self._function = function
        self._rows = RowBuffer(memory)

    def add(self, values: Sequence[Value]) -> None:
        self._rows.append([(value,) for value in values])

    def result(self) -> Value:
        return self._function([value for batch in self._rows.batches() for (value,) in batch])

    def close(self) -> None:
        self._rows.close()


class Listed:
    """All values, as a list."""

    def __init__(self, memory: Memory) -> None:
        self._rows: RowBuffer | None = RowBuffer(memory)

    def add(self, values: Sequence[Value]) -> None:
        assert self._rows is not None
        self._rows.append([(value,) for value in values])

    def result(self) -> Value:
        # The relation has the rows now, and lives on when this is closed.
        rows, self._rows = self._rows, None
        assert rows is not None
        return rows.relation(LIST, is_list=True)

    def close(self) -> None:
        if self._rows is not None:
            self._rows.close()


class Distinct:
    """Hands each value to another accumulator once."""

    def __init__(self, accumulator: Accumulator, memory: Memory) -> None:
        self._accumulator = accumulator
        self._seen = KeySet(memory)

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
    """How many values there are; without argument, how many tuples."""
    return len(values)


@aggregate_function(name="sum", type="number")
def sum_of(values: Sequence[Any]) -> Value:
    """The sum, exact for all kinds of numbers; null of no values."""
    return _whole(Sum(Counters()), values)


@aggregate_function(name="avg", type="number")
def average(values: Sequence[Any]) -> Value:
    """The mean; null of no values."""
    return _whole(Sum(Counters(), mean=True), values)


@aggregate_function(name="min", same_type=True)
def minimum(values: Sequence[Any]) -> Value:
    """The smallest value, in the order of sort; null of no values."""
    return _whole(Extreme(), values)


@aggregate_function(name="max", same_type=True)
def maximum(values: Sequence[Any]) -> Value:
    """The largest value, in the order of sort; null of no values."""
    return _whole(Extreme(largest=True), values)


@aggregate_function(name="first", same_type=True, depends_on_arrival=True)
def first(values: Sequence[Any]) -> Value:
    """The value that came first; null of no values."""
    return _whole(First(), values)


@aggregate_function(name="list", type="relation")
def list_of(values: Sequence[Any]) -> Value:
    """The values as a list, which `unpack` opens."""
    return Relation.of_values(values)


# Those that take no more memory for more values.
SMALL: dict[Callable[..., Any], Callable[[Counters], Accumulator]] = {
    count: lambda counters: Count(),
    sum_of: lambda counters: Sum(counters),
    average: lambda counters: Sum(counters, mean=True),
    minimum: lambda counters: Extreme(),
    maximum: lambda counters: Extreme(largest=True),
    first: lambda counters: First(),
}
