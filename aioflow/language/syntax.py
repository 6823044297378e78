"""The values that the rules of plan.lark produce, with their tokens; their sense is checked later."""

from __future__ import annotations

from typing import Any, NamedTuple

from aioflow.language.scanner import CONSTANT, NAME, Token
from aioflow.plan import Setting, Variable, Word


class Clause(NamedTuple):
    """`KEY: values`, or a flag, which has none."""

    key: Token
    values: list[Token] | None


class StatementParts(NamedTuple):
    operator: Token
    arguments: tuple[Variable | Setting, ...]
    outputs: tuple[Variable, ...]
    clauses: list[Clause | Token]
    last: Token


class InputParts(NamedTuple):
    name: Token
    attributes: list[AttributeParts] | None


class AttributeParts(NamedTuple):
    name: Token
    type: Token | None


class ParameterParts(NamedTuple):
    name: Token
    default: Token | None


def value_of(token: Token) -> Any:
    """The constant that a token stands for; a name is a bare word."""
    return Word(token.text) if token.type == NAME else token.value


def _argument(part: Token | Setting) -> Variable | Setting:
    if isinstance(part, Setting):
        return part
    if part.type == NAME:
        return Variable(part.text, part.span)
    return Setting(part.value, None, part.span)  # type: ignore[arg-type]  # constants only have such values


class Nodes:
    """A method for each rule, called with what the rule's parts gave."""

    def statement(self, parts: list[Any]) -> StatementParts:
        operator, arguments, outputs, closing, (clauses, last) = parts
        return StatementParts(operator, arguments, outputs, clauses, last or closing)

    def arguments(self, parts: list[Token | Setting]) -> tuple[Variable | Setting, ...]:
        return tuple(map(_argument, parts))

    def keyword(self, parts: list[Token]) -> Setting:
        name, value = parts
        return Setting(value_of(value), name.text, value.span, name.span)

    def outputs(self, parts: list[Token]) -> tuple[Variable, ...]:
        return tuple(Variable(token.text, token.span) for token in parts)

    def clauses(self, parts: list[Any]) -> tuple[list[Any], Token | None]:
        return (parts[:-1], parts[-1]) if parts else ([], None)

    def clause(self, parts: list[Token]) -> Clause:
        return Clause(parts[0], parts[1:])

    def flag(self, parts: list[Token]) -> Clause:
        return Clause(parts[0], None)

    def list_constant(self, parts: list[Token]) -> Token:
        opening, *members, closing = parts
        text = opening.source.text[opening.start : closing.end]
        return Token(
            CONSTANT, text, opening.start, opening.source, value=tuple(each.value for each in members)
        )

    def inputs(self, parts: list[InputParts]) -> list[InputParts]:
        return parts

    def input(self, parts: list[Any]) -> InputParts:
        return InputParts(parts[0], parts[1] if len(parts) > 1 else None)

    def schema(self, parts: list[AttributeParts]) -> list[AttributeParts]:
        return parts

    def attribute(self, parts: list[Token]) -> AttributeParts:
        return AttributeParts(parts[0], parts[1] if len(parts) > 1 else None)

    def names(self, parts: list[Token]) -> list[Token]:
        return parts

    def parameters(self, parts: list[ParameterParts]) -> list[ParameterParts]:
        return parts

    def parameter(self, parts: list[Token]) -> ParameterParts:
        return ParameterParts(parts[0], parts[1] if len(parts) > 1 else None)

    def values(self, parts: list[Token]) -> list[Token]:
        return parts
