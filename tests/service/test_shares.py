"""Tasks share one engine, its workers and hosts: a large one does not keep a small one waiting."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from aioflow import Engine
from aioflow.authoring.operator import load_operators
from aioflow.service.actions import LocalActions
from aioflow.testing.scripted import client_over
from aioflow.web import Client
from aioflow.web.http import Request, Response
from tests.service.world import World, world

__all__ = ["world"]

PLAN = """
WRAPPER page (host char, page char)
{
  GET: "http://{host}/{page}"
  EACH: "li"
  title: "b"
}

PLAN pages
{
  INPUT: pages (host char, page char)
  OUTPUT: found
  BODY
  {
    wrapper ("page", pages : found)
  }
}
"""
PAGES = 10_000


class SlowSite:
    """Pages that take a second each."""

    async def fetch(self, request: Request) -> Response:
        await asyncio.sleep(1)
        headers = CIMultiDictProxy(CIMultiDict({"Content-Type": "text/html"}))
        return Response(request.url, 200, headers, b"<ul><li><b>x</b></li></ul>", ())

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("host", ["large.example", "small.example"])
def test_a_task_with_thousands_of_pages_does_not_keep_one_with_three_waiting(
    world: World, tmp_path: Path, host: str
) -> None:
    world.plan.write_text(PLAN)
    world.settings["grace_seconds"] = 0
    world.more = {"workers": 4, "http": {"concurrency": 4}}

    def task(name: str, host: str, pages: int) -> dict[str, object]:
        rows = [{"host": host, "page": f"{name}-{number}"} for number in range(pages)]
        return {"name": name, "plan": str(world.plan), "inputs": {"pages": rows}}

    async def test(actions: LocalActions) -> None:
        await actions.add_task(task("large", "large.example", PAGES))
        await actions.add_task(task("small", host, 3))
        configuration = world.configuration()
        client = client_over(SlowSite(), configuration)
        engine = Engine(
            configuration=configuration,
            registry=load_operators(),
            services={Client: client},
            clock=world.now,
            **configuration.engine_arguments(),
        )
        async with world.serving(world.service(engine=engine)):
            await actions.run_task("large")
            await asyncio.sleep(20)
            await actions.run_task("small")
            await asyncio.sleep(10)
            (large,), (small,) = await actions.list_runs("large"), await actions.list_runs("small")
            assert large.state == "running"
            assert small.state == "succeeded"
        await client.close()

    world.run(test)
