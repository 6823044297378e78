"""Rows from outside: mappings become tuples, and values are fitted to their declared types."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import chain, islice
from operator import itemgetter
from typing import Any, TypeAlias, TypeVar

from aioflow.errors import InputError, SettingError, suggestion
from aioflow.relation import Batch, Document, Record, Relation, Row, Schema, Type, Value, type_of_value
from aioflow.values.text import read_date, read_number, to_text

RowsIn: TypeAlias = (
    Relation | Iterable[Mapping[str, Any]] | AsyncIterable[Mapping[str, Any]] | Mapping[str, Any]
)

_BATCH_ROWS = 256
_READY = frozenset({str, int, float, bool, type(None), date, datetime, Decimal, Relation, Document})
# The classes of the values of a type: if all values are of these, none needs to be checked by itself.
_CLASSES: Mapping[Type, frozenset[type]] = {
    Type.CHAR: frozenset({str, type(None)}),
    Type.NUMBER: frozenset({int, float, Decimal, type(None)}),
    Type.BOOLEAN: frozenset({bool, type(None)}),
    Type.DATE: frozenset({date, datetime, type(None)}),
    Type.RELATION: frozenset({Relation, type(None)}),
    Type.DOCUMENT: frozenset({Document, type(None)}),
}


def row_of_mapping(schema: Schema, mapping: Mapping[str, Any]) -> Row:
    """Return the tuple of a mapping; a missing attribute is null, an additional one is a SettingError."""
    row = tuple([mapping.get(name) for name in schema.names])
    if len(mapping) > len(row) or any(name not in schema for name in mapping):
        extra = next(name for name in mapping if name not in schema)
        known = ", ".join(schema.names)
        raise SettingError(
            f"unknown attribute {extra!r}{suggestion(extra, schema.names)} (there are: {known})"
        )
    return row


class Declaration:
    """Converts rows to the types of a schema: for a number, a text is read as one."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._typed = [(place, kind) for place, kind in enumerate(schema.types) if kind is not None]

    def fits(self, rows: Batch) -> bool:
        """Return whether all rows are as declared already."""
        if not self._typed or not rows:
            return True
        columns = list(zip(*rows, strict=True))
        return all(set(map(type, columns[place])) <= _CLASSES[kind] for place, kind in self._typed)

    def row(self, row: Row) -> Row:
        """Return a row as declared; raise a SettingError for a value that cannot be converted."""
        values = list(row)
        for place, kind in self._typed:
            value = row[place]
            if value is None or type_of_value(value) is kind:
                continue
            values[place] = read_as(value, kind)
            if values[place] is None:
                name = self._schema.names[place]
                raise SettingError(f"attribute {name!r} must be {kind}, not {value!r}")
        return tuple(values)

    def rows(self, rows: Batch) -> Batch:
        """Return the rows as declared; raise a SettingError for the first value that cannot be converted."""
        return rows if self.fits(rows) else [self.row(row) for row in rows]


class Intake:
    """Makes tuples of the mappings for one input of a plan.

    The declaration determines the attributes; without one, the first batch does.
    """

    def __init__(self, name: str, declared: Schema | None) -> None:
        self.name = name
        self.declared = declared
        self.schema = declared
        self._declaration = Declaration(declared or Schema(()))
        self._count = 0
        self._getter: Callable[[Mapping[str, Any]], Any] | None = None

    def peek(self, rows: RowsIn) -> Schema | None:
        """Return the schema, if it is known without reading from a source that may be slow."""
        if self.schema is None and isinstance(rows, Relation):
            # A relation without attributes and rows, such as `from_mappings([])`, has no schema to offer.
            self.schema = rows.schema if rows.schema.names or len(rows) else None
        elif self.schema is None and isinstance(rows, Sequence) and rows:
            self.schema = self._first_schema(rows[:_BATCH_ROWS])
        return self.schema

    def whole(self, rows: RowsIn) -> Relation | None:
        """Return a relation whose rows can be taken as they are."""
        plain = isinstance(rows, Relation) and (self.declared is None or not any(self.declared.types))
        return rows if plain and isinstance(rows, Relation) and rows.schema == self.schema else None

    def batch(self, mappings: Sequence[Mapping[str, Any]]) -> Batch:
        """Return the tuples of some mappings; an InputError names the first bad row."""
        if self.schema is None:
            self.schema = self._first_schema(mappings)
        rows = self._rows(mappings)
        if not set(map(type, chain.from_iterable(rows))) <= _READY:
            rows = [self._checked(row, self._count + number) for number, row in enumerate(rows)]
        if not self._declaration.fits(rows):
            rows = [self._as_declared(row, self._count + number) for number, row in enumerate(rows)]
        self._count += len(rows)
        return rows

    def _first_schema(self, mappings: Sequence[Mapping[str, Any]]) -> Schema:
        for number, mapping in enumerate(mappings):
            if not isinstance(mapping, Mapping):
                raise self._error(number, f"expected a mapping, found {mapping!r}")
        names = tuple(dict.fromkeys(chain.from_iterable(mappings)))
        for name in names:
            if not isinstance(name, str):
                raise self._error(0, f"attribute names are text, not {name!r}")
        return Schema(names)

    def _rows(self, mappings: Sequence[Mapping[str, Any]]) -> Batch:
        assert self.schema is not None
        names = self.schema.names
        if self._getter is None and len(names) > 1:
            self._getter = itemgetter(*names)
        width = len(names)
        if self._getter is not None and set(map(type, mappings)) == {dict}:
            try:
                rows = list(map(self._getter, mappings))
            except KeyError:
                pass
            else:
                if set(map(len, mappings)) == {width}:
                    return rows
        return [self._slow_row(mapping, self._count + number) for number, mapping in enumerate(mappings)]

    def _slow_row(self, mapping: Any, number: int) -> Row:
        assert self.schema is not None
        if not isinstance(mapping, Mapping):
            raise self._error(number, f"expected a mapping, found {mapping!r}")
        try:
            return row_of_mapping(self.schema, mapping)
        except SettingError as error:
            raise self._error(number, error.message) from None

    def _checked(self, row: Row, number: int) -> Row:
        try:
            return tuple([value_of(value) for value in row])
        except SettingError as error:
            raise self._error(number, error.message) from None

    def _as_declared(self, row: Row, number: int) -> Row:
        try:
            return self._declaration.row(row)
        except SettingError as error:
            raise self._error(number, error.message) from None

    def _error(self, number: int, message: str) -> InputError:
        return InputError(f"input {self.name!r}, row {number + 1}: {message}")


def relation_of(content: Any) -> Relation | None:
    """Return the relation that a list read from JSON stands for: of objects, or a list of values."""
    if not isinstance(content, list):
        return None
    found = value_of(content)
    return found if isinstance(found, Relation) else Relation.of_values(map(value_of, content))


def value_of(value: Any) -> Value:
    """Return a value for a relation: lists of mappings embed, other lists and mappings are documents."""
    if isinstance(value, list | tuple) and value and all(isinstance(each, Mapping) for each in value):
        relation = Relation.from_mappings(value)
        rows = [tuple([value_of(each) for each in row]) for row in relation.rows]
        return Relation(relation.schema, rows)
    if isinstance(value, Record):
        return Relation(value.schema, [value.row])
    if isinstance(value, list | tuple | Mapping):
        return Document(json.dumps(value, default=str, ensure_ascii=False), "json")
    type_of_value(value)
    return value


def read_as(value: Value, kind: Type) -> Value:
    """Return a text as a number, date or boolean; None if it is none."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    try:
        match kind:
            case Type.NUMBER:
                return int(text) if text.lstrip("+-").isdigit() else float(text)
            case Type.DATE:
                return date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
            case Type.BOOLEAN:
                return {"true": True, "false": False}.get(text.lower())
            case Type.DOCUMENT:
                return Document(value)
    except ValueError:
        return None
    return None


async def batches_of(rows: RowsIn) -> AsyncGenerator[Sequence[Mapping[str, Any]], None]:
    """Yield the rows given for an input, in batches; a lazy source may be slow, so it begins with one row."""
    if isinstance(rows, AsyncIterable):
        source = aiter(rows)  # often an async generator although `rows` itself is none
        try:
            async for mapping in source:
                yield (mapping,)
        finally:
            if isinstance(source, AsyncGenerator):
                await source.aclose()
        return
    if isinstance(rows, Mapping):
        rows = (rows,)
    if isinstance(rows, Sequence):
        for start in range(0, len(rows), _BATCH_ROWS):
            yield rows[start : start + _BATCH_ROWS]
        return
    iterator: Iterator[Mapping[str, Any]] = iter(rows)
    size = 1
    while batch := list(islice(iterator, size)):
        yield batch
        size = min(2 * size, _BATCH_ROWS)


# The name, the value and the type that does not fit it -> the error to raise.
Misfit: TypeAlias = Callable[[str, Value, Type], Exception]
_Row = TypeVar("_Row", bound=Sequence[Value])

# A value of one of these classes need not be checked.
_SHOWN_CHARACTERS = 80


class Coercion:
    """Fits the values of a row; `declared` has a name and a type, or None, for each."""

    def __init__(self, declared: Iterable[tuple[str, Type | None]], misfit: Misfit) -> None:
        self._misfit = misfit
        self._typed = [
            (place, _CLASSES[kind], name, kind)
            for place, (name, kind) in enumerate(declared)
            if kind is not None
        ]

    def __bool__(self) -> bool:
        """Return whether any type is declared."""
        return bool(self._typed)

    def fitted(self, row: _Row) -> _Row | tuple[Value, ...]:
        """Return the row itself if it fits, else one with values read or written as declared."""
        for place, classes, _, _ in self._typed:
            if row[place].__class__ not in classes:
                return self._read(row)
        return row

    def _read(self, row: Sequence[Value]) -> tuple[Value, ...]:
        values = list(row)
        for place, _, name, kind in self._typed:
            value = values[place]
            if value is not None and type_of_value(value) is not kind:
                values[place] = read = _read_as(value, kind)
                if read is None:
                    raise self._misfit(name, value, kind)
        return tuple(values)


def can_fit(known: Type, wanted: Type) -> bool:
    """Return whether values of one type may be read, or written, as those of another."""
    if known is wanted:
        return True
    if known is Type.CHAR:
        return wanted is not Type.RELATION
    return wanted is Type.CHAR and known is not Type.RELATION


def _read_as(value: Value, kind: Type) -> Value:
    """Return the value as this type; None if it cannot be converted."""
    if kind is Type.CHAR:
        return to_text(value)
    if not isinstance(value, str):
        return None
    if kind is Type.NUMBER:
        return read_number(value)
    if kind is Type.DATE:
        return read_date(value)
    if kind is Type.BOOLEAN:
        return {"true": True, "false": False}.get(value.strip().lower())
    return Document(value) if kind is Type.DOCUMENT else None


def shown(value: Value) -> str:
    """Return a value as a message shows it."""
    if isinstance(value, Relation | Document):
        return f"a {type_of_value(value)}"
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
