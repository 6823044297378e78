"""Closures for comparisons with three results, true, false and null, and the check of their types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aioflow.errors import SettingError
from aioflow.expressions.code import Code, Evaluate, constant
from aioflow.expressions.counters import NOT_A_BOOLEAN, Counters
from aioflow.expressions.reading import read_date, read_number
from aioflow.expressions.values import COMPARE, PLAIN_NUMBERS, compare
from aioflow.relation import Row, Type, Value

FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
COMPLEMENT = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def comparable(sign: str, left: Code, right: Code, offset: int) -> tuple[Code, Code]:
    """The operands, a constant char read as what stands beside it; a SettingError if they never compare."""
    kinds = {left.type, right.type}
    if None in kinds:
        return left, right
    if len(kinds) == 1:
        if kinds <= {Type.RELATION, Type.DOCUMENT} and sign not in ("=", "!="):
            raise SettingError(f"a {left.type} has no order: '{sign}' cannot compare it", offset=offset)
        return left, right
    if Type.CHAR in kinds and kinds & {Type.NUMBER, Type.DATE}:
        other = right.type if left.type is Type.CHAR else left.type
        return _read_constant(left, other), _read_constant(right, other)
    if kinds == {Type.CHAR, Type.DOCUMENT}:
        return left, right
    raise SettingError(f"{left.shown} cannot be compared with {right.shown}", offset=offset)


def _read_constant(code: Code, kind: Type | None) -> Code:
    if not code.constant or code.type is not Type.CHAR:
        return code
    value: Value = read_number(code.value) if kind is Type.NUMBER else read_date(code.value)
    if value is None:
        example = ", as in '2026-01-31'" if kind is Type.DATE else ""
        raise SettingError(f"{code.shown} is not a {kind}{example}", offset=code.node.offset)
    return constant(value, code.node)


def comparer(sign: str, counters: Counters) -> Callable[[Value, Value], bool | None]:
    """A function that compares two values, for operands that must be evaluated only once."""
    operate = COMPARE[sign]

    def compare_values(one: Any, other: Any) -> bool | None:
        if one is None or other is None:
            return None
        if one.__class__ is str and other.__class__ is str:
            return operate(one, other)
        return compare(sign, one, other, counters)

    return compare_values


def comparison(sign: str, left: Code, right: Code, counters: Counters) -> Evaluate:
    """A closure for `left sign right`."""
    first, second, operate = left.evaluate, right.evaluate, COMPARE[sign]

    def compare_values(row: Row) -> bool | None:
        one: Any = first(row)
        other: Any = second(row)
        if one.__class__ in PLAIN_NUMBERS and other.__class__ in PLAIN_NUMBERS:
            if one == one and other == other:  # neither is NaN
                return operate(one, other)
        elif one is None or other is None:
            return None
        elif one.__class__ is str and other.__class__ is str:
            return operate(one, other)
        return compare(sign, one, other, counters)

    return compare_values


def all_of(parts: tuple[Evaluate, ...]) -> Evaluate:
    """`and`: false when one is false, else null when one is null."""

    def evaluate(row: Row) -> bool | None:
        result: bool | None = True
        for part in parts:
            value = part(row)
            if value is False:
                return False
            if value is None:
                result = None
        return result

    return evaluate


def any_of(parts: tuple[Evaluate, ...]) -> Evaluate:
    """`or`: true when one is true, else null when one is null."""

    def evaluate(row: Row) -> bool | None:
        result: bool | None = False
        for part in parts:
            value = part(row)
            if value is True:
                return True
            if value is None:
                result = None
        return result

    return evaluate


def negation(part: Evaluate) -> Evaluate:
    def evaluate(row: Row) -> bool | None:
        value = part(row)
        return None if value is None else not value

    return evaluate


def is_value(part: Evaluate, value: bool | None, negated: bool) -> Evaluate:
    """`is null`, `is true`, `is false`, and the same with `not`: never null."""
    if negated:
        return lambda row: part(row) is not value
    return lambda row: part(row) is value


def boolean(code: Code, counters: Counters) -> Code:
    """The operand of `and`, `or`, `not` or a condition; a SettingError if it is never true or false."""
    if code.type is Type.BOOLEAN and code.position is None:
        return code
    if code.type not in (None, Type.BOOLEAN):
        raise SettingError(
            f"expected a condition, which is true or false, not {code.shown}", offset=code.node.offset
        )
    evaluate = code.evaluate

    def checked(row: Row) -> bool | None:
        value = evaluate(row)
        if value is True or value is False or value is None:
            return value
        counters[NOT_A_BOOLEAN] += 1
        return None

    return Code(checked, Type.BOOLEAN, code.node, constant=code.constant, value=code.value)
