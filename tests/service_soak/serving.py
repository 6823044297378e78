"""A day of a service: its tasks watch a site with faults, and nothing of them may be left in the end."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import re
import sqlite3
import sys
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from random import Random
from typing import Any, ClassVar
from unittest.mock import patch

from aioflow import Engine
from aioflow.authoring.operator import load_operators
from aioflow.config.configuration import Configuration, read_configuration
from aioflow.service.actions import LocalActions
from aioflow.service.home import open_service_database
from aioflow.service.service import MonitorService
from aioflow.testing import run
from aioflow.testing.scripted import client_over
from aioflow.web import Client
from aioflow.web.errors import ConnectionFailedError
from aioflow.web.http import Request, Response

START = datetime(2026, 3, 1, tzinfo=UTC)
FAULTY = 0.05
PLAN = """
WRAPPER list (shop char)
{
  GET: "http://shop.example/{shop}"
  EACH: "li"
  url: "a @href" url
  price: "b" number
}

PLAN watch
{
  INPUT: shops (shop char)
  BODY
  {
    wrapper ("list", shops : found)
    project (found, "shop, url, price" : houses)
    diff (houses, "houses-${task-id}" : added, changed, removed) {KEY: "url"}
    email (changed, to="me@example.org", subject="changed {url} {price}") {EACH}
  }
}
"""
_CONFIGURATION = """
[email.default]
url = "maildir:box"
from = "watcher@example.org"

[http]
rate = 1000
health = true
"""
_HOUSES = 5
_CHANGED = 0.02  # of the pages
_MINUTE = 60.0
_THREAD_ENDS_SECONDS = 30.0  # on a busy machine; a thread that nobody told to end never does
_WORK = ("waiting", "running")


class FaultySite:
    """Pages of shops. Prices change now and then, and some answers are faults. It keeps nothing."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._prices: dict[str, int] = {}
        self.requests = 0
        self.faults = 0

    async def fetch(self, request: Request) -> Response:
        from multidict import CIMultiDict, CIMultiDictProxy

        self.requests += 1
        await asyncio.sleep(0.2)
        headers = CIMultiDictProxy(CIMultiDict({"Content-Type": "text/html; charset=utf-8"}))
        if self._random.random() < FAULTY:
            self.faults += 1
            if self._random.random() < 0.5:
                raise ConnectionFailedError("the connection was closed before the body was complete")
            return Response(request.url, 404, headers, b"gone", ())
        return Response(request.url, 200, headers, self._page(request.url).encode(), ())

    async def close(self) -> None:
        pass

    def _page(self, url: str) -> str:
        if self._random.random() < _CHANGED:
            self._prices[url] = self._prices.get(url, 100) + 1
        price = self._prices.get(url, 100)
        rows = "".join(
            f"<li><a href='/{number}'>x</a><b>{price + number}</b></li>" for number in range(_HOUSES)
        )
        return f"<html><body><ul>{rows}</ul></body></html>"


@dataclass
class SoakReport:
    """The figures of a soak. Memory is measured after a garbage collection.

    `memory` is all that the process can write to, with what libraries such as SQLite hold, in memory or
    swapped out. `resident` is what the system keeps in memory for it: the code that is read from files is a
    part of that, and comes and goes as other programs need memory. `traced` is that of Python's objects
    alone. `in_use` is the part of malloc's memory that somebody holds. If only `memory` grows, the rest is
    free memory that malloc keeps: some moments needed more than any before them.
    """

    hours: float
    tasks: int
    outcomes: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    faults: int = 0
    messages: int = 0
    memory: list[tuple[float, int]] = field(default_factory=list)  # by virtual hour
    resident: list[tuple[float, int]] = field(default_factory=list)
    in_use: list[tuple[float, int]] = field(default_factory=list)  # where malloc is that of glibc
    blocks: list[tuple[float, int]] = field(default_factory=list)  # of Python's allocator
    traced: list[tuple[float, int]] = field(default_factory=list)
    growth: list[str] = field(default_factory=list)  # the lines of code that hold most of the growth
    problems: list[str] = field(default_factory=list)
    processor_seconds: float = 0.0

    @property
    def drift_bytes(self) -> int:
        """The growth of memory since the first measurement, of Python's objects if they were traced."""
        measured = self.traced or self.memory
        return measured[-1][1] - measured[0][1] if measured else 0

    def __str__(self) -> str:
        outcomes = ", ".join(f"{number} {state}" for state, number in sorted(self.outcomes.items()))
        return (
            f"{self.hours:g} virtual hours, {self.tasks} tasks a minute: {outcomes}; "
            f"{self.requests} requests, {self.faults} faulty; {self.messages} messages; drift of memory "
            f"{self.drift_bytes / 1e6:.3f} MB; {self.processor_seconds:.0f} s of processor time; "
            f"{len(self.problems)} problems"
        )


class Soak:
    """One home on a virtual clock."""

    def __init__(
        self, folder: Path, hours: float, tasks: int, seed: int = 1, *, is_traced: bool = False
    ) -> None:
        self._is_traced = is_traced
        self._first: tracemalloc.Snapshot | None = None
        self.home = folder / "home"
        (self.home / "plans").mkdir(parents=True)
        (self.home / "plans" / "watch.plan").write_text(PLAN)
        (self.home / "aioflow.toml").write_text(_CONFIGURATION)
        self.site = FaultySite(seed)
        self.report = SoakReport(hours, tasks)

    def now(self) -> datetime:
        return START + timedelta(seconds=asyncio.get_running_loop().time())

    def run(self, tell: Callable[[str], None], *, warm_up_hours: float, each_hours: float) -> SoakReport:
        """Serve, measure, and look for leftovers."""
        before, threads = time.process_time(), set(threading.enumerate())
        if self._is_traced:
            tracemalloc.start()
        with self._virtual_time(), patch.dict(os.environ, {"XDG_CACHE_HOME": str(self.home / "cache")}):
            run(self._serve(tell, warm_up_hours, each_hours))
        self.report.processor_seconds = time.process_time() - before
        self.report.problems += [f"a thread is left: {name}" for name in _threads_left(threads)]
        self._look_at_database()
        return self.report

    @contextmanager
    def _virtual_time(self) -> Iterator[None]:
        """Have apscheduler go by the clock of the loop."""
        soak = self

        class VirtualDatetime(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> Any:
                return soak.now().astimezone(tz)

        with patch("apscheduler.schedulers.base.datetime", VirtualDatetime):
            yield

    async def _serve(self, tell: Callable[[str], None], warm_up_hours: float, each_hours: float) -> None:
        configuration = read_configuration(self.home, {})
        await self._add_tasks(configuration)
        client = client_over(self.site, configuration)
        engine = Engine(
            configuration=configuration,
            registry=load_operators(),
            services={Client: client},
            clock=self.now,
        )
        service = MonitorService(self.home, configuration, clock=self.now, engine=engine)
        tasks_before, files_before = len(asyncio.all_tasks()), _open_files()
        work = asyncio.create_task(service.serve())
        await self._watch(tell, warm_up_hours, each_hours)
        service.stop()
        await work
        await client.close()
        self._look_for_leftovers(engine, tasks_before, files_before)

    async def _add_tasks(self, configuration: Configuration) -> None:
        actions = LocalActions(
            self.home, configuration, open_service_database(configuration, self.home, clock=self.now)
        )
        for number in range(self.report.tasks):
            await asyncio.sleep(_MINUTE / self.report.tasks)  # due times are spread over the minute
            await actions.add_task(
                {
                    "name": f"shop-{number}",
                    "plan": "watch.plan",
                    "schedule": "every 1m",
                    "inputs": {"shops": [{"shop": f"shop-{number}"}]},
                    "alert_after_failures": 0,
                }
            )
        await actions.close()

    async def _watch(self, tell: Callable[[str], None], warm_up_hours: float, each_hours: float) -> None:
        hour = 0.0
        while hour < self.report.hours - 1e-9:
            step = each_hours if hour else warm_up_hours
            await asyncio.sleep(step * 3600)
            hour += step
            self._measure(hour)
            size = (self.report.traced or self.report.memory)[-1][1] / 1e6
            tell(f"hour {hour:g}: {size:.3f} MB, {self.site.requests} requests")

    def _measure(self, hour: float) -> None:
        gc.collect()
        self.report.memory.append((hour, _writable_bytes()))
        self.report.resident.append((hour, _resident_bytes()))
        if (in_use := _bytes_in_use()) is not None:
            self.report.in_use.append((hour, in_use))
        self.report.blocks.append((hour, sys.getallocatedblocks()))
        if self._is_traced:
            self.report.traced.append((hour, tracemalloc.get_traced_memory()[0]))
            snapshot = tracemalloc.take_snapshot()
            self._first = self._first or snapshot
            self.report.growth = [str(line) for line in snapshot.compare_to(self._first, "lineno")[:10]]

    # --- the end --------------------------------------------------------------------------------

    def _look_for_leftovers(self, engine: Engine, tasks_before: int, files_before: int) -> None:
        report = self.report
        report.requests, report.faults = self.site.requests, self.site.faults
        gc.collect()
        tasks = len(asyncio.all_tasks()) - tasks_before
        found = {
            "tasks": tasks,
            "open files and sockets": _open_files() - files_before,
            "permits": engine.budget.used - engine.budget.outlasting,
            "bytes of rows": engine.memory.used_bytes,
        }
        report.problems += [f"{number} {what} are left" for what, number in found.items() if number > 0]

    def _look_at_database(self) -> None:
        report = self.report
        with closing(sqlite3.connect(self.home / "service.db")) as database:
            rows = database.execute("select state, sum(number) from aioflow_occurrences group by state")
            report.outcomes = Counter({str(state): int(number) for state, number in rows})
            leases = database.execute("select 1 from aioflow_occurrences where leased_by is not null")
            report.problems += ["a lease of a run is left" for _ in leases]
            report.problems += [
                f"a row of a service is left: {row}"
                for row in database.execute("select * from aioflow_services")
            ]
            versions = database.execute("select count(*) from aioflow_plan_versions").fetchone()[0]
            if versions != 1:
                report.problems.append(f"{versions} versions of one plan")
        with closing(sqlite3.connect(self.home / "plans" / "aioflow.db")) as database:
            states = Counter(
                dict(database.execute("select state, count(*) from aioflow_outbox group by state"))
            )
            report.messages = states.total()
            if states.keys() - {"sent"}:
                report.problems.append(f"messages are {dict(states)}")
            fences = database.execute("select count(*) from aioflow_fences").fetchone()[0]
            if fences:
                report.problems.append(f"{fences} fences, although no run was lost")
        if left := [state for state in _WORK if report.outcomes[state] > 1]:
            report.problems.append(f"runs are left: {left}")


def _threads_left(before: set[threading.Thread]) -> list[str]:
    """Return the names of threads that do not end. A loop that ends tells those of anyio to."""
    new = [thread for thread in threading.enumerate() if thread not in before]
    for thread in new:
        thread.join(_THREAD_ENDS_SECONDS)
    return [thread.name for thread in new if thread.is_alive()]


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


_MAPPING = re.compile(r"[0-9a-f]+-[0-9a-f]+ (\S+)")


def _writable_bytes() -> int:
    """Return the bytes in memory, or swapped out, of the mappings that the process can write to."""
    kilobytes, is_writable = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if found := _MAPPING.match(line):
            is_writable = "w" in found[1]
        elif is_writable and line.startswith(("Rss:", "Swap:")):
            kilobytes += int(line.split()[1])
    return kilobytes * 1024


class _MallocFigures(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_: ClassVar = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def _bytes_in_use() -> int | None:
    """Return the bytes that malloc has handed out, in all arenas and mappings; None if it does not tell."""
    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is None:
        return None
    ask.restype = _MallocFigures
    figures = ask()
    return int(figures.uordblks + figures.hblkhd)
