"""Closures for `like`, `ilike` and `matches`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aioflow.errors import SettingError
from aioflow.expressions.code import Code, Evaluate
from aioflow.expressions.counters import BAD_PATTERN, NOT_A_TEXT, Counters, UncomputableError
from aioflow.expressions.patterns import Test, compiled, like_test
from aioflow.expressions.shapes import Truth, text_test
from aioflow.expressions.syntax import Like, Matches
from aioflow.relation import Document, Row, Type, Value

if TYPE_CHECKING:
    from aioflow.expressions.compiler import Compiler


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
    """What makes a test of a pattern's text; a SettingError when the operands are no texts."""
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
