"""A world for tests of the service: a home, a virtual clock for apscheduler too, and plans that take time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, ClassVar

import pytest

from aioflow import function
from aioflow.config.configuration import Configuration, read_configuration
from aioflow.service.actions import LocalActions
from aioflow.service.home import open_service_database
from aioflow.service.service import MonitorService
from aioflow.service.store.occurrences import Occurrence
from aioflow.state.databases import Databases
from aioflow.testing import run

START = datetime(2026, 3, 1, tzinfo=UTC)
# Takes some seconds for each tuple, fails if it is asked to, and stores the tuple.
PLAN = """
PLAN work
{
  INPUT: jobs (job char, seconds number, fails boolean)
  OUTPUT: done
  BODY
  {
    apply (jobs, "service_work" : done)
    dbappend (done, "done")
    log (done, "did")
  }
}
"""


class WorkFailedError(Exception):
    """The failure that a job asked for."""


class Work:
    """The jobs that ran, and how many at once."""

    began: ClassVar[list[tuple[str, float]]] = []
    running: ClassVar[int] = 0
    most: ClassVar[int] = 0
    failing: ClassVar[set[str]] = set()


@function(name="service_work", returns="at number")
async def service_work(row: Mapping[str, Any]) -> dict[str, Any]:
    Work.began.append((row["job"], asyncio.get_running_loop().time()))
    Work.running += 1
    Work.most = max(Work.most, Work.running)
    try:
        await asyncio.sleep(row["seconds"])
    finally:
        Work.running -= 1
    if row["fails"] or row["job"] in Work.failing:
        raise WorkFailedError(f"{row['job']} failed")
    return {"at": asyncio.get_running_loop().time()}


class World:
    """A home with a clock. `offset` moves the clock without letting time pass."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.plan = folder / "work.plan"
        self.plan.write_text(PLAN)
        self.offset = timedelta()
        self.poll_seconds = 0.5  # more in tests of many hours
        self.settings: dict[str, Any] = {"late_spread_seconds": 0}
        self.more: dict[str, Any] = {}  # other tables of the configuration
        Work.began, Work.running, Work.most, Work.failing = [], 0, 0, set()

    def now(self) -> datetime:
        return START + timedelta(seconds=asyncio.get_running_loop().time()) + self.offset

    def configuration(self) -> Configuration:
        return read_configuration(self.home, {"service": self.settings, **self.more})

    def service(self, **keywords: Any) -> MonitorService:
        keywords = {"poll_seconds": self.poll_seconds, **keywords}
        return MonitorService(self.home, self.configuration(), clock=self.now, **keywords)

    def actions(self) -> LocalActions:
        configuration = self.configuration()
        database = open_service_database(configuration, self.home, clock=self.now)
        return LocalActions(self.home, configuration, database)

    def task(
        self, name: str, schedule: str, *, seconds: float = 1, fails: bool = False, **more: Any
    ) -> dict[str, Any]:
        rows = {"jobs": [{"job": name, "seconds": seconds, "fails": fails}]}
        return {
            "name": name,
            "plan": str(self.plan),
            "schedule": schedule,
            "zone": "UTC",
            "inputs": rows,
            **more,
        }

    def run(self, test: Callable[[LocalActions], Awaitable[None]], *, seed: int | None = None) -> None:
        """Run a test on a loop of its own."""

        async def main() -> None:
            actions = self.actions()
            try:
                await test(actions)
            finally:
                await actions.close()

        run(main(), seed=seed)

    @asynccontextmanager
    async def serving(self, service: MonitorService | None = None) -> AsyncIterator[MonitorService]:
        """A service that works meanwhile; afterwards it is stopped and waited for."""
        service = service or self.service()
        ready = asyncio.Event()
        work = asyncio.create_task(service.serve(ready.set))
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait((work, waiting), return_when=asyncio.FIRST_COMPLETED)
        try:
            yield service
        finally:
            waiting.cancel()
            service.stop()
            await work

    async def stored(self) -> list[str]:
        """The jobs in the table that the plan writes to."""
        databases = Databases({})
        connection = await databases.connect(databases.address(None, self.plan.parent))
        try:
            if await connection.columns("done") is None:
                return []
            return [str(job) for (job,) in await connection.fetch("SELECT job FROM done ORDER BY at")]
        finally:
            await connection.close()


def seconds_of(runs: list[Occurrence], state: str) -> list[float]:
    """When occurrences in a state were due, in seconds since the start, the earliest first."""
    return sorted((each.due - START).total_seconds() for each in runs if each.state == state)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)

    class VirtualDatetime(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return made.now().astimezone(tz)

    monkeypatch.setattr("apscheduler.schedulers.base.datetime", VirtualDatetime)
    return made
