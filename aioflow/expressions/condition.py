"""Conditions: the setting kinds of `select` and `join`.

A predicate only asks whether a condition is true, so it need not tell null from false. `truth(compiler, node,
wanted)` is the test whether an expression is `wanted`: true, or false inside `not`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

import msgspec

from aioflow.errors import SettingError
from aioflow.expressions.code import first_schema, shallow, text_of, unbound
from aioflow.expressions.comparison import COMPLEMENT, FLIPPED, comparable, comparison, text_truth
from aioflow.expressions.compiler import Compiler, InputScope, JoinScope
from aioflow.expressions.operations import PLAIN_NUMBERS, compare, is_nan
from aioflow.expressions.parser import parse_expression
from aioflow.expressions.predicates import (
    NUMBER_SHAPES,
    TEXT_SHAPES,
    Filter,
    Truth,
    all_true,
    any_true,
    is_not_null,
    is_null,
    number_between,
    number_test,
    text_test,
)
from aioflow.expressions.syntax import (
    And,
    Between,
    Comparison,
    In,
    Is,
    Like,
    Literal,
    Matches,
    Name,
    Node,
    Not,
    Or,
)
from aioflow.relation import Predicate, Row, Schema, Type, Value
from aioflow.values.counters import Counters

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


class Condition(msgspec.Struct, frozen=True, eq=False):
    """A condition on rows: `condition(row)` is True only when it is true, not when it is null.

    `filter(batch)` gives the rows for which it holds, faster than a call for each row; `predicate` is the
    bare closure, which may give None for null. `positions` are the columns it reads, None while the
    schema is not known. `counters` tells how often something gave null that should not have;
    `counters.take()` starts anew.
    """

    kind_name: ClassVar[str] = "a condition"

    text: str
    names: tuple[str, ...]
    positions: tuple[int, ...] | None
    predicate: Predicate
    filter: Filter
    counters: Counters

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Condition:
        text = text_of(value, cls.kind_name)
        return shallow(lambda: cls._bound(text, first_schema(inputs)))

    @classmethod
    def _bound(cls, text: str, schema: Schema | None) -> Condition:
        compiler = Compiler(InputScope(schema))
        test = truth(compiler, parse_expression(text))
        names = tuple(compiler.names)
        if schema is None:
            return cls(text, names, None, unbound, unbound, compiler.counters)
        return cls(text, names, compiler.positions, test.predicate, test.rows, compiler.counters)

    def __call__(self, row: Row) -> bool:
        return self.predicate(row) is True


class JoinCondition(msgspec.Struct, frozen=True, eq=False):
    """A condition on a row of each of two inputs.

    `left_key` and `right_key` are the columns that must be equal (as tuples are compared: null never
    matches, kinds do not mix), `equated` their names in pairs. `rest(left, right)` is what must hold besides,
    None when that is nothing. The keys are None while a schema is not known.
    """

    kind_name: ClassVar[str] = "a join condition"

    text: str
    left_key: tuple[int, ...] | None
    right_key: tuple[int, ...] | None
    equated: tuple[tuple[str, str], ...]
    rest: Callable[[Row, Row], bool] | None
    counters: Counters

    @property
    def positions(self) -> tuple[int, ...] | None:
        """The columns of the left key; None while a schema is not known."""
        return self.left_key

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> JoinCondition:
        text = text_of(value, cls.kind_name)
        left, right = (*inputs, None, None)[:2]
        return shallow(lambda: cls._bound(text, JoinScope(left, right)))

    @classmethod
    def _bound(cls, text: str, scope: JoinScope) -> JoinCondition:
        node = parse_expression(text)
        equated, others = _equalities(node, scope)
        compiler = Compiler(scope)
        tests = [truth(compiler, other) for other in others if not _is_true(other)]
        if scope.left is None or scope.right is None:
            rest = unbound if tests else None
            return cls(text, None, None, tuple(equated), rest, compiler.counters)
        left_key = tuple(scope.left.position(name) for name, _ in equated)
        right_key = tuple(scope.right.position(name) for _, name in equated)
        predicates = tuple(test.predicate for test in tests)
        return cls(text, left_key, right_key, tuple(equated), _rest(predicates), compiler.counters)


def _is_true(node: Node) -> bool:
    return isinstance(node, Literal) and node.value is True


def _rest(predicates: tuple[Predicate, ...]) -> Callable[[Row, Row], bool] | None:
    if not predicates:
        return None
    if len(predicates) == 1:
        only = predicates[0]
        return lambda left, right: only(left + right)

    def holds(left: Row, right: Row) -> bool:
        row = left + right
        return all(predicate(row) for predicate in predicates)

    return holds


def _equalities(node: Node, scope: JoinScope) -> tuple[list[tuple[str, str]], list[Node]]:
    """The pairs of attributes that must be equal, and the conditions that are not of that form."""
    parts = node.parts if isinstance(node, And) else (node,)
    equated: list[tuple[str, str]] = []
    others = []
    for part in parts:
        pair = _equated(part, scope)
        if pair is None:
            others.append(part)
        elif pair not in equated:
            equated.append(pair)
    return equated, others


def _equated(node: Node, scope: JoinScope) -> tuple[str, str] | None:
    if not isinstance(node, Comparison) or node.sign != "=":
        return None
    left, right = node.left, node.right
    if not isinstance(left, Name) or not isinstance(right, Name):
        return None
    sides = scope.side(left), scope.side(right)
    if {side for side, _ in sides} != {"left", "right"}:
        return None
    types = scope.column(left).type, scope.column(right).type
    if None not in types and types[0] is not types[1]:
        raise SettingError(_never_equal(left, right, types), offset=node.offset)
    first, second = sides if sides[0][0] == "left" else (sides[1], sides[0])
    return first[1], second[1]


def _never_equal(left: Name, right: Name, types: tuple[Type | None, ...]) -> str:
    return (
        f"{left.text} ({types[0]}) never equals {right.text} ({types[1]}) in a join; "
        "convert one of them first, in a project before it"
    )
