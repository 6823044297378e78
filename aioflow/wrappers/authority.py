"""Which host a URL template leads to, and the guard that keeps values from leading elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from aioflow.pattern import pattern
from aioflow.web.urls import without_userinfo
from aioflow.wrappers.templates import Expression, Mistake, UrlTemplate, encoded
from aioflow.wrappers.values import refused

_SCHEME = pattern(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HTTP = re.compile(r"https?://([^/?#]+)", re.IGNORECASE)
_HEAD = pattern(r"https?://[^/?#\s\\<>\"^`|{}\x00-\x20\x7f]+", re.IGNORECASE)
_PLAIN_URL = re.compile(r"https?://[A-Za-z0-9._~:/?@!$&'()*+,;=-]+")
_END = pattern(r"[/?#]")
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
    """Whether a host ends with a text, or with a value that is all of it, a port, or behind a point."""
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
