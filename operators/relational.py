"""The relational operators: select, project, join, distinct."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from operator import itemgetter
from typing import Any, Literal

from aioflow import Context, InputError, Row, Schema, SettingError, Stream, operator, same_as_input
from aioflow.authoring.operator import Settings
from aioflow.expressions import Attributes, Condition, JoinCondition, Projection
from aioflow.operators.hash_join import HashJoin, Side
from aioflow.operators.keyed import (
    Keyed,
    differing,
    differing_where,
    keys_of,
    matching,
    matching_where,
)
from aioflow.operators.settings import tallied
from aioflow.relation import Batch, Type, identities_of, picker
from aioflow.runtime.spill import KeySet, off_loop

JoinType = Literal["inner", "left", "right", "full", "semi", "anti"]


# --- select -------------------------------------------------------------------------------------


def _select_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    given = len(inputs) > 1
    if settings["where"] is None and not given:
        raise SettingError(
            'select needs a condition: a text, as in select (rel, "price < 10" : out), or an input'
        )
    if settings["where"] is not None and given:
        raise SettingError("select takes a condition or an input with conditions, not both", setting="where")
    if settings["cond"] is not None and not given:
        raise SettingError(
            "COND names an attribute of the input with conditions, and there is none", setting="cond"
        )
    if given and inputs[1] is not None:
        _condition_position(inputs[1], settings["cond"])
    return inputs[0]


def _condition_position(schema: Schema, name: str | None) -> int:
    """Return the column with the conditions: the one named, the only one, or `text`."""
    if name is None:
        if len(schema) == 1:
            return 0
        name = "text"
        if name not in schema and not schema.open:
            names = ", ".join(schema.names) or "no attributes"
            raise SettingError(f"which attribute has the conditions? there are: {names}; name one with COND")
    try:
        return schema.position(name)
    except SettingError as error:
        error.setting = "cond"
        raise


@operator(schema=_select_schema, batchwise=lambda settings: settings["where"].filter, needs_whole=(1,))
async def select(
    rel: Stream,
    conditions: Stream | None = None,
    *,
    where: Condition | None = None,
    cond: str | None = None,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Keep the tuples for which a condition holds.

    The condition is a text, or comes from a second input, which is read to its end first. All of its
    conditions must hold. If there are none, every tuple passes.

    Arguments:
        rel: the tuples.
        conditions: a relation of conditions, in its only attribute, in `text`, or in the attribute that COND
            names.
        where: the condition.
        cond: the attribute of the second input that has the conditions.

    Examples:
        select (houses, "beds >= 3 and price < 550000" : affordable)
        select (houses, wishes : wanted) {COND: "wish"}
    """
    texts = [] if conditions is None else await _texts(conditions, cond)
    tests = [where] if where is not None else _compiled(texts, rel)
    with tallied(context, *tests):
        async for batch in rel.batches():
            for test in tests:
                batch = test.filter(batch)
            if batch:
                yield batch


async def _texts(conditions: Stream, name: str | None) -> list[str]:
    texts: dict[str, None] = {}
    async for batch in conditions.batches():
        assert conditions.schema is not None
        position = _condition_position(conditions.schema, name)
        for row in batch:
            if not isinstance(row[position], str):
                attribute = conditions.schema.names[position]
                raise InputError(f"a condition must be text; attribute {attribute!r} is {row[position]!r}")
            texts[row[position]] = None
    return list(texts)


def _compiled(texts: Sequence[str], rel: Stream) -> list[Condition]:
    if rel.schema is not None and rel.schema.open:
        for text in texts:
            for name in _compile(text, None).names:
                rel.position(name)  # adds the name to the open schema
    return [_compile(text, rel.schema) for text in texts]


def _compile(text: str, schema: Schema | None) -> Condition:
    try:
        return Condition.bind(text, [schema])
    except SettingError as error:
        raise InputError(f"bad condition {text!r}: {error.message}") from None


# --- project and distinct -----------------------------------------------------------------------


def _project_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    schema: Schema | None = settings["attributes"].schema
    return schema


def _projected(settings: Settings) -> frozenset[str] | None:
    """Return the attributes that a projection reads; None with a star, since it may read any."""
    attributes = settings["attributes"]
    return None if attributes.schema is None else frozenset(attributes.names)


@operator(schema=_project_schema, batchwise=lambda settings: settings["attributes"].rows, reads=_projected)
async def project(rel: Stream, *, attributes: Projection) -> AsyncGenerator[Batch, None]:
    """Reduce each tuple to some attributes, renamed or computed; duplicates stay.

    Arguments:
        rel: the tuples.
        attributes: names and expressions: `a, b as c, n - 1 as n`, `*`, `* except a`.

    Examples:
        project (houses, "address, price / area as price-per-foot" : brief)
        project (houses, "* except photo" : lean)
    """
    async for batch in rel.batches():
        yield attributes.rows(batch)


@operator(
    schema=same_as_input,
    depends_on_arrival=lambda settings: settings["attributes"] is not None,
)
async def distinct(
    rel: Stream, *, attributes: Attributes | None = None, context: Context
) -> AsyncGenerator[Batch, None]:
    """Keep the first tuple for each value of some attributes, or of all.

    Arguments:
        rel: the tuples.
        attributes: the attributes to compare; all of them if left out.

    Examples:
        distinct (links, "url" : fresh)
        distinct (houses : different)
    """
    keys: Callable[[Batch], Sequence[Any]] = (
        identities_of(rel.schema or Schema(())) if attributes is None else keys_of(attributes.positions or ())
    )
    with KeySet(context.memory) as seen:
        async for batch in rel.batches():
            fresh = await off_loop(seen, seen.add_new, keys(batch), batch)
            if fresh:
                yield fresh


# --- join ---------------------------------------------------------------------------------------


def _join_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    left, right = inputs
    if settings["type"] in ("semi", "anti"):
        return left
    if left is None or right is None:
        return None
    once = _once(settings["on"])
    names, types, aliases = [], [], []
    for side, schema, other in (("left", left, right), ("right", right, left)):
        for name, kind in zip(schema.names, schema.types, strict=True):
            if name in once:
                if side == "left":
                    names.append(name)
                    types.append(_common(kind, right.type_of(name)))
                continue
            names.append(f"{side}.{name}" if name in other else name)
            types.append(kind)
            aliases += [(alias, names[-1]) for alias in _other_names(name, side, schema, other)]
    return Schema(tuple(names), tuple(types), left.open or right.open, tuple(aliases))


def _other_names(name: str, side: str, schema: Schema, other: Schema) -> Iterator[str]:
    """Yield the names that an attribute of a join may get, if an open schema may have its name too."""
    aliases = [alias for alias, known in schema.aliases if known == name]
    yield from aliases
    if other.open:
        yield from (f"{side}.{each}" for each in (name, *aliases) if each not in other)
        if name in other and any(known == name for _, known in other.aliases):
            yield name  # if the other attribute has its alias as its name


def _once(condition: JoinCondition) -> set[str]:
    """Return the equated attributes with the same name on both sides, which appear once."""
    return {left for left, right in condition.equated if left == right}


def _common(first: Type | None, second: Type | None) -> Type | None:
    return first if first == second else None


# A tuple without partner is a result because a row is missing on the other side.
_NEEDS_WHOLE = {"left": (1,), "right": (0,), "full": (0, 1), "anti": (1,)}


@operator(schema=_join_schema, needs_whole=lambda settings: _NEEDS_WHOLE.get(settings["type"], ()))
async def join(
    left: Stream, right: Stream, *, on: JoinCondition, type: JoinType = "inner", context: Context
) -> AsyncGenerator[Batch, None]:
    """Join the tuples of two inputs that match.

    Both inputs stream: a result leaves when its second half arrives. Equality between an attribute of each
    input is hashed, and the rest of the condition filters. Equated attributes with the same name appear once;
    other attributes with the same name become `left.a` and `right.a`. Null never equals anything. If tuples
    without partner are kept, results are doubtful if the input without the partner is partial.

    Arguments:
        left: the first input, `left` in the condition.
        right: the second input, `right` in the condition.
        on: the condition, such as `left.zip = right.zip and left.price < right.budget`.
        type: inner; left, right and full also keep tuples without partner, with nulls; semi keeps left tuples
            that have a partner, anti those that have none.

    Examples:
        join (houses, schools, "left.zip = right.zip" : choices)
        join (houses, sold, "left.url = right.url" : available) {TYPE: anti}
    """
    with tallied(context, on):
        if type == "semi":
            results = _semi(left, right, on, context)
        elif type == "anti":
            results = _anti(left, right, on, context)
        else:
            results = _pairs(left, right, on, type, context)
        async with aclosing(results):
            async for batch in results:
                yield batch


def _semi(left: Stream, right: Stream, on: JoinCondition, context: Context) -> AsyncGenerator[Batch, None]:
    sides = Keyed(left, on.left_key or ()), Keyed(right, on.right_key or ())
    if on.rest is None:
        return matching(*sides, context.memory)
    return matching_where(*sides, on.rest, context.memory)


def _anti(left: Stream, right: Stream, on: JoinCondition, context: Context) -> AsyncGenerator[Batch, None]:
    sides = Keyed(left, on.left_key or ()), Keyed(right, on.right_key or ())
    if on.rest is None:
        return differing(*sides, context.memory)
    return differing_where(*sides, on.rest, context.memory)


def _pairs(
    left: Stream, right: Stream, on: JoinCondition, type: JoinType, context: Context
) -> AsyncGenerator[Batch, None]:
    assert left.schema is not None
    assert right.schema is not None
    once = _once(on)
    tail = [place for place, name in enumerate(right.schema.names) if name not in once]
    nulls = (None,) * len(tail)
    # A right row without partner has its own values in attributes that appear once, and null elsewhere.
    places = [right.schema.position(name) if name in once else None for name in left.schema.names]

    def pad_left(row: Row) -> Row:
        return row + nulls

    def pad_right(row: Row) -> Row:
        return (*(None if place is None else row[place] for place in places), *(row[place] for place in tail))

    memory = context.memory
    return HashJoin(
        Side(left, on.left_key or (), memory, pad_left if type in ("left", "full") else None),
        Side(right, on.right_key or (), memory, pad_right if type in ("right", "full") else None),
        memory,
        _columns(tail) if once else None,
        on.rest,
    ).results()


def _columns(places: Sequence[int]) -> Callable[[Row], Row]:
    """Return a function that picks columns of a row; adjacent columns are a slice, which is faster."""
    if places and list(places) == list(range(places[0], places[-1] + 1)):
        return itemgetter(slice(places[0], places[-1] + 1))
    return picker(places)
