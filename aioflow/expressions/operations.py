"""The meaning of operators on values: kinds, comparison, arithmetic. Null is handled by the callers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from math import gcd, isnan
from typing import Any

from aioflow.errors import SettingError
from aioflow.relation import Type, Value, decimal_of, since_epoch, type_of_value
from aioflow.values.counters import (
    DATE_OUT_OF_RANGE,
    DIVISION_BY_ZERO,
    NOT_A_DATE,
    NOT_A_NUMBER,
    OUT_OF_RANGE,
    UNLIKE_KINDS,
    Counters,
)
from aioflow.values.text import midnight, read_date, read_number

# The classes that Python compares and adds as we mean it. Decimals are not among them: they do not mix
# with floats, and their NaN raises.
PLAIN_NUMBERS: frozenset[Any] = frozenset({int, float})
# Up to here every integer is a float too, and a quotient of two the float that is nearest to it.
LARGEST_EXACT = 1 << 53
_ENDLESS_PLACES = 28
_MOST_PLACES = 1000

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_KINDS: dict[type, Type] = {
    str: Type.CHAR,
    int: Type.NUMBER,
    float: Type.NUMBER,
    Decimal: Type.NUMBER,
    bool: Type.BOOLEAN,
    date: Type.DATE,
    datetime: Type.DATE,
}


def kind_of(value: Value) -> Type | None:
    """Return the type of a value that is not null; None for what no relation carries."""
    kind = _KINDS.get(value.__class__)
    if kind is not None:
        return kind
    try:
        return type_of_value(value)
    except SettingError:
        return None


# --- comparison ---------------------------------------------------------------------------------


def compare(sign: str, left: Value, right: Value, counters: Counters) -> bool | None:
    """`left sign right` for two values of which neither is null."""
    left_kind, right_kind = kind_of(left), kind_of(right)
    if left_kind is not right_kind or left_kind is None:
        pair = _alike(left, left_kind, right, right_kind, counters)
        if pair is None:
            return None
        left, right = pair
        left_kind = kind_of(left)
    if left_kind is Type.NUMBER:
        left, right = _comparable_numbers(left, right)
    elif left_kind is Type.DATE:
        left, right = since_epoch(left), since_epoch(right)
    elif left_kind in (Type.RELATION, Type.DOCUMENT) and sign not in ("=", "!="):
        counters[UNLIKE_KINDS] += 1
        return None
    return COMPARE[sign](left, right)


def _alike(
    left: Value, left_kind: Type | None, right: Value, right_kind: Type | None, counters: Counters
) -> tuple[Value, Value] | None:
    """Two values of different kinds as two of one kind: a char beside another kind is read as that."""
    if {left_kind, right_kind} == {Type.CHAR, Type.DOCUMENT}:
        return str(left), str(right)
    if left_kind is Type.CHAR:
        left = read_as(right_kind, left, counters)
    elif right_kind is Type.CHAR:
        right = read_as(left_kind, right, counters)
    else:
        counters[UNLIKE_KINDS] += 1
        return None
    return None if left is None or right is None else (left, right)


def read_as(kind: Type | None, text: str, counters: Counters) -> Value:
    """Return a char as a value of another kind; null, and counted, where it is none."""
    if kind is Type.NUMBER:
        value: Value = read_number(text)
        if value is None:
            counters[NOT_A_NUMBER] += 1
        return value
    if kind is Type.DATE:
        value = read_date(text)
        if value is None:
            counters[NOT_A_DATE] += 1
        return value
    counters[UNLIKE_KINDS] += 1
    return None


def _comparable_numbers(left: Value, right: Value) -> tuple[Value, Value]:
    """NaN equals NaN and is greater than every other number, as in PostgreSQL and in joins."""
    left, right = same_arithmetic(left, right)
    if is_nan(left) or is_nan(right):
        return is_nan(left), is_nan(right)
    return left, right


def is_nan(value: Value) -> bool:
    return value.is_nan() if isinstance(value, Decimal) else isinstance(value, float) and isnan(value)


def same_arithmetic(left: Value, right: Value) -> tuple[Value, Value]:
    """Return both values, with a float beside a Decimal as the Decimal that it equals: 0.1 is Decimal 0.1."""
    if isinstance(left, Decimal) and isinstance(right, float):
        return left, decimal_of(right)
    if isinstance(right, Decimal) and isinstance(left, float):
        return decimal_of(left), right
    return left, right


# --- arithmetic ---------------------------------------------------------------------------------


def calculate(sign: str, left: Value, right: Value, counters: Counters) -> Value:
    """`left sign right` for two values of which neither is null."""
    left_kind, right_kind = kind_of(left), kind_of(right)
    if sign in ("+", "-") and Type.DATE in (left_kind, right_kind):
        return _move_date(sign, left, right, counters)
    numbers = [
        read_as(Type.NUMBER, value, counters) if kind is Type.CHAR else value
        for value, kind in ((left, left_kind), (right, right_kind))
    ]
    if not {left_kind, right_kind} <= {Type.NUMBER, Type.CHAR}:
        counters[UNLIKE_KINDS] += 1
        return None
    if None in numbers:
        return None
    left, right = same_arithmetic(*numbers)
    if sign in ("/", "//", "%") and not is_nan(right) and right == 0:
        counters[DIVISION_BY_ZERO] += 1
        return None
    try:
        return _OPERATIONS[sign](left, right)
    except ArithmeticError:
        counters[OUT_OF_RANGE] += 1
        return None


def _divide(left: Value, right: Value) -> Value:
    return quotient(left, right) if isinstance(left, int) and isinstance(right, int) else left / right


def quotient(left: int, right: int) -> int | float | Decimal:
    """`left / right`: an integer where they divide without a rest, else a float.

    Of integers that no float holds it is a Decimal with all digits, or 28 after the point if they do not end.
    """
    whole, rest = divmod(left, right)
    if not rest:
        return whole
    if abs(left) <= LARGEST_EXACT and abs(right) <= LARGEST_EXACT:
        return left / right
    before = Decimal(whole).adjusted() + 1 if whole else 0
    context = Context(before + _places(right // gcd(left, right)), Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
    return context.divide(Decimal(left), Decimal(right))


def _places(denominator: int) -> int:
    """Return the number of digits of a fraction after the point; 28 if there are more, or endlessly many."""
    rest = abs(denominator)
    twos = (rest & -rest).bit_length() - 1
    rest >>= twos
    fives = 0
    while not rest % 5 and fives < _MOST_PLACES:
        rest //= 5
        fives += 1
    ends = rest == 1 and twos <= _MOST_PLACES
    return max(twos, fives, 1) if ends else _ENDLESS_PLACES


def _floor_divide(left: Value, right: Value) -> Value:
    if not (isinstance(left, Decimal) or isinstance(right, Decimal)):
        return left // right
    # Decimal cuts towards zero, and so does its remainder.
    rest = left % right
    return left // right - (1 if rest and (rest < 0) != (right < 0) else 0)


def _modulo(left: Value, right: Value) -> Value:
    if not (isinstance(left, Decimal) or isinstance(right, Decimal)):
        return left % right
    rest = left % right
    return rest + right if rest and (rest < 0) != (right < 0) else rest


_OPERATIONS: dict[str, Callable[[Any, Any], Value]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "//": _floor_divide,
    "%": _modulo,
}


def _move_date(sign: str, left: Value, right: Value, counters: Counters) -> Value:
    """Return a date and a number of days, or the days between two dates."""
    if sign == "-":
        if kind_of(left) is Type.CHAR:
            left = read_as(Type.DATE, left, counters)
        if kind_of(left) is Type.DATE and kind_of(right) in (Type.DATE, Type.CHAR):
            right = read_as(Type.DATE, right, counters) if kind_of(right) is Type.CHAR else right
            return None if right is None else days_between(right, left)
    elif kind_of(right) is Type.DATE:
        left, right = right, left
    days = read_as(Type.NUMBER, right, counters) if isinstance(right, str) else right
    if left is None or days is None:
        return None
    if kind_of(left) is not Type.DATE or kind_of(days) is not Type.NUMBER:
        counters[UNLIKE_KINDS] += 1
        return None
    try:
        return add_days(left, -days if sign == "-" else days)
    except (ArithmeticError, ValueError):
        counters[DATE_OUT_OF_RANGE] += 1
        return None


def add_days(day: date, days: Value) -> date:
    """Return a date moved by days: a date if the days are whole, else a timestamp."""
    if days == days // 1:
        return day + timedelta(days=int(days))
    return midnight(day) + timedelta(days=float(days))


def days_between(earlier: date, later: date) -> int | float:
    """Whole days where they are whole."""
    days = (since_epoch(later) - since_epoch(earlier)) / timedelta(days=1)
    return int(days) if days.is_integer() else days


def negate(value: Value, counters: Counters) -> Value:
    """`-value`."""
    if isinstance(value, Decimal):
        return value.copy_negate()  # `-` would round to the context's precision
    return calculate("*", value, -1, counters)
