"""Plans as frozen data, read from text or built in Python, before anything is resolved or run.

Spans and comments take no part in equality: the same plan, parsed or built, is equal. Comments are kept as
written, line breaks included; an empty comment is a blank line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from operator import attrgetter
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import msgspec

from aioflow.errors import Diagnostic
from aioflow.relation import Schema
from aioflow.source import Source, Span


class ParameterReference(msgspec.Struct, frozen=True):
    """`$table`: the value of a parameter of the plan."""

    name: str

    def __str__(self) -> str:
        return f"${self.name}"


class Word(msgspec.Struct, frozen=True):
    """A bare name as an option's value: `TYPE: inner`."""

    text: str

    def __str__(self) -> str:
        return self.text


NAME_PATTERN = r"[^\W\d][\w-]*"
NAME_LENGTH_AT_MOST = 200
# Words that are constants even where a variable could be.
RESERVED_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}
_NAME = re.compile(NAME_PATTERN)


def is_word(text: str) -> bool:
    """Return whether a text can name a plan, an item or an operator."""
    return _NAME.fullmatch(text) is not None and len(text) <= NAME_LENGTH_AT_MOST


def is_name(text: str) -> bool:
    """Return whether a text can name a variable, parameter or option."""
    return is_word(text) and text.lower() not in RESERVED_WORDS


# A constant of the language. In strings, `${name}` is replaced by a parameter's value.
Scalar: TypeAlias = str | int | float | bool | None
Constant: TypeAlias = Scalar | tuple[Scalar, ...] | ParameterReference


_LEFT_OUT = ("span", "spans", "comment", "comments")


class PlanPart(msgspec.Struct, frozen=True, eq=False):
    """A part of a plan, equal to another of its class with the same fields.

    Spans and comments, whose names end so, are left out, and the fields of `not_compared`.
    """

    not_compared: ClassVar[frozenset[str]] = frozenset()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, PlanPart) or type(other) is not type(self):
            return NotImplemented
        compared = _compared(type(self))
        return bool(compared(self) == compared(other))

    def __ne__(self, other: object) -> bool:
        return not self == other  # that of Struct would go by identity

    def __hash__(self) -> int:
        return hash(_compared(type(self))(self))

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in _compared_names(type(self)))
        return f"{type(self).__name__}({', '.join(shown)})"


def _compared_names(kind: type[PlanPart]) -> list[str]:
    fields = kind.__struct_fields__
    return [name for name in fields if not name.endswith(_LEFT_OUT) and name not in kind.not_compared]


@cache
def _compared(kind: type[PlanPart]) -> Callable[[PlanPart], Any]:
    """Return a function that gives the compared fields of a part."""
    return attrgetter(*_compared_names(kind))


class Variable(PlanPart, frozen=True, eq=False):
    """A variable as an argument, output, signal or plan output."""

    name: str
    span: Span | None = None


class Setting(PlanPart, frozen=True, eq=False):
    """A constant among a statement's arguments; `name` is None when it was given by position."""

    value: Constant
    name: str | None = None
    span: Span | None = None
    name_span: Span | None = None


class Option(PlanPart, frozen=True, eq=False):
    """A clause that belongs to the operator or subplan: `BY: "city"`, `ALL`.

    Names are case-insensitive; the parser and the builder write them in capitals. A flag has no values.
    `span` places the name, `spans` each value.
    """

    name: str
    values: tuple[Constant | Word, ...] = ()
    span: Span | None = None
    spans: tuple[Span | None, ...] = ()


class Statement(PlanPart, frozen=True, eq=False):
    """`operator (arguments : outputs) {clauses}`; an output named `_` is not needed."""

    operator: str
    arguments: tuple[Variable | Setting, ...] = ()
    outputs: tuple[Variable, ...] = ()
    wait: tuple[Variable, ...] = ()
    enable: tuple[Variable, ...] = ()
    done: tuple[Variable, ...] = ()
    errors: Variable | Literal["skip"] | None = None
    options: tuple[Option, ...] = ()
    span: Span | None = None
    name_span: Span | None = None
    comments: tuple[str, ...] = ()
    trailing_comment: str | None = None


class InputDeclaration(PlanPart, frozen=True, eq=False):
    """An input of a plan; `schema` is None when the text does not declare its attributes."""

    name: str
    schema: Schema | None = None
    span: Span | None = None


class Parameter(PlanPart, frozen=True, eq=False):
    """A parameter of a plan; without a default (`required`) its caller must set it."""

    name: str
    default: Constant = None
    required: bool = False
    span: Span | None = None
    default_span: Span | None = None


class Plan(PlanPart, frozen=True, eq=False):
    """One PLAN item."""

    name: str
    inputs: tuple[InputDeclaration, ...] = ()
    outputs: tuple[Variable, ...] = ()
    statements: tuple[Statement, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    max_depth: int | None = None
    stop_at_max_depth: bool = False
    once: str | None = None
    options: tuple[Option, ...] = ()
    span: Span | None = None
    name_span: Span | None = None
    once_span: Span | None = None
    comments: tuple[str, ...] = ()
    # By the line before or after which they are: "{", "INPUT", …, "BODY", "BODY {", "BODY }"; after also
    # "PLAN" and "}".
    header_comments: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    trailing_comments: Mapping[str, str] = msgspec.field(default_factory=dict)
    closing_comments: tuple[str, ...] = ()

    @property
    def commits_in_batches(self) -> bool:
        """True for `COMMIT: batch`: writes are committed as the plan streams, not at its end."""
        return any(option.name.upper() == "COMMIT" for option in self.options)

    @property
    def key(self) -> str:
        """The name by which statements find the plan: names of plans are case-insensitive."""
        return self.name.lower()


class Item(PlanPart, frozen=True, eq=False):
    """An item of a kind that a plug-in defines (WRAPPER, GRAMMAR, …).

    The language keeps its header and body as text; `content` is the result of parsing them, made by the kind.
    """

    not_compared: ClassVar[frozenset[str]] = frozenset({"content"})

    kind: str
    name: str
    header: str = ""
    body: str = ""
    content: object = None
    span: Span | None = None
    name_span: Span | None = None
    header_span: Span | None = None
    body_span: Span | None = None
    comments: tuple[str, ...] = ()
    header_comment: str | None = None
    trailing_comment: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.kind.lower(), self.name.lower()


class CheckedContent(Protocol):
    """The content of an item that has to be checked together with the other items of its program."""

    def problems(self, program: Program) -> Iterable[Diagnostic]: ...


class Use(PlanPart, frozen=True, eq=False):
    """`USE "file"`."""

    path: str
    span: Span | None = None
    comments: tuple[str, ...] = ()
    trailing_comment: str | None = None


class PlanFile(PlanPart, frozen=True, eq=False):
    """The entries of one text, in their order."""

    not_compared: ClassVar[frozenset[str]] = frozenset({"source"})

    entries: tuple[Plan | Item | Use, ...]
    source: Source | None = None
    closing_comments: tuple[str, ...] = ()


class Program(PlanPart, frozen=True, eq=False, dict=True, weakref=True):
    """A main plan with all plans and items that it can reach. An engine runs programs."""

    not_compared: ClassVar[frozenset[str]] = frozenset({"folder"})

    main: Plan
    plans: tuple[Plan, ...] = ()
    items: tuple[Item, ...] = ()
    folder: str | None = None

    @cached_property
    def by_name(self) -> Mapping[str, Plan]:
        """Plans by their lower-case name."""
        return {plan.key: plan for plan in (*self.plans, self.main)}

    @cached_property
    def item_by_key(self) -> Mapping[tuple[str, str], Item]:
        """Items by lower-case kind and name."""
        return {item.key: item for item in self.items}

    @cached_property
    def item_problems(self) -> tuple[Diagnostic, ...]:
        """The mistakes in items that their kinds find; computed once, however often the program runs."""
        checked = (getattr(item.content, "problems", None) for item in self.items)
        return tuple(found for problems in checked if problems is not None for found in problems(self))

    def item(self, kind: str, name: str) -> Item | None:
        return self.item_by_key.get((kind.lower(), name.lower()))

    def __iter__(self) -> Iterator[Plan]:
        return iter(self.by_name.values())

    @property
    def name(self) -> str:
        return self.main.name
