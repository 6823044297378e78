"""Closures for `like`, `ilike` and `matches`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aioflow.errors import SettingError
from aioflow.expressions.code import Code, Evaluate
from aioflow.expressions.counters import BAD_PATTERN, NOT_A_TEXT, Counters, UncomputableError
from aioflow.expressions.patterns import Test, compiled, like_test
from aioflow.expressions.syntax import Like, Matches
from aioflow.relation import Document, Row, Type, Value

if TYPE_CHECKING:
    from aioflow.expressions.compiler import Compiler


def like(compiler: Compiler, node: Like) -> Evaluate:
    """`a like pattern`, whole text, `%` and `_` as wildcards."""
    word = "ilike" if node.ignore_case else "like"
    operand, pattern = compiler.value(node.operand), compiler.value(node.pattern)
    _check_texts(word, operand, pattern, node.offset)
    escape = _escape_character(compiler, node)

    def make(text: str) -> Test:
        return like_test(text, escape, node.ignore_case)

    return _tested(operand, pattern, make, compiler.counters)


def matches(compiler: Compiler, node: Matches) -> Evaluate:
    """`a matches pattern`: the regular expression is found somewhere in the text."""
    operand, pattern = compiler.value(node.operand), compiler.value(node.pattern)
    _check_texts("matches", operand, pattern, node.offset)
    return _tested(operand, pattern, lambda text: compiled(text).found, compiler.counters)


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


def constant_test(pattern: Code, make: Callable[[str], Test]) -> Test | None:
    """The test of a pattern that is the same for all rows; a SettingError when it is bad."""
    if not pattern.constant or pattern.value is None:
        return None
    try:
        return make(pattern.value)
    except SettingError as error:
        raise SettingError(error.message, offset=pattern.node.offset) from None


def _tested(operand: Code, pattern: Code, make: Callable[[str], Test], counters: Counters) -> Evaluate:
    evaluate, other = operand.evaluate, pattern.evaluate
    fixed = constant_test(pattern, make)

    def test(row: Row) -> bool | None:
        text = as_text(evaluate(row), counters)
        if text is None:
            return None
        if fixed is not None:
            return guarded(fixed, text, counters)
        wanted = as_text(other(row), counters)
        return None if wanted is None else guarded(lambda value: make(wanted)(value), text, counters)

    return test


def as_text(value: Value, counters: Counters) -> str | None:
    """A char or a document's text; null and counted for other kinds."""
    if value is None or value.__class__ is str:
        return value
    if isinstance(value, str | Document):
        return str(value)
    counters[NOT_A_TEXT] += 1
    return None


def guarded(test: Test, text: str, counters: Counters) -> bool | None:
    """The test's result; null and counted where it has none."""
    try:
        return test(text)
    except UncomputableError as error:
        counters[str(error)] += 1
    except SettingError:
        counters[BAD_PATTERN] += 1
    return None
