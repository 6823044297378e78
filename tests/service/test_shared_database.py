"""A database that holds both the tasks and the tables of their plans."""

from __future__ import annotations

import asyncio

from aioflow.service.actions import LocalActions
from tests.service.world import World, world

__all__ = ["world"]

_PLANNER = """
PLAN planner
{
  INPUT: wanted (name char, plan char, schedule char)
  BODY { schedule (wanted : added) }
}
"""
_VISIT = """
PLAN visit { BODY { read ("visits.csv" : visits) log (visits, "visit") } }
"""


def test_requests_of_plans_are_taken_over_from_the_task_database_too(world: World) -> None:
    world.settings["database"] = "main"
    world.home.mkdir()
    (world.home / "aioflow.toml").write_text(f'[database.main]\nurl = "sqlite:{world.home / "all.db"}"\n')
    folder = world.plan.parent
    (folder / "planner.plan").write_text(_PLANNER)
    (folder / "visit.plan").write_text(_VISIT)

    async def test(actions: LocalActions) -> None:
        wanted = {"name": "visit", "plan": "visit.plan", "schedule": "@yearly"}
        await actions.add_task(
            {"name": "planner", "plan": str(folder / "planner.plan"), "inputs": {"wanted": [wanted]}}
        )
        async with world.serving():
            await actions.run_task("planner")
            await asyncio.sleep(5)
            assert [task.definition.name for task in await actions.list_tasks()] == ["planner", "visit"]
        async with actions.database.reading() as statements:
            assert await statements.fetch("SELECT * FROM aioflow_task_requests") == []

    world.run(test)
