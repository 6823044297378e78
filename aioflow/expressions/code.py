"""A compiled expression: a closure over column positions, and what is known of its results.

All kinds of settings share the helpers here: the constant must be text, an unbound one must not be called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NoReturn, TypeAlias, TypeVar

import msgspec

from aioflow.errors import SettingError
from aioflow.expressions.syntax import Literal, Name, Node, write_literal
from aioflow.relation import Row, Schema, Type, Value, type_of_value

Evaluate: TypeAlias = Callable[[Row], Value]


class Code(msgspec.Struct, frozen=True):
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
        """The name of the expression in messages: `price (number)`, `'abc'`, or `a number`."""
        if isinstance(self.node, Name):
            return f"{self.node.text} ({self.type})" if self.type else self.node.text
        if isinstance(self.node, Literal):
            return write_literal(self.value) or "null"
        return f"a {self.type}" if self.type else "a value"


def constant(value: Value, node: Node) -> Code:
    return Code(lambda row: value, type_of_value(value), node, constant=True, value=value)


def column(position: int, kind: Type | None, node: Node) -> Code:
    return Code(itemgetter(position), kind, node, position=position)


_Result = TypeVar("_Result")


def text_of(value: Any, kind_name: str) -> str:
    """Return the text of a setting; raise a SettingError when the constant is something else."""
    if isinstance(value, str):
        return value
    shown = "null" if value is None else repr(value)
    raise SettingError(f"must be {kind_name} in quotes, not {shown}")


def first_schema(inputs: Sequence[Schema | None]) -> Schema | None:
    return inputs[0] if inputs else None


def unbound(*arguments: Any) -> NoReturn:
    """Stands in for the closures of what was bound while the schema was not known."""
    raise TypeError("this setting was bound without a schema: it was checked, but cannot be evaluated")


def shallow(build: Callable[[], _Result]) -> _Result:
    """Return the result of `build`; a SettingError when the caller's stack is nearly used up."""
    try:
        return build()
    except RecursionError:
        raise SettingError("the expression is nested too deeply") from None
