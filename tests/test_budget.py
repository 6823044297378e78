"""Permits: bounded, fair, urgent ones first, none lost."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextvars import copy_context
from typing import Any

import pytest

from aioflow import Engine, function, loads
from aioflow.runtime.budget import Budget, Permits, current_run
from aioflow.testing import run


def test_permits_go_first_come_first_served_but_urgent_ones_first() -> None:
    async def main() -> list[str]:
        permits = Permits(1)
        order: list[str] = []

        async def work(name: str, urgent: bool) -> None:
            await permits.acquire(urgent)
            order.append(name)
            await asyncio.sleep(1)
            permits.release()

        tasks = [
            asyncio.create_task(work(name, name.startswith("u"))) for name in ("a", "b", "u1", "c", "u2")
        ]
        await asyncio.gather(*tasks)
        assert (permits.used, permits.waiting) == (0, 0)
        return order

    assert run(main()) == ["a", "u1", "u2", "b", "c"]


@pytest.mark.parametrize("seed", range(50))
def test_a_cancelled_wait_loses_no_permit(seed: int) -> None:
    async def main() -> None:
        permits = Permits(2)

        async def work() -> None:
            async with permits:
                await asyncio.sleep(1)

        tasks = [asyncio.create_task(work()) for _ in range(8)]
        await asyncio.sleep(0.5)
        tasks[seed % 8].cancel()
        await asyncio.sleep(0.5)
        for task in tasks[:: 1 + seed % 3]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (permits.used, permits.waiting) == (0, 0)

    run(main(), seed=seed)


def test_a_partition_does_not_touch_the_common_permits() -> None:
    async def main() -> None:
        budget = Budget(1, {"site": 1})
        async with budget.permits_for("site"), budget.permits_for("elsewhere"):
            assert (budget.used, budget.common.used) == (2, 1)
        assert budget.used == 0

    run(main())


def test_runs_take_turns_so_that_a_long_one_keeps_no_short_one_waiting() -> None:
    async def main() -> list[str]:
        permits = Permits(1)
        order: list[str] = []

        async def work(name: str) -> None:
            async with permits:
                order.append(name)
                await asyncio.sleep(1)

        def begin(name: str) -> asyncio.Task[None]:
            context = copy_context()
            context.run(current_run.set, name)
            return asyncio.get_running_loop().create_task(work(name), context=context)

        tasks = [begin("long") for _ in range(20)] + [begin("short") for _ in range(3)]
        await asyncio.gather(*tasks)
        return order

    assert run(main())[:7] == ["long", "long", "short", "long", "short", "long", "short"]


def test_the_firings_of_a_run_share_its_turn() -> None:
    runs: list[str] = []

    @function(name="budget_run", returns="done boolean", pure=True)
    async def see(row: Mapping[str, Any]) -> dict[str, Any]:
        runs.append(current_run.get())
        return {"done": True}

    plan = loads('PLAN p { INPUT: rows OUTPUT: out BODY { apply (rows, "budget_run" : out) } }')

    async def main() -> None:
        async with Engine(4) as engine:
            await asyncio.gather(*(engine.run(plan, rows=[{"n": 1}, {"n": 2}]) for _ in range(2)))
        assert current_run.get() == ""

    run(main())
    assert sorted(map(runs.count, set(runs))) == [2, 2]
