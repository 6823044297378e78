"""The lists of domains and of URL patterns that a crawl follows or skips. Every test takes linear time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

from aioflow.errors import SettingError
from aioflow.values.counters import UncomputableError
from aioflow.values.patterns import compiled
from aioflow.web.canonical_urls import ascii_host

_Test: TypeAlias = Callable[[str], bool]
_SEPARATOR = re.compile(r",\s+|,$|\n")
_PORT = re.compile(r"(.+):([0-9]{1,5})")


def _texts(value: Any, kind_name: str, separator: re.Pattern[str]) -> list[str]:
    values = value if isinstance(value, tuple | list) else (value,)
    if not all(isinstance(each, str) for each in values):
        raise SettingError(f"must be {kind_name}, not {value!r}")
    found = [part.strip() for each in values for part in separator.split(each)]
    if not any(found):
        raise SettingError(f"must be {kind_name}; there is none in {value!r}")
    return [part for part in found if part]


class DomainList:
    """A setting with domains: `example.com` is the host and all below it, `*.example.com` only those below.

    `example.com:8080` is that port alone. The comparison is with hosts in lower case and ASCII.
    """

    kind_name: ClassVar[str] = "a list of domains, such as 'example.com, *.example.org'"

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._exact: set[str] = set()
        self._above: set[str] = set()
        for name in names:
            self._add(name)

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Any]) -> DomainList:
        return cls(_texts(value, cls.kind_name, re.compile(r"[,\s]")))

    def __str__(self) -> str:
        return ", ".join(self.names)

    def _add(self, name: str) -> None:
        below_only = name.startswith("*.")
        host = name.removeprefix("*.").removeprefix(".")
        with_port = _PORT.fullmatch(host)
        port = f":{with_port[2]}" if with_port and not host.startswith("[") else ""
        try:
            host = ascii_host((with_port[1] if with_port and port else host).strip("[]")) + port
        except ValueError:
            hint = "; write it without https:// and path" if "/" in name else ""
            raise SettingError(f"{name!r} is no domain{hint}") from None
        self._above.add(host)
        if not below_only:
            self._exact.add(host)

    def has(self, host: str, port: str = "") -> bool:
        """Return whether a host, in lower case and ASCII, is in the list."""
        tails = [f":{port}", ""] if port else [""]
        if any(host + tail in self._exact for tail in tails):
            return True
        dot = host.find(".")
        while dot >= 0:
            host = host[dot + 1 :]
            if any(host + tail in self._above for tail in tails):
                return True
            dot = host.find(".")
        return False


class UrlPatterns:
    """A setting with patterns of URLs: texts in which `*` stands for any characters, or `/expression/`.

    Other characters than `*` stand for themselves, `?` too. A text with `://` is compared with the whole URL,
    one that begins with `/` with path and query, any other with everything after `://`. A regular expression
    (RE2) between slashes may match anywhere in the URL.
    """

    kind_name: ClassVar[str] = "a list of patterns, such as '/docs/*, *.html, /page=[0-9]+/'"

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = tuple(patterns)
        groups: dict[str, list[str]] = {"url": [], "path": [], "rest": []}
        for pattern in patterns:
            kind, expression = _expression(pattern)
            compiled(expression)  # a mistake is told of the pattern that has it
            groups[kind].append(f"(?:{expression})")
        self._tests = {kind: _joined(found) for kind, found in groups.items()}

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Any]) -> UrlPatterns:
        return cls(_texts(value, cls.kind_name, _SEPARATOR))

    def __str__(self) -> str:
        return ", ".join(self.patterns)

    def match(self, url: str) -> bool:
        """Return whether one of the patterns fits a URL; a URL that is too long for them fits none."""
        whole, path, rest = self._tests["url"], self._tests["path"], self._tests["rest"]
        try:
            if whole is not None and whole(url):
                return True
            start = url.find("://") + 3
            if rest is not None and rest(url[start:]):
                return True
            if path is None:
                return False
            slash, question = url.find("/", start), url.find("?", start)
            if slash < 0 or 0 <= question < slash:
                return path("/" + url[question:] if question >= 0 else "/")
            return path(url[slash:])
        except UncomputableError:
            return False


def _expression(pattern: str) -> tuple[str, str]:
    """Return the part of URLs that a pattern is about, and its regular expression."""
    if len(pattern) > 2 and pattern.startswith("/") and pattern.endswith("/"):
        return "url", pattern[1:-1]
    fixed = "(?s:.*)".join(re.escape(part) for part in pattern.split("*"))
    kind = "url" if "://" in pattern else "path" if pattern.startswith("/") else "rest"
    return kind, rf"\A{fixed}\z"


def _joined(expressions: Sequence[str]) -> _Test | None:
    return compiled("|".join(expressions)).found if expressions else None
