"""How single values travel: dates as numbers, and what the language has no type for as PostgreSQL writes it.

asyncpg's own dates take infinity for the year 9999 and back, and naive datetimes for local ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from math import isfinite
from struct import Struct
from typing import Any

import asyncpg

from aioflow.relation import Document
from aioflow.state.errors import DatabaseError
from aioflow.state.postgres_types import JSONS, PLAIN, XML
from aioflow.state.values import decode_json, encode_json

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
    """Days as the server has them: how many after its first, in four bytes."""

    def __missing__(self, value: date) -> bytes:
        if isinstance(value, datetime) or not isinstance(value, date):
            raise TypeError("not a date")
        if len(self) >= _MOST_DAYS:
            self.clear()
        encoded = self[value] = _DAYS.pack(value.toordinal() - _EPOCH_DAY)
        return encoded


class _DecodedDays(dict[bytes, date]):
    """The days that such bytes are."""

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
    """A value as columns of JSON hold it: a document of JSON as it is, unless it looks like our own."""
    if isinstance(value, Document) and value.kind == "json" and _is_plain(value):
        return value.text
    return encode_json(value)


def from_json(text: str) -> Any:
    """What `to_json` wrote, or what others did: objects and arrays of theirs are documents."""
    first = text.lstrip()[:1]
    if first == "[":
        return Document(text, "json")
    try:
        return decode_json(text)
    except DatabaseError:
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
    """What makes a value of the language of what asyncpg gives; None when that is one already."""
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
    """An array or row as JSON has it; what JSON does not know as text."""
    if isinstance(value, asyncpg.Record):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and isfinite(value)):
        return value
    return value.isoformat() if isinstance(value, date) else _as_text(value)


def _as_text(value: Any) -> str:
    """Anything else, as PostgreSQL writes it where asyncpg left that to be known."""
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
