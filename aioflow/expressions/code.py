"""A compiled expression: a closure over column positions, and what is known of its results."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import TypeAlias

from aioflow.dataclass import dataclass
from aioflow.expressions.literals import write_literal
from aioflow.expressions.syntax import Literal, Name, Node
from aioflow.relation import Row, Type, Value, type_of_value

Evaluate: TypeAlias = Callable[[Row], Value]


@dataclass(frozen=True)
class Code:
    """`evaluate(row)` gives the value, None for null. `type` is None where it is not known.

    `position` is set for a plain column, `constant` for what is the same for every row.
    """

    evaluate: Evaluate
    type: Type | None
    node: Node
    position: int | None = None
    constant: bool = False
    value: Value = None

    @property
    def shown(self) -> str:
        """How a message names it: `price (number)`, `'abc'`, or `a number`."""
        if isinstance(self.node, Name):
            return f"{self.node.text} ({self.type})" if self.type else self.node.text
        if isinstance(self.node, Literal):
            return write_literal(self.value) or "null"
        return f"a {self.type}" if self.type else "a value"


def constant(value: Value, node: Node) -> Code:
    return Code(lambda row: value, type_of_value(value), node, constant=True, value=value)


def column(position: int, kind: Type | None, node: Node) -> Code:
    return Code(itemgetter(position), kind, node, position=position)
