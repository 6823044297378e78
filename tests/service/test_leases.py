"""Leases of runs on a virtual clock: a machine that sleeps, a recovery that fails, and clocks that differ."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import timedelta

from aioflow.service.actions import LocalActions
from tests.service.test_service import _kill
from tests.service.world import Work, World, seconds_of, world

__all__ = ["world"]


def test_a_run_goes_on_after_its_machine_has_slept(world: World) -> None:
    """Its lease has ended meanwhile, but no other service has taken it."""

    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 1h", seconds=20))
        async with world.serving():
            await asyncio.sleep(3610)
            world.offset = timedelta(minutes=5)
            await asyncio.sleep(3600)
        runs = await actions.list_runs("a")
        assert seconds_of(runs, "succeeded") == [3600, 7200]
        assert [(each.attempts, each.lost) for each in runs] == [(1, 0), (1, 0)]
        assert len(Work.began) == 2

    world.run(test)


def test_a_recovery_that_fails_is_tried_again(world: World) -> None:
    """The database of the plan is locked for longer than a recovery waits."""

    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 1h", seconds=20))
        await _lose_a_run(world)
        with closing(sqlite3.connect(world.plan.parent / "aioflow.db")) as other:
            other.execute("begin immediate")
            async with world.serving():
                await asyncio.sleep(700)
                (run,) = await actions.list_runs("a")
                assert run.state == "running"
                other.rollback()
                await asyncio.sleep(700)
        (run,) = await actions.list_runs("a")
        assert (run.state, run.attempts, run.lost) == ("succeeded", 2, 1)

    world.run(test)


def test_a_database_whose_clock_is_behind_delays_a_run_by_no_more(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 1h"))
        service = world.service()
        service.database._clock = lambda: world.now() - timedelta(seconds=3)
        async with world.serving(service):
            await asyncio.sleep(2 * 3600 + 10)
        assert seconds_of(await actions.list_runs("a"), "succeeded") == [3600, 7200]
        assert [round(at) - 3600 * number for number, (_, at) in enumerate(Work.began, 1)] == [3, 3]

    world.run(test)


async def _lose_a_run(world: World) -> None:
    """Have a service end as by kill -9 while it runs a task that is due after an hour."""
    dead = world.service()
    work = asyncio.create_task(dead.serve())
    await asyncio.sleep(3610)
    await _kill(dead, work)
