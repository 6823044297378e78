"""Freshness of cached responses: RFC 9111 for a private cache, as functions of headers and times.

`cache_store` keeps the responses, and `cache` acts on these functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from email.utils import mktime_tz, parsedate_tz
from typing import TypeAlias

import msgspec

from aioflow.web.http import find_header

Pairs: TypeAlias = tuple[tuple[str, str], ...]
Directives: TypeAlias = Mapping[str, str]

STATUSES = frozenset({200, 203, 204, 300, 301, 308, 404, 410})
MOST_HEURISTIC_SECONDS = 24 * 3600.0
_HEURISTIC_SHARE = 0.1
_MOST_SECONDS = 2.0**31  # the value for "too large" in RFC 9111

_DIRECTIVE = re.compile(r"([A-Za-z0-9_-]+)(?:\s*=\s*(?:\"([^\"]*)\"|([^\s,]*)))?")
# Headers of one connection, or for one response only: neither kept nor taken from a 304.
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authentication-info",
        "proxy-authorization",
        "proxy-connection",
        "set-cookie",
        "set-cookie2",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
# They describe the body that is kept, not the empty one of a 304.
_ABOUT_THE_BODY = frozenset({"content-encoding", "content-length", "content-range", "content-type"})


class StoredHead(msgspec.Struct, frozen=True):
    """The head of a stored response, with the clock times of its request and its arrival."""

    status: int
    headers: Pairs
    requested_at: float
    received_at: float

    def header(self, name: str) -> str | None:
        """Return the value of a header by its name in lower case; several are joined."""
        return ", ".join(value for key, value in self.headers if key.lower() == name) or None


def directives(text: str | None) -> Directives:
    """Return the directives of a Cache-Control header; of a repeated directive, the first."""
    found: dict[str, str] = {}
    for name, quoted, plain in _DIRECTIVE.findall(text or ""):
        found.setdefault(name.lower(), quoted or plain)
    return found


def asked(headers: Mapping[str, str]) -> Directives:
    """Return the cache directives of a request."""
    if not headers:
        return {}
    control = find_header(headers, "cache-control")
    if control is None and (find_header(headers, "pragma") or "").lower() == "no-cache":
        return {"no-cache": ""}
    return directives(control)


def may_keep(request_says: Directives, has_authorization: bool, kept: StoredHead) -> bool:
    """Return whether a private cache may keep the response to a GET."""
    says = directives(kept.header("cache-control"))
    if kept.status not in STATUSES or "no-store" in request_says or "no-store" in says:
        return False
    if "*" in varying(kept):
        return False
    return not has_authorization or not says.keys().isdisjoint({"public", "must-revalidate", "s-maxage"})


def may_use(request_says: Directives, kept: StoredHead, now: float) -> bool:
    """Return whether a kept response may be used without asking its server."""
    says = directives(kept.header("cache-control"))
    if "no-cache" in request_says or "no-cache" in says:
        return False
    present, life = age(kept, now), lifetime(kept)
    if "max-age" in request_says and present > _seconds(request_says["max-age"]):
        return False
    if "min-fresh" in request_says and life - present < _seconds(request_says["min-fresh"]):
        return False
    if present < life:
        return True
    if "max-stale" not in request_says or "must-revalidate" in says:
        return False
    return not request_says["max-stale"] or present - life <= _seconds(request_says["max-stale"])


def lifetime(kept: StoredHead) -> float:
    """Return the number of seconds for which a response is fresh."""
    says = directives(kept.header("cache-control"))
    if "max-age" in says:
        return _seconds(says["max-age"])
    date = _date(kept.header("date"))
    if date is None:
        date = kept.received_at
    expires = kept.header("expires")
    if expires is not None:
        end = _date(expires)
        return 0.0 if end is None else max(0.0, end - date)
    modified = _date(kept.header("last-modified"))
    if modified is None:
        return 0.0
    return min(max(0.0, date - modified) * _HEURISTIC_SHARE, MOST_HEURISTIC_SECONDS)


def age(kept: StoredHead, now: float) -> float:
    """Return the age of a response in seconds, as far as it is known."""
    date = _date(kept.header("date"))
    apparent = 0.0 if date is None else max(0.0, kept.received_at - date)
    said = _seconds((kept.header("age") or "0").partition(",")[0])
    delay = max(0.0, kept.received_at - kept.requested_at)
    return max(apparent, said + delay) + max(0.0, now - kept.received_at)


def varying(kept: StoredHead) -> set[str]:
    """Return the names of the request headers that select this response, in lower case."""
    return {name.strip().lower() for name in (kept.header("vary") or "").split(",")} - {""}


def conditions(kept: StoredHead) -> dict[str, str]:
    """Return the headers of a request that asks whether a kept response is still valid."""
    etag, modified = kept.header("etag"), kept.header("last-modified")
    found = {"If-None-Match": etag, "If-Modified-Since": modified}
    return {name: value for name, value in found.items() if value is not None}


def confirms(kept: StoredHead, etag: str | None) -> bool:
    """Return whether a 304 with this ETag is about the kept response."""
    own = kept.header("etag")
    return etag is None or own is None or etag.removeprefix("W/") == own.removeprefix("W/")


def to_keep(headers: Iterable[tuple[str, str]]) -> Pairs:
    """Return the headers of a response that are kept with it."""
    pairs = tuple(headers)
    connection = ",".join(value for name, value in pairs if name.lower() == "connection")
    dropped = _HOP_BY_HOP | {name.strip().lower() for name in connection.split(",")}
    return tuple((name, value) for name, value in pairs if name.lower() not in dropped)


def merged(kept: Pairs, news: Iterable[tuple[str, str]]) -> Pairs:
    """Return the kept headers, with those of a 304 in their place."""
    fresh = [(name, value) for name, value in to_keep(news) if name.lower() not in _ABOUT_THE_BODY]
    replaced = {name.lower() for name, _ in fresh}
    return (*((name, value) for name, value in kept if name.lower() not in replaced), *fresh)


def _seconds(text: str) -> float:
    """Return a number of seconds; anything else counts as 0, so that nothing is fresh by mistake."""
    text = text.strip()
    return min(float(text), _MOST_SECONDS) if text.isascii() and text.isdigit() else 0.0


def _date(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        parts = parsedate_tz(text)
        return None if parts is None else float(mktime_tz(parts))
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
