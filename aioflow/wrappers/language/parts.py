"""What requests carry: the members of FORM and JSON, and HEADERS."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from aioflow.language.scanner import Token
from aioflow.pattern import pattern
from aioflow.wrappers.language.cutting import Line, name_of
from aioflow.wrappers.language.pieces import Part

Report: TypeAlias = Callable[[Token, str], None]
_TOKEN = pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BREAKING = pattern(r"[\r\n\0]")
# These follow from the request itself; a wrong one would break it, or let another slip through.
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "te", "upgrade", "trailer"})
_CREDENTIALS = frozenset({"authorization", "proxy-authorization"})
# A reference to a secret is a word of its own.
SECRET = pattern(r"(?<!\S)secret:([A-Za-z_][A-Za-z0-9_-]*)(?!\S)")
_PLAIN_NAME = pattern(r"[^\W\d][\w-]*")


def is_secret(text: str) -> bool:
    """Whether a text is a reference to a secret, and nothing else."""
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
