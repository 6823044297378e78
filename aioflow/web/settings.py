"""What can be set about HTTP, with the defaults that every run starts from.

Where the values come from is for `aioflow.configuration`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from aioflow.dataclass import dataclass
from aioflow.version import __version__

KIBIBYTE = 1024
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class HttpSettings:
    """`[http]`: limits and manners for every host."""

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
    """`[host."example.org"]` or `[host."127.0.0.1:8080"]`; None leaves it to `[http]`.

    Rate 0 is none. `auth` is `bearer secret:TOKEN` or `basic USER secret:PASSWORD`. `resend_to` has the hosts
    to which a redirect may send a request with effects or a body again.
    """

    rate: float | None = None
    burst: int | None = None
    concurrency: int | None = None
    robots: bool | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    auth: str | None = None
    proxy: str | None = None
    resend_to: tuple[str, ...] = ()


@dataclass(frozen=True)
class WebSettings:
    """Everything that the client is opened with."""

    http: HttpSettings = HttpSettings()
    hosts: Mapping[str, HostSettings] = field(default_factory=dict)

    def host(self, name: str, port: int | None) -> HostSettings:
        """The settings of a host: with its port before those without."""
        return self.hosts.get(f"{name}:{port}") or self.hosts.get(name) or _PLAIN_HOST


_PLAIN_HOST = HostSettings()
