"""Calls of aggregate functions: the setting kind of `aggregate`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec

from aioflow.authoring.function import AggregateFunction, aggregate_functions
from aioflow.errors import SettingError, suggestion
from aioflow.expressions.code import Evaluate, first_schema, shallow, text_of, unbound
from aioflow.expressions.compiler import Compiler, InputScope
from aioflow.expressions.parser import AggregateItem, parse_aggregates
from aioflow.relation import Schema, Type
from aioflow.values.counters import Counters

_TAKES_ROWS = frozenset({"count"})
_BUILT_IN = frozenset({"count", "sum", "avg", "min", "max", "first", "list"})


class AggregateCall(msgspec.Struct, frozen=True):
    """`function([distinct] argument) as name`.

    `argument` gives a row's value, `position` is its column when it is a plain one; both are None for a
    call without argument, whose function gets the rows. `type` is that of the result, None if not known.
    """

    function: AggregateFunction
    as_name: str
    argument: Evaluate | None
    position: int | None
    distinct: bool
    type: Type | None

    @property
    def name(self) -> str:
        return self.function.name


@dataclass(frozen=True)
class Aggregates:
    """`"sum(price) as total, count() as n"`: the calls in order, and the schema of their results.

    A call without `as` gives an attribute named after it: `sum(price)` gives `sum-price`, `count()`
    gives `count`.
    """

    kind_name: ClassVar[str] = "a list of aggregate functions"

    text: str
    calls: tuple[AggregateCall, ...]
    schema: Schema
    names: tuple[str, ...]
    positions: tuple[int, ...] | None
    counters: Counters = field(repr=False, compare=False)

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Aggregates:
        text = text_of(value, cls.kind_name)
        return shallow(lambda: cls._bound(text, first_schema(inputs)))

    @classmethod
    def _bound(cls, text: str, schema: Schema | None) -> Aggregates:
        compiler = Compiler(InputScope(schema))
        calls: dict[str, AggregateCall] = {}
        for item in parse_aggregates(text):
            call = _call(item, compiler)
            if call.as_name in calls:
                raise SettingError(f"attribute {call.as_name!r} appears twice", offset=item.node.offset)
            calls[call.as_name] = call
        out = Schema(tuple(calls), tuple(call.type for call in calls.values()))
        names = tuple(compiler.names)
        return cls(text, tuple(calls.values()), out, names, compiler.positions, compiler.counters)


def _call(item: AggregateItem, compiler: Compiler) -> AggregateCall:
    node = item.node
    function = aggregate_functions.get(node.function)
    if function is None:
        known = aggregate_functions.names()
        raise SettingError(
            f"unknown aggregate function {node.function!r}{suggestion(node.function, known)}",
            offset=node.offset,
        )
    if len(node.arguments) > 1:
        raise SettingError(
            f"{node.function} takes one argument, not {len(node.arguments)}", offset=node.offset
        )
    as_name = item.name or re.sub(r"[^\w-]+", "-", item.written).strip("-")
    if not node.arguments:
        if node.function in _BUILT_IN - _TAKES_ROWS:
            raise SettingError(f"{node.function} needs an argument", offset=node.offset)
        if node.distinct:
            raise SettingError("'distinct' needs an argument", offset=node.offset)
        return AggregateCall(function, as_name, None, None, False, function.type)
    code = compiler.value(node.arguments[0])
    if node.function in ("sum", "avg") and code.type not in (None, Type.NUMBER, Type.CHAR):
        raise SettingError(f"{node.function} takes numbers, not {code.shown}", offset=node.offset)
    evaluate = code.evaluate if compiler.scope.known else unbound
    position = code.position if compiler.scope.known else None
    kind = code.type if function.same_type else function.type
    return AggregateCall(function, as_name, evaluate, position, node.distinct, kind)
