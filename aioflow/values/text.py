"""Texts read as numbers or dates, and values written as text."""

from __future__ import annotations

import re
from datetime import date, datetime, time
from decimal import Decimal

from aioflow.relation import Document, Relation, Value

# The greatest length of a result of an expression.
LONGEST_TEXT = 1 << 25
# Longer texts are hardly numbers; Python itself refuses integers past 4,300 digits.
LONGEST_NUMBER = 1000
_INTEGER = re.compile(r"\s*([+-]?[0-9]+)\s*", re.ASCII)
_DECIMAL = re.compile(r"\s*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?)\s*", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)"
    r"\s*(Z|[+-][0-9]{2}(?::?[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)?)?",
    re.ASCII | re.IGNORECASE,
)


def read_number(text: str) -> int | float | Decimal | None:
    """Return the number in a text, which may have white space around it; None if it is not a number.

    Numbers with more digits than a float keeps become Decimals.
    """
    if len(text) > LONGEST_NUMBER:
        return None
    if found := _INTEGER.fullmatch(text):
        return int(found[1])
    found = _DECIMAL.fullmatch(text)
    if found is None:
        return None
    return exact_number(found[1])


def exact_number(text: str) -> float | Decimal:
    """Return a float when it keeps all digits of the text, else a Decimal."""
    rounded = float(text)
    if len(text) <= 15 and "e" not in text and "E" not in text:
        return rounded
    exact = Decimal(text)
    return rounded if Decimal(repr(rounded)) == exact else exact


def read_date(text: str) -> date | None:
    """Return the date or timestamp in a text in ISO 8601; None if it is neither."""
    text = text.strip()
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
        if found := _TIMESTAMP.fullmatch(text):
            return datetime.fromisoformat(f"{found[1]}T{found[2]}{(found[3] or '').upper()}")
    except ValueError:
        return None
    return None


def midnight(day: date) -> datetime:
    """Return a date as a timestamp, to be compared with timestamps; a timestamp stays as it is."""
    return day if isinstance(day, datetime) else datetime.combine(day, time())


def to_text(value: Value) -> str | None:
    """Return a value as text, as `||`, `char` and `%s` write it; None for null and for relations."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value.bit_length() < 14_000 else None
    if isinstance(value, Decimal):
        return plain_decimal(value)
    if isinstance(value, date):
        return value.isoformat()
    if value is None or isinstance(value, Relation):
        return None
    return value.text if isinstance(value, Document) else str(value)


def plain_decimal(value: Decimal) -> str:
    """Return a Decimal without an exponent, unless that would be long."""
    return format(value, "f") if value.is_finite() and -30 < value.adjusted() < 60 else str(value)
