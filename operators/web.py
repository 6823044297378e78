"""wrapper, which fetches pages and extracts from them for each tuple."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import cast

from aioflow import Context, Schema, Stream, map_concurrently, operator
from aioflow.authoring.context import Release
from aioflow.authoring.operator import Settings
from aioflow.operators.function_calls import DependentJoin
from aioflow.relation import Batch
from aioflow.wrappers import AnyWrapper, PackedRows, WrapperName, wrapper_calls


def _wrapper_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    results: Schema = settings["name"].schema
    if not inputs:
        return results
    return None if inputs[0] is None else inputs[0].add(results)


@operator(
    schema=_wrapper_schema,
    firing="tuple",
    effects=lambda settings: bool(settings["name"].has_effects),
    outside=True,
)
async def wrapper(
    rel: Stream | None = None, *, name: WrapperName, outer: bool = False, context: Context
) -> AsyncGenerator[Batch | Release, None]:
    """Fetch and extract with a wrapper for each tuple, and add the results.

    The wrapper's inputs are taken from the tuple by name. If an input is null and not optional, there is no
    request and no result, and the tuple is counted: in this way a recursion along Next links ends. Several
    requests are under way at once, as many as workers and the limits of each host allow. Without an input
    relation, the wrapper is called once; it must not have required inputs then.

    Arguments:
        rel: the tuples.
        name: a WRAPPER of the plan's files, or one registered in Python.
        outer: keep tuples without result, with nulls.

    Examples:
        wrapper ("search", criteria : page)
        wrapper ("detail", urls : details) {ERRORS: failed; WORKERS: 8}
    """
    chosen = cast(AnyWrapper, name)
    schema = Schema(()) if rel is None else rel.schema
    assert schema is not None
    calls = wrapper_calls(chosen, schema, context)
    with DependentJoin(schema, chosen.schema, outer, context.memory) as joining:
        if rel is None:
            results = calls.once()
        else:
            called = map_concurrently(calls.caller(), rel, context, permit=False, window=calls.window)
            results = called.batches()
        async with aclosing(results):
            async for found in results:
                if isinstance(found, Release):
                    yield found
                    continue
                joined: Batch = []
                for row, rows in found:
                    if isinstance(rows, PackedRows):
                        for piece in rows.batches():
                            yield joined + joining.rows(row, piece)
                            joined = []
                            await asyncio.sleep(0)
                        continue
                    joined += joining.rows(row, rows)
                if joined:
                    yield joined
    await calls.end(outer=outer)
