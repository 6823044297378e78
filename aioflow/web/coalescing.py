"""Coalescing of equal GETs: requests that are equal and in flight at once are sent once.

The first of them fetches for all. When it is cancelled, the next one takes over; there are no tasks.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import AsyncIterator
from enum import Enum
from typing import TypeAlias, TypeVar

from msgspec.structs import replace

from aioflow.web.cookies import CookieStore
from aioflow.web.http import BodyLimits, BodyStream, Fetcher, Hold, Request, Response
from aioflow.web.settings import MEBIBYTE

# The part of a streamed response that is read for waiting requests; each fetches a larger one itself.
READ_AHEAD_BYTES = MEBIBYTE


class _Word(Enum):
    """A leader's word to a follower in place of a response."""

    LEAD = "be the leader"
    ALONE = "make a request of your own"


E = TypeVar("E", bound=Exception)
_Outcome: TypeAlias = Response | Exception | _Word
_Flight: TypeAlias = list[Future[_Outcome]]  # the requests that wait for the leader
_Key: TypeAlias = tuple[
    str,
    tuple[tuple[str, str], ...],
    CookieStore | None,
    bool,
    Hold | None,
    BodyLimits | None,
    bool,
    float | None,
]


class CoalescingFetcher:
    """Sends equal GETs once. `shared` counts the responses that took no request of their own.

    A streamed response is shared only with requests that came before it began. A later request would depend
    on the speed of its reader, and the reader may be waiting for just that request.
    """

    def __init__(self, inner: Fetcher) -> None:
        self.shared = 0
        self._inner = inner
        self._flights: dict[_Key, _Flight] = {}

    async def fetch(self, request: Request) -> Response:
        if request.method != "GET" or not request.is_safe or request.body is not None:
            return await self._inner.fetch(request)
        headers = request.headers
        key: _Key = (
            request.url,
            tuple(headers.items()) if headers else (),
            request.cookies,
            request.streamed,
            request.hold,
            request.limits,
            request.robots,
            request.timeout_seconds,
        )
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = []
        elif (response := await self._follow(key, flight, request)) is not None:
            return response
        try:
            response = await self._inner.fetch(request)
            if flight and not isinstance(response.body, bytes):
                await _read_ahead(response, response.body)
        except Exception as error:
            self._land(key, flight, error)
            raise
        except BaseException:
            self._hand_over(key, flight)
            raise
        self._land(key, flight, response if isinstance(response.body, bytes) else _Word.ALONE)
        return response

    async def close(self) -> None:
        await self._inner.close()

    async def _follow(self, key: _Key, flight: _Flight, request: Request) -> Response | None:
        """Return the leader's response; None if this request is to lead."""
        waiting: Future[_Outcome] = asyncio.get_running_loop().create_future()
        flight.append(waiting)
        try:
            outcome = await waiting
        except BaseException:
            if not waiting.cancelled() and waiting.done() and waiting.result() is _Word.LEAD:
                self._hand_over(key, flight)  # it was cancelled at the moment at which it was to lead
            elif waiting in flight:
                flight.remove(waiting)
            raise
        if outcome is _Word.LEAD:
            return None
        if outcome is _Word.ALONE:
            return await self._inner.fetch(request)
        self.shared += 1
        if isinstance(outcome, Exception):
            raise _again(outcome)
        assert isinstance(outcome, Response)
        return replace(outcome, timing=replace(outcome.timing))

    def _land(self, key: _Key, flight: _Flight, outcome: _Outcome) -> None:
        """Pass the outcome to all waiting requests."""
        del self._flights[key]
        for waiting in flight:
            if not waiting.done():
                waiting.set_result(outcome)

    def _hand_over(self, key: _Key, flight: _Flight) -> None:
        """Let the next request lead; without one the flight is over."""
        while flight:
            waiting = flight.pop(0)
            if not waiting.done():
                waiting.set_result(_Word.LEAD)
                return
        del self._flights[key]


class _Continued:
    """A body whose beginning was read already."""

    def __init__(self, beginning: list[bytes], rest: AsyncIterator[bytes], body: BodyStream) -> None:
        self._beginning = beginning
        self._rest = rest
        self._body = body

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._beginning:
            return self._beginning.pop(0)
        return await anext(self._rest)

    async def close(self) -> None:
        self._beginning.clear()
        await self._body.close()


async def _read_ahead(response: Response, body: BodyStream) -> None:
    """Read a streamed response to its end if that is near, so that it can be shared."""
    chunks: list[bytes] = []
    size = 0
    rest = aiter(body)
    try:
        async for chunk in rest:
            chunks.append(chunk)
            size += len(chunk)
            if size > READ_AHEAD_BYTES:
                response.body = _Continued(chunks, rest, body)
                return
    except BaseException:
        await body.close()
        raise
    await body.close()
    response.body = b"".join(chunks)


def _again(error: E) -> E:
    """Return a copy of an error for another request, since a shared one would collect both tracebacks."""
    kind = type(error)
    other = kind.__new__(kind, *error.args)
    other.args = error.args
    other.__dict__.update(error.__dict__)
    other.__cause__ = error.__cause__
    return other
