"""Grammars as data: rules, and what stands in their bodies; code is in `script.syntax`."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from aioflow.grammars.characters import CharacterSet
from aioflow.grammars.script.syntax import Block, Expression

Sign: TypeAlias = Literal["?", "*", "+"]


class Terminals(msgspec.Struct, frozen=True):
    """A literal, or one class: the sets of the characters that follow one another."""

    sets: tuple[CharacterSet, ...]
    text: str


class RuleCall(msgspec.Struct, frozen=True):
    """`name()`; `offset` is its place in the text of the grammar."""

    name: str
    offset: int


class Sequence(msgspec.Struct, frozen=True):
    """One item after the other."""

    items: tuple[Item, ...]


class Choice(msgspec.Struct, frozen=True):
    """`a | b`."""

    alternatives: tuple[Item, ...]


class Repetition(msgspec.Struct, frozen=True):
    """`a?`, `a*` or `a+`."""

    item: Item
    sign: Sign


class Binding(msgspec.Struct, frozen=True):
    """`variable = item`, or with `+=` if it `collects`."""

    variable: str
    collects: bool
    item: Item

    @property
    def called(self) -> str:
        """The name of the rule whose result is bound, empty if the text is."""
        item = self.item
        if isinstance(item, Repetition) and item.sign == "?":
            item = item.item
        return item.name if isinstance(item, RuleCall) else ""


class Predicate(msgspec.Struct, frozen=True, eq=False):
    """`accept item if condition;`, at a place of the text."""

    item: Item
    condition: Expression
    offset: int


class Prune(msgspec.Struct, frozen=True):
    """`prune;`"""


class CodeBlock(msgspec.Struct, frozen=True, eq=False):
    """`do … end`"""

    block: Block


Item: TypeAlias = (
    Terminals | RuleCall | Sequence | Choice | Repetition | Binding | Predicate | Prune | CodeBlock
)


class Rule(msgspec.Struct, frozen=True, eq=False):
    """One rule; `result` is the name of its result variable, or empty."""

    name: str
    result: str
    is_strict: bool
    body: Item
    offset: int
