"""The cost of a run does not grow with the history in its database, nor does the memory of SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from aioflow import Engine, loads
from aioflow.runtime.sqlite import SqliteWorker
from aioflow.state.health import KEPT_RUNS
from aioflow.testing import ScriptedSite, run
from aioflow.web import Client

PLAN = """
WRAPPER list (shop)
{
  GET: "http://shop.example/{shop}"
  EACH: "li"
  name: "b"
  price: "i" number
}

PLAN watch
{
  INPUT: shops
  BODY
  {
    wrapper ("list", shops : found)
    project (found, "name, price" : houses)
    diff (houses, "houses" : added, changed, removed) {KEY: "name"}
    email (changed, to="me@example.org", subject="changed {name} {price}") {EACH}
  }
}
"""
# What thousands of runs leave, made of what one has left.
HISTORY = """
WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {rows})
INSERT INTO {table} SELECT {columns} FROM number, (SELECT * FROM {table} LIMIT 1)
"""
STEPS_AT_ONCE = 10


class Steps:
    """The instructions of SQLite for all connections, in tens."""

    def __init__(self) -> None:
        self.number = 0

    def add(self) -> None:
        self.number += 1


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    found, opened = Steps(), SqliteWorker.open

    async def open_counted(connect: Callable[[], sqlite3.Connection]) -> SqliteWorker:
        worker = await opened(connect)
        worker.on_progress = found.add
        return worker

    monkeypatch.setattr("aioflow.runtime.sqlite._INSTRUCTIONS_PER_PROGRESS", STEPS_AT_ONCE)
    monkeypatch.setattr(SqliteWorker, "open", open_counted)
    return found


@asynccontextmanager
async def engine_in(folder: Path) -> AsyncIterator[Engine]:
    prices = count(100)
    site = ScriptedSite(lambda _: f"<ul><li><b>Oak</b><i>{next(prices)}</i></li></ul>")
    configuration: dict[str, Any] = {
        "database": {"default": {"url": f"sqlite:{folder / 'own.db'}"}},
        "http": {"health": True},
        "email": {"default": {"url": f"maildir:{folder / 'box'}", "from": "watcher@example.org"}},
    }
    async with (
        site.client() as client,
        Engine(services={Client: client}, configuration=configuration) as engine,
    ):
        yield engine


def add_history(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        for table, rows, changed in (
            ("aioflow_runs", 2000, {"run_id": "'run ' || n"}),
            ("aioflow_health", KEPT_RUNS - 5, {"run_id": "'run ' || n"}),
            ("aioflow_outbox", 2000, {"key": "'key ' || n"}),
            ("aioflow_change_sets", 2000, {"set_id": "set_id + n * 1000"}),
        ):
            names = [name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")]
            columns = ", ".join(changed.get(name, name) for name in names)
            database.execute(HISTORY.format(table=table, rows=rows, columns=columns))
        states = database.execute("SELECT DISTINCT state FROM aioflow_outbox").fetchall()
        assert states == [("sent",)]


def test_a_run_reads_as_little_of_a_long_history_as_of_a_short_one(tmp_path: Path, steps: Steps) -> None:
    async def steps_of_a_run(engine: Engine) -> int:
        before = steps.number
        await engine.run(loads(PLAN), shops=[{"shop": "a"}])
        return steps.number - before

    async def main() -> tuple[int, int]:
        async with engine_in(tmp_path) as engine:
            for _ in range(3):  # which make the tables, and what a run leaves
                await steps_of_a_run(engine)
            short = await steps_of_a_run(engine)
            add_history(tmp_path / "own.db")
            return short, await steps_of_a_run(engine)

    short, long = run(main())
    # To read one entry of each of the two thousand runs, messages or sets takes 400 more at least.
    assert long - short < 200
    assert short > 100
