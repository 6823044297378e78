"""Closures for arithmetic and `||`, and the check that their operands can be meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aioflow.errors import SettingError
from aioflow.expressions.code import Code, Evaluate
from aioflow.expressions.operations import LARGEST_EXACT, PLAIN_NUMBERS, calculate, quotient
from aioflow.relation import Row, Type, Value
from aioflow.values.counters import NOT_A_TEXT, TEXT_TOO_LONG, Counters
from aioflow.values.text import LONGEST_TEXT, read_date, read_number, to_text

_MOVES = ("+", "-")

_Slow = Callable[[Any, Any], Value]


def result_type(sign: str, left: Code, right: Code, offset: int) -> Type | None:
    """The type of `left sign right`; a SettingError where it cannot have a value."""
    if sign in _MOVES and Type.DATE in (left.type, right.type):
        return _date_type(sign, left, right, offset)
    for code, other in ((left, right), (right, left)):
        if sign == "-" and other.type is None and _is_date_text(code):
            continue
        check_number(sign, code, offset)
    # What is not known may be a date, which moves by days.
    unknown = left.type is None or (sign == "+" and right.type is None)
    return None if unknown and sign in _MOVES else Type.NUMBER


def _is_date_text(code: Code) -> bool:
    return code.constant and isinstance(code.value, str) and read_date(code.value) is not None


def check_number(sign: str, code: Code, offset: int) -> None:
    """A SettingError when the operand is never a number."""
    if code.type is Type.CHAR and code.constant and read_number(code.value) is None:
        hint = "; to join texts write '||'" if sign == "+" else ""
        raise SettingError(f"'{sign}' takes numbers, and {code.shown} is not a number{hint}", offset=offset)
    if code.type not in (None, Type.NUMBER, Type.CHAR):
        raise SettingError(f"'{sign}' takes numbers, not {code.shown}", offset=offset)


def _date_type(sign: str, left: Code, right: Code, offset: int) -> Type | None:
    other = right if left.type is Type.DATE else left
    if other.type is Type.DATE and sign == "+":
        raise SettingError("two dates cannot be added; a date takes a number of days", offset=offset)
    if left.type is not Type.DATE and sign == "-" and left.type is Type.NUMBER:
        raise SettingError("a date cannot be taken from a number", offset=offset)
    if other.type not in (None, Type.DATE, Type.NUMBER, Type.CHAR):
        raise SettingError(f"'{sign}' takes a date and a number of days, not {other.shown}", offset=offset)
    if sign == "+":
        return Type.DATE
    if left.type is not Type.DATE:
        return Type.NUMBER
    return {Type.DATE: Type.NUMBER, Type.CHAR: Type.NUMBER, Type.NUMBER: Type.DATE}.get(
        right.type or Type.RELATION
    )


def arithmetic(sign: str, left: Code, right: Code, counters: Counters) -> Evaluate:
    """A closure for `left sign right`."""

    def slow(first: Value, second: Value) -> Value:
        if first is None or second is None:
            return None
        return calculate(sign, first, second, counters)

    if sign in _WITH_CONSTANT and left.position is not None and type(right.value) in PLAIN_NUMBERS:
        return _WITH_CONSTANT[sign](left.position, right.value, slow)
    return _GENERAL[sign](left.evaluate, right.evaluate, slow)


def _add(left: Evaluate, right: Evaluate, slow: _Slow) -> Evaluate:
    def add(row: Row) -> Value:
        first: Any = left(row)
        second: Any = right(row)
        try:
            if first.__class__ in PLAIN_NUMBERS and second.__class__ in PLAIN_NUMBERS:
                return first + second
        except OverflowError:
            pass
        return slow(first, second)

    return add


def _subtract(left: Evaluate, right: Evaluate, slow: _Slow) -> Evaluate:
    def subtract(row: Row) -> Value:
        first: Any = left(row)
        second: Any = right(row)
        try:
            if first.__class__ in PLAIN_NUMBERS and second.__class__ in PLAIN_NUMBERS:
                return first - second
        except OverflowError:
            pass
        return slow(first, second)

    return subtract


def _multiply(left: Evaluate, right: Evaluate, slow: _Slow) -> Evaluate:
    def multiply(row: Row) -> Value:
        first: Any = left(row)
        second: Any = right(row)
        try:
            if first.__class__ in PLAIN_NUMBERS and second.__class__ in PLAIN_NUMBERS:
                return first * second
        except OverflowError:
            pass
        return slow(first, second)

    return multiply


def _divide(left: Evaluate, right: Evaluate, slow: _Slow) -> Evaluate:
    def divide(row: Row) -> Value:
        first: Any = left(row)
        second: Any = right(row)
        try:
            if first.__class__ in PLAIN_NUMBERS and second.__class__ in PLAIN_NUMBERS and second:
                if first.__class__ is int and second.__class__ is int:
                    if not first % second:
                        return first // second
                    if not abs(first) <= LARGEST_EXACT >= abs(second):
                        return quotient(first, second)
                return first / second
        except OverflowError:
            pass
        return slow(first, second)

    return divide


def _floor_divide(left: Evaluate, right: Evaluate, slow: _Slow) -> Evaluate:
    def floor_divide(row: Row) -> Value:
        first: Any = left(row)
        second: Any = right(row)
        try:
            if first.__class__ in PLAIN_NUMBERS and second.__class__ in PLAIN_NUMBERS and second:
                return first // second
        except OverflowError:
            pass
        return slow(first, second)

    return floor_divide


def _modulo(left: Evaluate, right: Evaluate, slow: _Slow) -> Evaluate:
    def modulo(row: Row) -> Value:
        first: Any = left(row)
        second: Any = right(row)
        try:
            if first.__class__ in PLAIN_NUMBERS and second.__class__ in PLAIN_NUMBERS and second:
                return first % second
        except OverflowError:
            pass
        return slow(first, second)

    return modulo


def _add_constant(position: int, number: Any, slow: _Slow) -> Evaluate:
    def add_constant(row: Row) -> Value:
        value = row[position]
        try:
            return value + number if value.__class__ in PLAIN_NUMBERS else slow(value, number)
        except OverflowError:
            return slow(value, number)

    return add_constant


def _subtract_constant(position: int, number: Any, slow: _Slow) -> Evaluate:
    def subtract_constant(row: Row) -> Value:
        value = row[position]
        try:
            return value - number if value.__class__ in PLAIN_NUMBERS else slow(value, number)
        except OverflowError:
            return slow(value, number)

    return subtract_constant


def _multiply_constant(position: int, number: Any, slow: _Slow) -> Evaluate:
    def multiply_constant(row: Row) -> Value:
        value = row[position]
        try:
            return value * number if value.__class__ in PLAIN_NUMBERS else slow(value, number)
        except OverflowError:
            return slow(value, number)

    return multiply_constant


_GENERAL = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "//": _floor_divide,
    "%": _modulo,
}
_WITH_CONSTANT = {"+": _add_constant, "-": _subtract_constant, "*": _multiply_constant}


def concatenation(parts: tuple[Evaluate, ...], counters: Counters) -> Evaluate:
    """A closure for `a || b || …`: null when one of them is."""

    def concatenate(row: Row) -> Value:
        texts = []
        length = 0
        for part in parts:
            value = part(row)
            if value is None:
                return None
            text = value if value.__class__ is str else to_text(value)
            if text is None:
                counters[NOT_A_TEXT] += 1
                return None
            length += len(text)
            texts.append(text)
        if length > LONGEST_TEXT:
            counters[TEXT_TOO_LONG] += 1
            return None
        return "".join(texts)

    return concatenate
