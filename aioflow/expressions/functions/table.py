"""The table of functions that expressions can call, and the functions on values of any kind.

The other families register theirs in modules of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

from aioflow.expressions.operations import kind_of
from aioflow.relation import Document, Relation, Type, Value
from aioflow.values.counters import NOT_A_BOOLEAN, NOT_A_RELATION, NOT_A_TEXT, UncomputableError
from aioflow.values.text import to_text

Family: TypeAlias = Literal["text", "number", "date", "url", "general"]

# What a parameter may be declared as, beside the types: `whole` numbers, `pattern`s (regular expressions),
# `unit`s of time, `layout`s of dates, the `form` in which dates are read, and `any` value.
_TYPES: dict[str, Type | None] = {
    **{str(kind): kind for kind in Type},
    "whole": Type.NUMBER,
    "pattern": Type.CHAR,
    "unit": Type.CHAR,
    "layout": Type.CHAR,
    "form": Type.CHAR,
    "any": None,
    "same": None,
}


@dataclass(frozen=True)
class FunctionParameter:
    """A parameter of a function; `kind` is a type or a narrower word."""

    name: str
    kind: str
    optional: bool = False
    repeated: bool = False

    @property
    def type(self) -> Type | None:
        return _TYPES[self.kind]


@dataclass(frozen=True)
class ExpressionFunction:
    """A function: what it takes and gives, and the Python function that computes it.

    `call` gets values of the declared kinds, no null among them unless `takes_null`; it raises
    UncomputableError where it has no result.
    """

    name: str
    family: Family
    parameters: tuple[FunctionParameter, ...]
    returns: str
    call: Callable[..., Value] = field(repr=False)
    signature: str
    doc: str
    examples: tuple[str, ...]
    takes_null: bool = False

    @property
    def type(self) -> Type | None:
        return _TYPES[self.returns]

    @property
    def fewest(self) -> int:
        return sum(not parameter.optional for parameter in self.parameters)

    @property
    def most(self) -> int | None:
        """The most arguments it takes; None when there is no limit."""
        if self.parameters and self.parameters[-1].repeated:
            return None
        return len(self.parameters)

    def parameter(self, index: int) -> FunctionParameter:
        return self.parameters[min(index, len(self.parameters) - 1)]


FUNCTIONS: dict[str, ExpressionFunction] = {}

_SIGNATURE = re.compile(r"(\w+)\((.*)\) (\w+)")
_Implementation = TypeVar("_Implementation", bound=Callable[..., Any])


def expression_function(
    family: Family, signature: str, *examples: str, takes_null: bool = False
) -> Callable[[_Implementation], _Implementation]:
    """Register a function: `lower(text char) char`, `trim(text char, [characters char]) char`.

    Brackets mark an optional parameter, `…` one that may be repeated; the docstring documents it, and each
    example is an expression that is true.
    """
    found = _SIGNATURE.fullmatch(signature)
    assert found is not None, signature
    parameters = tuple(map(_parameter, found[2].split(", "))) if found[2] else ()

    def register(implementation: _Implementation) -> _Implementation:
        doc = " ".join((implementation.__doc__ or "").split())
        FUNCTIONS[found[1]] = ExpressionFunction(
            found[1], family, parameters, found[3], implementation, signature, doc, examples, takes_null
        )
        return implementation

    return register


def _parameter(text: str) -> FunctionParameter:
    name, kind = text.strip("[]").removesuffix(" …").split()
    return FunctionParameter(name, kind, text.startswith("["), text.strip("]").endswith("…"))


_TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "off", "0"})


@expression_function("general", "char(value any) char", "char(12.50) = '12.5'", "char(true) = 'true'")
def char(value: Value) -> str:
    """The value as text; dates as in ISO 8601."""
    text = to_text(value)
    if text is None:
        raise UncomputableError(NOT_A_TEXT)
    return text


@expression_function("general", "boolean(value any) boolean", "boolean('yes')", "not boolean(0)")
def boolean(value: Value) -> bool:
    """true, yes, on, t, y, 1 as true; false, no, off, f, n, 0 as false; other numbers than 0 as true."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str | Document):
        word = str(value).strip().lower()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
    elif kind_of(value) == "number":
        return bool(value != 0)
    raise UncomputableError(NOT_A_BOOLEAN)


@expression_function(
    "general", "type(value any) char", "type(1) = 'number'", "type(null) = 'null'", takes_null=True
)
def type_name(value: Value) -> str:
    """char, number, boolean, date, relation, document or null."""
    return "null" if value is None else str(kind_of(value))


@expression_function("general", "cardinality(value relation) number")
def cardinality(value: Relation) -> int:
    """The number of tuples of an embedded relation."""
    if not isinstance(value, Relation):
        raise UncomputableError(NOT_A_RELATION)
    return len(value)


# --- compiled by calls --------------------------------------------------------------------------


@expression_function("general", "coalesce(value any …) same", "coalesce(null, 2, 3) = 2")
def coalesce(*values: Value) -> Value:
    """The first value that is not null."""


@expression_function(
    "general", "nullif(value any, other any) same", "nullif(0, 0) is null", "nullif(1, 0) = 1"
)
def nullif(value: Value, other: Value) -> Value:
    """Null if the two are equal, else the first."""


@expression_function("general", "if(condition boolean, then any, else any) same", "if(1 < 2, 'a', 'b') = 'a'")
def if_(condition: Value, then: Value, otherwise: Value) -> Value:
    """The second if the first is true, else the third."""


@expression_function("number", "greatest(value any …) same", "greatest(1, 3, 2) = 3")
def greatest(*values: Value) -> Value:
    """The greatest of the values; null if one is null."""


@expression_function("number", "least(value any …) same", "least(1, 3, 2) = 1")
def least(*values: Value) -> Value:
    """The least of the values; null if one is null."""
