"""Errors of grammars: mistakes in their text, and sources that cannot be parsed."""

from __future__ import annotations

from collections.abc import Sequence

from aioflow.errors import AioflowError, Diagnostic


class GrammarError(AioflowError):
    """A grammar has mistakes; `errors` lists every one of them, with `line`, `column` and `message`."""

    def __init__(self, errors: Sequence[Diagnostic]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(each) for each in self.errors))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.errors,)


class ParseError(AioflowError):
    """No interpretation covers the source; `offset` is the furthest position that any of them reached."""

    def __init__(self, message: str, offset: int, rule: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.rule = rule

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.offset, self.rule)


class ParseLimitError(ParseError):
    """A limit on live solutions, time or memory was reached; `offset` and `rule` say where."""


class ScriptError(ParseError):
    """Code or a predicate of a rule failed; `line` and `column` are its place in the grammar."""

    def __init__(self, message: str, offset: int, rule: str, line: int, column: int) -> None:
        super().__init__(message, offset, rule)
        self.line = line
        self.column = column

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.offset, self.rule, self.line, self.column)
