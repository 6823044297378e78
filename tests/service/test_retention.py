"""The history of a service is kept by number and by age."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import timedelta

from aioflow.service.actions import LocalActions
from tests.service.world import PLAN, World, world

__all__ = ["world"]


async def pruned(world: World) -> None:
    """Have a service begin, which forgets what is too much."""
    async with world.serving():
        await asyncio.sleep(5)


def test_the_latest_runs_of_each_task_are_kept_and_the_logs_of_fewer(world: World) -> None:
    world.settings |= {"keep_runs": 10, "keep_logs": 3}

    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("often", "every 1m"))
        await actions.add_task(world.task("rarely", "every 5m"))
        async with world.serving():
            await asyncio.sleep(1502)
        before = [run.occurrence for run in await actions.list_runs("often", limit=100)]
        assert len(before) == 25
        for name in ("often", "rarely"):
            await actions.pause_task(name)
        await pruned(world)
        kept = [run.occurrence for run in await actions.list_runs("often", limit=100)]
        assert kept == before[:10]
        assert len(await actions.list_runs("rarely", limit=100)) == 5
        logs = [(await actions.show_run(each)).log for each in kept]
        assert [bool(log) for log in logs] == [True] * 3 + [False] * 7

    world.run(test)


def test_logs_of_all_tasks_together_have_a_size(world: World) -> None:
    world.settings |= {"keep_log_bytes": 0}

    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 1m"))
        async with world.serving():
            await asyncio.sleep(100)
        await actions.pause_task("a")
        (run,) = await actions.list_runs("a")
        assert (await actions.show_run(run.occurrence)).log
        await pruned(world)
        found = await actions.show_run(run.occurrence)
        assert (found.log, found.sample, found.trace) == ("", "", "")
        assert found.occurrence.state == "succeeded"

    world.run(test)


def test_runs_and_versions_of_plans_that_are_too_old_are_forgotten(world: World) -> None:
    def versions() -> int:
        with closing(sqlite3.connect(world.home / "service.db")) as database:
            return int(database.execute("SELECT count(*) FROM aioflow_plan_versions").fetchone()[0])

    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 1m"))
        async with world.serving():
            await asyncio.sleep(100)
        world.plan.write_text(f"# A comment.\n{PLAN}")
        await actions.edit_task("a", {}, reload=True)
        await actions.pause_task("a")
        await pruned(world)
        assert (len(await actions.list_runs("a")), versions()) == (1, 2)
        world.offset = timedelta(days=91)
        await pruned(world)
        assert (len(await actions.list_runs("a")), versions()) == (0, 1)

    world.run(test)
