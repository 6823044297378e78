"""Homes of services for measurements: tasks with due times spread over a minute, and messages that wait.

`python -m aioflow.benchmarks.service_homes minute TASKS SECONDS` serves tasks and prints figures;
`… restart TASKS MESSAGES` starts `aioflow serve` on a home with messages in the outbox.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from aioflow.benchmarks.harness.child import resident_megabytes
from aioflow.config.configuration import read_configuration
from aioflow.messages.outbox.table import AT_ONCE, STAGED, as_json
from aioflow.service.actions import LocalActions
from aioflow.service.home import open_service_database
from aioflow.service.service import MonitorService
from aioflow.state.databases import Databases
from aioflow.state.system_tables import OUTBOX, from_stamp, stamp

PLAN = """
PLAN small
{
  INPUT: visits (shop char, price number)
  BODY
  {
    select (visits, "price > 0" : valid)
    project (valid, "shop, price, '${started}' as seen" : seen)
    dbappend (seen, "seen")
  }
}
"""
_CONFIGURATION = """
[email.default]
url = "maildir:box"
from = "watcher@example.org"
"""
_STEP_SECONDS = 60
_LOOK_SECONDS = 0.02
_PATIENCE_SECONDS = 120.0
# Not `aioflow serve` by its name: the package of this checkout is the one to be measured.
_SERVE = (sys.executable, "-m", "aioflow", "serve", "--port", "0", "--home")


class BenchmarkHome:
    """The home of a service with tasks of one small plan, each due once a minute."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._plans = folder / "plans"
        self._plans.mkdir()
        (self._plans / "small.plan").write_text(PLAN)
        (folder / "aioflow.toml").write_text(_CONFIGURATION)
        self.configuration = read_configuration(folder, {})

    async def add_tasks(self, count: int) -> None:
        """Add tasks whose times are spread over the minute."""
        database = open_service_database(self.configuration, self.folder)
        actions = LocalActions(self.folder, self.configuration, database)
        await actions.import_tasks([_task(number) for number in range(count)])
        begin = datetime.now(UTC) - timedelta(seconds=_STEP_SECONDS)
        async with database.writing() as statements:
            for place, (task_id,) in enumerate(await statements.fetch("SELECT task_id FROM aioflow_tasks")):
                anchor = stamp(begin + timedelta(seconds=place * _STEP_SECONDS / count))
                await statements.run(
                    "UPDATE aioflow_tasks SET anchor = {}, scheduled_until = {} WHERE task_id = {}",
                    *(anchor, anchor, task_id),
                )
        await actions.close()

    async def add_messages(self, count: int) -> None:
        """Have messages wait in the outbox of the plan."""
        databases = Databases(self.configuration)
        address = databases.address(None, self._plans)
        connection = await databases.connect(address)
        await databases.prepare(connection, address, lambda message: None)
        async with connection.transaction("write"):
            await connection.load(OUTBOX, STAGED, [list(_messages(count))])
        await connection.close()

    def runs_since(self, begun: datetime) -> list[float]:
        """Return the delay of each run whose time came after a moment, in seconds."""
        rows = self._query(
            "SELECT due, started FROM aioflow_occurrences WHERE started IS NOT NULL AND due >= ?",
            stamp(begun),
        )
        return [(from_stamp(started) - from_stamp(due)).total_seconds() for due, started in rows]

    def states(self) -> dict[str, int]:
        return dict(self._query("SELECT state, count(*) FROM aioflow_occurrences GROUP BY state"))

    def first_start(self) -> datetime | None:
        ((found,),) = self._query("SELECT min(started) FROM aioflow_occurrences")
        return None if found is None else from_stamp(found)

    def _query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.folder / "service.db", timeout=30)) as database:
            return database.execute(sql, values).fetchall()


def _task(number: int) -> dict[str, Any]:
    visit = {"shop": f"shop {number}", "price": 10 + number}
    return {
        "name": f"task-{number}",
        "plan": "small.plan",
        "schedule": f"every {_STEP_SECONDS}s",
        "inputs": {"visits": [visit]},
    }


def _messages(count: int) -> Iterator[tuple[Any, ...]]:
    sender, to = "watcher@example.org", ["me@example.org"]
    for number in range(count):
        row = {
            "key": uuid4().hex,
            "channel": "email",
            "account": "default",
            "content": as_json({"from": sender, "to": to, "subject": str(number), "text": ""}),
            "delivery": "at-least-once",
            "state": "waiting",
            "attempts": 0,
            "created": stamp(datetime.now(UTC)),
            "place": number,
            "due": AT_ONCE,
            "progress": "{}",
            "run_id": "",
            "statement": "benchmark",
        }
        yield tuple(map(row.get, STAGED))


# --- the processes ------------------------------------------------------------------------------


async def serve_for(home: BenchmarkHome, seconds: float, warm_up_seconds: float) -> dict[str, Any]:
    """Serve in this process, and return the figures of the time after the warm-up."""
    service = MonitorService(home.folder, home.configuration)
    work = asyncio.create_task(service.serve())
    await asyncio.sleep(warm_up_seconds)
    begun, used = datetime.now(UTC), time.process_time()
    await asyncio.sleep(seconds)
    used = time.process_time() - used
    megabytes = resident_megabytes()
    service.stop()
    await work
    late = home.runs_since(begun)
    return {
        "count": len(late),
        "late_seconds": sorted(late),
        "processor_seconds": used,
        "megabytes": megabytes,
        "states": home.states(),
    }


def restart(home: BenchmarkHome) -> dict[str, float]:
    """Start a service as its owner does; return the seconds until it is ready and has begun a run."""
    begun, at = datetime.now(UTC), time.perf_counter()
    process = subprocess.Popen([*_SERVE, str(home.folder)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        assert process.stderr is not None
        while "serving" not in process.stderr.readline().decode():
            if process.poll() is not None:
                raise AssertionError("the service ended before it was ready")
        ready = time.perf_counter() - at
        while (first := home.first_start()) is None:
            if time.perf_counter() - at > _PATIENCE_SECONDS:
                raise AssertionError("no run began")
            time.sleep(_LOOK_SECONDS)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    return {"ready_seconds": ready, "first_run_seconds": (first - begun).total_seconds()}


def main() -> None:
    mode, tasks, number = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with TemporaryDirectory(prefix="aioflow-bench-") as folder:
        home = BenchmarkHome(Path(folder))
        asyncio.run(home.add_tasks(tasks))
        if mode == "minute":
            found: dict[str, Any] = asyncio.run(serve_for(home, number, min(number, _STEP_SECONDS)))
        else:
            asyncio.run(home.add_messages(number))
            found = restart(home)
        print(json.dumps(found))


if __name__ == "__main__":
    main()
