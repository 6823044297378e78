"""Operators for relations inside tuples, pack and unpack, and for texts made of tuples, format."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from itertools import chain, islice
from typing import cast

from aioflow import (
    Context,
    Document,
    InputError,
    Record,
    Relation,
    Row,
    Schema,
    SettingError,
    Stream,
    operator,
)
from aioflow.authoring.operator import Settings
from aioflow.expressions import Attributes, Formatter, RepeatableAttributes, Template
from aioflow.operators.function_calls import DependentJoin
from aioflow.operators.keyed import keys_of
from aioflow.operators.settings import DeclaredSchema
from aioflow.relation import UNTOLD, Batch, Type, Value, picker
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.spill import DiskPause, KeyedRows, RowBuffer, off_loop, stored_batches, walk, with_pauses
from aioflow.values.coercion import Declaration, relation_of, row_of_mapping

_PIECE_ROWS = 1024


# --- pack ---------------------------------------------------------------------------------------


def _pack_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    packed = Schema.of(**{settings["attribute"]: "relation"})
    by: Attributes | None = settings["by"]
    if by is None:
        return packed
    if settings["attribute"] in by.names:
        raise SettingError(
            f"{settings['attribute']!r} is an attribute that BY groups by", setting="attribute"
        )
    groups = Schema(by.names) if inputs[0] is None else inputs[0].pick(by.names)
    return groups.add(packed)


@operator(schema=_pack_schema, firing="end", grouped_by="by", needs_whole=(0,))
async def pack(
    rel: Stream, *, attribute: str, by: Attributes | None = None, context: Context
) -> AsyncGenerator[Row, None]:
    """Make one tuple that embeds the whole relation, even an empty one, or one tuple for each group.

    Arguments:
        rel: the tuples.
        attribute: the name of the attribute that embeds them.
        by: attributes to group by. There is one tuple for each of their values, with these values and the
            group.

    Examples:
        pack (houses, "houses" : parcel)
        pack (houses, "houses" : parcels) {BY: "city, state"}
    """
    schema = rel.schema or UNTOLD
    if by is None:
        rows = await collected(rel, context.memory)
        yield (rows.relation(schema),)
        return
    with KeyedRows(context.memory) as groups:
        positions = by.positions or ()
        keys, values = keys_of(positions), picker(positions)
        async for batch in rel.batches():
            await off_loop(groups, groups.add_all, keys(batch), batch)
        async for some in walk(groups, groups.groups()):
            for _, group in some:
                yield (*values(group[0]), embedded(schema, group, context.memory))


async def collected(rel: Stream, memory: MemoryBudget) -> RowBuffer:
    """Return all tuples of a relation in a buffer, which the caller must close or pass on."""
    rows = RowBuffer(memory)
    try:
        async for batch in rel.batches():
            rows.append(batch)
    except BaseException:
        rows.close()
        raise
    return rows


def embedded(schema: Schema, rows: Batch, memory: MemoryBudget) -> Relation:
    """Return a relation as a value, on disk when it is long and memory is short."""
    if len(rows) <= _PIECE_ROWS:
        return Relation(schema, rows)
    buffer = RowBuffer(memory)
    for start in range(0, len(rows), _PIECE_ROWS):
        buffer.append(rows[start : start + _PIECE_ROWS])
    return buffer.relation(schema)


# --- unpack -------------------------------------------------------------------------------------


def _unpack_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    if inputs[0] is None:
        return None
    kind = inputs[0].type_of(settings["attribute"])
    if kind not in (None, Type.RELATION, Type.DOCUMENT, Type.CHAR):
        raise SettingError(f"{settings['attribute']!r} is a {kind}, not a relation", setting="attribute")
    declared: Schema | None = settings["schema"]
    return None if declared is None else inputs[0].without(settings["attribute"]).add(declared)


@operator(schema=_unpack_schema, firing="tuple")
async def unpack(
    rel: Stream,
    *,
    attribute: str,
    outer: bool = False,
    schema: DeclaredSchema | None = None,
    context: Context,
) -> AsyncGenerator[Batch | Schema, None]:
    """Pass on the tuples of embedded relations, each joined to the rest of the tuple around it.

    The first embedded relation determines the attributes. Attributes that later ones lack are null, and
    additional ones are an error. Lists of values, such as those of `all` and `list`, are unpacked into the
    attribute that contains them. JSON texts of lists are unpacked as well.

    Arguments:
        rel: the tuples.
        attribute: the attribute that embeds relations.
        outer: keep tuples whose relation is empty or null, with nulls.
        schema: the attributes of the embedded relations with their types, such as `k char, price number`. The
            plan is checked with them, and other attributes are an error.

    Examples:
        unpack (parcels, "houses" : houses)
        unpack (parcels, "houses" : houses) {OUTER}
    """
    assert rel.schema is not None
    declared = cast(Schema | None, schema)
    with DependentJoin(rel.schema.without(attribute), declared, outer, context.memory) as joining:
        unpacking = _Unpacking(rel.schema, attribute, joining, declared, context)
        async for batch in rel.batches():
            for given in unpacking.unpack(batch):
                if isinstance(given, DiskPause):
                    await given.over()
                else:
                    yield given
        for given in unpacking.end():
            if isinstance(given, DiskPause):
                await given.over()
            else:
                yield given


class _Unpacking:
    """Joins embedded tuples to the tuples around them, batch by batch."""

    def __init__(
        self,
        schema: Schema,
        attribute: str,
        joining: DependentJoin,
        declared: Schema | None,
        context: Context,
    ) -> None:
        self._context = context
        self._attribute = attribute
        self._declaration = None if declared is None else Declaration(declared)
        self._position = schema.position(attribute)
        self._value_name = attribute if declared is None or len(declared) != 1 else declared.names[0]
        self._rest = picker([place for place in range(len(schema)) if place != self._position])
        self._joining = joining

    def unpack(self, batch: Batch) -> Iterator[Batch | Schema | DiskPause]:
        """Yield the joined tuples, and before the first of them their schema."""
        joining = self._joining
        results: Batch = []
        for row in batch:
            rest = self._rest(row)
            try:
                relation = self._named(_relation(row[self._position], self._attribute))
                pieces = self._fitted(_pieces(relation, joining.results or relation.schema))
                first = next(pieces)  # attributes that do not fit are noticed here
                while isinstance(first, DiskPause):
                    yield first
                    first = next(pieces)
            except (InputError, SettingError) as error:
                self._context.fail(row, error)
                continue
            self._context.fired()
            if joining.results is None:
                if not len(relation) and (relation.schema.open or not relation.schema.names):
                    joining.hold(rest)
                    continue
                yield from joining.start(relation.schema)
            for piece in chain((first,), pieces):
                if isinstance(piece, DiskPause):
                    yield piece
                    continue
                results += joining.rows(rest, piece)
                if len(results) >= _PIECE_ROWS:
                    yield results
                    results = []
        if results:
            yield results

    def _named(self, relation: Relation) -> Relation:
        """Return a list with its values named as in SCHEMA, or else like the list."""
        if not relation.is_list:
            return relation
        return Relation(Schema((self._value_name,), relation.schema.types), relation.rows)

    def _fitted(self, pieces: Iterator[Batch | DiskPause]) -> Iterator[Batch | DiskPause]:
        """Yield the tuples, read as SCHEMA declares them."""
        if self._declaration is None:
            return pieces
        rows = self._declaration.rows
        return (piece if isinstance(piece, DiskPause) else rows(piece) for piece in pieces)

    def end(self) -> Iterator[Batch | Schema | DiskPause]:
        """Yield the held tuples, if no relation determined the attributes."""
        if self._joining.results is None:
            yield from self._joining.start(UNTOLD)


def _relation(value: Value, attribute: str) -> Relation:
    if isinstance(value, Relation):
        return value
    if value is None:
        return Relation(UNTOLD)
    if isinstance(value, str) or (isinstance(value, Document) and value.kind == "json"):
        try:
            content = json.loads(str(value))
            parsed = Relation(UNTOLD) if content == [] else relation_of(content)
        except (ValueError, SettingError, RecursionError):
            parsed = None
        if parsed is not None:
            return parsed
    raise InputError(f"attribute {attribute!r} holds no relation, but {value!r:.60}")


def _pieces(relation: Relation, schema: Schema) -> Iterator[Batch | DiskPause]:
    """Yield the tuples in at least one short list, with their columns in the order of `schema`.

    A relation on disk has tuples, and is read in pauses.
    """
    stored = stored_batches(relation)
    if stored is None:
        yield from _short_lists(iter(relation.rows), relation.schema, schema)
        return
    for batch in with_pauses(stored, iter(stored)):
        if isinstance(batch, DiskPause):
            yield batch
        else:
            yield from _short_lists(iter(batch), relation.schema, schema)


def _short_lists(rows: Iterator[Row], given: Schema, schema: Schema) -> Iterator[Batch]:
    if given.names != schema.names:
        rows = (row_of_mapping(schema, Record(given, row)) for row in rows)
    yield list(islice(rows, _PIECE_ROWS))
    while piece := list(islice(rows, _PIECE_ROWS)):
        yield piece


# --- format -------------------------------------------------------------------------------------


def _formatter(settings: Settings) -> Formatter:
    template: Template = settings["template"]
    try:
        return template.formatter(settings["attributes"])
    except SettingError as error:
        error.setting = error.setting or "template"
        raise


def _format_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    _formatter(settings)
    return None if inputs[0] is None else inputs[0].add(Schema.of(**{settings["as"]: "char"}))


def _format_rows(settings: Settings) -> Callable[[Sequence[Row]], Batch]:
    return _with_text(settings["template"].schema or Schema(()), _formatter(settings), settings["as"])


def _with_text(schema: Schema, formatter: Formatter, name: str) -> Callable[[Sequence[Row]], Batch]:
    """Return a function that adds the text to each row of a batch."""
    write = formatter.row
    if name not in schema:
        return lambda batch: [(*row, write(row)) for row in batch]
    place = schema.position(name)
    return lambda batch: [(*row[:place], write(row), *row[place + 1 :]) for row in batch]


@operator(schema=_format_schema, batchwise=_format_rows)
async def format(
    rel: Stream,
    *,
    template: Template,
    attributes: RepeatableAttributes | None = None,
    as_: str = "text",
) -> AsyncGenerator[Batch, None]:
    """Add an attribute with a text that is made of other attributes.

    Arguments:
        rel: the tuples.
        template: the text, with a conversion such as `%s` for each of the attributes listed, or with names in
            braces, `{beds}`, if none are listed. `%q` writes a value as a literal of expressions.
        attributes: the attributes for the conversions, in order.
        as_: the name of the new attribute.

    Examples:
        format (wishes, "beds >= %q and city = %q", "beds, city" : conditions)
        format (houses, "{address}, {city}" : labelled) {AS: "label"}
    """
    with_text = _with_text(rel.schema or Schema(()), template.formatter(attributes), as_)
    async for batch in rel.batches():
        yield with_text(batch)
