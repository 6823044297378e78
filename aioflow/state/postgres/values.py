"""Values of the language for columns and parameters of PostgreSQL's types, and back.

A column takes only values that it can give back. A parameter of a statement also takes a text that can be
read as its type, as in SQL. Values are not examined where asyncpg itself takes them as they are or refuses
them. Dates travel as numbers, because asyncpg takes infinity for the year 9999 and naive datetimes for local
ones. Types unknown to the language travel as PostgreSQL writes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from math import isfinite
from struct import Struct
from types import NoneType
from typing import Any

import asyncpg
import msgspec

from aioflow.relation import Batch, Document, Relation, Row, decimal_of, identity
from aioflow.state.driver import ColumnNeed
from aioflow.state.postgres.schema import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGERS,
    JSONS,
    NUMERIC,
    OID,
    PLAIN,
    REAL,
    TEXTS,
    TIMESTAMP,
    TIMESTAMPTZ,
    XML,
    TableColumn,
)
from aioflow.values.json import decode_json, encode_json

_EPOCH_DAY = date(2000, 1, 1).toordinal()
_DAYS = Struct("!i")
_MOST_DAYS = 1 << 16  # that are remembered
_EPOCH = datetime(2000, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=UTC)
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_EARLIEST = (datetime.min - _EPOCH) // timedelta(microseconds=1)
_LATEST = (datetime.max - _EPOCH) // timedelta(microseconds=1)

# What asyncpg would make objects of that the language does not know.
_AS_TEXT = (
    *("bytea", "time", "timetz", "interval", "uuid", "inet", "cidr", "bit", "varbit", "tid", "pg_lsn"),
    *("point", "lseg", "path", "box", "polygon", "line", "circle"),
)


class CalendarError(ValueError):
    """A date of the database that Python's calendar does not have."""


async def register(connection: Any) -> None:
    """Set the codecs of a new connection."""
    encode_day, decode_day = _EncodedDays().__getitem__, _DecodedDays().__getitem__
    await connection.set_type_codec(
        "date", schema="pg_catalog", format="binary", encoder=encode_day, decoder=decode_day
    )
    dated: tuple[tuple[str, Callable[[Any], tuple[int]], Callable[[tuple[int]], date]], ...] = (
        ("timestamp", _encode_timestamp, _decode_timestamp),
        ("timestamptz", encode_timestamptz, _decode_timestamptz),
    )
    for name, encoder, decoder in dated:
        await connection.set_type_codec(
            name, schema="pg_catalog", format="tuple", encoder=encoder, decoder=decoder
        )
    for name in _AS_TEXT:
        await connection.set_type_codec(name, schema="pg_catalog", encoder=str, decoder=str)


# --- dates --------------------------------------------------------------------------------------


# The same days come again and again: asyncpg then calls nothing but the look-up in a dict.
class _EncodedDays(dict[date, bytes]):
    """Days as the server has them: the number of days after its first, in four bytes."""

    def __missing__(self, value: date) -> bytes:
        if isinstance(value, datetime) or not isinstance(value, date):
            raise TypeError("not a date")
        if len(self) >= _MOST_DAYS:
            self.clear()
        encoded = self[value] = _DAYS.pack(value.toordinal() - _EPOCH_DAY)
        return encoded


class _DecodedDays(dict[bytes, date]):
    """The dates for the server's bytes."""

    def __missing__(self, stored: bytes) -> date:
        if len(self) >= _MOST_DAYS:
            self.clear()
        try:
            value = date.fromordinal(_DAYS.unpack(stored)[0] + _EPOCH_DAY)
        except (ValueError, OverflowError):
            raise CalendarError from None
        self[stored] = value
        return value


def _encode_timestamp(value: datetime) -> tuple[int]:
    return (_microseconds(value - _EPOCH),)


def encode_timestamptz(value: datetime) -> tuple[int]:
    count = _microseconds(value - _EPOCH_UTC)
    if not _EARLIEST <= count <= _LATEST:
        raise ValueError("it is outside of the years 1 to 9999 in UTC")
    return (count,)


def _microseconds(span: timedelta) -> int:
    return span.days * _DAY + span.seconds * _SECOND + span.microseconds


def _decode_timestamp(stored: tuple[int]) -> datetime:
    try:
        return _EPOCH + timedelta(0, 0, stored[0])
    except OverflowError:
        raise CalendarError from None


def _decode_timestamptz(stored: tuple[int]) -> datetime:
    try:
        return _EPOCH_UTC + timedelta(0, 0, stored[0])
    except OverflowError:
        raise CalendarError from None


# --- JSON ---------------------------------------------------------------------------------------


def to_json(value: Any) -> str:
    """Return a value for a column of JSON.

    A JSON document stays as it is, unless it looks like our own form.
    """
    if isinstance(value, Document) and value.kind == "json" and _is_plain(value):
        return value.text
    return encode_json(value)


def from_json(text: str) -> Any:
    """Return the value that `to_json` wrote. Objects and arrays of other programs are documents."""
    first = text.lstrip()[:1]
    if first == "[":
        return Document(text, "json")
    try:
        return decode_json(text)
    except ValueError:
        return Document(text, "json")


def _is_plain(document: Document) -> bool:
    text = document.text
    if text.lstrip(" \t\r\n")[:1] not in ("[", "{"):
        return False
    try:
        text.encode()
        json.loads(text, parse_constant=_refuse)
        return bool(from_json(text) == document)
    except (ValueError, RecursionError):
        return False


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


# --- decoding -----------------------------------------------------------------------------------


def decoder_of(oid: int, is_listed: bool) -> Callable[[Any], Any] | None:
    """Return a function that turns asyncpg's value into one of the language, or None when it is one."""
    if oid in PLAIN:
        return None
    if oid in JSONS:
        return from_json
    if oid == XML:
        return lambda text: Document(text, "xml")
    if is_listed:
        return lambda value: Document(json.dumps(_plain(value), ensure_ascii=False), "json")
    return _as_text


def _plain(value: Any) -> Any:
    """Return an array or row as JSON has it, with other values as text."""
    if isinstance(value, asyncpg.Record):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and isfinite(value)):
        return value
    return value.isoformat() if isinstance(value, date) else _as_text(value)


def _as_text(value: Any) -> str:
    """Return any other value as PostgreSQL writes it, as far as asyncpg lets that be known."""
    match value:
        case str():
            return value
        case bytes():
            return value.decode("utf-8", "replace")
        case asyncpg.Range(isempty=True):
            return "empty"
        case asyncpg.Range():
            ends = ",".join("" if end is None else str(end) for end in (value.lower, value.upper))
            return f"{'[' if value.lower_inc else '('}{ends}{']' if value.upper_inc else ')'}"
        case list():
            return "{" + ",".join(map(_as_text, value)) + "}"
    return str(value)


# numeric has so many digits before the point, and after it.
_MOST_DIGITS, _MOST_PLACES = 131_072, 16_383
_MOST_BITS = 435_411


class RefusedError(ValueError):
    """A value does not fit. The message is the end of a sentence that names the value."""


class TypeEncoding(msgspec.Struct, frozen=True):
    """The conversion of values for a type.

    `untouched` are the classes of values that can stay as they are, or None when asyncpg refuses all others.
    `convert` returns a fitting value, and raises a RefusedError when there is none. `is_wrong` finds values
    that asyncpg would store as another value.
    """

    convert: Callable[[Any], Any]
    untouched: frozenset[type[Any]] | None = None
    is_wrong: Callable[[Any], bool] | None = None

    def suits(self, need: ColumnNeed | None) -> bool:
        """Return whether all values are known to stay as they are."""
        if need is None or self.untouched is None or self.is_wrong is not None:
            return False
        return need.classes <= self.untouched


# --- single values ------------------------------------------------------------------------------


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise RefusedError("is no char")
    if (problem := text_problem(value)) is not None:
        raise RefusedError(problem)
    return value


def text_problem(text: str) -> str | None:
    """Return why PostgreSQL cannot hold a text, or None if it can."""
    if "\0" in text:
        return "holds the character NUL, which PostgreSQL has in no text"
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds half of a character, which UTF-8 cannot carry"
    return None


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise RefusedError("is no boolean")
    return value


def _number(value: Any) -> int | float | Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise RefusedError("is no number")
    return value


def _integer(limit: int) -> Callable[[Any], int]:
    def convert(value: Any) -> int:
        number = _number(value)
        try:
            whole = int(number)
        except (ValueError, OverflowError):  # NaN and infinity
            raise RefusedError("is no whole number") from None
        if whole != number:
            raise RefusedError("is no whole number")
        if not -limit <= whole < limit:
            raise RefusedError("is too large for it")
        return whole

    return convert


def _oid(value: Any) -> int:
    whole = _integer(1 << 32)(value)
    if whole < 0:
        raise RefusedError("is negative")
    return whole


def _real(value: Any) -> float:
    try:
        number = float(_number(value))
    except OverflowError:
        raise RefusedError("is too large for it") from None
    if abs(number) > 3.4028235677973366e38 and number - number == 0:
        raise RefusedError("is too large for it")
    return number


def _double(value: Any) -> float:
    number = _number(value)
    try:
        rounded = float(number)
    except OverflowError:
        raise RefusedError("is too large for it") from None
    if identity((rounded,)) != identity((number,)):
        raise RefusedError("has more digits than it can hold")
    return rounded


def _numeric(value: Any) -> int | Decimal:
    number = _number(value)
    if isinstance(number, float):
        return decimal_of(number)
    if _is_outsized(number):
        raise RefusedError("has more digits than it can hold")
    return number


def _is_outsized(number: Any) -> bool:
    """Return whether asyncpg would store another number than this one."""
    if isinstance(number, int):
        return number.bit_length() > _MOST_BITS
    if not isinstance(number, Decimal) or not number.is_finite():
        return False
    exponent = number.as_tuple().exponent
    return number.adjusted() >= _MOST_DIGITS or (isinstance(exponent, int) and exponent < -_MOST_PLACES)


def _date(value: Any) -> date:
    if isinstance(value, datetime) or not isinstance(value, date):
        raise RefusedError("is no date without a time")
    return value


def _timestamp(value: Any) -> datetime:
    if not isinstance(value, datetime) or value.utcoffset() is not None:
        raise RefusedError("is no datetime without a zone")
    return value


def _timestamptz(value: Any) -> datetime:
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise RefusedError("is no datetime with a zone")
    try:
        encode_timestamptz(value)
    except ValueError as error:
        raise RefusedError(str(error)) from None
    return value


def _xml(value: Any) -> str:
    if not isinstance(value, Document) or value.kind != "xml":
        raise RefusedError("is no document of XML")
    return _text(value.text)


def as_text(value: Any) -> str:
    """Return a value as a text that PostgreSQL reads for any type."""
    match value:
        case str():
            return _text(value)
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat(" ")
        case date():
            return value.isoformat()
        case Document():
            return _text(value.text)
        case Relation():
            return encode_json(value)
    return str(value)


# --- columns ------------------------------------------------------------------------------------

_COLUMNS: dict[int, TypeEncoding] = {
    **dict.fromkeys(TEXTS, TypeEncoding(_text)),
    BOOLEAN: TypeEncoding(_boolean),
    **{oid: TypeEncoding(_integer(limit), frozenset({int, NoneType})) for oid, limit in INTEGERS.items()},
    OID: TypeEncoding(_oid, frozenset({int, NoneType})),
    REAL: TypeEncoding(_real, frozenset({float, NoneType})),
    DOUBLE: TypeEncoding(_double, frozenset({float, NoneType})),
    NUMERIC: TypeEncoding(_numeric, frozenset({int, Decimal, NoneType}), _is_outsized),
    DATE: TypeEncoding(_date),
    TIMESTAMP: TypeEncoding(_timestamp),
    TIMESTAMPTZ: TypeEncoding(_timestamptz),
    **dict.fromkeys(JSONS, TypeEncoding(to_json, frozenset({NoneType}))),
    XML: TypeEncoding(_xml, frozenset({NoneType})),
}


def is_binary(column: TableColumn) -> bool:
    """Return whether asyncpg can send values of a column's type in the binary form."""
    return column.oid in _COLUMNS


class RowEncoder:
    """Encodes rows for certain columns. A batch that needs no change is returned as it is."""

    def __init__(self, columns: Sequence[TableColumn], needs: Sequence[ColumnNeed] = ()) -> None:
        self._columns = columns
        self._encodings = [_COLUMNS.get(column.oid, TypeEncoding(as_text)) for column in columns]
        known = dict(enumerate(needs))
        self._looked_at = [
            (place, each, each.untouched)
            for place, each in enumerate(self._encodings)
            if each.untouched is not None and not each.suits(known.get(place))
        ]

    def encode(self, batch: Batch) -> Batch:
        """Return the batch for asyncpg.

        It, or asyncpg later, raises an error for a value that does not fit.
        """
        columns: list[Sequence[Any]] | None = None
        for place, encoding, untouched in self._looked_at:
            if untouched.issuperset({type(row[place]) for row in batch}):
                if encoding.is_wrong is not None and any(encoding.is_wrong(row[place]) for row in batch):
                    raise RefusedError
                continue
            columns = columns or list(zip(*batch, strict=True))
            convert = encoding.convert
            columns[place] = [None if value is None else convert(value) for value in columns[place]]
        return batch if columns is None else list(zip(*columns, strict=True))

    def refused(self, row: Row) -> str | None:
        """Return the reason why a row is refused, or None."""
        for column, encoding, value in zip(self._columns, self._encodings, row, strict=True):
            try:
                if value is not None:
                    encoding.convert(value)
            except RefusedError as error:
                return f"{column.name} = {shown_value(value)} {error} (the column is {column.declared})"
        return None

    def as_line(self, row: Row) -> str:
        """Return the row as a line of the text form, for columns of any type."""
        return "\t".join(
            "\\N" if value is None else as_text(encoding.convert(value)).translate(_ESCAPES)
            for encoding, value in zip(self._encodings, row, strict=True)
        )


_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def shown_value(value: Any, length: int = 80) -> str:
    """Return a value for messages, cut to `length`."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no int of so many digits
        text = f"an int of {value.bit_length()} bits"
    return text if len(text) <= length else f"{text[:length]}…"


# --- parameters ---------------------------------------------------------------------------------


def bound(value: Any, oid: int, form: str) -> Any:
    """Return a value for a parameter of a statement, of the type that the server gave it.

    `form` is asyncpg's name for the kind of type. Types with parts take no text.
    """
    if value is None:
        return None
    if form != "scalar":
        raise RefusedError("has no parts: write cast(cast(… as text) as …)")
    reader = _READERS.get(oid)
    if reader is not None and (isinstance(value, str) or oid in _ROUNDED):
        return reader(value)
    if oid in TEXTS or oid not in _COLUMNS:
        return as_text(value)
    return _COLUMNS[oid].convert(value)


def _read(read: Callable[[str], Any], convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that converts a value, and reads a text first."""

    def convert_text(value: Any) -> Any:
        if not isinstance(value, str):
            return convert(value)
        try:
            return convert(read(value.strip()))
        except (ValueError, InvalidOperation) as error:
            if isinstance(error, RefusedError):
                raise
            raise RefusedError("cannot be read as one") from None

    return convert_text


_ROUNDED = frozenset({REAL, DOUBLE})  # these are compared with other numbers as near as they come
_READERS: dict[int, Callable[[Any], Any]] = {
    **{oid: _read(Decimal, _integer(limit)) for oid, limit in INTEGERS.items()},
    OID: _read(Decimal, _oid),
    REAL: _read(float, _real),
    DOUBLE: _read(float, lambda value: float(_number(value))),
    NUMERIC: _read(Decimal, _numeric),
    DATE: _read(date.fromisoformat, _date),
    TIMESTAMP: _read(datetime.fromisoformat, _timestamp),
    TIMESTAMPTZ: _read(datetime.fromisoformat, _timestamptz),
}
