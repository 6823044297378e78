"""The set operators: union, intersect, minus. They match attributes by name, in the first input's order."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Hashable, Sequence
from contextlib import aclosing
from itertools import chain

from aioflow import Context, Schema, SettingError, Stream, interleave, operator
from aioflow.authoring.operator import Settings
from aioflow.expressions import Attributes
from aioflow.operators.keyed import Keyed, differing, matching
from aioflow.relation import UNTOLD, Batch, identities, identities_of, picker
from aioflow.runtime.spill import KeySet, off_loop


def paired(first: Schema, other: Schema) -> list[int]:
    """Return the columns of `other` in the order of `first`; raise a SettingError if their names differ."""
    if set(first.names) != set(other.names):
        raise SettingError(f"the inputs differ in their attributes: {_difference(first, other)}")
    return [other.position(name) for name in first.names]


def _ask_for_the_same(schemas: Sequence[Schema]) -> None:
    """Ask open schemas for the attributes of one that is not; if all are open, each for those of the rest."""
    reference = next((schema for schema in schemas if not schema.open), schemas[0])
    for schema in schemas:
        for name in reference.names:
            if schema.open:
                schema.position(name)
    if reference.open:
        for name in chain.from_iterable(schemas):
            reference.position(name)


def _difference(first: Schema, other: Schema) -> str:
    parts = [
        f"{which} has no {', '.join(repr(name) for name in missing)}"
        for which, missing in (
            ("the first", [name for name in other.names if name not in first]),
            ("another", [name for name in first.names if name not in other]),
        )
        if missing
    ]
    return ", ".join(parts)


def merged(inputs: Sequence[Schema | None]) -> Schema | None:
    """Return the schema of a union of these inputs; any known schema gives the names of all."""
    known = [schema for schema in inputs if schema is not None]
    if not known:
        return None
    _ask_for_the_same(known)
    first = known[0]
    types = list(first.types)
    for other in known[1:]:
        for place, position in enumerate(paired(first, other)):
            if other.types[position] != types[place]:
                types[place] = None
    return Schema(first.names, tuple(types), all(schema.open for schema in known))


# --- union --------------------------------------------------------------------------------------


def _union_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    if not inputs:
        raise SettingError("union needs at least one input")
    return merged(inputs)


@operator(
    schema=_union_schema,
    opens_late=True,
    flattens=lambda settings: ("union", bool(settings.get("all"))),
)
async def union(*inputs: Stream, all: bool = False, context: Context) -> AsyncGenerator[Batch | Schema, None]:
    """Pass the tuples of all inputs, each once.

    Arguments:
        inputs: relations with the same attributes, in any order.
        all: keep duplicates.

    Examples:
        union (here, rest : urls)
        union (monday, tuesday, wednesday : visits) {ALL}
    """
    schema = merged([stream.schema for stream in inputs]) or UNTOLD
    orders: dict[Stream, Callable[[Batch], Batch]] = {}
    keys: dict[Stream, Callable[[Batch], Sequence[Hashable]]] = {}
    async with aclosing(_batches(inputs, context.ordered)) as batches:
        with KeySet(context.memory) as seen:
            async for stream, batch in batches:
                if stream not in orders:
                    assert stream.schema is not None
                    listed = stream.schema.listing(*schema.names)
                    orders[stream] = _ordering(schema, listed, len(listed) - len(stream.schema))
                    keys[stream] = identities_of(listed.pick(schema.names))
                rows = orders[stream](batch)
                fresh = rows if all else await off_loop(seen, seen.add_new, keys[stream](rows), rows)
                if fresh:
                    yield fresh


async def _batches(inputs: Sequence[Stream], ordered: bool) -> AsyncGenerator[tuple[Stream, Batch], None]:
    """Yield batches as they arrive, or one input after the other."""
    if not ordered:
        async for stream, batch in interleave(*inputs):
            if batch:
                yield stream, batch
        return
    for stream in inputs:
        async for batch in stream.batches():
            yield stream, batch


def _ordering(first: Schema, other: Schema, nulls: int) -> Callable[[Batch], Batch]:
    """Return a function that puts the columns of a batch in the order of `first`, with nulls for missing
    ones.
    """
    positions = paired(first, other)
    if positions == list(range(len(positions))) and not nulls:
        return lambda batch: batch
    pick, padding = picker(positions), (None,) * nulls
    if nulls:
        return lambda batch: [pick(row + padding) for row in batch]
    return lambda batch: list(map(pick, batch))


# --- intersect and minus ------------------------------------------------------------------------


def _lhs_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    lhs, rhs = inputs
    if lhs is None or rhs is None:
        return lhs
    if settings["on"] is not None:
        _positions(rhs, settings["on"])
        return lhs
    _ask_for_the_same((lhs, rhs))
    paired(lhs, rhs)
    return lhs if rhs.open else lhs.closed()


def _positions(schema: Schema, on: Attributes) -> list[int]:
    try:
        return [schema.position(name) for name in on.names]
    except SettingError as error:
        error.setting = "on"
        raise


def _compared(lhs: Stream, rhs: Stream, on: Attributes | None) -> tuple[Keyed, Keyed]:
    """Return both inputs, with the attributes to compare as their keys."""
    assert lhs.schema is not None
    assert rhs.schema is not None
    names = on.names if on is not None else lhs.schema.names
    left, right = ([schema.position(name) for name in names] for schema in (lhs.schema, rhs.schema))
    return Keyed(lhs, left, nulls_match=True), Keyed(rhs, right, nulls_match=True)


@operator(schema=_lhs_schema)
async def intersect(
    lhs: Stream, rhs: Stream, *, on: Attributes | None = None, context: Context
) -> AsyncGenerator[Batch, None]:
    """Pass the tuples that both inputs have, each once, as soon as it has arrived from both.

    Arguments:
        lhs: the tuples.
        rhs: the tuples to look for; the same attributes, in any order, unless ON says otherwise.
        on: compare these attributes only; each tuple of `lhs` then stays or goes by itself, also
            duplicates.

    Examples:
        intersect (wanted, offered : matches)
        intersect (houses, favourites : liked) {ON: "url"}
    """
    left, right = _compared(lhs, rhs, on)
    async with aclosing(matching(left, right, context.memory)) as found:
        with KeySet(context.memory) as seen:
            async for batch in found:
                kept = batch
                if on is None:
                    kept = await off_loop(seen, seen.add_new, identities(batch), batch)
                if kept:
                    yield kept


@operator(schema=_lhs_schema, blocking_input=1, needs_whole=(1,))
async def minus(
    lhs: Stream, rhs: Stream, *, on: Attributes | None = None, context: Context
) -> AsyncGenerator[Batch, None]:
    """Pass the tuples of the first input that the second does not have, each once.

    Tuples of the first input are held until the second has ended.

    Arguments:
        lhs: the tuples.
        rhs: the tuples to leave out; the same attributes, in any order, unless ON says otherwise.
        on: compare these attributes only; each tuple of `lhs` then stays or goes by itself, also
            duplicates.

    Examples:
        minus (urls, seen : new-urls)
        minus (houses, sold : available) {ON: "url"}
    """
    left, right = _compared(lhs, rhs, on)
    async with aclosing(differing(left, right, context.memory)) as found:
        with KeySet(context.memory) as seen:
            async for batch in found:
                kept = batch
                if on is None:
                    kept = await off_loop(seen, seen.add_new, identities(batch), batch)
                if kept:
                    yield kept
