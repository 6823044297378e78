"""Values made to fit the types that inputs and attributes were declared with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TypeAlias, TypeVar

from aioflow.expressions.reading import read_date, read_number, to_text
from aioflow.relation import Document, Relation, Type, Value, type_of_value

# The name, the value and the type that does not fit it -> what is raised.
Misfit: TypeAlias = Callable[[str, Value, Type], Exception]
_Row = TypeVar("_Row", bound=Sequence[Value])

# Where a value is of one of these classes it need not be looked at.
_CLASSES: Mapping[Type, frozenset[type]] = {
    Type.CHAR: frozenset({str, type(None)}),
    Type.NUMBER: frozenset({int, float, Decimal, type(None)}),
    Type.BOOLEAN: frozenset({bool, type(None)}),
    Type.DATE: frozenset({date, datetime, type(None)}),
    Type.RELATION: frozenset({Relation, type(None)}),
    Type.DOCUMENT: frozenset({Document, type(None)}),
}
_SHOWN_CHARACTERS = 80


class Fitting:
    """Fits the values of a row; `declared` has a name and a type, or None, for each."""

    def __init__(self, declared: Iterable[tuple[str, Type | None]], misfit: Misfit) -> None:
        self._misfit = misfit
        self._typed = [
            (place, _CLASSES[kind], name, kind)
            for place, (name, kind) in enumerate(declared)
            if kind is not None
        ]

    def __bool__(self) -> bool:
        """Whether any type is declared."""
        return bool(self._typed)

    def fitted(self, row: _Row) -> _Row | tuple[Value, ...]:
        """The row itself if it fits, else one with values read or written as declared."""
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
    """Whether values of one type may be read, or written, as those of another."""
    if known is wanted:
        return True
    if known is Type.CHAR:
        return wanted is not Type.RELATION
    return wanted is Type.CHAR and known is not Type.RELATION


def _read_as(value: Value, kind: Type) -> Value:
    """None when it cannot be."""
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
    """A value as a message shows it."""
    if isinstance(value, Relation | Document):
        return f"a {type_of_value(value)}"
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
