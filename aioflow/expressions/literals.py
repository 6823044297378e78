"""Constants: how a value is written in an expression, and how what is written is read."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from aioflow.errors import SettingError
from aioflow.expressions.reading import LONGEST_NUMBER, exact_number, read_date, read_number
from aioflow.expressions.syntax import Literal
from aioflow.expressions.tokens import KEYWORDS, Token
from aioflow.expressions.values import is_nan
from aioflow.relation import Document, Value

_SPECIAL_NUMBERS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


def number_literal(text: str) -> Value:
    """An int, a float, or a Decimal when a float cannot keep all of the digits."""
    if text.isdecimal() and len(text) <= LONGEST_NUMBER:
        return int(text)
    return exact_number(text)


def typed_literal(kind: str, token: Token) -> Literal:
    """`date '2026-01-31'`, `timestamp '2026-01-31T08:00'`, `number 'inf'`."""
    text = token.string.strip()
    value: Value
    if kind == "number":
        value = _SPECIAL_NUMBERS.get(text.lower())
        if value is None:
            value = read_number(text)
    else:
        value = read_date(text)
        if kind == "date" and isinstance(value, datetime):
            value = None
        if kind == "timestamp" and isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
    if value is None:
        raise SettingError(f"{token.text} is not a {kind}; write {_EXAMPLES[kind]}", offset=token.start)
    return Literal(token.start, value)


_EXAMPLES = {
    "date": "date '2026-01-31'",
    "timestamp": "timestamp '2026-01-31T08:30:00'",
    "number": "number '12.50'",
}


def write_literal(value: Value) -> str | None:
    """A value as an expression would have it: `x = literal` holds for it. None for relations."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | Document):
        return "'" + str(value).replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"timestamp '{value.isoformat()}'"
    if isinstance(value, date):
        return f"date '{value.isoformat()}'"
    if isinstance(value, int | float | Decimal):
        return _write_number(value)
    return None


def _write_number(value: int | float | Decimal) -> str:
    if is_nan(value):
        return "number 'nan'"
    if value in (float("inf"), float("-inf")):
        return f"number '{'-' if value < 0 else ''}inf'"
    if isinstance(value, int) and value.bit_length() > 3000:
        return format(Decimal(value), "f")
    return repr(value) if not isinstance(value, Decimal) else str(value)


def write_name(name: str) -> str:
    """An attribute's name as an expression would have it, in backticks where it needs them."""
    plain = name.replace("-", "_")
    if plain.isidentifier() and not name.startswith("-") and name.lower() not in KEYWORDS:
        return name
    return "`" + name.replace("`", "``") + "`"
