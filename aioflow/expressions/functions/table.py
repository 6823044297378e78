"""The table of functions that expressions can call; the families register theirs in modules of their own."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

from aioflow.relation import Type, Value

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
