"""Conditions as predicates: only whether they are true matters, so null and false need not be told apart.

`truth(compiler, node, wanted)` is the test whether the expression is `wanted` (true, or false inside `not`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from aioflow.expressions.comparison import COMPLEMENT, FLIPPED, comparable, comparison
from aioflow.expressions.shapes import (
    NUMBER_SHAPES,
    TEXT_SHAPES,
    Truth,
    all_true,
    any_true,
    is_not_null,
    is_null,
    number_between,
    number_test,
    text_test,
)
from aioflow.expressions.syntax import And, Between, Comparison, In, Is, Like, Matches, Node, Not, Or
from aioflow.expressions.texts import text_truth
from aioflow.expressions.values import PLAIN_NUMBERS, compare, is_nan
from aioflow.relation import Predicate, Value

if TYPE_CHECKING:
    from aioflow.expressions.code import Code
    from aioflow.expressions.compiler import Compiler


def truth(compiler: Compiler, node: Node, wanted: bool = True) -> Truth:
    """The test whether a condition is `wanted`."""
    if isinstance(node, Not):
        return truth(compiler, node.operand, not wanted)
    if isinstance(node, And | Or):
        parts = tuple(truth(compiler, part, wanted) for part in node.parts)
        return all_true(parts) if isinstance(node, And) == wanted else any_true(parts)
    if isinstance(node, Comparison):
        return _comparison_truth(compiler, node, wanted)
    shaped = _shaped(compiler, node, wanted)
    if shaped is not None:
        return shaped
    evaluate = compiler.condition(node).evaluate
    return Truth(lambda row: evaluate(row) is wanted)


def _comparison_truth(compiler: Compiler, node: Comparison, wanted: bool) -> Truth:
    sign = node.sign if wanted else COMPLEMENT[node.sign]
    left, right = comparable(node.sign, compiler.value(node.left), compiler.value(node.right), node.offset)
    return compared(compiler, sign, left, right)


def compared(compiler: Compiler, sign: str, left: Code, right: Code) -> Truth:
    """The test whether `left sign right`, in its fastest form."""
    if left.constant and right.position is not None:
        sign, left, right = FLIPPED[sign], right, left
    counters = compiler.counters
    if left.position is None or not right.constant or right.value is None:
        evaluate = comparison(sign, left, right, counters)
        # Null is as good as false where only the truth matters.
        return Truth(cast("Predicate", evaluate))
    constant = right.value

    def slow(value: Value) -> bool:
        return value is not None and compare(sign, value, constant, counters) is True

    if constant.__class__ in PLAIN_NUMBERS and not is_nan(constant):
        return NUMBER_SHAPES[sign](left.position, constant, slow)
    if constant.__class__ is str and sign in TEXT_SHAPES:
        return TEXT_SHAPES[sign](left.position, constant, slow)
    position = left.position
    return Truth(lambda row: slow(row[position]))


def _between_truth(compiler: Compiler, node: Between, wanted: bool) -> Truth | None:
    operand, low, high = (compiler.value(part) for part in (node.operand, node.low, node.high))
    if operand.position is None:
        return None  # it is to be computed once only
    _, low = comparable(">=", operand, low, node.offset)
    _, high = comparable("<=", operand, high, node.offset)
    limits = low.value, high.value
    if wanted and {type(limit) for limit in limits} <= PLAIN_NUMBERS:
        return _number_between(compiler, operand.position, limits)
    if wanted:
        return all_true((compared(compiler, ">=", operand, low), compared(compiler, "<=", operand, high)))
    return any_true((compared(compiler, "<", operand, low), compared(compiler, ">", operand, high)))


def _number_between(compiler: Compiler, position: int, limits: tuple[Value, Value]) -> Truth:
    low, high = limits
    counters = compiler.counters

    def slow(value: Value) -> bool:
        if value is None:
            return False
        return bool(compare(">=", value, low, counters) and compare("<=", value, high, counters))

    if is_nan(low) or is_nan(high):
        return Truth(lambda row: slow(row[position]))
    return number_between(position, low, high, slow)


def _shaped(compiler: Compiler, node: Node, wanted: bool) -> Truth | None:
    if isinstance(node, Is) and node.value is None:
        operand = compiler.value(node.operand)
        if operand.position is not None:
            return is_null(operand.position) if node.negated != wanted else is_not_null(operand.position)
    if isinstance(node, Between):
        return _between_truth(compiler, node, wanted)
    if isinstance(node, Like | Matches):
        return text_truth(compiler, node, wanted)
    if isinstance(node, In):
        return _membership_truth(compiler, node, wanted)
    return None


def _membership_truth(compiler: Compiler, node: In, wanted: bool) -> Truth | None:
    """The test whether a column is among constants of one kind, or is not; None for other forms."""
    operand = compiler.value(node.operand)
    choices = [comparable("=", operand, compiler.value(choice), choice.offset)[1] for choice in node.choices]
    classes = {choice.value.__class__ for choice in choices}
    if operand.position is None or not all(choice.constant for choice in choices):
        return None
    values = frozenset(choice.value for choice in choices)
    counters = compiler.counters

    def slow(value: Value) -> bool:
        if value is None:
            return False
        equal = [compare("=", value, choice, counters) for choice in values]
        return True in equal if wanted else not any(result is not False for result in equal)

    test = values.__contains__ if wanted else lambda value: value not in values
    if classes == {str}:
        return text_test(operand.position, test, slow)
    if classes <= PLAIN_NUMBERS and not any(map(is_nan, values)):
        return number_test(operand.position, test, slow)
    return None
