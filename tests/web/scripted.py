"""A network that a test makes up: answers by URL, and a list of what was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

from multidict import CIMultiDict, CIMultiDictProxy

from aioflow.runtime.budget import Permits
from aioflow.web.http import Request, Response

Answer: TypeAlias = Response | Exception | Callable[[Request], Response]


def answer(
    status: int = 200,
    headers: dict[str, str] | Iterable[tuple[str, str]] = (),
    body: Any = b"",
    **more: Any,
) -> Response:
    fields = CIMultiDict(headers)
    more.setdefault("set_cookies", tuple(fields.getall("Set-Cookie", ())))
    return Response("", status, CIMultiDictProxy(fields), body, **more)


def redirect(location: str, status: int = 302, **more: Any) -> Response:
    return answer(status, {"Location": location}, **more)


class Chunks:
    """A body that comes piece by piece, each after a while, and fails where an exception stands."""

    def __init__(self, *pieces: bytes | Exception, seconds: float = 0.0) -> None:
        self._pieces = iter(pieces)
        self._seconds = seconds
        self._more = asyncio.Event()
        self.given = 0
        self.is_closed = False
        self.has_ended = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        assert not self.is_closed, "read after it was closed"
        await asyncio.sleep(self._seconds)
        piece = next(self._pieces, None)
        if isinstance(piece, Exception):
            raise piece
        if piece is None:
            self.has_ended = True
            raise StopAsyncIteration
        self.given += 1
        self._more.set()
        return piece

    async def reached(self, count: int) -> None:
        """Wait until so many pieces were given."""
        while self.given < count:
            self._more.clear()
            await self._more.wait()

    async def close(self) -> None:
        self.is_closed = True


class Script:
    """Answers each URL with the next of its answers, the last one again and again, after `seconds`."""

    def __init__(self, answers: Mapping[str, Answer | Sequence[Answer]], *, seconds: float = 0.0) -> None:
        self._answers = {
            url: list(each) if isinstance(each, Sequence) else [each] for url, each in answers.items()
        }
        self._seconds = seconds
        self.requests: list[Request] = []
        self.cancelled = 0
        self.is_closed = False

    @property
    def asked(self) -> list[str]:
        return [f"{request.method} {request.url}" for request in self.requests]

    async def fetch(self, request: Request) -> Response:
        self.requests.append(request)
        answers = self._answers[request.url]
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        try:
            await asyncio.sleep(self._seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(found, Exception):
            raise found
        if callable(found):
            found = found(request)
        found.url = request.url
        return found

    async def close(self) -> None:
        self.is_closed = True


class Site:
    """Answers whatever is asked by a function, after `seconds`; knows when what was sent."""

    def __init__(self, respond: Callable[[Request], Answer] | None = None, *, seconds: float = 0.0) -> None:
        self._respond = respond or (lambda request: answer())
        self._seconds = seconds
        self.sent: list[tuple[float, str]] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.is_closed = False

    @property
    def urls(self) -> list[str]:
        return [url for _, url in self.sent]

    def times(self, start: str = "") -> list[float]:
        """When requests were sent to URLs that start so."""
        return [when for when, url in self.sent if url.startswith(start)]

    async def fetch(self, request: Request) -> Response:
        self.sent.append((asyncio.get_running_loop().time(), request.url))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self._seconds)
        finally:
            self.in_flight -= 1
        found = self._respond(request)
        if isinstance(found, Exception):
            raise found
        if callable(found):
            found = found(request)
        found.url = request.url
        return found

    async def close(self) -> None:
        self.is_closed = True


class Allowance:
    """Permits as an engine gives them; `held` are in use now."""

    def __init__(self, count: int) -> None:
        self.permits = Permits(count)
        self.asked: list[tuple[str, str]] = []

    @property
    def held(self) -> int:
        return self.permits.used

    def __call__(self, source: str, label: str) -> AbstractAsyncContextManager[None]:
        self.asked.append((source, label))
        return self.permits
