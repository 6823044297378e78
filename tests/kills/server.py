"""PostgreSQL killed again and again while one process runs plans on it: no row twice, none missing."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import aioflow.operators  # noqa: F401  # registers them
from aioflow import Engine, loads
from aioflow.state.crash_points import watch
from tests.servers.postgres import Postgres, query

_PLAN = """
PLAN watcher
{
  INPUT: houses
  BODY
  {
    diff (houses, "houses" : added, changed, removed) {KEY: "url"; GUARD: off; FIRST: news}
    dbappend (added, "history")
  }
}
"""
_NEW_ROWS = 40
_BEGUN, _APPLIED = "transaction begun", "writes applied"
_LONGEST_DELAY_SECONDS = 0.015


@dataclass
class ServerReport:
    """How often the server was killed where, and what is wrong with the tables afterwards."""

    kills: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


async def kill_server_while_plans_run(server: Postgres, url: str, count: int, seed: int) -> ServerReport:
    """Run a plan `count` times, all in one engine; each time the server is killed and comes back."""
    report, random = ServerReport(), Random(seed)
    program, houses = loads(_PLAN), list[dict[str, Any]]()
    async with Engine(configuration={"database": {"default": {"url": url}}}) as engine:
        for number in range(count):
            houses += [{"url": f"house-{number}-{place}", "price": place} for place in range(_NEW_ROWS)]
            killer = _Killer(server, random, number)
            with watch(killer):
                try:
                    result = await engine.run(program, {"houses": houses})
                finally:
                    killer.join()
            assert killer.has_killed, f"the moment of {killer.what!r} did not pass"
            report.kills[killer.what] += 1
            report.warnings += result.statistics.warnings
    await _compare(url, [house["url"] for house in houses], report)
    return report


async def _compare(url: str, expected: list[str], report: ServerReport) -> None:
    for table in ("houses", "history"):
        found = Counter(house for (house,) in await query(url, f"select url from {table}"))
        missing = [house for house in expected if house not in found]
        twice = [house for house, copies in found.items() if copies > 1]
        report.problems += [f"{table}: {len(missing)} rows are missing: {missing[:3]}"] * bool(missing)
        report.problems += [f"{table}: {len(twice)} rows are there twice: {twice[:3]}"] * bool(twice)


class _Killer:
    """Kills the server when a moment passes, there and then or a little later, and starts it again."""

    def __init__(self, server: Postgres, random: Random, number: int) -> None:
        self._server = server
        # At the moment itself, or later, while what follows it is under way.
        self._at = (_BEGUN, _APPLIED, _APPLIED, _APPLIED)[number % 4]
        self._delay = 0.0 if number % 4 < 2 else random.uniform(0, _LONGEST_DELAY_SECONDS)
        self._end: Callable[[], None] = server.kill
        how = "kill -9"
        if number % 8 >= 4:
            self._end, how = lambda: server.stop("immediate"), "immediate shutdown"
        self.what = f"{how}, {'within ' if self._delay else 'at '}{self._at!r}"
        self._thread: threading.Thread | None = None

    def __call__(self, name: str) -> None:
        if name != self._at or self._thread is not None:
            return
        if not self._delay:
            self._end()
        self._thread = threading.Thread(target=self._restart)
        self._thread.start()

    @property
    def has_killed(self) -> bool:
        return self._thread is not None

    def join(self) -> None:
        """Wait until the server is back."""
        if self._thread is not None:
            self._thread.join()

    def _restart(self) -> None:
        if self._delay:
            time.sleep(self._delay)  # a time within a commit can only be met by chance
            self._end()
        self._server.start()
