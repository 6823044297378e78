"""The HTTP cache: it answers from fresh entries, revalidates stale ones, and stores what RFC 9111 allows.

In offline mode it answers from any stored entry, however old, and sends no request.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from aioflow.config.folders import cache_folder
from aioflow.config.masking import masked_logger, shows_secret
from aioflow.web.cache_store import FILE_NAME, PIECE_BYTES, SUFFIX, CacheEntry, CacheError, CacheStore, Chosen
from aioflow.web.errors import ConnectionFailedError, NotRecordedError
from aioflow.web.freshness import (
    Directives,
    StoredHead,
    age,
    asked,
    conditions,
    confirms,
    may_keep,
    may_use,
    merged,
    to_keep,
    varying,
)
from aioflow.web.http import BodyStream, Fetcher, Request, Response, personal
from aioflow.web.settings import HttpSettings, WebSettings
from aioflow.web.traffic import note_attempt
from aioflow.web.urls import has_host, host_key, origin, resolve, without_userinfo

_LOG = masked_logger("aioflow.web")
_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
# Requests with these headers ask the server about a copy of their own.
_CONDITIONAL = frozenset(
    {"if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "range"}
)
_CONFIGURED = ":configured"  # no header has this name: for headers that the settings add for a host
_COOKIES = frozenset({"cookie"})
_OVERLAP_BYTES = 1024


class CacheStatistics(msgspec.Struct, frozen=True):
    """Counts of the GETs that the cache could answer or store, by outcome."""

    hits: int = 0  # without a request
    revalidated: int = 0  # confirmed by the server
    misses: int = 0
    failures: int = 0  # times that the store could not be used


class _Question(msgspec.Struct, frozen=True):
    """A GET as the cache sees it; headers by their names in lower case."""

    url: str
    headers: Mapping[str, str]
    personal: Mapping[str, str]
    says: Directives
    has_authorization: bool


class CacheFetcher:
    """Answers GETs from the store where RFC 9111 allows it."""

    def __init__(
        self,
        inner: Fetcher,
        store: CacheStore,
        settings: WebSettings,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.statistics = CacheStatistics()
        self._inner = inner
        self._store = store
        self._settings = settings
        self._clock = clock

    async def fetch(self, request: Request) -> Response:
        if request.method == "GET" and _can_be_stored(request):
            return await self._get(request)
        if self._settings.http.offline:
            raise _not_stored(request)
        response = await self._inner.fetch(request)
        if request.method not in _SAFE and response.status < 400:
            await self._invalidate(request, response)
        return response

    async def close(self) -> None:
        try:
            await self._inner.close()
        finally:
            await self._store.close()

    # --- answering ------------------------------------------------------------------------------

    async def _get(self, request: Request) -> Response:
        question = self._question(request)
        is_offline = self._settings.http.offline
        # Offline, the cookies of the original requests are not set again.
        leaving_out = _COOKIES if is_offline else frozenset()
        try:
            entry = await self._store.find(
                question.url, question.headers, question.personal, leaving_out=leaving_out
            )
        except CacheError as error:
            if is_offline:
                raise
            self._not_stored(error)
            self._count(misses=1)
            return await self._inner.fetch(request)
        if entry is not None and (is_offline or may_use(question.says, entry.kept, self._clock())):
            response = await self._answer(request, entry, "cache")
            if response is not None:
                self._count(hits=1)
                size = len(response.body) if isinstance(response.body, bytes) else None
                key = host_key(request.url)
                note_attempt(request, key, status=response.status, body_bytes=size, stored="cache")
                return response
            entry = None
        if is_offline or "only-if-cached" in question.says:
            raise _not_stored(request)
        return await self._ask(request, question, entry)

    async def _ask(self, request: Request, question: _Question, entry: CacheEntry | None) -> Response:
        sent = _conditional(request, entry)
        response = await self._inner.fetch(sent)
        if response.status == 304 and entry is not None and sent is not request:
            await response.close()
            renewed = await self._renewed(request, question, entry, response)
            if renewed is not None:
                self._count(revalidated=1)
                return renewed
            response = await self._inner.fetch(request)
        self._count(misses=1)
        try:
            await self._keep(question, response)
        except BaseException:
            await response.close()
            raise
        return response

    async def _renewed(
        self, request: Request, question: _Question, entry: CacheEntry, response: Response
    ) -> Response | None:
        """Return the stored response that a 304 confirms; None if it is about another, or was removed."""
        if not confirms(entry.kept, response.headers.get("ETag")):
            return None
        news = self._kept(response)
        kept = msgspec.structs.replace(
            entry.kept,
            headers=merged(entry.kept.headers, response.headers.items()),
            requested_at=news.requested_at,
            received_at=news.received_at,
        )
        renewed = msgspec.structs.replace(entry, kept=kept)
        found = await self._answer(request, renewed, "revalidated")
        if found is None:
            return None
        if "no-store" not in question.says and not shows_secret(repr(kept).encode()):
            try:
                await self._store.renew(renewed, kept)
            except CacheError as error:
                self._not_stored(error)
        found.attempts, found.timing = response.attempts, response.timing
        found.set_cookies = response.set_cookies
        return found

    async def _answer(self, request: Request, entry: CacheEntry, how: str) -> Response | None:
        from multidict import CIMultiDict, CIMultiDictProxy

        body: bytes | BodyStream | None = entry.body
        if body is None:
            body = _StoredBody(self._store, entry, request.url) if request.streamed else None
        if body is None:
            body = await self._store.read(entry)
        if body is None:
            return None
        headers = CIMultiDict(entry.kept.headers)
        headers["Age"] = str(int(age(entry.kept, self._clock())))
        return Response(request.url, entry.kept.status, CIMultiDictProxy(headers), body, stored=how)

    def _question(self, request: Request) -> _Question:
        headers = {name.lower(): value for name, value in request.headers.items()}
        own = personal(request.headers)
        name, _, port = host_key(request.url).rpartition(":")
        settings = self._settings.host(name, int(port))
        if settings.headers or settings.auth:
            configured = json.dumps([settings.auth, sorted(settings.headers.items())])
            headers[_CONFIGURED] = own[_CONFIGURED] = configured
        has_authorization = (
            "authorization" in own
            or settings.auth is not None
            or any(name.lower() == "authorization" for name in settings.headers)
        )
        url = request.url.partition("#")[0]
        return _Question(url, headers, own, asked(request.headers), has_authorization)

    # --- storing --------------------------------------------------------------------------------

    def _kept(self, response: Response) -> StoredHead:
        now = self._clock()
        timing = response.timing
        # Waits before it was sent did not make the response older.
        delay = max(0.0, timing.first_byte_seconds - timing.waited_seconds)
        return StoredHead(response.status, to_keep(response.headers.items()), now - delay, now)

    async def _keep(self, question: _Question, response: Response) -> None:
        if response.unread:
            return
        kept = self._kept(response)
        if not may_keep(question.says, question.has_authorization, kept):
            return
        if shows_secret(repr(kept).encode()):
            return
        names = varying(kept) | question.personal.keys()
        chosen = Chosen(question.url, {name: question.headers.get(name) for name in names})
        body = response.body
        if not isinstance(body, bytes):
            response.body = _PassingBody(body, self._store, chosen, kept, self._not_stored)
        elif len(body) <= self._store.largest_bytes and not shows_secret(body):
            try:
                await self._store.put(chosen, kept, body)
            except CacheError as error:
                self._not_stored(error)

    def _not_stored(self, error: CacheError) -> None:
        """Count a failure of the store, and go on without it; raise the error of a damaged file."""
        if error.is_damaged:
            raise error
        if not self.statistics.failures:
            _LOG.warning("%s; going on without the cache", error)
        self._count(failures=1)

    async def _invalidate(self, request: Request, response: Response) -> None:
        """Drop the stored responses that an unsafe request has changed."""
        own = origin(request.url)
        links = (response.headers.get(name) for name in ("Location", "Content-Location"))
        also = {resolve(request.url, link) for link in links if link}
        try:
            await self._store.forget(request.url.partition("#")[0])
            for url in also:
                if url is not None and origin(url) == own:
                    await self._store.forget(url)
        except CacheError as error:
            self._not_stored(error)

    def _count(self, **more: int) -> None:
        found = {name: getattr(self.statistics, name) + number for name, number in more.items()}
        self.statistics = msgspec.structs.replace(self.statistics, **found)


class _PassingBody:
    """A body that is stored while it is read; other requests find it only once it was read to its end."""

    def __init__(
        self,
        body: BodyStream,
        store: CacheStore,
        chosen: Chosen,
        kept: StoredHead,
        failed: Callable[[CacheError], None],
    ) -> None:
        self._body = body
        self._store = store
        self._chosen = chosen
        self._kept = kept
        self._failed = failed
        self._rest: AsyncIterator[bytes] | None = None
        self._held = bytearray()
        self._tail = b""
        self._identity: int | None = None
        self._pieces = 0
        self._bytes = 0
        self._is_storing = True

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._rest is None:
            self._rest = aiter(self._body)
        try:
            chunk = await anext(self._rest)
            if self._is_storing:
                self._held += chunk
                if len(self._held) >= PIECE_BYTES:
                    await self._write(is_last=False)
        except StopAsyncIteration:
            if self._is_storing:
                await self._write(is_last=True)
                self._is_storing = False
            raise
        except BaseException:
            await self._give_up()
            raise
        return chunk

    async def close(self) -> None:
        try:
            await self._give_up()
        finally:
            await self._body.close()

    async def _write(self, *, is_last: bool) -> None:
        piece = bytes(self._held)
        self._bytes += len(piece)
        if self._bytes > self._store.largest_bytes or shows_secret(self._tail + piece):
            await self._give_up()
            return
        self._held.clear()
        self._tail = piece[-_OVERLAP_BYTES:]
        try:
            if is_last and self._identity is None:
                await self._store.put(self._chosen, self._kept, piece)
                return
            if self._identity is None:
                self._identity = await self._store.begin(self._chosen, self._kept)
            if piece:
                await self._store.append(self._identity, self._pieces, piece)
                self._pieces += 1
            if is_last:
                await self._store.finish(self._identity)
        except CacheError as error:
            await self._give_up()
            self._failed(error)

    async def _give_up(self) -> None:
        """Store nothing of the body; written parts are dropped at the latest when the file is next opened."""
        if not self._is_storing:
            return
        self._is_storing = False
        self._held.clear()
        if self._identity is not None:
            with suppress(CacheError):
                await self._store.drop(self._identity)


class _StoredBody:
    """A large body, read from the store piece by piece."""

    def __init__(self, store: CacheStore, entry: CacheEntry, url: str) -> None:
        self._store = store
        self._entry = entry
        self._url = url
        self._number = 0

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._number >= self._entry.pieces:
            raise StopAsyncIteration
        piece = await self._store.piece(self._entry, self._number)
        if piece is None:
            raise ConnectionFailedError(
                f"{without_userinfo(self._url)}: the stored answer was replaced while it was read; ask again"
            )
        self._number += 1
        return piece

    async def close(self) -> None:
        self._number = self._entry.pieces


def cache_path(settings: HttpSettings) -> Path:
    """Return the file of the cache: the configured file, or that in the configured or the user's folder."""
    path = settings.cache if isinstance(settings.cache, Path) else cache_folder()
    return path if path.is_file() or (path.suffix == SUFFIX and not path.is_dir()) else path / FILE_NAME


def _can_be_stored(request: Request) -> bool:
    # Lower layers report a URL without host.
    if request.body is not None or not has_host(request.url) or "@" in urlsplit(request.url).netloc:
        return False
    return not request.headers or all(name.lower() not in _CONDITIONAL for name in request.headers)


def _conditional(request: Request, entry: CacheEntry | None) -> Request:
    added = {} if entry is None else conditions(entry.kept)
    return replace(request, headers={**request.headers, **added}) if added else request


def _not_stored(request: Request) -> NotRecordedError:
    return NotRecordedError(
        f"{without_userinfo(request.url)}: there is no stored answer to this {request.method}, and the "
        "network is not to be used; fetch it once with the cache on"
    )
