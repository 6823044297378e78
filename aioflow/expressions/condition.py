"""Conditions: the setting kinds of `select` and `join`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, ClassVar

from aioflow.dataclass import dataclass
from aioflow.errors import SettingError
from aioflow.expressions.binding import first_schema, shallow, text_of, unbound
from aioflow.expressions.compiler import Compiler
from aioflow.expressions.counters import Counters
from aioflow.expressions.parser import parse_expression
from aioflow.expressions.scope import InputScope, JoinScope
from aioflow.expressions.shapes import Filter
from aioflow.expressions.syntax import And, Comparison, Literal, Name, Node
from aioflow.expressions.truth import truth
from aioflow.relation import Predicate, Row, Schema, Type


@dataclass(frozen=True)
class Condition:
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
    predicate: Predicate = field(repr=False)
    filter: Filter = field(repr=False)
    counters: Counters = field(repr=False, compare=False)

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


@dataclass(frozen=True)
class JoinCondition:
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
    rest: Callable[[Row, Row], bool] | None = field(repr=False)
    counters: Counters = field(repr=False, compare=False)

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
