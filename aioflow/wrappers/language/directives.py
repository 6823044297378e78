"""Directives: entries with a keyword, such as the request, its FORM, JSON and HEADERS, paging, and limits."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from aioflow.errors import InputError, suggestion
from aioflow.language.mistakes import Mistakes
from aioflow.language.scanner import CONSTANT, NAME, Token, show
from aioflow.source import Span
from aioflow.wrappers.definition import Field
from aioflow.wrappers.language.cutting import Line, UnexpectedError, WrapperEntry, name_of, values_of
from aioflow.wrappers.language.fields import read_processing
from aioflow.wrappers.language.wrapper_text import (
    FLAGS,
    METHODS,
    Directive,
    PagingKind,
    PagingText,
    Part,
    ReaderChoice,
    ReaderOption,
    RequestLine,
)

if TYPE_CHECKING:
    from aioflow.restart.policies import RestartPolicy

_KINDS = ("next", "number", "offset", "cursor")
NEXT_PAGE = "PAGING"


def whole_number(line: Line, least: int | None) -> int:
    """A whole number, of at least so much."""
    token, value = line.constant("a whole number")
    wanted = "a whole number" if least is None else f"a whole number of at least {least}"
    if isinstance(value, bool) or not isinstance(value, int) or (least is not None and value < least):
        raise UnexpectedError(f"expected {wanted}, found {show(token)}", token.start, token.end)
    return value


def read_paging(line: Line) -> PagingText:
    """The value of PAGING."""
    kind = line.word("next, number, offset or cursor")
    name = kind.text.lower()
    if name not in _KINDS:
        hint = suggestion(name, _KINDS) or f" (there are: {', '.join(_KINDS)})"
        raise UnexpectedError(f"unknown kind of PAGING {kind.text!r}{hint}", kind.start, kind.end)
    if name in ("next", "cursor"):
        return _read_found(cast(PagingKind, name), kind, line)
    return _read_counting(cast(PagingKind, name), kind, line)


def _read_found(name: PagingKind, kind: Token, line: Line) -> PagingText:
    selector = line.text("a selector in quotes")
    if not str(selector.value).strip():
        raise UnexpectedError("an empty selector finds nothing", selector.start, selector.end)
    words = read_processing(line, until=("as",) if name == "cursor" else ())
    found = Field(NEXT_PAGE, str(selector.value), "page", words, span=kind.span, selector_span=selector.span)
    if name == "next":
        return PagingText("next", found=found, span=kind.span)
    if not line.is_word("as"):
        line.expect("'as' and a parameter of the query in quotes")
    line.take()
    return PagingText("cursor", _parameter(line), found=found, span=kind.span)


def _read_counting(name: PagingKind, kind: Token, line: Line) -> PagingText:
    parameter = _parameter(line)
    numbers: dict[str, int] = {}
    while not line.at_end:
        if not line.is_word("from", "by"):
            line.expect("'from' or 'by' and a number")
        word = line.take()
        if word.text.lower() in numbers:
            raise UnexpectedError(f"{word.text!r} stands here twice", word.start, word.end)
        numbers[word.text.lower()] = whole_number(line, 1 if word.text.lower() == "by" else 0)
    if name == "offset" and "by" not in numbers:
        line.expect("'by' and how many items a page has")
    return PagingText(name, parameter, numbers.get("from"), numbers.get("by"), span=kind.span)


def _parameter(line: Line) -> str:
    token = line.text("a parameter of the query in quotes")
    if not str(token.value).strip():
        raise UnexpectedError("the name of a parameter cannot be empty", token.start, token.end)
    return str(token.value)


Report: TypeAlias = Callable[[Token, str], None]
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BREAKING = re.compile(r"[\r\n\0]")
# These follow from the request itself; a wrong one would break it, or let another slip through.
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "te", "upgrade", "trailer"})
_CREDENTIALS = frozenset({"authorization", "proxy-authorization"})
# A reference to a secret is a word of its own.
SECRET = re.compile(r"(?<!\S)secret:([A-Za-z_][A-Za-z0-9_-]*)(?!\S)")
_PLAIN_NAME = re.compile(r"[^\W\d][\w-]*")


def is_secret(text: str) -> bool:
    """Return whether a text is a reference to a secret, and nothing else."""
    return SECRET.fullmatch(text) is not None


def variable(name: str) -> str:
    """The template that stands for an input."""
    return f"{{{name}}}" if _PLAIN_NAME.fullmatch(name) else f"{{`{name}`}}"


class PartsReader:
    """Reads lists of `name = value`."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def form(self, line: Line) -> tuple[Part, ...]:
        return self._read(line, "the name of a field of the form", self._repeatable)

    def json(self, line: Line) -> tuple[Part, ...]:
        known: dict[tuple[str, ...], Token] = {}

        def check(token: Token, part: Part) -> None:
            path = tuple(part.name.split("."))
            if "" in path:
                self._report(token, "a name in JSON cannot be empty")
            for other in known:
                if path == other:
                    self._report(token, f"{part.name!r} stands in JSON twice")
                    break
                if path[: len(other)] == other or other[: len(path)] == path:
                    message = f"{part.name!r} and {'.'.join(other)!r} cannot both stand in JSON"
                    self._report(token, message)
                    break
            known[path] = token

        return self._read(line, "the name of a member", check)

    def headers(self, line: Line) -> tuple[Part, ...]:
        known: set[str] = set()

        def check(token: Token, part: Part) -> None:
            name = part.name.lower()
            if not _TOKEN.fullmatch(part.name):
                self._report(token, f"{part.name!r} is not the name of a header")
            elif name in _OURS:
                self._report(token, f"the header {part.name!r} follows from the request and cannot be set")
            elif name in known:
                self._report(token, f"the header {part.name!r} stands here twice")
            known.add(name)

        return self._read(line, "the name of a header", check, is_header=True)

    def _repeatable(self, token: Token, part: Part) -> None:
        """Forms may have a field more than once."""

    def _read(
        self, line: Line, expected: str, check: Callable[[Token, Part], None], is_header: bool = False
    ) -> tuple[Part, ...]:
        parts: list[Part] = []
        while not parts or line.accept(","):
            token = line.name(expected)
            part = self._part(token, line, is_header)
            check(token, part)
            parts.append(part)
        if not line.at_end:
            line.expect("',' or the end of the line")
        return tuple(parts)

    def _part(self, token: Token, line: Line, is_header: bool) -> Part:
        name = name_of(token)
        if not is_header and not line.accept("="):
            return Part(name, variable(name), token.span, (token.span,))
        if is_header and not line.accept("="):
            line.expect("'=' and a text")
        if is_header:
            value = line.text("a text in quotes")
            self._check_header(name, value)
            return Part(name, str(value.value), token.span, (value.span,))
        first, constant = line.constant()
        spans = tuple(each.span for each in line.constants_since(first))
        return Part(name, constant, token.span, spans)  # type: ignore[arg-type]  # a Constant

    def _check_header(self, name: str, value: Token) -> None:
        text = str(value.value)
        if _BREAKING.search(text):
            self._report(value, "a header cannot hold line ends or NUL")
        if name.lower() in _CREDENTIALS and not SECRET.search(text):
            message = "a password or token stands in a plan by reference only"
            self._report(value, f'{message}; write {name} = "Bearer secret:NAME"')


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
            "RESTART": self._policy,
        }
        self._hint = ""

    def read_flag(self, entry: WrapperEntry) -> Directive | None:
        """`SAFE` or `OUTER`, alone."""
        name = entry.key.text.upper()
        if name not in FLAGS:
            token = entry.key
            message = f"expected ':' after {show(token)}, found the end of the line"
            self._mistakes.add(message, token.end, token.end + 1)
            return None
        self._note(name, entry.key)
        return Directive(name, True, entry.key.span, (), not entry.key.text.isupper())

    def read(self, entry: WrapperEntry) -> Directive | None:
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
        if name.text.lower() == "grammar":
            return ReaderChoice("grammar", self._grammar_options(line), name.span)
        options: list[ReaderOption] = []
        while not line.at_end:
            word = line.word("an option of the reader")
            arguments = values_of(line.scalars())
            if not arguments and not line.at_end and line.token.text.lower() in _SWITCH:
                arguments = (_SWITCH[line.take().text.lower()],)
            options.append(ReaderOption(word.text.lower(), arguments, word.span))
        return ReaderChoice(name.text.lower(), tuple(options), name.span)

    def _grammar_options(self, line: Line) -> tuple[ReaderOption, ...]:
        """`goods start list`: names of grammars and rules stand without quotes, and their case counts."""
        token = line.name("the name of a GRAMMAR item")
        options = [ReaderOption("name", (name_of(token),), token.span)]
        while not line.at_end:
            word = line.word("start and a rule, seconds or solutions and a number")
            if word.text.lower() == "start":
                token = line.name("the rule to begin with")
                options.append(ReaderOption("start", (name_of(token),), token.span))
            else:
                arguments = values_of(line.scalars())
                options.append(ReaderOption(word.text.lower(), arguments, word.span))
        return tuple(options)

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
        """Return the signs of a page without items: statuses, and selectors."""
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

    def _policy(self, line: Line) -> RestartPolicy:
        """A rule for slow requests, as words or as a text in quotes."""
        from aioflow.restart.policies import RESTART_EXPECTED, read_policy  # few wrappers have one

        if line.at_end:
            line.expect("auto, off, seconds or a percentile")
        first = last = line.take()
        while not line.at_end:
            last = line.take()
        text = first.source.text[first.start : last.end]
        try:
            return read_policy(first.value if isinstance(first.value, str) and first is last else text)
        except InputError:
            message = f"RESTART takes {RESTART_EXPECTED}; not {text}"
            raise UnexpectedError(message, first.start, last.end) from None
