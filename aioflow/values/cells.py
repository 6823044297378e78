"""Values as text and back, for JSON files and cells of CSV.

Decimals keep their digits, dates are in ISO 8601, NaN and the infinities are the texts "NaN", "Infinity"
and "-Infinity", which JSON has no numbers for. Relations are arrays of objects, lists arrays of values; JSON
documents are written as JSON, other documents as text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

from aioflow.errors import SettingError
from aioflow.files import neutral
from aioflow.relation import Document, Relation, Row, Type, Value, type_of_value
from aioflow.values.coercion import relation_of

_LONGEST_NUMBER = 1000
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?", re.ASCII)
_SPECIAL_NUMBERS = {
    "nan": math.nan,
    "infinity": math.inf,
    "-infinity": -math.inf,
    "inf": math.inf,
    "-inf": -math.inf,
}
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


# --- writing ------------------------------------------------------------------------------------


def json_text(value: Value) -> str:
    """Return a value as JSON."""
    encode = _ENCODERS.get(value.__class__)
    if encode is None:
        encode = next((each for kind, each in _ENCODERS.items() if isinstance(value, kind)), json.dumps)
    return encode(value)


def json_object(names: Sequence[str], row: Row) -> str:
    """Return a tuple as a JSON object; the names are JSON texts already."""
    return (
        "{" + ", ".join([f"{name}: {json_text(value)}" for name, value in zip(names, row, strict=True)]) + "}"
    )


def json_names(names: Sequence[str]) -> list[str]:
    """Return names as JSON texts."""
    return [encode_basestring(name) for name in names]


def cell(value: Value) -> str:
    """Return a value for CSV: null is empty, a relation is JSON, all else is as in JSON without quotes."""
    if value.__class__ is str:
        return str(value)
    if value is None:
        return ""
    if isinstance(value, Document):
        return value.text
    text = json_text(value)
    return text[1:-1] if text.startswith('"') else text


def neutral_cell(value: Value) -> str:
    """Return `cell` of a value, with an apostrophe before a text that a spreadsheet would compute."""
    if value.__class__ is str:
        return neutral(value)
    return neutral(cell(value)) if isinstance(value, str | Document) else cell(value)


def _float(value: float) -> str:
    if math.isfinite(value):
        return float.__repr__(value)
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def _decimal(value: Decimal) -> str:
    return str(value) if value.is_finite() else _float(math.nan if value.is_nan() else float(value))


def _date(value: date) -> str:
    return f'"{value.isoformat()}"'


def _relation(value: Relation) -> str:
    if value.is_list:
        return "[" + ", ".join([json_text(each) for (each,) in value.rows]) + "]"
    names = json_names(value.schema.names)
    return "[" + ", ".join([json_object(names, row) for row in value.rows]) + "]"


def _document(value: Document) -> str:
    if value.kind == "json":
        try:
            return json.dumps(json.loads(value.text), ensure_ascii=False)
        except (ValueError, RecursionError):
            pass  # not JSON after all, so it is written as text
    return encode_basestring(value.text)


_ENCODERS: dict[type, Callable[[Any], str]] = {
    str: encode_basestring,
    bool: lambda value: "true" if value else "false",
    int: int.__repr__,
    float: _float,
    type(None): lambda value: "null",
    Decimal: _decimal,
    datetime: _date,
    date: _date,
    Relation: _relation,
    Document: _document,
}


# --- reading ------------------------------------------------------------------------------------


def read_value(value: Value, kind: Type) -> Value:
    """Return a value of a file as that type; raise a SettingError if it cannot be converted."""
    if value is None or (type_of_value(value) is kind and kind is not Type.CHAR):
        return value
    return read_text(cell(value), kind)


def read_text(text: str, kind: Type) -> Value:
    """Return a text as that type; raise a SettingError if it cannot be converted. A blank text is null."""
    if kind is Type.CHAR:
        return text
    if not text or text.isspace():
        return None
    found = _READERS[kind](text)
    if found is None:
        raise SettingError(f"{text[:60]!r} is not a {kind}")
    return found


# A float has as many decimal digits of any number.
_DIGITS_OF_FLOAT = 15


def _read_number(text: str) -> Value:
    text = text.strip()
    if text.isdigit() and text.isascii() and len(text) <= _LONGEST_NUMBER:
        return int(text)
    if text.lower() in _SPECIAL_NUMBERS:
        return _SPECIAL_NUMBERS[text.lower()]
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return None
    if text.lstrip("+-").isdigit():
        return int(text)
    if len(text) <= _DIGITS_OF_FLOAT and "e" not in text and "E" not in text:
        return float(text)
    # A Decimal only if a float would lose digits.
    exact, rounded = Decimal(text), float(text)
    return rounded if Decimal(repr(rounded)) == exact else exact


def _read_date(text: str) -> Value:
    try:
        text = text.strip()
        return date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
    except ValueError:
        return None


def _read_relation(text: str) -> Value:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if content == []:
        return Relation.from_mappings([])
    return relation_of(content)


def _read_document(text: str) -> Value:
    start = text.lstrip()
    kind = "json" if start[:1] in ("{", "[") else "xml" if start.startswith("<?xml") else "html"
    return Document(text, kind)  # type: ignore[arg-type]


_READERS: dict[Type, Callable[[str], Value]] = {
    Type.CHAR: lambda text: text,
    Type.NUMBER: _read_number,
    Type.BOOLEAN: lambda text: _BOOLEANS.get(text.strip().lower()),
    Type.DATE: _read_date,
    Type.RELATION: _read_relation,
    Type.DOCUMENT: _read_document,
}
