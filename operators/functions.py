"""Python functions in plans: apply calls one for each tuple, aggregate for relations or groups of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Hashable, Iterator, Sequence
from contextlib import closing
from typing import TypeAlias, cast

from aioflow import Context, Record, Row, Schema, SettingError, Stream, map_concurrently, operator
from aioflow.authoring.function import Function, FunctionName
from aioflow.authoring.operator import Settings
from aioflow.expressions import AggregateCall, Aggregates, Attributes
from aioflow.operators.accumulators import SMALL, Accumulator, Collected, Distinct, Listed, list_of
from aioflow.operators.function_calls import DependentJoin, FunctionCalls
from aioflow.operators.keyed import in_batches, keys_of
from aioflow.operators.nesting import embedded
from aioflow.operators.settings import DeclaredSchema, tallied
from aioflow.relation import UNTOLD, Batch, Type, Value, picker
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.spill import DiskPause, KeyedRows, RowBuffer, off_loop, walk

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
        """Return whether a state reads from disk when rows are added, or at its end."""
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


# --- apply --------------------------------------------------------------------------------------


def _apply_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    function: Function = settings["function"]
    if function.returns is not None and settings["schema"] is not None:
        raise SettingError(f"{function.name!r} is registered with what it returns", setting="schema")
    returns = function.returns or settings["schema"]
    if inputs[0] is not None:
        try:
            for name in function.takes or ():
                inputs[0].position(name)
        except SettingError as error:
            error.setting = "function"
            raise
    return None if inputs[0] is None or returns is None else inputs[0].add(returns)


def _waits(settings: Settings) -> bool:
    return bool(settings["function"].is_async or settings["function"].blocking)


@operator(
    schema=_apply_schema,
    firing="tuple",
    effects=lambda settings: not settings["function"].pure,
    endless=lambda settings: settings["function"].endless,
    outside=_waits,
)
async def apply(
    rel: Stream,
    *,
    function: FunctionName,
    outer: bool = False,
    schema: DeclaredSchema | None = None,
    context: Context,
) -> AsyncGenerator[Batch | Schema, None]:
    """Call a registered Python function with each tuple and add its results.

    The function gets the tuple as a mapping, or the values of the attributes that it was registered to take.
    It returns a mapping, a single value (for the one attribute that it was registered to return, else one
    named like the function), None for no result, or many of these, as a list or as a generator. A result with
    the name of an attribute of the tuple replaces it. Async functions are called for several tuples at once,
    and so are functions registered as blocking, which run on worker threads.

    Arguments:
        rel: the tuples.
        function: the name under which the function was registered.
        outer: keep tuples without result, with nulls.
        schema: the attributes of results with their types, such as `k char, price number`, for a function
            that was not registered with them. The plan is checked with them, and other results fail.

    Examples:
        apply (houses, "geocode" : located)
        apply (pages, "links" : found) {OUTER; WORKERS: 4; ERRORS: failed}
    """
    assert rel.schema is not None
    called, declared = cast(Function, function), cast(Schema | None, schema)
    with DependentJoin(rel.schema, called.returns or declared, outer, context.memory) as joining:
        calls = FunctionCalls(called, rel.schema, joining, context, declared)
        if called.is_async or called.blocking:
            # A call on a thread takes its permit together with the thread.
            permit, source = called.is_async, called.source
            call = calls.caller()
            async for row, results in map_concurrently(call, rel, context, permit=permit, source=source):
                for given in calls.joined(row, results):
                    if isinstance(given, DiskPause):
                        await given.over()
                    else:
                        yield given
        else:
            async for batch in rel.batches():
                for given in calls.at_once(batch):
                    if isinstance(given, DiskPause):
                        await given.over()
                    else:
                        yield given
        for given in calls.end():
            if isinstance(given, DiskPause):
                await given.over()
            else:
                yield given


# --- aggregate ----------------------------------------------------------------------------------


def _aggregate_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    by: Attributes | None = settings["by"]
    results: Schema = settings["functions"].schema
    groups = Schema(())
    if by is not None:
        groups = Schema(by.names) if inputs[0] is None else inputs[0].pick(by.names)
    packed = (PACKED,) if settings["relation"] else ()
    parts = (*groups.names, *packed, *results.names)
    types = (*groups.types, *(Type.RELATION for _ in packed), *results.types)
    return Schema(parts, types)


@operator(
    schema=_aggregate_schema,
    firing="end",
    grouped_by="by",
    needs_whole=(0,),
    depends_on_arrival=lambda settings: any(
        call.function.depends_on_arrival for call in settings["functions"].calls
    ),
)
async def aggregate(
    rel: Stream,
    *,
    functions: Aggregates,
    by: Attributes | None = None,
    relation: bool = True,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Compute functions of the whole relation, or of its groups, at its end.

    The result is one tuple, even for an empty relation, or one for each group. It has the attributes of BY,
    the tuples themselves packed in `relation`, and the results. The functions count, sum, avg, min, max,
    first and list are built in; others are registered in Python. Nulls are left out, as in SQL.

    Arguments:
        rel: the tuples.
        functions: calls such as `sum(price) as total, count() as n`. The argument may be an expression. With
            `distinct` before it, each value counts once.
        by: the attributes to group by.
        relation: `false` leaves out the attribute `relation`. Its tuples are kept only if the attribute may
            be read: not if a `project` without it follows.

    Examples:
        aggregate (houses, "count() as n, avg(price) as price" : summary)
        aggregate (houses, "max(price) as top" : tops) {BY: "city"; RELATION: false}
    """
    calls = AggregateCalls(functions, rel.schema or UNTOLD, context.memory)
    packs = relation and context.reads_attribute(PACKED)
    width = len(by.names) if by is not None else 0
    with tallied(context, functions), closing(_aggregation(calls, by, packs)) as aggregation:
        async for batch in rel.batches():
            await off_loop(aggregation, aggregation.add, batch)
        async for results in walk(aggregation, in_batches(aggregation.results())):
            if relation and not packs:  # it is not read
                results = [(*row[:width], None, *row[width:]) for row in results]
            yield results


def _aggregation(
    calls: AggregateCalls, by: Attributes | None, packs: bool
) -> Whole | KeptGroups | RunningGroups:
    if by is None:
        return Whole(calls, packs)
    if packs or not calls.are_small:
        return KeptGroups(calls, by.positions or (), packs)
    return RunningGroups(calls, by.positions or ())
