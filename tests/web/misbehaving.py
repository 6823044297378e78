"""A server on loopback that does what a test says, byte by byte: for answers that no decent server gives.

And a transport that may reach it, with names that only the test knows.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import struct
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any, Self

from aiohttp.abc import AbstractResolver, ResolveResult

from aioflow.config.secrets import Secrets
from aioflow.web.settings import HostSettings, HttpSettings, WebSettings
from aioflow.web.transport import Transport
from tests.clocks import PATIENCE_SECONDS, seconds_of_a_million_steps

# What servers here must keep to; they do on any machine, unless a test lets the time pass.
LONG_LIMITS = {"first_byte_seconds": 60.0, "idle_seconds": 60.0}

_CLOSE_WITH_RESET = struct.pack("ii", 1, 0)


class Line:
    """One connection, as the server sees it."""

    def __init__(self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer

    async def request(self) -> bytes:
        """The next request, with its body if it says how long that is; fails when the client is gone."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = next(
            (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
        )
        self._server.requests.append(head + await self._reader.readexactly(length))
        return self._server.requests[-1]

    async def head(self) -> bytes:
        """The next request without its body, which may be held back."""
        self._server.requests.append(await self._reader.readuntil(b"\r\n\r\n"))
        return self._server.requests[-1]

    async def send(self, data: bytes) -> None:
        if self._writer.is_closing():
            raise ConnectionResetError
        self._writer.write(data)
        await self._writer.drain()
        await asyncio.sleep(0)  # a drain need not wait

    async def send_forever(self, data: bytes) -> None:
        """Until the client has had enough."""
        while True:
            await self.send(data)

    async def lost(self) -> None:
        """Wait until the client has closed its side."""
        while await self._reader.read(65536):
            pass

    def reset(self) -> None:
        """Break off, so that the client gets a reset."""
        self._writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, _CLOSE_WITH_RESET
        )
        self._writer.transport.abort()

    def close(self) -> None:
        self._writer.close()


Behaviour = Callable[[Line], Awaitable[None]]


class Server:
    """Accepts connections and behaves on each as it was told; a context manager.

    `requests` are those that came, in order, `connections` counts what was accepted. An exception in
    a behaviour is raised on leaving, unless it is that the client went away.
    """

    def __init__(self, behave: Behaviour) -> None:
        self.behave = behave
        self.requests: list[bytes] = []
        self.connections = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures: list[BaseException] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._failures:
            raise self._failures[0]

    @property
    def host(self) -> str:
        """As it is allowed in a configuration."""
        return f"127.0.0.1:{self.port}"

    def url(self, path: str = "/") -> str:
        return f"http://{self.host}{path}"

    async def all_lost(self) -> None:
        """Wait until no connection is left; behaviours must end when the client goes."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self._tasks:
                await asyncio.wait(self._tasks)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self.behave(Line(self, reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except Exception as error:
            self._failures.append(error)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


def answer(
    body: bytes = b"", status: str = "200 OK", headers: Iterable[str] = (), length: int | None = None
) -> bytes:
    """A decent answer, apart from a length that may be wrong."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *headers]
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body


def sends(*parts: bytes) -> Behaviour:
    """Answers each request with these bytes, and keeps the connection."""

    async def behave(line: Line) -> None:
        while True:
            await line.request()
            for part in parts:
                await line.send(part)

    return behave


def sends_and_closes(*parts: bytes) -> Behaviour:
    """Answers one request, then closes."""

    async def behave(line: Line) -> None:
        await line.request()
        for part in parts:
            await line.send(part)

    return behave


def sends_and_resets(*parts: bytes) -> Behaviour:
    """Answers one request, then breaks off."""

    async def behave(line: Line) -> None:
        await line.request()
        for part in parts:
            await line.send(part)
        line.reset()

    return behave


def sends_and_waits(*parts: bytes) -> Behaviour:
    """Answers one request, then says nothing more."""

    async def behave(line: Line) -> None:
        await line.request()
        for part in parts:
            await line.send(part)
        await line.lost()

    return behave


async def silent(line: Line) -> None:
    """Never says anything."""
    await line.lost()


class Names(AbstractResolver):
    """Resolves from a table, `_` in its keys standing for a dot; what is not there does not exist."""

    def __init__(self, **addresses: list[str]) -> None:
        self.addresses = {name.replace("_", "."): found for name, found in addresses.items()}

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        if host not in self.addresses:
            raise OSError(None, "no such name")
        return [
            ResolveResult(hostname=host, host=address, port=port, family=0, proto=0, flags=0)
            for address in self.addresses[host]
        ]

    async def close(self) -> None:
        pass


@contextlib.asynccontextmanager
async def opened(
    server: Server,
    *,
    hosts: Mapping[str, HostSettings] | None = None,
    names: AbstractResolver | None = None,
    secrets: Secrets | None = None,
    **settings: Any,
) -> AsyncIterator[Transport]:
    """A transport that may reach the server; once it is closed, the server has lost every connection."""
    defaults: dict[str, Any] = {"allow": (server.host,), **LONG_LIMITS}
    web = WebSettings(HttpSettings(**defaults | settings), hosts or {})
    transport = Transport(web, secrets=secrets, resolver=names)
    try:
        yield transport
    finally:
        await transport.close()
    await server.all_lost()


@contextlib.asynccontextmanager
async def bounds(memory_bytes: int = 50 * 1024 * 1024, million_steps: float = 10) -> AsyncIterator[None]:
    """Fail if memory grows by more, or the loop's thread computes for longer without a turn of the loop.

    The processor time is that of an empty loop with so many steps: other work on the machine does not count.
    """
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        last = time.thread_time()
        while True:
            await asyncio.sleep(0.001)
            now = time.thread_time()
            longest, last = max(longest, now - last), now

    gc.collect()
    gc.freeze()  # to look through all that other tests left behind would take longer
    watching = asyncio.create_task(watch())
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.unfreeze()
        watching.cancel()
        await asyncio.wait([watching])
    assert peak < memory_bytes
    assert longest < million_steps * seconds_of_a_million_steps()
