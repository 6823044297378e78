"""Parts of a URL, its canonical form, and its registrable domain: the URL functions of expressions.

Requests are sent with URLs as `urls` writes them. w3lib's canonicalize_url leaves default ports, dot segments
and names in other scripts as they are; the query is made as it makes it. The Public Suffix List comes with
publicsuffixlist, which has no dependencies and needs no network; tldextract would bring requests and
filelock, and fetches the list unless told not to.
"""

from __future__ import annotations

import re
from functools import cache
from ipaddress import IPv6Address
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote, quote_from_bytes, unquote, unquote_to_bytes, urlsplit, urlunsplit

import msgspec

from aioflow.web.urls import BLANK, LEFT_OUT, NO_ESCAPE

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList


_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
_HOST = re.compile(r"(?!.*\.\.)[a-z0-9_-][a-z0-9._-]{0,252}")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_IN_PATHS = "%!$&'()*+,/:;=@"
_WITH_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BLANK_INSIDE = re.compile(r"[\s\x00-\x20\x7f]")


class UrlParts(msgspec.Struct, frozen=True):
    """A URL with a host, which is in lower case and ASCII; an IPv6 address stands without its brackets."""

    split: SplitResult
    host: str
    port: int | None

    @property
    def path(self) -> str:
        return self.split.path or "/"


def url_parts(url: str) -> UrlParts:
    """Return the parts of an absolute URL; raise a ValueError for anything else."""
    split = urlsplit(_cleaned(url))
    if not split.scheme or not split.hostname or split.port == 0:
        raise ValueError("no URL with a host")
    return UrlParts(split, ascii_host(split.hostname), split.port)


def reference_parts(url: str) -> SplitResult:
    """Return the parts of a URL, or of a reference such as `/houses?page=2`; else a ValueError."""
    text = _cleaned(url)
    if _WITH_SCHEME.match(text) or text.startswith("//"):
        split = urlsplit(text)
        if text.startswith("//") or split.netloc:
            url_parts(f"http:{text}" if text.startswith("//") else text)
            return split._replace(path=split.path or "/")
        raise ValueError("no URL with a host")
    if _BLANK_INSIDE.search(text):
        raise ValueError("no URL, since there are spaces in it")
    return urlsplit(text)


def ascii_host(name: str) -> str:
    """Return a host in lower case and ASCII, without a dot at its end; raise a ValueError if it is none."""
    if ":" in name:
        return IPv6Address(name).compressed
    if "%" in name:
        name = unquote(name, errors="strict")
    if not name.isascii():
        from idna import encode

        name = encode(name, uts46=True).decode()
    name = name.lower().removesuffix(".")
    if not _HOST.fullmatch(name):
        raise ValueError(f"{name[:100]!r} is no host")
    return name


def canonical(url: str) -> str:
    """Return one form for all ways to write a URL; raise a ValueError if it is no URL with a host."""
    parts = url_parts(url)
    scheme = parts.split.scheme
    host = f"[{parts.host}]" if ":" in parts.host else parts.host
    port = "" if parts.port in (None, _DEFAULT_PORTS.get(scheme)) else f":{parts.port}"
    user, at, _ = parts.split.netloc.rpartition("@")
    path = _without_dots(_normal(parts.split.path))
    return urlunsplit(
        (scheme, f"{_normal(user)}{at}{host}{port}", path, _sorted_query(parts.split.query), "")
    )


def query_value(query: str, name: str) -> str | None:
    """Return the first value of a parameter, as it was before it was escaped; None if there is none."""
    for each in query.split("&"):
        key, _, value = each.partition("=")
        if each and _unescaped(key).decode(errors="replace") == name:
            return _unescaped(value).decode(errors="replace")
    return None


def _cleaned(url: str) -> str:
    url.encode()  # a lone surrogate is in no URL
    return url.strip(BLANK).translate(LEFT_OUT)


def _normal(text: str) -> str:
    """Return a text with just the necessary escapes, in one form."""

    def unreserved(found: re.Match[str]) -> str:
        letter = chr(int(found[0][1:], 16))
        return letter if letter in _UNRESERVED else found[0].upper()

    return quote(_ESCAPE.sub(unreserved, NO_ESCAPE.sub("%25", text)), safe=_IN_PATHS)


def _without_dots(path: str) -> str:
    """Return the path without `.` and `..` (RFC 3986, section 5.2.4)."""
    kept: list[str] = []
    segments = path.split("/")[1:] or [""]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def _sorted_query(query: str) -> str:
    pairs = [each.partition("=")[::2] for each in query.split("&") if each]
    known = sorted((_unescaped(name), _unescaped(value)) for name, value in pairs)
    return "&".join(f"{_escaped(name)}={_escaped(value)}" for name, value in known)


def _unescaped(text: str) -> bytes:
    return unquote_to_bytes(text.replace("+", " "))


def _escaped(data: bytes) -> str:
    return quote_from_bytes(data, safe=" ").replace(" ", "+")


def registrable_domain(host: str) -> str | None:
    """The domain under which a host stands; None for an address, a public suffix, and a name without dots.

    `host` is in lower case and ASCII. All of the list counts, as for browsers: also suffixes of companies.
    """
    labels = host.split(".")
    if ":" in host or labels[-1].isdecimal() or not all(labels):
        return None
    return _suffixes().privatesuffix(host)


@cache
def _suffixes() -> PublicSuffixList:
    from publicsuffixlist import PublicSuffixList  # late: few plans ask, and the list takes its time

    return PublicSuffixList()
