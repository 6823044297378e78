"""Many requests with restarts are cancelled at any moment, through real sockets: nothing of them is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from aioflow.restart.policies import read_policy
from aioflow.web.host_queue import HostQueueFetcher
from aioflow.web.hosts import Hosts
from aioflow.web.http import Request
from aioflow.web.restarts import RestartFetcher
from aioflow.web.settings import HttpSettings, WebSettings
from tests.web.misbehaving import Line, Server, answer, opened

REQUESTS, PERMITS, CONNECTIONS = 150, 12, 10


class Permits:
    """The workers of a run."""

    def __init__(self) -> None:
        self.left = asyncio.Semaphore(PERMITS)
        self.taken = 0

    @asynccontextmanager
    async def take(self, name: str, value: str = "") -> AsyncIterator[None]:
        async with self.left:
            self.taken += 1
            try:
                yield
            finally:
                self.taken -= 1


@pytest.mark.parametrize("rule", ["0.001", "hedge 0.001"])
@pytest.mark.parametrize("seed", range(3))
async def test_a_storm_of_cancellations_leaves_nothing(rule: str, seed: int) -> None:
    random = Random(seed)
    is_over = asyncio.Event()

    async def behave(line: Line) -> None:
        """Answer at once, after some steps, in part, or never."""
        while True:
            await line.request()
            fate = 0 if is_over.is_set() else random.randrange(4)
            for _ in range(random.randrange(200) if fate == 1 else 0):
                await asyncio.sleep(0)
            if fate == 2:
                await line.send(answer(b"in part", length=1000))
            if fate >= 2:
                await line.lost()
                return
            await line.send(answer(b"whole"))

    async with Server(behave) as server, opened(server) as transport:
        http = HttpSettings(restart_extra=10.0, latencies=False, concurrency=CONNECTIONS, breaker_failures=0)
        hosts = Hosts(WebSettings(http))
        fetcher = RestartFetcher(HostQueueFetcher(transport, hosts), hosts, random)
        permits = Permits()

        async def fetch(number: int) -> bytes:
            url = server.url(f"/{number}")
            request = Request(url, restart=read_policy(rule), permit=permits.take)
            response = await fetcher.fetch(request)
            return await response.read()

        tasks = [asyncio.create_task(fetch(number)) for number in range(REQUESTS)]
        for task in tasks:
            for _ in range(random.randrange(60)):
                await asyncio.sleep(0)
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(each) for each in ended} <= {asyncio.CancelledError, bytes}
        assert {each for each in ended if isinstance(each, bytes)} <= {b"whole"}
        host = hosts.at(server.url())
        assert (host.in_flight, host.users, host.inside, permits.taken) == (0, 0, 0, 0)
        assert not tasks_of_the_client()
        # All connections, slots and permits can be used again.
        is_over.set()
        assert await asyncio.gather(*map(fetch, range(PERMITS))) == [b"whole"] * PERMITS
        assert (host.in_flight, host.users, permits.taken) == (0, 0, 0)


def tasks_of_the_client() -> list[asyncio.Task[object]]:
    """Return the tasks that are left, without those of the server's connections."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    return [task for task in tasks if "Server._serve" not in repr(task.get_coro())]
