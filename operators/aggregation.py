"""Aggregation of a relation as it streams in, as a whole or by groups, with or without its tuples."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeAlias

from aioflow import Record, Row, Schema
from aioflow.expressions import AggregateCall, Aggregates
from aioflow.operators.accumulators import SMALL, Accumulator, Collected, Distinct, Listed, list_of
from aioflow.operators.keyed import keys_of
from aioflow.operators.nesting import embedded
from aioflow.relation import Batch, Value, picker
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.spill import KeyedRows, RowBuffer

PACKED = "relation"
_STATE_BYTES = 500  # about the size of one function's state for a group, with its share of the key

State: TypeAlias = list[Accumulator]


class AggregateCalls:
    """The aggregate functions of a statement, their states, and the values that are added to those."""

    def __init__(self, functions: Aggregates, schema: Schema, memory: MemoryBudget) -> None:
        self.functions = functions
        self.schema = schema
        self.memory = memory
        self._arguments = [self._argument(call) for call in functions.calls]

    def __len__(self) -> int:
        return len(self.functions.calls)

    @property
    def are_small(self) -> bool:
        """True if the state of a group stays small, however many tuples it has."""
        return all(call.function.call in SMALL and not call.distinct for call in self.functions.calls)

    def start(self) -> State:
        return [self._accumulator(call) for call in self.functions.calls]

    def _accumulator(self, call: AggregateCall) -> Accumulator:
        accumulator: Accumulator
        if call.function.call in SMALL:
            accumulator = SMALL[call.function.call](self.functions.counters)
        elif call.function.call is list_of:
            accumulator = Listed(self.memory)
        else:
            accumulator = Collected(call.function.call, self.memory)
        return Distinct(accumulator, self.memory) if call.distinct else accumulator

    def add(self, state: State, rows: Sequence[Row]) -> None:
        for accumulator, argument in zip(state, self._arguments, strict=True):
            accumulator.add(argument(rows))

    @staticmethod
    def is_on_disk(state: State) -> bool:
        """Whether a state reads from disk when rows are added, or at its end."""
        return any(isinstance(each, Collected | Distinct) and each.is_on_disk for each in state)

    def _argument(self, call: AggregateCall) -> Callable[[Sequence[Row]], Sequence[Value]]:
        """Return a function that computes the values of a call's argument."""
        evaluate, position, schema = call.argument, call.position, self.schema
        if evaluate is None:
            if call.function.call in SMALL:
                return lambda rows: rows  # they are only counted
            return lambda rows: [Record(schema, row) for row in rows]
        values: Callable[[Sequence[Row]], list[Value]]
        if position is not None:
            values = lambda rows: [row[position] for row in rows]  # noqa: E731
        else:
            values = lambda rows: [evaluate(row) for row in rows]  # noqa: E731
        if not call.function.skip_nulls:
            return values
        return lambda rows: [value for value in values(rows) if value is not None]


def close(state: State) -> None:
    """Release the memory and files of a state."""
    for accumulator in state:
        accumulator.close()


class Whole:
    """Aggregates the whole relation into one tuple."""

    def __init__(self, calls: AggregateCalls, packs: bool) -> None:
        self._calls = calls
        self._state = calls.start()
        self._rows = RowBuffer(calls.memory) if packs else None
        self.disk = calls.memory.disk

    @property
    def is_on_disk(self) -> bool:
        return self._calls.is_on_disk(self._state)

    def add(self, batch: Batch) -> None:
        self._calls.add(self._state, batch)
        if self._rows is not None:
            self._rows.append(batch)

    def results(self) -> Iterator[Row]:
        # Functions may fail: the tuples are packed when all have succeeded.
        values = [accumulator.result() for accumulator in self._state]
        packed = () if self._rows is None else (self._rows.relation(self._calls.schema),)
        self._rows = None  # the packed relation owns them now
        yield (*packed, *values)

    def close(self) -> None:
        close(self._state)
        if self._rows is not None:
            self._rows.close()


class KeptGroups:
    """Keeps the tuples of each group and aggregates them at the end."""

    def __init__(self, calls: AggregateCalls, by: Sequence[int], packs: bool) -> None:
        self._calls = calls
        self._packs = packs
        self._keys, self._values = keys_of(by), picker(by)
        self._groups = KeyedRows(calls.memory)
        self.disk = calls.memory.disk

    @property
    def is_on_disk(self) -> bool:
        return self._groups.is_on_disk

    def add(self, batch: Batch) -> None:
        self._groups.add_all(self._keys(batch), batch)

    def results(self) -> Iterator[Row]:
        calls = self._calls
        for _, rows in self._groups.items():  # noqa: PERF102  # not a dict
            state = calls.start()
            try:
                calls.add(state, rows)
                values = [accumulator.result() for accumulator in state]
                packed = (embedded(calls.schema, rows, calls.memory),) if self._packs else ()
                yield (*self._values(rows[0]), *packed, *values)
            finally:
                close(state)

    def close(self) -> None:
        self._groups.close()


class RunningGroups:
    """Keeps a small state for each group. Once memory is short, it keeps the tuples of new groups on disk."""

    def __init__(self, calls: AggregateCalls, by: Sequence[int]) -> None:
        self._calls = calls
        self._keys, self._values = keys_of(by), picker(by)
        self._states: dict[Hashable, tuple[Row, State]] = {}
        self._others = KeptGroups(calls, by, packs=False)
        self._group_bytes = _STATE_BYTES * (len(calls) + len(by))
        self._reserved = 0
        self._full = False
        self.disk = calls.memory.disk

    @property
    def is_on_disk(self) -> bool:
        return self._others.is_on_disk

    def add(self, batch: Batch) -> None:
        groups: dict[Hashable, Batch] = {}
        others: Batch = []
        for key, row in zip(self._keys(batch), batch, strict=True):
            if key in groups:
                groups[key].append(row)
            else:
                groups[key] = [row]
        for key, rows in groups.items():
            known = self._states.get(key) or self._new(key, rows[0])
            if known is not None:
                self._calls.add(known[1], rows)
            else:
                others += rows
        if others:
            self._others.add(others)

    def _new(self, key: Hashable, row: Row) -> tuple[Row, State] | None:
        if self._full or not self._calls.memory.reserve(self._group_bytes):
            # From now on: a group must not begin in memory when some of its tuples are on disk.
            self._full = True
            return None
        self._reserved += self._group_bytes
        known = self._states[key] = self._values(row), self._calls.start()
        return known

    def results(self) -> Iterator[Row]:
        for values, state in self._states.values():
            yield (*values, *(accumulator.result() for accumulator in state))
        yield from self._others.results()

    def close(self) -> None:
        self._states = {}
        self._calls.memory.release(self._reserved)
        self._reserved = 0
        self._others.close()
