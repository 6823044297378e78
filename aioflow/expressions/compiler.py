"""From the tree of an expression to closures over column positions, with all types checked that are known.

A scope finds the column that a name means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from aioflow.errors import SettingError, suggestion
from aioflow.expressions.arithmetic import arithmetic, check_number, concatenation, result_type
from aioflow.expressions.code import Code, Evaluate, column, constant
from aioflow.expressions.comparison import (
    all_of,
    any_of,
    between,
    boolean,
    case,
    comparable,
    comparison,
    is_value,
    membership,
    negation,
    text_condition,
)
from aioflow.expressions.operations import negate
from aioflow.expressions.syntax import (
    And,
    Arithmetic,
    Between,
    Case,
    Comparison,
    Concatenation,
    FunctionCall,
    In,
    Is,
    Like,
    Literal,
    Matches,
    Name,
    Negative,
    Node,
    Not,
    Or,
)
from aioflow.relation import Row, Schema, Type, Value
from aioflow.values.counters import Counters


class ScopeColumn(msgspec.Struct, frozen=True):
    """A place in the row, and its type where that is known; position -1 while the schema is not."""

    position: int
    type: Type | None


class Scope(Protocol):
    """Finds columns by name; `known` is False while a schema is not."""

    @property
    def known(self) -> bool: ...

    def column(self, name: Name) -> ScopeColumn: ...


UNKNOWN = ScopeColumn(-1, None)


class InputScope(msgspec.Struct, frozen=True):
    """The attributes of one input. `left.a` is the attribute that a join named so."""

    schema: Schema | None

    @property
    def known(self) -> bool:
        return self.schema is not None

    def column(self, name: Name) -> ScopeColumn:
        if self.schema is None:
            return UNKNOWN
        if name.text not in self.schema and not self.schema.open:
            raise unknown_attribute(name, name.text, self.schema)
        return ScopeColumn(self.schema.position(name.text), self.schema.type_of(name.text))


class JoinScope(msgspec.Struct, frozen=True):
    """The attributes of two inputs, for rows of the left joined to rows of the right."""

    left: Schema | None
    right: Schema | None

    @property
    def known(self) -> bool:
        return self.left is not None and self.right is not None

    def side(self, name: Name) -> tuple[str, str]:
        """`left` or `right`, and the attribute there."""
        first = name.parts[0].lower()
        if first in ("left", "right") and len(name.parts) > 1:
            return first, ".".join(name.parts[1:])
        schemas = (("left", self.left), ("right", self.right))
        sides = [side for side, schema in schemas if schema is None or name.text in schema]
        if not sides:
            sides = [side for side, schema in schemas if schema is not None and schema.open][:1]
        if not sides and self.left is not None and self.right is not None:
            raise unknown_attribute(name, name.text, self.left.add(self.right))
        if len(sides) > 1 and self.known:
            raise SettingError(
                f"both inputs have {name.text!r}; write left.{name.text} or right.{name.text}",
                offset=name.offset,
            )
        return sides[0], name.text

    def column(self, name: Name) -> ScopeColumn:
        side, attribute = self.side(name)
        schema = self.left if side == "left" else self.right
        if schema is None:
            return UNKNOWN
        if attribute not in schema and not schema.open:
            raise unknown_attribute(name, attribute, schema)
        before = 0 if side == "left" or self.left is None else len(self.left)
        return ScopeColumn(before + schema.position(attribute), schema.type_of(attribute))


def unknown_attribute(name: Name, attribute: str, schema: Schema) -> SettingError:
    """Return the error for a name that is no attribute, with the likeliest way to mend it."""
    known = ", ".join(schema.names) or "no attributes"
    split = _subtraction(attribute, schema)
    if split is not None:
        hint = f": '{attribute}' is one name; for subtraction write '{split}'"
    else:
        hint = suggestion(attribute, schema.names)
    if not hint and len(name.parts) == 1:
        hint = f"; a text stands in quotes: '{attribute}'"
    return SettingError(f"unknown attribute {attribute!r}{hint} (there are: {known})", offset=name.offset)


def _subtraction(attribute: str, schema: Schema) -> str | None:
    """`n - 1` for the name `n-1` when there is an `n`."""
    parts = attribute.split("-")
    for count in range(len(parts) - 1, 0, -1):
        left, right = "-".join(parts[:count]), "-".join(parts[count:])
        if left in schema:
            return f"{left} - {right or '…'}"
    return None


class Compiler:
    """Compiles the expressions of one setting; they share their counters and the columns they read."""

    def __init__(self, scope: Scope, counters: Counters | None = None) -> None:
        self.scope = scope
        self.counters = Counters() if counters is None else counters
        self.names: dict[str, int] = {}
        self._names_seen = 0

    @property
    def positions(self) -> tuple[int, ...] | None:
        """The columns that the expressions read; None while the schema is not known."""
        return tuple(dict.fromkeys(self.names.values())) if self.scope.known else None

    def value(self, node: Node) -> Code:
        """Return a closure that gives the value of the expression."""
        before = self._names_seen
        code = _COMPILE[type(node)](self, node)
        if self._names_seen == before and not code.constant:
            return self._folded(code)
        return code

    def condition(self, node: Node) -> Code:
        """Return a closure whose result is true, false or null; raise a SettingError for any other."""
        return boolean(self.value(node), self.counters)

    def _folded(self, code: Code) -> Code:
        """Return the value itself, for what reads no column; but what counts must count for every row."""
        value = code.evaluate(())
        if not self.counters:
            kind = None if value is None else code.type  # null is of every type
            return Code(lambda row: value, kind, code.node, constant=True, value=value)
        self.counters.clear()
        return code

    # --- operands -------------------------------------------------------------------------------

    def _literal(self, node: Literal) -> Code:
        return constant(node.value, node)

    def _name(self, node: Name) -> Code:
        self._names_seen += 1
        found = self.scope.column(node)
        self.names[node.text] = found.position
        return column(found.position, found.type, node)

    def _call(self, node: FunctionCall) -> Code:
        # Loads all families of functions, which plans that call none need not wait for.
        from aioflow.expressions.calls import call

        return call(self, node)

    def _case(self, node: Case) -> Code:
        return case(self, node)

    # --- arithmetic -----------------------------------------------------------------------------

    def _negative(self, node: Negative) -> Code:
        operand = self.value(node.operand)
        check_number("-", operand, node.offset)
        evaluate, counters = operand.evaluate, self.counters

        def negative(row: Row) -> Value:
            value = evaluate(row)
            return None if value is None else negate(value, counters)

        return Code(negative, Type.NUMBER, node)

    def _arithmetic(self, node: Arithmetic) -> Code:
        left, right = self.value(node.left), self.value(node.right)
        kind = result_type(node.sign, left, right, node.offset)
        return Code(arithmetic(node.sign, left, right, self.counters), kind, node)

    def _concatenation(self, node: Concatenation) -> Code:
        parts = [self.value(part) for part in node.parts]
        for part in parts:
            if part.type is Type.RELATION:
                raise SettingError(f"'||' joins texts, not {part.shown}", offset=node.offset)
        evaluate = concatenation(tuple(part.evaluate for part in parts), self.counters)
        return Code(evaluate, Type.CHAR, node)

    # --- conditions -----------------------------------------------------------------------------

    def _comparison(self, node: Comparison) -> Code:
        left, right = comparable(node.sign, self.value(node.left), self.value(node.right), node.offset)
        return _true_or_false(comparison(node.sign, left, right, self.counters), node)

    def _and(self, node: And) -> Code:
        return _true_or_false(all_of(self._conditions(node.parts)), node)

    def _or(self, node: Or) -> Code:
        return _true_or_false(any_of(self._conditions(node.parts)), node)

    def _conditions(self, parts: tuple[Node, ...]) -> tuple[Evaluate, ...]:
        return tuple(self.condition(part).evaluate for part in parts)

    def _not(self, node: Not) -> Code:
        return _true_or_false(negation(self.condition(node.operand).evaluate), node)

    def _is(self, node: Is) -> Code:
        operand = self.value(node.operand) if node.value is None else self.condition(node.operand)
        return _true_or_false(is_value(operand.evaluate, node.value, node.negated), node)

    def _between(self, node: Between) -> Code:
        return _true_or_false(between(self, node), node)

    def _in(self, node: In) -> Code:
        return _true_or_false(membership(self, node), node)

    def _text_condition(self, node: Like | Matches) -> Code:
        return _true_or_false(text_condition(self, node), node)


def _true_or_false(evaluate: Evaluate, node: Node) -> Code:
    return Code(evaluate, Type.BOOLEAN, node)


_COMPILE: dict[type[Node], Callable[[Compiler, Any], Code]] = {
    Literal: Compiler._literal,
    Name: Compiler._name,
    FunctionCall: Compiler._call,
    Case: Compiler._case,
    Negative: Compiler._negative,
    Arithmetic: Compiler._arithmetic,
    Concatenation: Compiler._concatenation,
    Comparison: Compiler._comparison,
    And: Compiler._and,
    Or: Compiler._or,
    Not: Compiler._not,
    Is: Compiler._is,
    Between: Compiler._between,
    In: Compiler._in,
    Like: Compiler._text_condition,
    Matches: Compiler._text_condition,
}
