"""`[http]` and `[host."…"]` of the configuration: which values make sense, and the settings made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aioflow.configuration import Configuration, as_configuration
from aioflow.errors import InputError
from aioflow.pattern import pattern
from aioflow.section import Section, at_least, more_than_nothing
from aioflow.web.headers import FRAMING
from aioflow.web.settings import HostSettings, HttpSettings, WebSettings

_HOST = pattern(r"(\[[0-9A-Fa-f:.]+\]|[^\s/@:\[\]?#]+)(?::(\d{1,5}))?")
_AUTH = pattern(r"bearer secret:[\w-]+|basic \S+ secret:[\w-]+")
_HEADER_NAME = pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def web_settings(configuration: Mapping[str, Any]) -> WebSettings:
    """What the client is opened with; takes a Configuration, or plain tables."""
    whole = as_configuration(configuration)
    http = whole.section(HTTP)
    if http.record is not None and http.replay is not None:
        raise _exclusive(whole, "record", "replay")
    if http.record is not None and http.offline:
        raise _exclusive(whole, "offline", "record")
    if http.rate == 0:
        http = replace(http, rate=None)
    if http.offline and http.cache is False:
        # Without a network the answers of the cache are all there is.
        http = replace(http, cache=True)
    hosts = whole.sections(HOST)
    for host, settings in hosts.items():
        for header in settings.headers:
            where = whole.where("host", host, "headers", header)
            if not _HEADER_NAME.fullmatch(header):
                raise InputError(f"{where}: {header!r} is no name of a header")
            if header.lower() in FRAMING:
                raise InputError(f"{where}: the header {header!r} is for the client to set")
    return WebSettings(http, hosts)


def _exclusive(whole: Configuration, one: str, other: str) -> InputError:
    places = " and ".join(f"http.{key} ({whole.where('http', key)})" for key in (one, other))
    return InputError(f"{places} exclude each other")


# --- what values must be ------------------------------------------------------------------------


def host_name(text: str) -> str:
    """`example.org` or `example.org:8080`, in lower case."""
    found = _HOST.fullmatch(text)
    if found is None or not _is_port(found[2]):
        raise InputError("a host is written as example.org, example.org:8080 or [::1]:8080")
    return text.lower()


def _allowed(hosts: tuple[str, ...]) -> tuple[str, ...]:
    for text in hosts:
        found = _HOST.fullmatch(text)
        if found is None or found[2] is None or not _is_port(found[2]):
            raise InputError("a list of hosts with their ports, like '127.0.0.1:8080'")
    return tuple(text.lower() for text in hosts)


def _hosts(hosts: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(map(host_name, hosts))
    except InputError:
        raise InputError("a list of hosts, like 'example.org' or 'example.org:8080'") from None


def _is_port(digits: str | None) -> bool:
    return digits is None or 0 < int(digits) < 65536


def _auth(text: str) -> str:
    # A credential itself would stand in a file that others read, and be shown.
    if not _AUTH.fullmatch(text):
        raise InputError("'bearer secret:NAME' or 'basic USER secret:NAME', with the NAME of a secret")
    return text


def _proxy(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise InputError("the http:// address of a proxy")
    return text


def _header_text(text: str) -> str:
    if not text.isprintable():
        raise InputError("a text on one line")
    return text


_count = at_least(1, "a whole number")
_maybe_none = at_least(0, "a whole number")
_rate = at_least(0)
_time = more_than_nothing("a time")
_size = at_least(1, "a size")

HTTP = Section(
    "http",
    HttpSettings,
    refine={
        "allow": _allowed,
        "user_agent": _header_text,
        "contact": _header_text,
        "rate": _rate,
        "burst": _count,
        "concurrency": _count,
        "connect_seconds": _time,
        "first_byte_seconds": _time,
        "idle_seconds": _time,
        "total_seconds": _time,
        "body_bytes": _size,
        "hold_bytes": _size,
        "read_seconds": _time,
        "read_memory_bytes": _size,
        "decoding_ratio": _count,
        "header_bytes": _size,
        "redirects": _maybe_none,
        "robots_bytes": _size,
        "retry_after_seconds": at_least(0, "a time"),
        "retries": _maybe_none,
        "retry_base_seconds": _time,
        "retry_most_seconds": _time,
        "retry_budget": at_least(0),
        "breaker_failures": _maybe_none,
        "breaker_seconds": _time,
        "proxy": _proxy,
        "cache_bytes": _size,
        "window_rows": _count,
    },
)
HOST = Section(
    "host",
    HostSettings,
    named=True,
    in_environment=False,
    read_name=host_name,
    refine={
        "rate": _rate,
        "burst": _count,
        "concurrency": _count,
        "headers": _header_text,
        "auth": _auth,
        "proxy": _proxy,
        "resend_to": _hosts,
    },
)
