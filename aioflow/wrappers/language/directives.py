"""Directives: entries with a keyword, from the request to the limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aioflow.errors import suggestion
from aioflow.language.mistakes import Mistakes
from aioflow.language.scanner import CONSTANT, NAME, Token
from aioflow.language.words import show
from aioflow.source import Span
from aioflow.wrappers.language.cutting import Entry, Line, UnexpectedError, values_of
from aioflow.wrappers.language.paging import read_paging, whole_number
from aioflow.wrappers.language.parts import PartsReader, is_secret
from aioflow.wrappers.language.pieces import (
    FLAGS,
    METHODS,
    Directive,
    ReaderChoice,
    ReaderOption,
    RequestLine,
)

_SWITCH = {"on": True, "yes": True, "true": True, "off": False, "no": False, "false": False}
_TIMEOUT_AT_MOST = 86_400


class DirectiveReader:
    """Reads one directive after the other, and reports what is wrong with them."""

    def __init__(self, mistakes: Mistakes) -> None:
        self._mistakes = mistakes
        self._first: dict[str, Token] = {}
        parts = PartsReader(self._report)
        self._readers: dict[str, Callable[[Line], Any]] = {
            "FORM": parts.form,
            "JSON": parts.json,
            "HEADERS": parts.headers,
            "BODY": self._text,
            "EACH": self._selector,
            "AUTH": self._auth,
            "READ": self._reader,
            "CHARSET": self._charset,
            "PAGING": read_paging,
            "MAX_PAGES": self._count,
            "EMPTY": self._signs,
            "ROBOTS": self._switch,
            "TIMEOUT": self._seconds,
        }
        self._hint = ""

    def read_flag(self, entry: Entry) -> Directive | None:
        """`SAFE` or `OUTER`, alone."""
        name = entry.key.text.upper()
        if name not in FLAGS:
            token = entry.key
            message = f"expected ':' after {show(token)}, found the end of the line"
            self._mistakes.add(message, token.end, token.end + 1)
            return None
        self._note(name, entry.key)
        return Directive(name, True, entry.key.span, (), not entry.key.text.isupper())

    def read(self, entry: Entry) -> Directive | None:
        """A directive with its value; None when it cannot be understood."""
        key = entry.key
        name = key.text.upper()
        is_small = not key.text.isupper()
        # Who writes a keyword in small letters may mean a field.
        self._hint = f"; a field of this name stands in backticks: `{key.text}`" if is_small else ""
        self._note("REQUEST" if name in METHODS else name, key)
        line = Line(entry.tokens, entry.opening or entry.end, 2)
        start = line.token
        try:
            value = self._value(name, line)
            line.expect_end()
            if entry.opening is not None:
                raise UnexpectedError(f"{name} takes no block", entry.opening.start, entry.opening.end)
        except UnexpectedError as mistake:
            mistake.report(self._mistakes, self._hint)
            return None
        spans = tuple(token.span for token in entry.tokens[2:] if token.type == CONSTANT)
        spans = spans or (Span(start.source, start.start, start.end),)
        return Directive("REQUEST" if name in METHODS else name, value, key.span, spans, is_small)

    def _note(self, name: str, key: Token) -> None:
        """Each directive stands once; there is one request."""
        first = self._first.setdefault(name, key)
        if first is key:
            return
        line = key.source.position(first.start)[0]
        message = f"{name} stands twice; the first is in line {line}"
        if name == "REQUEST":
            message = f"a wrapper makes one request; {first.text.upper()} stands in line {line}"
        self._mistakes.add(message + self._hint, key.start, key.end)

    def _value(self, name: str, line: Line) -> Any:
        if name in METHODS:
            return RequestLine(name, self._text(line, "a URL in quotes"))
        if line.is_word("none") and line.peek() is line.end:
            line.take()
            return None
        if name in FLAGS:
            return self._switch(line)
        return self._readers[name](line)

    # --- values ---------------------------------------------------------------------------------

    def _report(self, token: Token, message: str) -> None:
        self._mistakes.add(message + self._hint, token.start, token.end)

    def _text(self, line: Line, expected: str = "a text in quotes") -> str:
        return str(line.text(expected).value)

    def _selector(self, line: Line) -> str:
        token = line.text("a selector in quotes")
        if not str(token.value).strip():
            self._report(token, "an empty selector finds nothing")
        return str(token.value)

    def _switch(self, line: Line) -> bool:
        token = line.token
        if line.at_end or token.type not in (NAME, CONSTANT) or token.text.lower() not in _SWITCH:
            line.expect("on or off")
        return _SWITCH[line.take().text.lower()]

    def _auth(self, line: Line) -> tuple[str, ...]:
        kind = line.word("bearer or basic")
        name = kind.text.lower()
        if name not in ("bearer", "basic"):
            hint = suggestion(name, ("bearer", "basic")) or " (there are: bearer, basic)"
            raise UnexpectedError(f"unknown kind of AUTH {kind.text!r}{hint}", kind.start, kind.end)
        user: tuple[str, ...] = ()
        if name == "basic":
            token = line.text("a user in quotes")
            user = (str(token.value),)
            if ":" in user[0].removeprefix("secret:") or " " in user[0]:
                self._report(token, "a user of basic AUTH holds neither ':' nor spaces")
        secret = line.text('"secret:NAME"')
        if not is_secret(str(secret.value)):
            message = 'a password or token stands in a plan by reference only; write "secret:NAME"'
            self._report(secret, message)
        return (name, *user, str(secret.value))

    def _reader(self, line: Line) -> ReaderChoice:
        name = line.word("a reader such as html or json")
        options: list[ReaderOption] = []
        while not line.at_end:
            word = line.word("an option of the reader")
            arguments = values_of(line.scalars())
            if not arguments and not line.at_end and line.token.text.lower() in _SWITCH:
                arguments = (_SWITCH[line.take().text.lower()],)
            options.append(ReaderOption(word.text.lower(), arguments, word.span))
        return ReaderChoice(name.text.lower(), tuple(options), name.span)

    def _charset(self, line: Line) -> str:
        token = line.text("a character set in quotes")
        try:
            "".encode(str(token.value))
        except (LookupError, ValueError):
            self._report(token, f"unknown character set {show(token)}")
        return str(token.value)

    def _count(self, line: Line) -> int:
        return whole_number(line, 1)

    def _signs(self, line: Line) -> tuple[int | str, ...]:
        """What tells that there are no items: statuses, and selectors."""
        signs: list[int | str] = []
        while not signs or line.accept(","):
            token, value = line.constant("a status or a selector in quotes")
            if isinstance(value, str):
                if not value.strip():
                    self._report(token, "an empty selector finds nothing")
            elif isinstance(value, bool) or not isinstance(value, int) or not 100 <= value <= 599:
                known = "statuses from 100 to 599 and selectors in quotes"
                self._report(token, f"EMPTY takes {known}, not {show(token)}")
                value = 404
            signs.append(value)
        return tuple(signs)

    def _seconds(self, line: Line) -> float:
        token, value = line.constant("a number of seconds")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _TIMEOUT_AT_MOST:
            message = f"TIMEOUT takes seconds, more than 0 and at most {_TIMEOUT_AT_MOST}, not {show(token)}"
            raise UnexpectedError(message, token.start, token.end)
        return value
