"""Values in SQLite: the declared types of columns, the values to bind, and the values that are read.

SQLite has texts, integers of 64 bits, floats and BLOBs. In a column of ours any other value is a BLOB: a byte
that begins no text, and then JSON. It is decoded wherever it comes out of a query. Dates, booleans, relations
and documents in columns of their own are readable in SQL, and recognised by the declared type of the column.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache, partial
from itertools import chain
from operator import ne
from types import NoneType
from typing import Any, TypeAlias

from aioflow.relation import Batch, Document, Relation, Row, Type, Value
from aioflow.state.driver import ColumnNeed
from aioflow.state.errors import DatabaseError
from aioflow.values.json import (
    LARGEST_INTEGER,
    SMALLEST_INTEGER,
    base_class,
    decode_date,
    decode_json,
    encode_date,
    encode_json,
    has_wide,
)

Encoder: TypeAlias = Callable[[Any], Any]
Encoders: TypeAlias = Mapping[type[Any], Encoder]

TAG = b"\xfb"  # no text in UTF-8 has such a byte
ANY = "ANY_BLOB"
DECLARED = {
    Type.CHAR: "TEXT",
    Type.NUMBER: "NUMBER",
    Type.BOOLEAN: "BOOLEAN_INTEGER",
    Type.DATE: "DATE_TEXT",
    Type.RELATION: "RELATION_TEXT",
    Type.DOCUMENT: "DOCUMENT_TEXT",
}
_KINDS: dict[type[Any], Type] = {
    str: Type.CHAR,
    int: Type.NUMBER,
    float: Type.NUMBER,
    Decimal: Type.NUMBER,
    bool: Type.BOOLEAN,
    date: Type.DATE,
    datetime: Type.DATE,
    Relation: Type.RELATION,
    Document: Type.DOCUMENT,
}


class UnfitError(ValueError):
    """A value that a column, or SQLite, has no form for."""


# --- columns ------------------------------------------------------------------------------------


def declared_type(need: ColumnNeed) -> str:
    """Return the declared type of a column for such values."""
    kinds = {_KINDS[kind] for kind in need.classes}
    if need.kind is not None:
        kinds.add(need.kind)
    return DECLARED[kinds.pop()] if len(kinds) == 1 else ANY


def kind_of(declared: str) -> Type | None:
    """Return the type of the values in a column, as far as its declaration tells."""
    name = _name_of(declared)
    for kind, own in DECLARED.items():
        if name == own:
            return kind
    return next((kind for pattern, kind in _KINDS_OF_OTHERS if re.search(pattern, name)), None)


# After our own names, and in the order in which SQLite itself looks for parts of a name.
_KINDS_OF_OTHERS = (
    (r"^BOOL", Type.BOOLEAN),
    (r"^(DATE|DATETIME|TIMESTAMP)$", Type.DATE),
    (r"CHAR|CLOB|TEXT", Type.CHAR),
    (r"INT|REAL|FLOA|DOUB|NUMERIC|DECIMAL", Type.NUMBER),
)


def _name_of(declared: str) -> str:
    return re.split(r"[ (]", declared.strip(), maxsplit=1)[0].upper()


# --- writing ------------------------------------------------------------------------------------


def tagged(value: Value) -> bytes:
    return TAG + encode_json(value).encode()


def _text(value: str) -> str | bytes:
    try:
        value.encode()
    except UnicodeEncodeError:
        return tagged(value)
    return value


def _integer(value: int) -> int | bytes:
    return value if SMALLEST_INTEGER <= value <= LARGEST_INTEGER else tagged(value)


def _float(value: float) -> float | bytes:
    return value if value == value else tagged(value)  # SQLite would make NaN null


def _decimal(value: Decimal) -> int | bytes:
    # Without a fraction it is the integer, also for a unique index.
    exponent = value.as_tuple().exponent
    is_whole = isinstance(exponent, int) and 0 <= exponent < 19
    return _integer(int(value)) if is_whole else tagged(value)


_LIST_START, _LIST_END = '{"$list":', "}"


def _relation(value: Relation) -> str:
    # SQL's functions for JSON can read a list of values as it is.
    text = encode_json(value)
    return text[len(_LIST_START) : -len(_LIST_END)] if value.is_list else text


# What is bound where the column is not known. It is right for columns of the value's own type.
PARAMETERS: Encoders = {
    str: _text,
    int: _integer,
    float: _float,
    bool: int,
    Decimal: _decimal,
    date: encode_date,
    datetime: encode_date,
    Relation: _relation,
    Document: encode_json,
}


def _own_column(*classes: type[Any]) -> Encoders:
    return {kind: PARAMETERS[kind] if kind in classes else tagged for kind in PARAMETERS}


_OWN_COLUMNS: dict[str, Encoders] = {
    "TEXT": _own_column(str),
    "NUMBER": _own_column(int, float, Decimal),
    "BOOLEAN_INTEGER": _own_column(bool),
    "DATE_TEXT": _own_column(date, datetime),
    "RELATION_TEXT": _own_column(Relation),
    "DOCUMENT_TEXT": _own_column(Document),
    ANY: _own_column(str, int, float, Decimal),
}


def _plain_only(encoder: Encoder, value: Value) -> Any:
    found = encoder(value)
    if isinstance(found, bytes):
        raise UnfitError(f"SQLite has no form for {value!r:.80} in a column that aioflow did not declare")
    return found


def _decimal_of_others(value: Decimal) -> Any:
    if value.is_nan():
        raise UnfitError(f"SQLite has no form for {value} in a column that aioflow did not declare")
    whole = _decimal(value)
    if not isinstance(whole, bytes):
        return whole
    return float(value) if Decimal(repr(float(value))) == value else str(value)


# Columns that others declared hold what other programs can read.
_COLUMNS_OF_OTHERS: Encoders = {
    **PARAMETERS,
    str: partial(_plain_only, _text),
    int: partial(_plain_only, _integer),
    float: partial(_plain_only, _float),
    Decimal: _decimal_of_others,
    datetime: lambda moment: moment.isoformat(" "),
    Document: lambda document: document.text,
}


def encoders_for(declared: str) -> Encoders:
    """Return the encoders for values of a column."""
    return _OWN_COLUMNS.get(_name_of(declared), _COLUMNS_OF_OTHERS)


def bind(values: Iterable[Value], encoders: Iterable[Encoders]) -> tuple[Any, ...]:
    """Return the values to bind for one row."""
    return tuple(_encoded(value, each) for value, each in zip(values, encoders, strict=False))


def _encoded(value: Value, encoders: Encoders) -> Any:
    if value is None:
        return None
    kind = type(value)
    return encoders[kind if kind in encoders else base_class(kind)](value)


def bind_batch(batch: Batch, encoders: Sequence[Encoders]) -> Batch:
    """Return the rows to bind: the batch itself when SQLite takes all of its values as they are."""
    columns = list(zip(*batch, strict=True))
    changed = False
    for place, (column, each) in enumerate(zip(columns, encoders, strict=False)):
        classes = set(map(type, column))
        if not _is_plain(column, classes, each):
            columns[place] = tuple([_encoded(value, each) for value in column])
            changed = True
    return list(zip(*columns, strict=True)) if changed else batch


_AS_THEY_ARE: Mapping[Encoder, type[Any]] = {
    **{_text: str, _integer: int, _float: float, int: bool},
    **{_COLUMNS_OF_OTHERS[kind]: kind for kind in (str, int, float)},
}


def _is_plain(column: Sequence[Value], classes: set[type[Any]], encoders: Encoders) -> bool:
    """Return whether SQLite takes every value of a column as it is. Most need not be examined singly."""
    for kind in classes - {NoneType}:
        if _AS_THEY_ARE.get(encoders.get(kind, tagged)) is not kind:
            return False
    if int in classes and has_wide(column, classes):
        return False
    if float in classes and any(map(ne, column, column)):
        return False
    return str not in classes or _are_unicode(column, classes)


def _are_unicode(column: Sequence[Value], classes: set[type[Any]]) -> bool:
    texts = column if len(classes) == 1 else [value for value in column if isinstance(value, str)]
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True


# --- reading ------------------------------------------------------------------------------------


def decode_rows(rows: Batch, names: Sequence[str], *, tolerant: bool = False) -> Batch:
    """Return SQLite's rows, with the values that our BLOBs stand for.

    Other BLOBs are an error, unless `tolerant`: then they stay bytes.
    """
    if _BLOBS.isdisjoint(map(type, chain.from_iterable(rows))):
        return rows
    if tolerant:
        return [tuple(map(_decoded_or_bytes, row)) for row in rows]
    return [_decoded(row, names) if bytes in map(type, row) else row for row in rows]


_BLOBS = frozenset({bytes})


def _decoded(row: Row, names: Sequence[str]) -> Row:
    try:
        return tuple([from_blob(value) if isinstance(value, bytes) else value for value in row])
    except UnfitError as error:
        name = next(name for name, value in zip(names, row, strict=True) if isinstance(value, bytes))
        raise DatabaseError(f"{name}: {error}") from error


def _decoded_or_bytes(value: Any) -> Any:
    try:
        return from_blob(value) if isinstance(value, bytes) else value
    except (UnfitError, DatabaseError):
        return value


def take_any_text(database: sqlite3.Connection) -> None:
    """Return texts that are no UTF-8 as bytes, where SQLite's Python module would fail."""
    database.text_factory = _text_or_bytes


def _text_or_bytes(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def from_blob(data: bytes) -> Value:
    """Return the value that a BLOB of ours stands for."""
    if data[:1] != TAG:
        raise UnfitError(
            f"a BLOB of {len(data)} bytes is no value of a relation; ask for hex(…) of it, or leave it out"
        )
    try:
        return decode_json(data[1:])
    except ValueError as error:
        raise DatabaseError(str(error)) from error


class _Booleans(dict[bytes, Value]):
    """A converter as a dict: a look-up costs less than the call of a function."""

    def __missing__(self, data: bytes) -> Value:
        return _as_stored(data)


_boolean = _Booleans({b"0": False, b"1": True}).__getitem__


@lru_cache(4096)
def _date(data: bytes) -> Value:
    # Python would also read dates out of long numbers.
    if data[4:5] == data[7:8] == b"-":
        try:
            return decode_date(data.decode())
        except ValueError:
            pass
    return _as_stored(data)


def _json(data: bytes) -> Value:
    try:
        return decode_json(data)
    except ValueError:
        return _as_stored(data)  # a value of another type, or somebody else's text


def _relation_of(data: bytes) -> Value:
    if data[:1] == b"[":
        data = b"".join((_LIST_START.encode(), data, _LIST_END.encode()))
    return _json(data)


def _as_stored(data: bytes) -> Value:
    """Return the value as SQLite would without a converter, which gets everything as bytes."""
    if data[:1] == TAG:
        return from_blob(data)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    # Columns with such names hold no text that looks like a number: SQLite makes it one.
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


_INTEGER = re.compile(r"-?[0-9]{1,19}")
_FLOAT = re.compile(r"-?[0-9]+\.[0-9]+(?:e[+-][0-9]+)?")


def register_converters() -> None:
    """Register converters for our declared types, and for types without a converter.

    Converters belong to the whole process: one that another program registered stays. Those of the standard
    library for dates fail on other texts, and are deprecated.
    """
    for name, converter in (("BOOLEAN_INTEGER", _boolean), ("DATE_TEXT", _date)):
        sqlite3.register_converter(name, converter)
    sqlite3.register_converter("RELATION_TEXT", _relation_of)
    sqlite3.register_converter("DOCUMENT_TEXT", _json)
    known: Mapping[str, Any] = getattr(sqlite3, "converters", {})
    for name, converter in (
        ("BOOLEAN", _boolean),
        ("BOOL", _boolean),
        ("DATE", _date),
        ("DATETIME", _date),
        ("TIMESTAMP", _date),
    ):
        if getattr(known.get(name), "__module__", "sqlite3.dbapi2") == "sqlite3.dbapi2":
            sqlite3.register_converter(name, converter)
