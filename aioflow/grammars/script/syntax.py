"""Statements and expressions of code blocks as data."""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

import msgspec


class Constant(msgspec.Struct, frozen=True, eq=False):
    """A number, a text, `true`, `false` or `null`."""

    value: str | int | Decimal | bool | None
    offset: int


class ScriptVariable(msgspec.Struct, frozen=True, eq=False):
    """A variable of the rule."""

    name: str
    offset: int


class MatchedText(msgspec.Struct, frozen=True, eq=False):
    """`$$`: the text that a predicate is asked about."""

    offset: int


class Member(msgspec.Struct, frozen=True, eq=False):
    """`owner.name`"""

    owner: Expression
    name: str
    offset: int


class Element(msgspec.Struct, frozen=True, eq=False):
    """`owner[index]`, counted from 0."""

    owner: Expression
    index: Expression
    offset: int


class Invocation(msgspec.Struct, frozen=True, eq=False):
    """`name(a, …)`, or `owner.name(a, …)`."""

    owner: Expression | None
    name: str
    arguments: tuple[Expression, ...]
    offset: int


class Unary(msgspec.Struct, frozen=True, eq=False):
    """`!a` or `-a`."""

    sign: str
    operand: Expression
    offset: int


class Binary(msgspec.Struct, frozen=True, eq=False):
    """`a + b`, and likewise the other operators."""

    sign: str
    left: Expression
    right: Expression
    offset: int


Expression: TypeAlias = (
    Constant | ScriptVariable | MatchedText | Member | Element | Invocation | Unary | Binary
)


class SetVariable(msgspec.Struct, frozen=True, eq=False):
    """`name = value;`"""

    name: str
    value: Expression
    offset: int


class SetMember(msgspec.Struct, frozen=True, eq=False):
    """`owner.name = value;`"""

    owner: Expression
    name: str
    value: Expression
    offset: int


class Evaluation(msgspec.Struct, frozen=True, eq=False):
    """A call for its effect."""

    expression: Expression
    offset: int


class Conditional(msgspec.Struct, frozen=True, eq=False):
    """`if a { … } else { … }`"""

    test: Expression
    then: Block
    otherwise: Block
    offset: int


class Loop(msgspec.Struct, frozen=True, eq=False):
    """`for name in values { … }`"""

    name: str
    values: Expression
    body: Block
    offset: int


Action: TypeAlias = SetVariable | SetMember | Evaluation | Conditional | Loop
Block: TypeAlias = tuple[Action, ...]
