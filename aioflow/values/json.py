"""The values of the language as JSON text, without loss, for stores of them.

A value that JSON has no form for is an object with one key that begins with `$`: values are never objects.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import chain
from types import NoneType
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from aioflow.errors import SettingError
from aioflow.relation import Document, Relation, Row, Schema, Type, Value, type_of_value

SMALLEST_INTEGER, LARGEST_INTEGER = -(1 << 63), (1 << 63) - 1

# A subclass before its base: every bool is an int, and every datetime a date.
_BASES: tuple[type[Any], ...] = (bool, str, int, float, Decimal, datetime, date, Relation, Document)
KNOWN = frozenset({*_BASES, NoneType})
# Python refuses to read and write longer integers in decimal, since that takes quadratic time.
_MOST_DECIMAL_BITS = 12_000


# --- writing ------------------------------------------------------------------------------------


def encode_json(value: Value) -> str:
    """Return a value as JSON text, from which `decode_json` makes an equal one; raise a SettingError for
    others.
    """
    if type(value) not in KNOWN:
        type_of_value(value)
    try:
        text = _dumps(value)
        text.encode()
    except ValueError:  # NaN, a very long integer, or text that is no UTF-8, alone or in a relation
        text = _dumps(_spelled_out(value))
    return text


def _dumps(value: Any) -> str:
    return json.dumps(value, default=_tagged, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def encode_rows(rows: Sequence[Row]) -> list[str]:
    """Return each row as a JSON array of its values, from which `decode_row` makes an equal row.

    It is fast for many rows of the same attributes.
    """
    columns = list(zip(*rows, strict=True))
    kinds = [set(map(type, column)) for column in columns]
    if columns and all(each <= KNOWN for each in kinds):
        prepared = [_for_json(column, each) for column, each in zip(columns, kinds, strict=True)]
        with suppress(UnicodeEncodeError):  # text that is no UTF-8 needs a form of its own
            encode = msgspec.json.Encoder().encode
            return [encode(row).decode() for row in zip(*prepared, strict=True)]
    return [_dumps(_spelled_out(row)) for row in rows]


def _for_json(column: Sequence[Any], kinds: Set[type[Any]]) -> Sequence[Any]:
    """Return the values of a column in forms that JSON has."""
    if kinds <= _OF_JSON and not (int in kinds and has_wide(column, kinds)):
        floats = column if float in kinds else ()
        if all(map(math.isfinite, [each for each in floats if each.__class__ is float])):
            return column
    if kinds <= _DAYS:
        return [day and {"$date": day.isoformat()} for day in column]
    return list(map(_spelled_out, column))


_OF_JSON = frozenset({str, int, float, bool, NoneType})
_DAYS = frozenset({date, NoneType})


def _tagged(value: Value) -> dict[str, Any]:
    """Return the object that represents a value for which JSON has no form."""
    match value:
        case Decimal():
            return {"$decimal": str(value)}
        case datetime():
            return {"$datetime": encode_date(value)}
        case date():
            return {"$date": value.isoformat()}
        case Document():
            return {"$document": {"kind": value.kind, "text": value.text}}
        case Relation(is_list=True):
            return {"$list": [each for (each,) in _known_rows(value)]}
        case Relation():
            return {"$relation": _relation_fields(value)}
    raise TypeError(f"{type(value).__name__} is no value of the language")


def _relation_fields(relation: Relation) -> dict[str, Any]:
    names, types = list(relation.schema.names), list(relation.schema.types)
    return {"names": names, "types": types, "rows": _known_rows(relation)}


def _known_rows(relation: Relation) -> list[Row]:
    """Return the rows; raise a SettingError if one has something other than values."""
    rows = list(relation.rows)
    for kind in set(map(type, chain.from_iterable(rows))) - KNOWN:
        base_class(kind)
    return rows


def _spelled_out(value: Any) -> Any:
    """Return a value with all parts replaced that JSON cannot always write."""
    match value:
        case bool() | None:
            return value
        case str():
            return value if _is_unicode(value) else {"$utf8": value.encode("utf-8", "surrogatepass").hex()}
        case int():
            return value if value.bit_length() <= _MOST_DECIMAL_BITS else {"$integer": hex(value)}
        case float():
            return value if math.isfinite(value) else {"$number": _NAMES_OF_NUMBERS[str(value)]}
        case list() | tuple():
            return [_spelled_out(each) for each in value]
        case dict():
            return {key: _spelled_out(each) for key, each in value.items()}
    return _spelled_out(_tagged(value))


_NAMES_OF_NUMBERS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def encode_date(value: date) -> str:
    """Return a date or datetime in ISO 8601, followed by the zone in brackets if the offset is not enough.

    In the hours that a change of clocks repeats or skips, Python holds times of different zones for unequal.
    """
    if not isinstance(value, datetime) or value.tzinfo is None:
        return value.isoformat()
    offset = value.utcoffset()
    if offset is not None and offset.microseconds:  # which Python writes, but does not read in all cases
        with suppress(OverflowError):  # on the first and the last day of all
            return (value.replace(tzinfo=UTC) - offset).isoformat()
    zone = value.tzinfo.key if isinstance(value.tzinfo, ZoneInfo) else None
    is_clear = offset == value.replace(fold=1 - value.fold).utcoffset()
    return value.isoformat() if is_clear or not zone else f"{value.isoformat()}[{zone}]"


# --- reading ------------------------------------------------------------------------------------


def decode_json(text: str | bytes) -> Value:
    """Return the value of a text of `encode_json`; raise a ValueError for any other text."""
    try:
        value = json.loads(text, object_hook=_untagged)
    except (ValueError, TypeError, KeyError, ArithmeticError) as error:
        raise _not_ours(text) from error
    if type(value) not in KNOWN:
        raise _not_ours(text)
    return value


def decode_row(text: str | bytes) -> Row:
    """Return the row of a text of `encode_rows`; raise a ValueError for any other text."""
    try:
        values = json.loads(text, object_hook=_untagged)
    except (ValueError, TypeError, KeyError, ArithmeticError) as error:
        raise _not_ours(text) from error
    if not isinstance(values, list) or not KNOWN.issuperset(map(type, values)):
        raise _not_ours(text)
    return tuple(values)


def _not_ours(text: str | bytes) -> ValueError:
    shown = repr(text if len(text) <= 60 else text[:60])
    return ValueError(f"{shown} is no value that aioflow stored, or one that a newer aioflow did")


def _untagged(found: dict[str, Any]) -> Any:
    if len(found) != 1:
        return found  # the fields of a document or relation, whose tag comes next
    ((tag, content),) = found.items()
    return _READERS[tag](content)


def decode_date(text: str) -> date:
    """Return the date of a text of `encode_date`; raise a ValueError for any other text."""
    if len(text) == 10:
        return date.fromisoformat(text)
    moment, _, zone = text.partition("[")
    found = datetime.fromisoformat(moment)
    return _in_zone(found, zone.removesuffix("]")) if zone else found


def _in_zone(moment: datetime, key: str) -> datetime:
    try:
        zone = ZoneInfo(key)
    except (
        LookupError,
        ValueError,
    ):  # this machine does not know the zone; the instant is right nevertheless
        return moment
    candidates = (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    return next((each for each in candidates if each.utcoffset() == moment.utcoffset()), moment)


def _relation(fields: Mapping[str, Any]) -> Relation:
    kinds = tuple(None if kind is None else Type(kind) for kind in fields["types"])
    return Relation(Schema(tuple(fields["names"]), kinds), list(map(tuple, fields["rows"])))


_READERS: dict[str, Callable[[Any], Value]] = {
    "$decimal": Decimal,
    "$number": float,
    "$integer": lambda digits: int(digits, 16),
    "$utf8": lambda digits: bytes.fromhex(digits).decode("utf-8", "surrogatepass"),
    "$date": date.fromisoformat,
    "$datetime": decode_date,
    "$document": lambda fields: Document(fields["text"], fields["kind"]),
    "$list": Relation.of_values,
    "$relation": _relation,
}


# --- classes and integers of a column ---------------------------------------------------------------------


def base_class(kind: type[Any]) -> type[Any]:
    """Return the class of values that a class belongs to; raise a SettingError if there is none."""
    for base in _BASES:
        if issubclass(kind, base):
            return base
    raise SettingError(
        f"a value of type {kind.__name__!r} cannot be stored "
        "(char, number, boolean, date, relation, document or null)"
    )


def has_wide(column: Sequence[Value], classes: Set[type[Any]]) -> bool:
    """Return whether some int among values of these classes takes more than 64 bits."""
    least, most = ends(column, classes)
    return least < SMALLEST_INTEGER or most > LARGEST_INTEGER


def ends(column: Sequence[Any], classes: Set[type[Any]]) -> tuple[int, int]:
    """Return the least and the greatest int among values of these classes."""
    integers = column if len(classes) == 1 else [value for value in column if type(value) is int]
    return min(integers), max(integers)
