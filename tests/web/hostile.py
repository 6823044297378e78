"""Plans run by a whole engine against servers that misbehave: what comes out, and what is left behind."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aioflow import Engine, Result, loads
from aioflow.testing import assert_nothing_left
from tests.web.misbehaving import Behaviour, Line, Server, answer, sends

PAGE = b"<html><body><h1>fine</h1></body></html>"
# Small enough for a test, and large enough for a busy machine.
LIMITS: Mapping[str, Any] = {"health": False, "robots": False, "retries": 0, "breaker_failures": 0}

WRAPPERS = """
WRAPPER page (link) { GET: "{+link}"; title: "h1" }
WRAPPER items (link) { GET: "{+link}"; READ: json; EACH: "items[*]"; n: "n" number }
WRAPPER whole (link) { GET: "{+link}"; READ: json; first: "items[0].n" number }
WRAPPER entries (link) { GET: "{+link}"; READ: xml; EACH: "/feed/entry"; t: "t" }
"""


def plan_of(wrapper: str, wrappers: str = WRAPPERS, words: str = "") -> Any:
    """A plan that calls a wrapper for each tuple and has failures as data."""
    statement = f'wrapper ("{wrapper}", x : out) {{ERRORS: failed{words}}}'
    return loads(f"{wrappers} PLAN p {{ INPUT: x OUTPUT: out, failed BODY {{ {statement} }} }}")


class Asking:
    """An engine that may reach some servers. What it gives is kept as plain dictionaries."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.rows: list[dict[str, Any]] = []
        self.failed: list[dict[str, Any]] = []
        self.result: Result | None = None

    async def ask(self, *links: str, wrapper: str = "page", **words: Any) -> Asking:
        """Run a plan with a tuple for each link."""
        return await self.run(plan_of(wrapper, **words), [{"link": link} for link in links])

    async def run(self, plan: Any, rows: Iterable[Mapping[str, Any]]) -> Asking:
        self.result = await self.engine.run(plan, {"x": list(rows)})
        self.rows = [dict(row) for row in self.result.outputs["out"]]
        self.failed = [dict(row) for row in self.result.outputs["failed"]]
        return self

    @property
    def failure(self) -> dict[str, Any]:
        """What the only tuple failed for."""
        (failure,) = self.failed
        assert not self.rows
        return failure

    @property
    def kind_and_message(self) -> tuple[str, str]:
        return self.failure["error-kind"], self.failure["error"]

    @property
    def counters(self) -> dict[str, int]:
        assert self.result is not None
        return {
            what: number for step in self.result.statistics.steps for what, number in step.counters.items()
        }


@asynccontextmanager
async def asking(
    *servers: Server, hosts: Mapping[str, Any] | None = None, mode: Any = "D+S+", **http: Any
) -> AsyncIterator[Asking]:
    """An engine that may reach the servers; once it is closed, nothing is left of it."""
    settings = {**LIMITS, "allow": [server.host for server in servers], **http}
    engine = Engine(mode=mode, configuration={"http": settings, "host": hosts or {}})
    async with engine:
        yield Asking(engine)
    for server in servers:
        await server.all_lost()
    assert_nothing_left(engine)


async def load_everything() -> None:
    """Use all that is loaded when it is first used, so that it is no part of what is measured."""
    pages = {
        "/robots.txt": answer(b"User-agent: *\nDisallow: /*x"),
        "/items": answer(b'{"items": [{"n": 1}]}'),
        "/entries": answer(b"<feed><entry><t>x</t></entry></feed>"),
    }
    async with Server(site(pages)) as server, asking(server, robots=True) as engine:
        assert (await engine.ask(server.url())).rows
        for wrapper in ("items", "entries"):
            assert (await engine.ask(server.url(f"/{wrapper}"), wrapper=wrapper)).rows


async def works(server: Server, engine: Asking) -> bool:
    """Whether the next request is fine."""
    server.behave = sends(answer(PAGE))
    return len((await engine.ask(server.url("/next"))).rows) == 1


def site(pages: Mapping[str, bytes | Behaviour]) -> Behaviour:
    """Answers by path: a whole answer, or what goes on with the connection; all else is an ordinary page."""

    async def behave(line: Line) -> None:
        while True:
            path = (await line.request()).split(b" ")[1].decode()
            found = pages.get(path.partition("?")[0], answer(PAGE))
            if isinstance(found, bytes):
                await line.send(found)
            else:
                await found(line)

    return behave


def moved(location: str, status: str = "302 Found", *headers: str) -> bytes:
    return answer(status=status, headers=[f"Location: {location}", *headers])


def header(request: bytes, name: str) -> str | None:
    """A header of a request as the server saw it."""
    for line in request.split(b"\r\n\r\n")[0].split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.decode().lower() == name.lower():
            return value.decode().strip()
    return None


def open_files() -> int:
    """Files and sockets of this process."""
    return len(os.listdir("/proc/self/fd"))
