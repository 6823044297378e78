"""A service with its REST interface on loopback, in a home of its own, on the real clock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
from yarl import URL

from aioflow import function
from aioflow.config.configuration import as_configuration
from aioflow.service.rest import RemoteActions, RestServer
from aioflow.service.service import MonitorService
from aioflow.service.store.tokens import ROLES, create_token

# Reads its input, and has no effects.
HELLO = """\
PLAN hello
{
  INPUT: a (x number)
  OUTPUT: b
  BODY
  {
    select (a, "x > 1" : b)
  }
}
"""
# Waits until the test lets it go on.
WAITING = """\
PLAN waiting
{
  INPUT: a (x number)
  OUTPUT: b
  BODY
  {
    log (a, "before")
    apply (a, "rest_wait" : b)
  }
}
"""
# Compares its input with a table.
WATCH = """\
PLAN watch
{
  INPUT: houses (url char, price number)
  OUTPUT: added, changed
  BODY
  {
    diff (houses, "houses" : added, changed, gone) {KEY: "url"; FIRST: news}
  }
}
"""


class Gate:
    """Lets runs of the plan `waiting` go on."""

    opened = asyncio.Event()
    reached = asyncio.Event()

    @classmethod
    def reset(cls) -> None:
        cls.opened, cls.reached = asyncio.Event(), asyncio.Event()


@function(name="rest_wait", returns="y number")
async def rest_wait(row: Mapping[str, Any]) -> dict[str, Any]:
    Gate.reached.set()
    await Gate.opened.wait()
    return {"y": row["x"]}


class Served:
    """The service, its address, and a token of each role."""

    def __init__(
        self,
        service: MonitorService,
        server: RestServer,
        address: str,
        tokens: Mapping[str, str],
        session: aiohttp.ClientSession,
    ) -> None:
        self._server = server
        self.service = service
        self.address = address
        self.tokens = tokens
        self.session = session

    @property
    def plans(self) -> Path:
        return self.service.home / "plans"

    async def stop(self) -> None:
        """Stop the server, and leave the service at work."""
        await self._server.stop()

    def remote(self, role: str = "owner") -> RemoteActions:
        return RemoteActions(self.address, self.tokens[role])

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        role: str | None = "owner",
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """Return the status and the JSON of an answer; an error must have the shape of errors."""
        sent = {} if role is None else {"Authorization": f"Bearer {self.tokens[role]}"}
        if body is not None or data is not None:
            sent["Content-Type"] = "application/json"
            data = json.dumps(body).encode() if data is None else data
        sent |= headers or {}
        url = URL(self.address + path, encoded=True)
        stream = None if data is None else BytesIO(data)
        async with self.session.request(method, url, data=stream, headers=sent) as response:
            text = await response.text()
            content: Any = (
                json.loads(text)
                if response.content_type in ("application/json", "application/feed+json") and text
                else text
            )
            if response.status >= 400:
                assert set(content) == {"error"}, content
                assert set(content["error"]) <= {"kind", "message", "diagnostics"}
                assert "Traceback" not in text
            return response.status, content

    async def get(self, path: str, role: str = "owner") -> Any:
        """Return the JSON of an answer that must be a success."""
        status, content = await self.ask("GET", path, role=role)
        assert status == 200, content
        return content

    async def post(self, path: str, body: Any = None, role: str = "owner") -> Any:
        status, content = await self.ask("POST", path, body, role=role)
        assert status < 300, content
        return content

    async def run(self, name: str) -> str:
        """Run a task, wait for the end of the run, and return its state."""
        with self.service.events.subscribed() as subscription:
            await self.post(f"/api/tasks/{name}/run")
            async with asyncio.timeout(30):
                while True:
                    for event in await subscription.next_batch():
                        if event.kind == "run" and event.data.get("state") not in (None, "running"):
                            return str(event.data["state"])


@asynccontextmanager
async def served(folder: Path, configuration: Mapping[str, Any] | None = None) -> AsyncIterator[Served]:
    """A service that works meanwhile; afterwards it is stopped and waited for."""
    Gate.reset()
    home = folder / "home"
    (home / "plans").mkdir(parents=True)
    for name, text in (("hello", HELLO), ("waiting", WAITING), ("watch", WATCH)):
        (home / "plans" / f"{name}.plan").write_text(text)
    tables = {"database": {"default": {"url": f"sqlite:{folder / 'data.db'}"}}, **(configuration or {})}
    service = MonitorService(home, as_configuration(tables))
    ready = asyncio.Event()
    work = asyncio.create_task(service.serve(ready.set))
    await ready.wait()
    server = RestServer(service)
    try:
        address = await server.start(port=0)
        async with service.database.writing() as statements:
            tokens: dict[str, str] = {each: await create_token(statements, each, each) for each in ROLES}
        async with aiohttp.ClientSession() as session:
            yield Served(service, server, address, tokens, session)
    finally:
        Gate.opened.set()
        await server.stop()
        service.stop()
        await work


def task(name: str = "hello", plan: str = "hello.plan", **more: Any) -> dict[str, Any]:
    """The content of a task."""
    inputs = {"houses": []} if plan == "watch.plan" else {"a": [{"x": 1}, {"x": 2}]}
    return {"name": name, "plan": plan, "inputs": inputs, **more}
