"""Sessions of aiohttp that open sockets only to addresses which the guard allows.

`OriginRules` says of each origin, before a request is sent, whether it may be reached, by which proxy and
with which headers.
"""

from __future__ import annotations

import asyncio
import socket
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from aiohttp import (
    ClientConnectionError,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    ServerDisconnectedError,
    TCPConnector,
)
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import AddrInfoType, Connection
from multidict import CIMultiDict
from yarl import URL

from aioflow.config.masking import conceal
from aioflow.config.secrets import PREFIX, Secrets
from aioflow.errors import InputError
from aioflow.web.addresses import AddressGuard
from aioflow.web.aiohttp_errors import web_error
from aioflow.web.decoding import accepted_encodings
from aioflow.web.errors import AddressRefusedError, RequestRefusedError
from aioflow.web.http import Timing
from aioflow.web.settings import HostSettings, HttpSettings, WebSettings
from aioflow.web.urls import without_userinfo

_HEADERS_AT_MOST = 256
# How long, and for how many names, it is remembered that they may be reached by a proxy.
_TARGET_SECONDS = 10.0
_TARGETS_AT_MOST = 1024


def open_session(http: HttpSettings, guard: AddressGuard | None, resolver: AbstractResolver) -> ClientSession:
    """Return a session for direct connections, or, without a guard, for proxies that the user has chosen."""
    agent = f"{http.user_agent} (+{http.contact})" if http.contact else http.user_agent
    connector = TCPConnector(
        limit=0,  # the layers above keep the limits
        resolver=resolver if guard is None else GuardedResolver(guard, resolver),
        socket_factory=None if guard is None else _socket_factory(guard),
    )
    return ClientSession(
        connector=connector,
        request_class=_ExchangeRequest,
        response_class=_ExchangeResponse,
        headers={"User-Agent": agent, "Accept-Encoding": accepted_encodings()},
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(connect=http.connect_seconds),
        auto_decompress=False,
        max_line_size=http.header_bytes,
        max_field_size=http.header_bytes,
        max_headers=_HEADERS_AT_MOST,
    )


class GuardedResolver(AbstractResolver):
    """Gives the addresses of a name only if all of them may be reached."""

    def __init__(self, guard: AddressGuard, inner: AbstractResolver) -> None:
        self._guard = guard
        self._inner = inner

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        self._guard.check_resolved(host, port, [each["host"] for each in found])
        return found

    async def close(self) -> None:
        await self._inner.close()


def _socket_factory(guard: AddressGuard) -> Any:
    def open_socket(info: AddrInfoType) -> socket.socket:
        family, kind, protocol, _, address = info
        guard.check_socket(str(address[0]), int(address[1]))
        return socket.socket(family, kind, protocol)

    return open_socket


class ProxyTargets:
    """Looks where names lead that only a proxy will resolve, as far as that can be told from here."""

    def __init__(self, resolver: GuardedResolver, timeout_seconds: float) -> None:
        self._resolver = resolver
        self._timeout_seconds = timeout_seconds
        self._checked: dict[tuple[str, int], float] = {}

    async def check(self, host: str, port: int) -> None:
        """Refuse a name that leads to an address that may not be reached."""
        now = asyncio.get_running_loop().time()
        if self._checked.get((host, port), 0.0) > now:
            return
        # Where names of the outside cannot be resolved, the proxy alone knows them.
        with suppress(OSError):
            async with asyncio.timeout(self._timeout_seconds):
                await self._resolver.resolve(host, port)
        if len(self._checked) >= _TARGETS_AT_MOST:
            self._checked.clear()
        self._checked[host, port] = now + _TARGET_SECONDS


class Deadline:
    """A deadline like that of `asyncio.timeout`, at a fifth of its cost: it is set for every request.

    A context manager that raises TimeoutError; until it is `set` there is no limit.
    """

    __slots__ = ("_cancelling", "_handle", "_loop", "_task", "at", "has_expired")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self.at: float | None = None
        self.has_expired = False

    def set(self, at: float) -> None:
        """Set the time, by the loop's clock, in place of any before."""
        if self._handle is not None:
            self._handle.cancel()
        self.at = at
        self._handle = self._loop.call_at(at, self._expire)

    def _expire(self) -> None:
        self._handle = None
        self.has_expired = True
        if self._task is not None:
            self._task.cancel()

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        if self._task is not None:
            self._cancelling = self._task.cancelling()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self.has_expired and self._task is not None:
            # Who else cancelled the task meant it.
            is_ours = self._task.uncancel() <= self._cancelling
            if is_ours and isinstance(error, asyncio.CancelledError):
                raise TimeoutError from error


class HttpExchange:
    """One request on its way, told when its connection stands.

    What aiohttp makes for the request finds its exchange by the task that it runs in.
    """

    __slots__ = ("closed", "deadline", "http", "protocol", "started", "timing", "total_seconds", "url")

    def __init__(self, url: str, http: HttpSettings, total_seconds: float) -> None:
        self.url = url
        self.http = http
        self.total_seconds = total_seconds
        self.started = asyncio.get_running_loop().time()
        self.deadline = Deadline()
        self.timing = Timing()
        self.protocol: ResponseHandler | None = None
        self.closed: asyncio.Future[None] | None = None

    def enter(self) -> None:
        """From now on this task's requests are of this exchange."""
        _current.set(self)

    def begin(self, protocol: ResponseHandler) -> None:
        """The connection stands; from now on the first byte is waited for."""
        now = asyncio.get_running_loop().time()
        self.deadline.set(min(now + self.http.first_byte_seconds, self.started + self.total_seconds))
        self.protocol = protocol
        # Asked for now, since a connection that is lost says only to earlier askers how it ended.
        self.closed = closed = protocol.closed
        if closed is not None:
            closed.remove_done_callback(_take_note)
            closed.add_done_callback(_take_note)


def _take_note(closed: asyncio.Future[None]) -> None:
    """Take the outcome of a connection, or asyncio would warn that it was never retrieved."""
    if not closed.cancelled():
        closed.exception()


_current: ContextVar[HttpExchange] = ContextVar("exchange")


# Both have errors of the connection leave as ours: at its own, aiohttp would send the request a second time.


class _ExchangeRequest(ClientRequest):
    async def send(self, conn: Connection) -> ClientResponse:
        exchange, protocol = _current.get(), conn.protocol
        try:
            if protocol is not None:
                if len(protocol):
                    # What came while nobody had asked is no answer to this.
                    raise ServerDisconnectedError
                exchange.begin(protocol)
            return await super().send(conn)
        except ClientConnectionError as error:
            raise web_error(error, exchange.url, exchange.http) from error


class _ExchangeResponse(ClientResponse):
    async def start(self, connection: Connection) -> ClientResponse:
        try:
            return await super().start(connection)
        except ClientConnectionError as error:
            exchange = _current.get()
            raise web_error(error, exchange.url, exchange.http) from error


_SCHEMES = ("http", "https")
_AUTHORIZATION = "Authorization"
# Those that are forgotten are looked at again; a crawl may meet any number.
_KEPT_AT_MOST = 4096


@dataclass(frozen=True, slots=True)
class Origin:
    """A scheme, host and port that may be asked."""

    host: str
    port: int
    headers: Mapping[str, str] | None = field(repr=False)  # with credentials
    proxy: URL | None = field(repr=False)

    def headers_for(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Return the configured headers under those of a request."""
        if self.headers is None:
            return headers
        merged = CIMultiDict(self.headers)
        merged.update(headers)
        return merged


class OriginRules:
    """The rules for origins: they return the origin of a URL, or refuse it."""

    def __init__(self, settings: WebSettings, guard: AddressGuard, secrets: Secrets) -> None:
        self._settings = settings
        self._guard = guard
        self._secrets = secrets
        self._kept: dict[tuple[str, str | None, int | None], Origin] = {}

    def find(self, url: URL) -> Origin:
        key = (url.scheme, url.raw_host, url.port)
        origin = self._kept.get(key)
        if origin is None:
            origin = self._look_at(url)
            if len(self._kept) >= _KEPT_AT_MOST:
                self._kept.clear()
            self._kept[key] = origin
        return origin

    def _look_at(self, url: URL) -> Origin:
        shown = without_userinfo(str(url))
        host, port = url.raw_host, url.port
        if url.scheme not in _SCHEMES:
            raise AddressRefusedError(f"{shown}: only http and https are fetched, not {url.scheme or 'that'}")
        if not host or port is None:
            raise AddressRefusedError(f"{shown}: this URL has no host")
        try:
            self._guard.check_host(host, port)
        except AddressRefusedError as error:
            raise AddressRefusedError(f"{shown}: {error}") from None
        name = f"[{host}]" if ":" in host else host
        settings = self._settings.host(name, port)
        proxy = settings.proxy or self._settings.http.proxy
        try:
            headers = self._headers(settings)
        except InputError as error:
            raise RequestRefusedError(f"{shown}: {error}") from None
        if headers and url.scheme == "http":
            is_named = f"{name}:{port}" in self._settings.hosts or self._guard.is_allowed(host, port)
            if not is_named:
                _check_encryption(shown, settings, f"{name}:{port}")
        return Origin(host, port, headers or None, URL(proxy) if proxy else None)

    def _headers(self, settings: HostSettings) -> CIMultiDict[str]:
        headers = CIMultiDict({name: self._secrets.fill_in(text) for name, text in settings.headers.items()})
        if settings.auth:
            headers[_AUTHORIZATION] = self._authorization(settings.auth)
        return headers

    def _authorization(self, auth: str) -> str:
        kind, _, rest = auth.strip().partition(" ")
        if kind.lower() == "bearer":
            return f"Bearer {self._secrets.fill_in(rest.strip())}"
        user, _, password = rest.strip().partition(" ")
        credentials = basic(user, self._secrets.fill_in(password.strip()))
        conceal(credentials.partition(" ")[2])
        return credentials


def _check_encryption(shown: str, settings: HostSettings, host: str) -> None:
    """Anybody who can put a link on a page could otherwise have credentials sent for all to read."""
    if settings.auth or any(PREFIX in text for text in settings.headers.values()):
        raise RequestRefusedError(
            f"{shown}: the credentials for this host would be sent without encryption; use https, or write "
            f'them under [host."{host}"] if that is meant'
        )


def basic(user: str, password: str) -> str:
    """Return the value of Authorization for a user."""
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"
