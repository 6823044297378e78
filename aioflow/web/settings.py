"""The settings `[http]` and `[host."…"]`, with their defaults and the checks of their values.

`aioflow.config.configuration` reads the values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aioflow.config.configuration import Configuration, as_configuration
from aioflow.config.sections import Section, at_least, more_than_nothing
from aioflow.errors import InputError
from aioflow.version import __version__
from aioflow.web.http import FRAMING

KIBIBYTE = 1024
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class HttpSettings:
    """`[http]`: limits and policies for every host."""

    allow: tuple[str, ...] = ()  # host:port that may be private
    user_agent: str = f"aioflow/{__version__}"
    contact: str | None = None  # an address or page, put into the user agent
    robots: bool = True
    rate: float | None = None  # requests a second to one host
    burst: int = 1
    concurrency: int = 2  # requests to one host at once
    connect_seconds: float = 10.0
    first_byte_seconds: float = 30.0
    idle_seconds: float = 30.0
    total_seconds: float = 120.0
    body_bytes: int = 32 * MEBIBYTE
    hold_bytes: int = 32 * MEBIBYTE  # of a body, before its first row leaves
    read_seconds: float = 10.0  # to read a page in, and a second for every 500 kB of it
    read_memory_bytes: int = 1024 * MEBIBYTE  # of a process that reads a page
    decoding_ratio: int = 100  # decoded : sent, beyond the first MiB
    header_bytes: int = 64 * KIBIBYTE
    redirects: int = 10
    robots_bytes: int = 500 * KIBIBYTE
    retry_after_seconds: float = 3600.0  # the longest Retry-After that is waited for
    retries: int = 3
    retry_base_seconds: float = 0.5
    retry_most_seconds: float = 30.0
    retry_budget: float = 0.2  # retries for each request, over time
    restart: str = "off"  # slow requests: auto, off, seconds, p95, hedge
    restarts: int = 5  # of one request at most
    restart_extra: float = 0.05  # extra requests for each request, over time
    latencies: bool | Path = True  # of hosts with restarts; True: in the user's cache folder
    breaker_failures: int = 8  # in a row; 0: never
    breaker_seconds: float = 30.0
    proxy: str | None = None
    cookies: bool = True
    cache: bool | Path = False  # True: in the user's cache folder
    cache_bytes: int = 512 * MEBIBYTE
    offline: bool = False
    record: Path | None = None
    replay: Path | None = None
    health: bool = field(
        default=True, metadata={"expected": "true or false (figures are kept in the run's own database)"}
    )
    window_rows: int = 1000  # tuples of a statement that wait for their hosts at once


@dataclass(frozen=True)
class HostSettings:
    """`[host."example.org"]` or `[host."127.0.0.1:8080"]`; None leaves a value to `[http]`.

    A rate of 0 is no limit. `auth` is `bearer secret:TOKEN` or `basic USER secret:PASSWORD`. `resend_to` has
    the hosts to which a redirect may send a request with effects or a body again.
    """

    rate: float | None = None
    burst: int | None = None
    concurrency: int | None = None
    robots: bool | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    auth: str | None = None
    proxy: str | None = None
    restart: str | None = None
    mirrors: tuple[str, ...] = ()  # hosts that have the same pages
    resend_to: tuple[str, ...] = ()


@dataclass(frozen=True)
class WebSettings:
    """All settings of a client."""

    http: HttpSettings = HttpSettings()
    hosts: Mapping[str, HostSettings] = field(default_factory=dict)

    def host(self, name: str, port: int | None) -> HostSettings:
        """Return the settings of a host; those with its port come before those without."""
        return self.hosts.get(f"{name}:{port}") or self.hosts.get(name) or _PLAIN_HOST


_PLAIN_HOST = HostSettings()


_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s/@:\[\]?#]+)(?::(\d{1,5}))?")
_AUTH = re.compile(r"bearer secret:[\w-]+|basic \S+ secret:[\w-]+")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def web_settings(configuration: Mapping[str, Any]) -> WebSettings:
    """Return the settings of a client from a Configuration, or from plain tables."""
    whole = as_configuration(configuration)
    http = whole.section(HTTP)
    if http.record is not None and http.replay is not None:
        raise _exclusive(whole, "record", "replay")
    if http.record is not None and http.offline:
        raise _exclusive(whole, "offline", "record")
    if http.rate == 0:
        http = replace(http, rate=None)
    if http.offline and http.cache is False:
        # Without a network, all responses come from the cache.
        http = replace(http, cache=True)
    hosts = whole.sections(HOST)
    for host, settings in hosts.items():
        for header in settings.headers:
            _check_header(header, whole.where("host", host, "headers", header))
    return WebSettings(http, hosts)


def _check_header(header: str, where: str) -> None:
    if not _HEADER_NAME.fullmatch(header):
        raise InputError(f"{where}: {header!r} is no name of a header")
    if header.lower() in FRAMING:
        raise InputError(f"{where}: the header {header!r} is for the client to set")


def _exclusive(whole: Configuration, one: str, other: str) -> InputError:
    places = " and ".join(f"http.{key} ({whole.where('http', key)})" for key in (one, other))
    return InputError(f"{places} exclude each other")


# --- checks of values ------------------------------------------------------------------------


def host_name(text: str) -> str:
    """Return `example.org` or `example.org:8080` in lower case."""
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
    # A literal credential would be in a file that others read, and would be shown.
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


def _restart(text: str) -> str:
    from aioflow.restart.policies import RESTART_EXPECTED, read_policy  # few configurations have a rule

    try:
        return str(read_policy(text))
    except InputError:
        raise InputError(RESTART_EXPECTED) from None


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
        "restart": _restart,
        "restarts": _maybe_none,
        "restart_extra": at_least(0),
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
        "restart": _restart,
        "mirrors": _hosts,
        "resend_to": _hosts,
    },
)
