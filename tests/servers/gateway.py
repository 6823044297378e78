"""A real HTTP gateway on loopback that writes down what it is asked, and fails where a test says so.

In a test: `async with Gateway() as gateway: …`. As a process: `with gateway_process(journal) as port: …`,
where each request is in the journal, on the disk, before it is answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy

from tests.servers.process import append_durably, serve_until_input_ends, server_process

KEY_HEADER = "Idempotency-Key"

_CLOSE_WITH_RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Request:
    """What came."""

    method: str
    path: str  # with the query
    headers: CIMultiDictProxy[str]
    body: bytes

    @property
    def key(self) -> str | None:
        return self.headers.get(KEY_HEADER)

    def as_json(self) -> str:
        head = {"method": self.method, "path": self.path, "headers": list(self.headers.items())}
        return json.dumps(head | {"body": self.body.decode("latin-1")})


@dataclass
class Answer:
    """How requests are answered: after `until`, if there is one, by a status, or by a reset after reading.

    `takes` says whether the gateway acts on the request, so that it knows the key afterwards: by default when
    the status says so.
    """

    status: int = 200
    body: str = "ok"
    headers: Mapping[str, str] = field(default_factory=dict)
    reset: bool = False
    takes: bool | None = None
    until: asyncio.Event | None = None
    times: int | None = None  # so often, then the next answer is given
    reached: asyncio.Event = field(default_factory=asyncio.Event)


class Gateway:
    """An HTTP server; an async context manager on the running loop.

    `requests` are all that came, `taken` those that it acted on. One with a key that was taken before gets a
    409 when the gateway `knows_keys`, and is not taken again.
    """

    def __init__(self, *, knows_keys: bool = False, journal: Path | None = None) -> None:
        self.requests: list[Request] = []
        self.taken: list[Request] = []
        self.port = 0
        self._answers: list[Answer] = []
        self._knows_keys = knows_keys
        self._journal = journal
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=100 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._answer)
        # aiohttp takes 0 seconds for no limit.
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *exception: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    @property
    def host(self) -> str:
        """As it is allowed in a configuration."""
        return f"127.0.0.1:{self.port}"

    def url(self, path: str = "/") -> str:
        return f"http://{self.host}{path}"

    @property
    def keys(self) -> list[str | None]:
        """The idempotency keys of all that came."""
        return [request.key for request in self.requests]

    def answer(self, answer: Answer) -> Answer:
        """Answer so; what was said first comes first."""
        self._answers.append(answer)
        return answer

    def refuse(self, status: int, *, times: int | None = None, **headers: str) -> None:
        """Answer with this status; `Retry_After="3"` is a header."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answer(Answer(status, "not now", named, times=times))

    def as_usual(self) -> None:
        """Forget all answers that were wanted."""
        self._answers.clear()

    async def _answer(self, incoming: web.Request) -> web.Response:
        body = await incoming.read()
        headers = CIMultiDictProxy(CIMultiDict(incoming.headers))
        request = Request(incoming.method, incoming.path_qs, headers, body)
        self.requests.append(request)
        if self._knows_keys and request.key in {taken.key for taken in self.taken}:
            return web.Response(status=409, text="this key is known")
        answer = self._next_answer()
        answer.reached.set()
        if answer.until is not None:
            await answer.until.wait()
        if answer.status < 400 and not answer.reset if answer.takes is None else answer.takes:
            self._take(request)
        if answer.reset:
            _reset(incoming)
        return web.Response(status=answer.status, text=answer.body, headers=answer.headers)

    def _next_answer(self) -> Answer:
        for answer in self._answers:
            if answer.times != 0:
                answer.times = None if answer.times is None else answer.times - 1
                return answer
        return Answer()

    def _take(self, request: Request) -> None:
        if self._journal is not None:
            append_durably(self._journal, request.as_json())
        self.taken.append(request)


def read_journal(path: Path) -> list[Request]:
    """The requests that a gateway process has acted on, in order."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [
        Request(
            kept["method"],
            kept["path"],
            CIMultiDictProxy(CIMultiDict(map(tuple, kept["headers"]))),
            kept["body"].encode("latin-1"),
        )
        for kept in map(json.loads, lines)
    ]


def gateway_process(journal: Path, *, knows_keys: bool = False) -> AbstractContextManager[int]:
    """A gateway of its own, which takes everything into the journal; gives its port."""
    return server_process("gateway", str(journal), *(["--knows-keys"] if knows_keys else []))


def _reset(incoming: web.Request) -> None:
    """Break the connection off, so that the client gets a reset."""
    assert incoming.transport is not None
    incoming.transport.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, _CLOSE_WITH_RESET
    )
    incoming.transport.abort()


async def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("journal", type=Path)
    parser.add_argument("--knows-keys", action="store_true")
    options = parser.parse_args()
    async with Gateway(knows_keys=options.knows_keys, journal=options.journal) as gateway:
        await serve_until_input_ends(gateway.port)


if __name__ == "__main__":
    asyncio.run(_main())
