"""Templates with values of inputs: URL templates (RFC 6570), and `{name}` in plain texts.

A template is compiled once, and collects its mistakes in `mistakes`; a template with mistakes is never
expanded. Values come as a sequence in the order of the wrapper's inputs. `Authority` keeps values from
leading a URL to another host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

from aioflow.errors import suggestion
from aioflow.relation import Value
from aioflow.web.urls import without_userinfo
from aioflow.wrappers.input_values import refused, value_text, value_texts

NAME = r"[^\W\d][\w-]*|`[^`{}\n]+`"
OPERATORS = "+#./;?&"
_PREFIX_AT_MOST = 9999
_EXPRESSION = re.compile(r"\{([^{}]*)\}|[{}]")
_VARIABLE = re.compile(rf"({NAME})(:[^*]*)?(\*)?")
_TEXT_VARIABLE = re.compile(rf"\{{\{{({NAME})\}}\}}|\{{({NAME})\}}")
# All that a URL may hold besides letters and digits; `%` only before two hexadecimal digits.
_URL_MARKS = "-._~:/?#[]@!$&'()*+,;=%"
_HOST = re.compile(r"[^:/?#]*://[^/?#]*")
_HOST_END = re.compile(r"[^/?#]*")
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NO_URL_CHARACTER = re.compile(r"[\x00-\x20\x7f-\xa0<>\"\\^`|\u2028\u2029]|%(?![0-9A-Fa-f]{2})")


class Mistake(NamedTuple):
    """A mistake in a template, with its start and end."""

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


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HTTP = re.compile(r"https?://([^/?#]+)", re.IGNORECASE)
_HEAD = re.compile(r"https?://[^/?#\s\\<>\"^`|{}\x00-\x20\x7f]+", re.IGNORECASE)
_PLAIN_URL = re.compile(r"https?://[A-Za-z0-9._~:/?@!$&'()*+,;=-]+")
_END = re.compile(r"[/?#]")
# What a value may be in a host: nothing that ends it, brings a user or needs encoding.
_HOST_VALUE = "[A-Za-z0-9_.-]*"
_INSIDE_HOST = ("", ".")


class Authority:
    """The part of a URL template up to its host.

    `is_fixed` says that the template itself names the host, `prefix` is then everything up to its end. A
    template that begins with `{+name}` leads wherever the value says.
    """

    def __init__(self, template: UrlTemplate) -> None:
        self.mistakes: list[Mistake] = []
        self.is_fixed = False
        self.prefix = ""
        self._template = template
        self._pattern: re.Pattern[str] | None = None
        self._is_closed = False
        first = template.pieces[0] if template.pieces else ""
        if isinstance(first, Expression):
            self._begin_with_value(first)
        else:
            self._begin_with_text(first)

    def url(self, parts: Sequence[str]) -> str:
        """The URL made of its parts; a RequestRefusedError when it is none, or leads to another host."""
        url = "".join(parts)
        if self._is_closed:
            return url
        if self.is_fixed:
            if url[len(self.prefix) :][:1] not in ("", "/", "?", "#"):
                raise refused(
                    f"{_shown(url)}: the values of {self._names()} would change the host {self.prefix}"
                )
            return url
        if self._pattern is not None:
            if self._pattern.match(url) is None:
                raise refused(f"{_shown(url)}: the values of {self._names()} make no host")
            return url
        self._check_value(url, parts)
        return url

    def _names(self) -> str:
        return ", ".join(map(repr, dict.fromkeys(self._template.used)))

    # --- templates that begin with a value ------------------------------------------------------

    def _begin_with_value(self, first: Expression) -> None:
        if first.operator != "+":
            reason = f"the value of '{first.text}' would be encoded, and no URL begins so"
            self._add(f"{reason}; write '{{+{first.names[0]}}}'", 0, len(first.text))

    def _check_value(self, url: str, parts: Sequence[str]) -> None:
        value, match = parts[0], _HTTP.match(parts[0])
        if match is None:
            raise refused(not_a_url(value, self._template.used[0]))
        if len(parts) > 1 and url[match.end() :][:1] not in ("", "/", "?", "#"):
            raise refused(f"{_shown(url)}: the values of {self._names()} would change the host {match[0]}")

    # --- templates that begin with a text -------------------------------------------------------

    def _begin_with_text(self, first: str) -> None:
        scheme = _SCHEME.match(first)
        if scheme is None:
            self._add(_no_scheme(first), 0, max(1, len(first)))
            return
        if scheme[1].lower() not in ("http", "https"):
            self._add(f"a wrapper speaks http and https, not {scheme[1]!r}", 0, len(scheme[1]))
            return
        self.prefix = first[: scheme.end()]
        pieces = list(self._host_pieces(first[scheme.end() :]))
        self.prefix += "".join(piece for piece in pieces if isinstance(piece, str))
        self.is_fixed = bool(pieces) and all(isinstance(piece, str) for piece in pieces)
        self._check_host(scheme.end(), pieces)
        if pieces and not self.is_fixed:
            self._is_closed = False
            self._pattern = _host_pattern(first[: scheme.end()], pieces)

    def _host_pieces(self, behind_scheme: str) -> Iterator[str | Expression]:
        for piece in (behind_scheme, *self._template.pieces[1:]):
            if isinstance(piece, Expression):
                if piece.operator not in _INSIDE_HOST:
                    return
                yield piece
                continue
            end = _END.search(piece)
            text = piece if end is None else piece[: end.start()]
            if text:
                yield text
            if end is not None:
                self._is_closed = True
                return

    def _check_host(self, start: int, pieces: Sequence[str | Expression]) -> None:
        if not pieces:
            has_value = self._template.text[start:].startswith("{")
            hint = "; write '{name}' for a host that is an input" if has_value else ""
            self._add(f"the URL has no host{hint}", 0, start)
        elif "@" in self.prefix:
            message = 'a URL cannot hold a user or password; write AUTH: basic "user" "secret:NAME"'
            self._add(message, start, len(self.prefix))
        elif not _ends_well(pieces):
            written = str(pieces[-1])
            message = f"the value of '{written}' would change the end of the host; write '/' before it"
            place = self._template.text.index(written)
            self._add(message, place, place + len(written))

    def _add(self, message: str, start: int, end: int) -> None:
        self.mistakes.append(Mistake(message, start, end))


def _ends_well(pieces: Sequence[str | Expression]) -> bool:
    """Return whether a host ends with a text, or with a value that is all of it, a port, or after a point."""
    last = pieces[-1]
    if isinstance(last, str) or last.operator == "." or len(pieces) == 1:
        return True
    before = pieces[-2]
    return isinstance(before, str) and before[-1] in ".:"


def _host_pattern(scheme: str, pieces: Sequence[str | Expression]) -> re.Pattern[str]:
    values = (re.escape(piece) if isinstance(piece, str) else _HOST_VALUE for piece in pieces)
    return re.compile(f"{re.escape(scheme)}{''.join(values)}(?:[/?#]|$)")


def plain_url(value: object, name: str) -> str:
    """The URL that a value is by itself."""
    if isinstance(value, str):
        if _PLAIN_URL.fullmatch(value):
            return value
        link = value.strip()
        head = _HEAD.match(link)
        if head is not None:
            # A host in letters of its own language is for the client to translate.
            return head[0] + encoded(link[head.end() :])
    raise refused(not_a_url(str(value), name))


def not_a_url(value: str, name: str) -> str:
    shown = _shown(value) if len(value) <= 100 else _shown(value[:99]) + "…"
    return (
        f"the input {name!r} is {shown!r}, which is no http(s) URL; "
        "a field with the word 'url' gives whole ones"
    )


def _shown(url: str) -> str:
    return without_userinfo(url)


def _no_scheme(text: str) -> str:
    if text.lower().startswith(("http:", "https:")):
        return f"{text.partition('/')[0]!r} is followed by '//' and a host"
    return "the URL has no scheme; it begins with 'https://', 'http://' or a value, as '{+link}'"
