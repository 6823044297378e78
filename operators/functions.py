"""Python functions in plans: apply calls one for each tuple, aggregate for whole relations."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import closing
from typing import cast

from aioflow import Context, Schema, SettingError, Stream, map_concurrently, operator
from aioflow.authoring.function import Function, FunctionName
from aioflow.authoring.operator import Settings
from aioflow.expressions import Aggregates, Attributes
from aioflow.operators.aggregation import PACKED, AggregateCalls, KeptGroups, RunningGroups, Whole
from aioflow.operators.declared import DeclaredSchema
from aioflow.operators.function_calls import DependentJoin, FunctionCalls
from aioflow.operators.keyed import in_batches
from aioflow.operators.tally import tallied
from aioflow.relation import UNTOLD, Batch, Type
from aioflow.runtime.spill import DiskPause, off_loop, walk

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
