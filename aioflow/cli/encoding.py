"""Tuples as text: JSON lines and the cells of CSV and tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any

from aioflow.relation import Document, Record, Relation, Schema, Value


def json_object(record: Record) -> str:
    """A tuple as a JSON object: decimals exact, dates ISO, relations as arrays, documents as text."""
    return _json_row(record.schema, record.row)


def json_value(value: Value) -> str:
    encode = _JSON.get(value.__class__)
    if encode is not None:
        return encode(value)
    for kind, encode in _JSON.items():
        if isinstance(value, kind):
            return encode(value)
    return _text(str(value))


def _json_row(schema: Schema, row: tuple[Value, ...]) -> str:
    members = (f"{_text(name)}: {json_value(value)}" for name, value in zip(schema.names, row, strict=True))
    return "{" + ", ".join(members) + "}"


def _text(value: str) -> str:
    # Half a surrogate pair cannot be written as UTF-8, only escaped.
    return (
        encode_basestring(value)
        if value.isascii() or _is_encodable(value)
        else encode_basestring_ascii(value)
    )


def _is_encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(value: float) -> str:
    # JSON has neither NaN nor infinity.
    return repr(value) if math.isfinite(value) else "null"


def _decimal(value: Decimal) -> str:
    return str(value) if value.is_finite() else "null"


def _relation(value: Relation) -> str:
    return "[" + ", ".join(_json_row(value.schema, row) for row in value.rows) + "]"


def date_text(value: date) -> str:
    return value.isoformat()


_JSON: dict[type, Callable[[Any], str]] = {
    str: _text,
    bool: lambda value: "true" if value else "false",
    int: int.__repr__,
    float: _number,
    type(None): lambda value: "null",
    Decimal: _decimal,
    datetime: lambda value: _text(date_text(value)),
    date: lambda value: _text(date_text(value)),
    Relation: _relation,
    Document: lambda value: _text(value.text),
}


def cell(value: Value) -> str:
    """A value in CSV: null is empty, a relation JSON text, everything else as in JSON without quotes."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Document):
        return value.text
    if isinstance(value, date):
        return date_text(value)
    return json_value(value)
