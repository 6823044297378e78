"""Functions on numbers."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import TypeAlias

from aioflow.expressions.functions.table import expression_function
from aioflow.expressions.operations import calculate, same_arithmetic
from aioflow.relation import Document, Value
from aioflow.values.counters import (
    DIVISION_BY_ZERO,
    NOT_A_NUMBER,
    OUT_OF_RANGE,
    Counters,
    UncomputableError,
)
from aioflow.values.text import read_number

Number: TypeAlias = int | float | Decimal

_MOST_DIGITS = 300
_MOST_BITS = 10_000


@expression_function("number", "number(value any) number", "number(' 12.5 ') = 12.5", "number(true) = 1")
def number(value: Value) -> Number:
    """A text as the number that it is; true as 1, false as 0."""
    if isinstance(value, str | Document):
        found = read_number(str(value))
    else:
        found = int(value) if isinstance(value, bool) else value
    if not isinstance(found, int | float | Decimal):
        raise UncomputableError(NOT_A_NUMBER)
    return found


@expression_function("number", "abs(x number) number", "abs(-3) = 3")
def absolute(x: Number) -> Number:
    """The number without its sign."""
    return x.copy_abs() if isinstance(x, Decimal) else abs(x)


@expression_function("number", "sign(x number) number", "sign(-3) = -1", "sign(0) = 0")
def sign(x: Number) -> int:
    """-1, 0 or 1."""
    return (x > 0) - (x < 0)


@expression_function(
    "number", "round(x number, [digits whole]) number", "round(2.5) = 3", "round(2.675, 2) = 2.68"
)
def round_half_up(x: Number, digits: int = 0) -> Number:
    """The number rounded to that many decimals (none if left out), halves away from zero."""
    return _rounded(x, digits, ROUND_HALF_UP)


@expression_function("number", "floor(x number) number", "floor(-2.5) = -3")
def floor(x: Number) -> Number:
    """The greatest whole number that is not greater."""
    return _rounded(x, 0, ROUND_FLOOR)


@expression_function("number", "ceil(x number) number", "ceil(2.1) = 3")
def ceil(x: Number) -> Number:
    """The least whole number that is not less."""
    return _rounded(x, 0, ROUND_CEILING)


def _rounded(x: Number, digits: int, rounding: str) -> Number:
    """Rounds the number as it is written, not the binary fraction behind it: 2.675 becomes 2.68."""
    if isinstance(x, int) and digits >= 0:
        return x
    exact = Decimal(repr(x)) if isinstance(x, float) else Decimal(x)
    if not exact.is_finite() or abs(digits) > _MOST_DIGITS or exact.adjusted() > 1000:
        raise UncomputableError(OUT_OF_RANGE)
    wide = Context(prec=max(exact.adjusted() + digits + 2, 1) + len(exact.as_tuple().digits))
    result = exact.quantize(Decimal(1).scaleb(-digits), rounding=rounding, context=wide)
    if digits <= 0:
        return int(result)
    return result if isinstance(x, Decimal) else float(result)


@expression_function("number", "sqrt(x number) number", "sqrt(9) = 3")
def sqrt(x: Number) -> Number:
    """The square root; null, and counted, for negative numbers."""
    if x < 0:
        raise UncomputableError(OUT_OF_RANGE)
    return x.sqrt() if isinstance(x, Decimal) else math.sqrt(x)


@expression_function("number", "power(x number, y number) number", "power(2, 10) = 1024")
def power(x: Number, y: Number) -> Number:
    """`x` to the power of `y`."""
    x, y = same_arithmetic(x, y)
    if x == 0 and y < 0:
        raise UncomputableError(DIVISION_BY_ZERO)
    if isinstance(x, int) and isinstance(y, int) and y >= 0:
        if x.bit_length() * y > _MOST_BITS:
            raise UncomputableError(OUT_OF_RANGE)
        return int(x**y)
    if not isinstance(x, Decimal) and not isinstance(y, Decimal):
        if x < 0 and y != y // 1:
            raise UncomputableError(OUT_OF_RANGE)
        return math.pow(x, y)
    return Decimal(x) ** Decimal(y)


@expression_function("number", "mod(x number, y number) number", "mod(-7, 3) = 2")
def mod(x: Number, y: Number) -> Number:
    """The same as `x % y`: the rest of `x // y`, with the sign of `y`."""
    counters = Counters()
    rest: Number | None = calculate("%", x, y, counters)
    if rest is None:
        raise UncomputableError(next(iter(counters)))
    return rest
