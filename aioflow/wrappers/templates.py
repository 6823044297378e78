"""Texts with values of inputs in them: URL templates (RFC 6570), and `{name}` in plain texts.

A template is compiled once and collects what is wrong with it in `mistakes`; one that has any is never
expanded. Values come as a sequence in the order of the wrapper's inputs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

from aioflow.errors import suggestion
from aioflow.pattern import pattern
from aioflow.relation import Value
from aioflow.wrappers.values import value_text, value_texts

NAME = r"[^\W\d][\w-]*|`[^`{}\n]+`"
OPERATORS = "+#./;?&"
_PREFIX_AT_MOST = 9999
_EXPRESSION = pattern(r"\{([^{}]*)\}|[{}]")
_VARIABLE = pattern(rf"({NAME})(:[^*]*)?(\*)?")
_TEXT_VARIABLE = pattern(rf"\{{\{{({NAME})\}}\}}|\{{({NAME})\}}")
# All that a URL may hold besides letters and digits; `%` only before two hexadecimal digits.
_URL_MARKS = "-._~:/?#[]@!$&'()*+,;=%"
_HOST = pattern(r"[^:/?#]*://[^/?#]*")
_HOST_END = pattern(r"[^/?#]*")
_LONE_PERCENT = pattern(r"%(?![0-9A-Fa-f]{2})")
_NO_URL_CHARACTER = pattern(r"[\x00-\x20\x7f-\xa0<>\"\\^`|\u2028\u2029]|%(?![0-9A-Fa-f]{2})")


class Mistake(NamedTuple):
    """What is wrong with a template, with start and end in it."""

    message: str
    start: int
    end: int


def quoted_name(name: str) -> str:
    """A name as a template has it: in backticks, unless it is a plain one."""
    return name if re.fullmatch(r"[^\W\d][\w-]*", name) else f"`{name}`"


def encoded(text: str) -> str:
    """A text with all encoded that no URL can hold; what is encoded already stays as it is."""
    if "%" in text:
        text = _LONE_PERCENT.sub("%25", text)
    return quote(text, safe=_URL_MARKS, errors="replace")


class _Names:
    """The inputs that a template may use, and those that it does use."""

    def __init__(self, places: Mapping[str, int], mistakes: list[Mistake]) -> None:
        self.used: list[str] = []
        self._places = places
        self._mistakes = mistakes

    def place(self, written: str, start: int) -> int | None:
        """The place of an input among all; a mistake when there is none of that name."""
        name = written[1:-1] if written.startswith("`") else written
        place = self._places.get(name)
        if place is None:
            known = ", ".join(self._places)
            listed = f"; the inputs are {known}" if known else "; the wrapper has no inputs"
            message = f"unknown variable {name!r}{suggestion(name, self._places) or listed}"
            self._mistakes.append(Mistake(message, start, start + len(written)))
            return None
        self.used.append(name)
        return place


# --- URL templates -------------------------------------------------------------------------------


class _Variable(NamedTuple):
    key: str  # the name, encoded
    name: str
    place: int
    prefix: int | None
    explode: bool


class Expression:
    """`{?a,b*}` of a URL template, expanded by uritemplate."""

    def __init__(self, text: str, operator: str, variables: Sequence[_Variable]) -> None:
        from uritemplate.variable import URIVariable

        self.text = text
        self.operator = operator
        self.variables = variables
        # Prefixes are cut here: uritemplate would cut in the middle of what is encoded.
        written = (variable.key + "*" * variable.explode for variable in variables)
        self._expand: Callable[[Any], Mapping[str, str]] = URIVariable(operator + ",".join(written)).expand

    def __str__(self) -> str:
        return self.text

    @property
    def names(self) -> list[str]:
        return [variable.name for variable in self.variables]

    def expand(self, values: Sequence[Value]) -> str:
        texts: dict[str, str | list[str]] = {}
        for variable in self.variables:
            value = values[variable.place]
            if value is None:
                continue
            text = self._prepared(value, variable)
            if text != []:  # an empty list counts as not given
                texts[variable.key] = text
        return next(iter(self._expand(texts).values()))

    def _prepared(self, value: Value, variable: _Variable) -> str | list[str]:
        text = value_texts(value, variable.name)
        if isinstance(text, str) and variable.prefix is not None:
            text = text[: variable.prefix]
        if self.operator not in ("+", "#"):
            return list(map(_valid, text)) if isinstance(text, list) else _valid(text)
        # uritemplate encodes nothing at all in a text that has something encoded in it.
        return [encoded(each) for each in text] if isinstance(text, list) else encoded(text)


def _valid(text: str) -> str:
    """The text without halves of characters, which cannot be encoded."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _with_encoded_texts(pieces: list[str | Expression]) -> list[str | Expression]:
    """RFC 6570 encodes what no URL can hold, in the template's own text too; a host has a way of its own."""
    result: list[str | Expression] = []
    in_host = True
    for piece in pieces:
        if not isinstance(piece, str):
            in_host = in_host and piece.operator in ("", ".")
            result.append(piece)
            continue
        start = 0
        if in_host:
            match = _HOST.match(piece) if not result else _HOST_END.match(piece)
            start = match.end() if match else 0
            in_host = start == len(piece)
        result.append(piece[:start] + encoded(piece[start:]))
    return result


class UrlTemplate:
    """An RFC 6570 template whose variables are inputs. Names may hold `-`; odd ones stand in backticks."""

    def __init__(self, text: str, places: Mapping[str, int]) -> None:
        self.text = text
        self.mistakes: list[Mistake] = []
        self.pieces: list[str | Expression] = []
        self._names = _Names(places, self.mistakes)
        self._compile()

    @property
    def used(self) -> list[str]:
        """The names of the inputs in it."""
        return self._names.used

    @cached_property
    def only(self) -> int | None:
        """The place of the input when the template is `{+name}` and nothing else."""
        if len(self.pieces) == 1 and isinstance(self.pieces[0], Expression):
            variable, *others = self.pieces[0].variables
            if self.pieces[0].operator == "+" and not others and variable.prefix is None:
                return variable.place
        return None

    def expand(self, values: Sequence[Value]) -> list[str]:
        """The URL in pieces: the texts of the template and, between them, what its expressions became."""
        return [piece if isinstance(piece, str) else piece.expand(values) for piece in self.pieces]

    def _compile(self) -> None:
        end = 0
        for match in _EXPRESSION.finditer(self.text):
            self._add_text(end, match.start())
            end = match.end()
            if match[1] is None:
                what = "is never closed" if match[0] == "{" else "closes nothing"
                self.mistakes.append(Mistake(f"'{match[0]}' {what}", match.start(), match.end()))
            else:
                self._add_expression(match[1], match.start())
        self._add_text(end, len(self.text))
        self.pieces = _with_encoded_texts(self.pieces)

    def _add_text(self, start: int, end: int) -> None:
        text = self.text[start:end]
        for match in _NO_URL_CHARACTER.finditer(text):
            shown = "a space" if match[0] == " " else repr(match[0])
            code = "".join(f"%{byte:02X}" for byte in match[0].encode())
            message = f"{shown} cannot stand in a URL; write {code!r}"
            self.mistakes.append(Mistake(message, start + match.start(), start + match.end()))
        if text:
            self.pieces.append(text)

    def _add_expression(self, inside: str, start: int) -> None:
        operator = inside[:1] if inside[:1] in OPERATORS and inside else ""
        variables = list(self._variables(inside[len(operator) :], inside, start + 1 + len(operator)))
        found = [variable for variable in variables if variable is not None]
        if len(found) == len(variables):
            self.pieces.append(Expression(f"{{{inside}}}", operator, found))

    def _variables(self, listed: str, inside: str, start: int) -> Iterator[_Variable | None]:
        for written in listed.split(","):
            yield self._variable(written, inside, start)
            start += len(written) + 1

    def _variable(self, written: str, inside: str, start: int) -> _Variable | None:
        match = _VARIABLE.fullmatch(written)
        if match is None:
            message = _no_variable(written, inside)
            self.mistakes.append(Mistake(message, start, start + max(1, len(written))))
            return None
        place = self._names.place(match[1], start)
        prefix = self._prefix(match, start)
        if place is None or prefix == 0:
            return None
        name = self._names.used[-1]
        return _Variable(quote(name, safe=""), name, place, prefix, match[3] is not None)

    def _prefix(self, match: re.Match[str], start: int) -> int | None:
        """The number behind `:`, None when there is none, 0 when it is wrong."""
        if match[2] is None:
            return None
        digits = match[2][1:]
        wrong = not digits.isdecimal() or not 1 <= int(digits[:5]) <= _PREFIX_AT_MOST or match[3] is not None
        if wrong:
            message = f"'{match[2]}{match[3] or ''}' must be ':' and a number from 1 to {_PREFIX_AT_MOST}"
            self.mistakes.append(Mistake(message, start + match.start(2), start + match.end()))
            return 0
        return int(digits)


def _no_variable(written: str, inside: str) -> str:
    if not inside:
        return "'{}' names no variable"
    if not written.strip():
        return f"a variable is missing in '{{{inside}}}'"
    if written[0] in "=,!@|":
        return f"{written[0]!r} is no operator of URL templates; there are {' '.join(OPERATORS)}"
    return f"{written!r} is not a variable; names with other characters stand in backticks"


# --- texts ---------------------------------------------------------------------------------------


class TextTemplate:
    """A text with `{name}` of inputs. `{{name}}` is the text `{name}` itself; other braces mean nothing."""

    def __init__(self, text: str, places: Mapping[str, int]) -> None:
        self.text = text
        self.mistakes: list[Mistake] = []
        self._pieces: list[str | tuple[str, int]] = []
        self._names = _Names(places, self.mistakes)
        end = 0
        for match in _TEXT_VARIABLE.finditer(text):
            self._pieces.append(text[end : match.start()])
            end = match.end()
            if match[1] is not None:
                self._pieces.append(match[0][1:-1])
            elif (place := self._names.place(match[2], match.start() + 1)) is not None:
                self._pieces.append((self.used[-1], place))
        self._pieces.append(text[end:])
        self._pieces = [piece for piece in self._pieces if piece]

    @property
    def used(self) -> list[str]:
        """The names of the inputs in it."""
        return self._names.used

    @cached_property
    def only(self) -> tuple[str, int] | None:
        """Name and place of the input when the text is `{name}` and nothing else."""
        if len(self._pieces) == 1 and isinstance(self._pieces[0], tuple):
            return self._pieces[0]
        return None

    def render(self, values: Sequence[Value]) -> str:
        """The text with the values in it; a null leaves nothing."""
        return "".join(
            piece if isinstance(piece, str) else value_text(values[piece[1]], piece[0])
            for piece in self._pieces
        )


Template: TypeAlias = UrlTemplate | TextTemplate
