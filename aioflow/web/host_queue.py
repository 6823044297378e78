"""The queue of each host: it bounds concurrent requests and their rate. Waiting requests hold no permit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

from aioflow.config.masking import mask, masked_logger
from aioflow.runtime.budget import Place
from aioflow.web.errors import CircuitOpenError, WebError
from aioflow.web.hosts import Host, Hosts
from aioflow.web.http import BodyStream, Fetcher, Request, Response, Timing
from aioflow.web.retry_after import retry_after_seconds
from aioflow.web.traffic import ShownUrl, note_attempt
from aioflow.web.urls import without_userinfo

# Statuses whose `Retry-After` applies to the host, not only to this request.
PAUSING = frozenset({408, 425, 429, 500, 502, 503, 504})
# Some hosts ask for centuries. They get requests again after an hour, or later if pauses may be longer.
LEFT_ALONE_AT_MOST_SECONDS = 3600.0
_LOG = masked_logger("aioflow.web")


class HostQueueFetcher:
    """Sends a request when its host allows it; holds a slot and the permit only until it is answered.

    All requests take slots before permits, so that they cannot wait for each other in a circle.
    """

    def __init__(self, inner: Fetcher, hosts: Hosts) -> None:
        self._inner = inner
        self._hosts = hosts

    async def fetch(self, request: Request) -> Response:
        host = self._hosts.at(request.url)
        loop = asyncio.get_running_loop()
        asked = host.touched = loop.time()
        place: Place | None = None
        host.inside += 1
        try:
            while True:
                if not host.pace.is_free(loop.time()):
                    if host.pace.refuses(loop.time()):
                        raise _refusal(host, request, loop.time())
                    if place is None:
                        _LOG.debug("%s waits for its turn at %s", ShownUrl(request.url), host.name)
                    place = place or host.pace.place(request.urgent, request.rank)
                    await host.pace.turn(place)
                response = await self._try(host, request, asked)
                if response is not None:
                    return response
        finally:
            host.inside -= 1

    async def _try(self, host: Host, request: Request, asked: float) -> Response | None:
        """Return the response, or None if the turn had passed when slot and permit were available."""
        pace, time = host.pace, asyncio.get_running_loop().time
        sent = False
        response: Response | None = None
        try:
            await host.slots.acquire(request.urgent, rank=request.rank)
            try:
                if pace.may_send(time()):
                    async with request.permit(host.name, mask(without_userinfo(request.url))):
                        now = time()
                        sent = pace.send(now)
                        if sent:
                            response = await self._exchange(host, request, asked, now)
            finally:
                host.slots.release()
        except BaseException:
            if response is not None:  # cancelled while the permit was given back
                await response.close()
            raise
        finally:
            if not sent:
                pace.give_back()
        return response

    async def _exchange(self, host: Host, request: Request, asked: float, sent: float) -> Response:
        counters = host.counters
        counters.requests += 1
        host.in_flight += 1
        if request.sent is not None:
            request.sent()
        try:
            response = await self._inner.fetch(request)
        except WebError as error:
            counters.failed(error)
            seconds = asyncio.get_running_loop().time() - sent
            note_attempt(request, host.key, seconds=seconds, waited_seconds=sent - asked, error=error)
            raise
        except BaseException:
            counters.cancelled += 1
            raise
        finally:
            host.in_flight -= 1
        answered = asyncio.get_running_loop().time()
        counters.answered(response.status, answered - sent)
        _shift(response.timing, sent - asked)
        if response.status in PAUSING and response.stored is None:
            self._pause(host, response, answered)
        if isinstance(response.body, bytes):
            counters.bytes_in += len(response.body)
            note_attempt(
                *(request, host.key),
                status=response.status,
                body_bytes=len(response.body),
                seconds=answered - sent,
                waited_seconds=sent - asked,
                stored=response.stored,
            )
        else:
            response.body = _TurnBody(response.body, host, request, response, sent, asked)
        return response

    def _pause(self, host: Host, response: Response, now: float) -> None:
        """Leave the host alone as it asks; requests that would have to wait too long are refused."""
        seconds = retry_after_seconds(response.headers)
        if not seconds:
            return
        waited_at_most = self._hosts.http.retry_after_seconds
        if seconds <= waited_at_most:
            if not host.has_paused:
                _LOG.warning(
                    "%s asks to be left alone for %g s; requests to it wait so long", host.name, seconds
                )
            host.has_paused = True
            host.pace.pause(now + seconds)
            return
        refused = min(seconds, max(waited_at_most, LEFT_ALONE_AT_MOST_SECONDS))
        if not host.pace.refuses(now):
            capped = f", which is capped at {refused:g} s" if refused < seconds else ""
            _LOG.warning(
                "%s asks to be left alone for %g s, longer than http.retry_after_seconds (%g s)%s; "
                "requests to it are refused so long",
                *(host.name, seconds, waited_at_most, capped),
            )
        host.pace.refuse(now + refused)

    async def close(self) -> None:
        await self._inner.close()


def _refusal(host: Host, request: Request, now: float) -> CircuitOpenError:
    left = host.pace.refusing_until - now
    until = (datetime.now(UTC) + timedelta(seconds=left)).isoformat(timespec="seconds")
    error = CircuitOpenError(
        f"{without_userinfo(request.url)}: {host.name} has asked to be left alone for longer than "
        f"http.retry_after_seconds, so that this is not waited for; it is asked again from {until} on "
        f"(in {left:.4g} s)"
    )
    host.counters.failed(error)
    return error


def _shift(timing: Timing, seconds: float) -> None:
    """Count times from the moment at which this layer got the request."""
    timing.waited_seconds += seconds
    timing.first_byte_seconds += seconds
    timing.total_seconds += seconds


class _TurnBody:
    """A body whose reader may be slow: slot and permit are held only during waits for the next piece."""

    def __init__(
        self, body: BodyStream, host: Host, request: Request, response: Response, sent: float, asked: float
    ) -> None:
        self._body = body
        self._host: Host | None = host
        self._request = request
        self._status = response.status
        self._stored = response.stored
        self._timing = response.timing
        self._sent = sent
        self._waited = sent - asked
        self._bytes = 0
        self._chunks: AsyncIterator[bytes] | None = None
        self._began = asyncio.get_running_loop().time()
        host.users += 1

    def __aiter__(self) -> _TurnBody:
        return self

    async def __anext__(self) -> bytes:
        host = self._host
        if host is None:
            raise StopAsyncIteration
        try:
            chunk = await self._read(host)
        except WebError as error:
            host.counters.failed(error)
            self._let_go(error)
            raise
        if chunk is None:
            self._let_go()
            raise StopAsyncIteration
        host.counters.bytes_in += len(chunk)
        self._bytes += len(chunk)
        return chunk

    async def _read(self, host: Host) -> bytes | None:
        time = asyncio.get_running_loop().time
        asked = time()
        # Responses that have begun go first: an open connection that is not read is of no use.
        await host.slots.acquire(urgent=True)
        try:
            async with self._request.permit(host.name, mask(without_userinfo(self._request.url))):
                self._timing.waited_seconds += time() - asked
                if self._chunks is None:
                    self._chunks = aiter(self._body)
                return await anext(self._chunks, None)
        finally:
            host.slots.release()

    async def close(self) -> None:
        self._let_go()
        await self._body.close()

    def _let_go(self, error: WebError | None = None) -> None:
        host = self._host
        if host is None:
            return
        host.users -= 1
        self._host = None
        now = asyncio.get_running_loop().time()
        note_attempt(
            *(self._request, host.key),
            status=self._status,
            body_bytes=self._bytes,
            seconds=now - self._sent,
            waited_seconds=self._waited,
            stored=self._stored,
            error=error,
        )
        # By now all layers count the first byte from the moment at which they got the request.
        reading = now - self._began
        self._timing.total_seconds = self._timing.first_byte_seconds + reading
