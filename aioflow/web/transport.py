"""The transport: it sends a request once and reads the response within all limits.

The layers around it add retries, redirects, cookies and politeness. This module imports aiohttp, so import it
late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from io import BytesIO

from aiohttp import ClientResponse, ClientSession, ThreadedResolver, hdrs
from aiohttp.abc import AbstractResolver
from multidict import CIMultiDict
from yarl import URL

from aioflow.config.masking import conceal
from aioflow.config.secrets import Secrets
from aioflow.web.addresses import AddressGuard
from aioflow.web.aiohttp_errors import FAULTS, too_much_header, web_error
from aioflow.web.bodies import Body, cut
from aioflow.web.connections import (
    GuardedResolver,
    HttpExchange,
    Origin,
    OriginRules,
    ProxyTargets,
    basic,
    open_session,
)
from aioflow.web.errors import (
    AddressRefusedError,
    BadResponseError,
    ConnectionFailedError,
    RequestRefusedError,
    ResponseTimeoutError,
)
from aioflow.web.http import Request, Response
from aioflow.web.settings import MEBIBYTE, HttpSettings, WebSettings
from aioflow.web.urls import target, without_userinfo

# The part of a body by which its kind is told.
TELLING_BYTES = 1024
_PAGES_BELOW = 300  # nobody reads the bodies of other answers


class Transport:
    """The fetcher that uses the network.

    The body of a response is decoded, while its headers are as they came. `resolver` finds the
    addresses of names, in place of the system's.
    """

    def __init__(
        self,
        settings: WebSettings,
        *,
        secrets: Secrets | None = None,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._http = settings.http
        self._guard = AddressGuard(settings.http.allow)
        self._origins = OriginRules(settings, self._guard, secrets or Secrets())
        self._resolver = resolver
        self._with_limit: HttpSettings | None = None
        self._direct: ClientSession | None = None
        self._proxied: ClientSession | None = None
        self._targets: ProxyTargets | None = None
        self._open_bodies: set[Body] = set()
        self._is_closed = False

    async def fetch(self, request: Request) -> Response:
        """Return the answer to a request that is sent once."""
        url, shown = parsed(request.url)
        origin = self._origins.find(url)
        headers = origin.headers_for(request.headers)
        if url.raw_user is not None or url.raw_password is not None:
            url, headers = _without_user(url, headers)
        if self._is_closed:
            raise RequestRefusedError(f"{shown}: the client is closed")
        limits = request.limits
        http = self._http if limits is None else self._limited(limits.most_bytes)
        exchange = HttpExchange(shown, http, request.timeout_seconds or http.total_seconds)
        answer = await self._ask(request, url, headers, origin, exchange)
        unread = False
        body: bytes | Body
        try:
            if limits is not None and limits.accepts is not None and answer.status < _PAGES_BELOW:
                accepted = await self._accepted_body(request, answer, exchange, limits.accepts)
                unread, body = accepted is None, accepted or b""
            else:
                body = self._open_body(request, answer, exchange)
                if isinstance(body, Body) and not request.streamed:
                    body = await body.read()
        except BaseException:
            cut(answer)
            raise
        cookies = tuple(answer.headers.getall(hdrs.SET_COOKIE, ()))
        return Response(
            shown, answer.status, answer.headers, body, cookies, unread=unread, timing=exchange.timing
        )

    async def close(self) -> None:
        """Close all connections; requests that are under way fail."""
        self._is_closed = True
        for body in tuple(self._open_bodies):
            body.abandon("the client was closed")
        for session in (self._direct, self._proxied):
            if session is not None:
                await session.close()

    async def _ask(
        self, request: Request, url: URL, headers: Mapping[str, str], origin: Origin, exchange: HttpExchange
    ) -> ClientResponse:
        """Return an answer as far as its headers."""
        deadline, body = exchange.deadline, request.body
        if exchange.total_seconds <= self._http.connect_seconds:
            # aiohttp has no limit of its own on the whole.
            deadline.set(exchange.started + exchange.total_seconds)
        try:
            with deadline:
                exchange.enter()
                session = self._session() if origin.proxy is None else await self._proxied_session(origin)
                return await session.request(
                    request.method,
                    url,
                    # aiohttp sends large bytes in one go, and warns of it.
                    data=body if body is None or len(body) <= MEBIBYTE else BytesIO(body),
                    headers=headers,
                    allow_redirects=False,
                    proxy=origin.proxy,
                )
        except AddressRefusedError as error:
            raise web_error(error, exchange.url, self._http) from None
        except FAULTS as error:
            if deadline.has_expired:
                raise _too_slow(exchange) from None
            raise web_error(error, exchange.url, self._http) from error
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._is_closed and task is not None and not task.cancelling():
                # Not this task, but a look-up that it waited for.
                raise ConnectionFailedError(f"{exchange.url}: the client was closed") from None
            raise

    def _limited(self, most_bytes: int | None) -> HttpSettings:
        """Return the settings for bodies of at most so many bytes."""
        if most_bytes is None or most_bytes >= self._http.body_bytes:
            return self._http
        if self._with_limit is None or self._with_limit.body_bytes != most_bytes:
            self._with_limit = replace(self._http, body_bytes=most_bytes)
        return self._with_limit

    async def _accepted_body(
        self,
        request: Request,
        answer: ClientResponse,
        exchange: HttpExchange,
        accepts: Callable[[str, bytes], bool],
    ) -> bytes | None:
        """Return the whole body; None, without reading it, if its type or its first bytes are refused."""
        said = answer.headers.get(hdrs.CONTENT_TYPE, "")
        if not accepts(said, b""):
            exchange.timing.first_byte_seconds = asyncio.get_running_loop().time() - exchange.started
            exchange.timing.total_seconds = exchange.timing.first_byte_seconds
            cut(answer)
            return None
        body = self._open_body(request, answer, exchange)
        if isinstance(body, bytes):
            return body if accepts(said, body[:TELLING_BYTES]) else None
        start = b""
        async for piece in body:
            start += piece
            if len(start) >= TELLING_BYTES:
                break
        if not accepts(said, start[:TELLING_BYTES]):
            await body.close()
            return None
        return start + await body.read()

    def _open_body(self, request: Request, answer: ClientResponse, exchange: HttpExchange) -> bytes | Body:
        """Return the whole body if it has arrived already, or a stream that reads it."""
        _check_head(answer, exchange)
        timing, headers, content = exchange.timing, answer.headers, answer.content
        timing.first_byte_seconds = asyncio.get_running_loop().time() - exchange.started
        if (
            content.is_eof()
            and not request.streamed
            and hdrs.CONTENT_LENGTH in headers
            and hdrs.CONTENT_ENCODING not in headers
            and content.total_bytes <= exchange.http.body_bytes
        ):
            # The fast path for a body that has arrived at once and is not encoded.
            timing.total_seconds = timing.first_byte_seconds
            return content.read_nowait()
        body = Body(answer, exchange, self._open_bodies.discard)
        self._open_bodies.add(body)
        return body

    def _session(self) -> ClientSession:
        if self._direct is None:
            self._direct = open_session(self._http, self._guard, self._names())
        return self._direct

    async def _proxied_session(self, origin: Origin) -> ClientSession:
        """Apart from the direct one: there a proxy's own address may be one that no page may lead to."""
        if self._proxied is None or self._targets is None:
            names = self._names()
            self._targets = ProxyTargets(GuardedResolver(self._guard, names), self._http.connect_seconds)
            self._proxied = open_session(self._http, None, names)
        await self._targets.check(origin.host, origin.port)
        return self._proxied

    def _names(self) -> AbstractResolver:
        if self._resolver is None:
            self._resolver = ThreadedResolver()
        return self._resolver


def parsed(text: str) -> tuple[URL, str]:
    """Return a URL as it is sent, and its form for messages and the response."""
    try:
        url = URL(text)
        if "#" in text or not text.endswith(url.raw_path_qs):
            # yarl writes some escapes as the character itself, which breaks links that are signed.
            url = _as_written(url, text)
    except (ValueError, IndexError):  # the latter for "[]@"
        # The message of yarl may show a password.
        raise AddressRefusedError(f"{without_userinfo(text)}: this is no http(s) URL") from None
    if "#" in text or "@" in text or " " in text or not text.isprintable():
        text = without_userinfo(str(url))
    return url, text


def _as_written(url: URL, text: str) -> URL:
    """With the path and query of the text; a host that yarl reads in another way than it wrote it stays."""
    path, query = target(text)
    path = url.raw_path if path is None else path
    try:
        written = URL.build(
            scheme=url.scheme, authority=url.raw_authority, path=path, query_string=query, encoded=True
        )
        return written if written.raw_host == url.raw_host else url
    except ValueError:
        return url


def _without_user(url: URL, headers: Mapping[str, str]) -> tuple[URL, Mapping[str, str]]:
    """Move the user and password of a URL into a header, unless there is one already."""
    given = CIMultiDict(headers)
    if hdrs.AUTHORIZATION not in given:
        given[hdrs.AUTHORIZATION] = basic(url.user or "", url.password or "")
        conceal(url.password or url.user or "", passing=True)
        conceal(given[hdrs.AUTHORIZATION].partition(" ")[2], passing=True)
    return url.with_user(None), given


def _check_head(answer: ClientResponse, exchange: HttpExchange) -> None:
    size = 0
    for name, value in answer.raw_headers:
        size += len(name) + len(value) + 4
    if size > exchange.http.header_bytes:
        raise too_much_header(exchange.url, exchange.http)
    if answer.status == 101:
        raise BadResponseError(
            f"{exchange.url}: the answer changes to another protocol, which was not asked for"
        )
    encoding = answer.headers.get(hdrs.TRANSFER_ENCODING)
    if encoding is not None and encoding.strip().lower() != "chunked":
        raise BadResponseError(f"{exchange.url}: the answer is sent as {encoding!r}, which was not asked for")


def _too_slow(exchange: HttpExchange) -> ResponseTimeoutError:
    if exchange.deadline.at == exchange.started + exchange.total_seconds:
        return ResponseTimeoutError(f"{exchange.url}: no answer within {exchange.total_seconds:g} s in all")
    seconds = exchange.http.first_byte_seconds
    return ResponseTimeoutError(f"{exchange.url}: no answer within {seconds:g} s after it was asked for")
