"""Closures for comparisons, `like`, `ilike`, `matches`, `in` and `case`, and the check of their types.

A comparison has three results: true, false and null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from aioflow.errors import SettingError
from aioflow.expressions.code import Code, Evaluate, constant
from aioflow.expressions.operations import COMPARE, PLAIN_NUMBERS, compare
from aioflow.expressions.predicates import Truth, text_test
from aioflow.expressions.syntax import Between, Case, In, Like, Literal, Matches
from aioflow.relation import Document, Row, Type, Value
from aioflow.values.counters import BAD_PATTERN, NOT_A_BOOLEAN, NOT_A_TEXT, Counters, UncomputableError
from aioflow.values.patterns import Test, compiled, like_test
from aioflow.values.text import read_date, read_number

if TYPE_CHECKING:
    from aioflow.expressions.compiler import Compiler


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


def text_condition(compiler: Compiler, node: Like | Matches) -> Evaluate:
    """`a like pattern` or `a matches pattern`: true, false or null."""
    operand, pattern = compiler.value(node.operand), compiler.value(node.pattern)
    make = _maker(compiler, node, operand, pattern)
    fixed = _constant_test(pattern, make)
    evaluate, other, counters = operand.evaluate, pattern.evaluate, compiler.counters

    def test(row: Row) -> bool | None:
        text = as_text(evaluate(row), counters)
        if text is None:
            return None
        if fixed is not None:
            return _guarded(fixed, text, counters)
        wanted = as_text(other(row), counters)
        return None if wanted is None else _guarded(lambda value: make(wanted)(value), text, counters)

    return test


def text_truth(compiler: Compiler, node: Like | Matches, wanted: bool) -> Truth | None:
    """The test whether a column is like a constant pattern, or is not; None for other forms."""
    operand, pattern = compiler.value(node.operand), compiler.value(node.pattern)
    fixed = _constant_test(pattern, _maker(compiler, node, operand, pattern))
    if operand.position is None or fixed is None:
        return None
    counters = compiler.counters

    def guarded(text: str) -> bool:
        return _guarded(fixed, text, counters) is wanted

    def slow(value: Value) -> bool:
        text = as_text(value, counters)
        return text is not None and guarded(text)

    # A test that is a method is that of a compiled pattern, which can fail.
    if hasattr(fixed, "__self__"):
        return text_test(operand.position, guarded, slow)
    return text_test(operand.position, fixed if wanted else lambda text: not fixed(text), slow)


def _maker(compiler: Compiler, node: Like | Matches, operand: Code, pattern: Code) -> Callable[[str], Test]:
    """Return a function from a pattern's text to a test; a SettingError when the operands are no texts."""
    if isinstance(node, Matches):
        _check_texts("matches", operand, pattern, node.offset)
        return lambda text: compiled(text).found
    _check_texts("ilike" if node.ignore_case else "like", operand, pattern, node.offset)
    escape, ignore_case = _escape_character(compiler, node), node.ignore_case
    return lambda text: like_test(text, escape, ignore_case)


def _check_texts(word: str, operand: Code, pattern: Code, offset: int) -> None:
    for code in (operand, pattern):
        if code.type not in (None, Type.CHAR, Type.DOCUMENT):
            raise SettingError(
                f"'{word}' tests texts, not {code.shown}; char(…) makes a text of it", offset=offset
            )


def _escape_character(compiler: Compiler, node: Like) -> str:
    if node.escape is None:
        return ""
    escape = compiler.value(node.escape)
    if not escape.constant or not isinstance(escape.value, str) or len(escape.value) != 1:
        raise SettingError("'escape' takes one character in quotes", offset=node.escape.offset)
    return escape.value


def _constant_test(pattern: Code, make: Callable[[str], Test]) -> Test | None:
    """The test of a pattern that is the same for all rows; a SettingError when it is bad."""
    if not pattern.constant or pattern.value is None:
        return None
    try:
        return make(pattern.value)
    except SettingError as error:
        raise SettingError(error.message, offset=pattern.node.offset) from None


def as_text(value: Value, counters: Counters) -> str | None:
    """A char or a document's text; null and counted for other kinds."""
    if value is None or value.__class__ is str:
        return value
    if isinstance(value, str | Document):
        return str(value)
    counters[NOT_A_TEXT] += 1
    return None


def _guarded(test: Test, text: str, counters: Counters) -> bool | None:
    """The test's result; null and counted where it has none."""
    try:
        return test(text)
    except UncomputableError as error:
        counters[str(error)] += 1
    except SettingError:
        counters[BAD_PATTERN] += 1
    return None


def membership(compiler: Compiler, node: In) -> Evaluate:
    """`a in (b, …)`: true when equal to one, else null when it or one of them is null."""
    operand = compiler.value(node.operand)
    choices = tuple(
        comparable("=", operand, compiler.value(choice), choice.offset)[1].evaluate for choice in node.choices
    )
    evaluate, equal = operand.evaluate, comparer("=", compiler.counters)

    def among(row: Row) -> bool | None:
        value = evaluate(row)
        if value is None:
            return None
        result: bool | None = False
        for choice in choices:
            found = equal(value, choice(row))
            if found:
                return True
            if found is None:
                result = None
        return result

    return among


def between(compiler: Compiler, node: Between) -> Evaluate:
    """`a between low and high`: `a >= low and a <= high`."""
    operand = compiler.value(node.operand)
    low = comparable(">=", operand, compiler.value(node.low), node.offset)[1].evaluate
    high = comparable("<=", operand, compiler.value(node.high), node.offset)[1].evaluate
    evaluate = operand.evaluate
    at_least, at_most = comparer(">=", compiler.counters), comparer("<=", compiler.counters)

    def inside(row: Row) -> bool | None:
        value = evaluate(row)
        above = at_least(value, low(row))
        if above is False:
            return False
        below = at_most(value, high(row))
        return below if above else None if below else below

    return inside


def case(compiler: Compiler, node: Case) -> Code:
    """The result of the first branch whose condition is true, else the default."""
    if node.subject is not None:
        return _case_of(compiler, node, compiler.value(node.subject))
    tests = [compiler.condition(condition).evaluate for condition, _ in node.branches]
    results, default = _results(compiler, node)
    branches = tuple(zip(tests, (result.evaluate for result in results), strict=True))
    otherwise = default.evaluate

    def choose(row: Row) -> Value:
        for test, result in branches:
            if test(row) is True:
                return result(row)
        return otherwise(row)

    return Code(choose, shared_type([*results, default], "the results of 'case'"), node)


def _case_of(compiler: Compiler, node: Case, subject: Code) -> Code:
    values = [
        comparable("=", subject, compiler.value(value), value.offset)[1].evaluate
        for value, _ in node.branches
    ]
    results, default = _results(compiler, node)
    branches = tuple(zip(values, (result.evaluate for result in results), strict=True))
    evaluate, otherwise, equal = subject.evaluate, default.evaluate, comparer("=", compiler.counters)

    def choose(row: Row) -> Value:
        given = evaluate(row)
        for value, result in branches:
            if equal(given, value(row)):
                return result(row)
        return otherwise(row)

    return Code(choose, shared_type([*results, default], "the results of 'case'"), node)


def _results(compiler: Compiler, node: Case) -> tuple[list[Code], Code]:
    results = [compiler.value(result) for _, result in node.branches]
    return results, compiler.value(node.default or Literal(node.offset, None))


def shared_type(results: list[Code], what: str) -> Type | None:
    """The type that all results have; None when one is not known. Null has any type."""
    known = [code for code in results if not (code.constant and code.value is None)]
    types = {code.type for code in known}
    if None in types or not types:
        return None
    if len(types) > 1:
        first = known[0]
        other = next(code for code in known if code.type is not first.type)
        raise SettingError(
            f"{what} have different types: {first.type} and {other.type}", offset=other.node.offset
        )
    return types.pop()
