"""The plan of a task: frozen when it is added, taken over on demand; and tasks that plans themselves add."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from aioflow.errors import InputError, PlanError
from aioflow.service.actions import LocalActions
from aioflow.service.task import task_id_of
from aioflow.state import crash_points
from tests.service.world import PLAN, START, Work, World, world

__all__ = ["world"]

SCHEDULING = """
PLAN adding
{
  INPUT: wanted (plan char, schedule char, name char, input char)
  OUTPUT: added
  BODY { schedule (wanted : added) }
}
"""
REMOVING = """
PLAN removing
{
  INPUT: tasks (task-id char)
  OUTPUT: removed
  BODY { unschedule (tasks : removed) }
}
"""


def test_a_task_runs_the_plan_as_it_was_when_it_was_added(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 1h"))
        world.plan.write_text(PLAN.replace('"done"', '"other"'))
        async with world.serving():
            await asyncio.sleep(3700)
            assert await world.stored() == ["a"]
            shown = await actions.show_task("a")
            assert shown.newer_version not in (None, "", shown.version)
            await actions.edit_task("a", {}, reload=True)
            assert (await actions.show_task("a")).newer_version is None
            await asyncio.sleep(3600)
            assert await world.stored() == ["a"]  # the second went into the other table
        latest, first = await actions.list_runs("a")
        assert latest.version != first.version

    world.run(test)


def test_used_files_are_frozen_too_and_a_deleted_plan_runs_on(world: World) -> None:
    part = world.plan.with_name("part.plan")
    part.write_text(PLAN)
    world.plan.write_text(
        'USE "part.plan"\nPLAN main { INPUT: jobs (job char, seconds number, fails boolean) OUTPUT: out '
        "BODY { work (jobs : out) } }"
    )

    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 1h", plan_name="main"))
        part.unlink()
        world.plan.unlink()
        async with world.serving():
            await asyncio.sleep(3700)
        assert await world.stored() == ["a"]
        assert "no file" in (await actions.show_task("a")).newer_problem

    world.run(test)


def test_a_newer_plan_is_taken_over_automatically_only_if_it_is_sound(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 1h", reload="automatic"))
        world.plan.write_text("PLAN work { this is no plan }")
        async with world.serving():
            await asyncio.sleep(3700)
            assert await world.stored() == ["a"]
            with pytest.raises(PlanError):
                await actions.edit_task("a", {}, reload=True)
            world.plan.write_text(PLAN.replace('log (done, "did")', ""))
            await asyncio.sleep(3600)
        latest, first = await actions.list_runs("a")
        assert (latest.state, first.state) == ("succeeded", "succeeded")
        assert latest.version != first.version

    world.run(test)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"plan": "missing.plan"}, "there is no file"),
        ({"schedule": "61 * * * *"}, "61 is not between 0 and 59"),
        ({"inputs": {}}, "needs rows for its input jobs"),
        ({"inputs": {"job": []}}, "has no input 'job'"),
        ({"parameters": {"x": 1}}, "has no parameter 'x'"),
        ({"overlap": "never"}, "must be allow-all, buffer-all, .* or skip, not 'never'"),
        ({"retries": -1}, "retries must be a whole number from 0 to 100, not -1"),
        ({"timeout_seconds": "soon"}, "not a duration: 'soon'"),
        ({"priority": 1001}, "priority must be a whole number from -1,000 to 1,000, not 1001"),
        ({"overlp": "skip"}, "unknown setting 'overlp'; did you mean 'overlap'"),
        ({"ends": "2026-12-31"}, "ends must be a time with its offset"),
        ({"zone": "Mars/Olympus"}, "unknown time zone"),
        ({"name": " a"}, "printable text"),
        ({"surprise": 1}, "unknown setting 'surprise'"),
    ],
)
def test_a_definition_that_makes_no_sense_is_refused(
    world: World, changes: dict[str, object], message: str
) -> None:
    async def test(actions: LocalActions) -> None:
        with pytest.raises(InputError, match=message):
            await actions.add_task({**world.task("a", "@daily"), **changes})
        assert await actions.list_tasks() == []

    world.run(test)


# --- tasks that plans add and remove ------------------------------------------------------------


def _adding(world: World, name: str = "added") -> dict[str, object]:
    (world.plan.parent / "adding.plan").write_text(SCHEDULING)
    wanted = {
        "plan": "work.plan",
        "schedule": "every 10m",
        "name": name,
        "input": f'{{"job": "{name}", "seconds": 1, "fails": false}}',
    }
    plan = str(world.plan.parent / "adding.plan")
    return {
        "name": "adding",
        "plan": plan,
        "schedule": "0 1 * * *",
        "zone": "UTC",
        "inputs": {"wanted": [wanted]},
    }


def test_a_plan_adds_a_task_that_the_service_takes_over_after_the_commit(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        await actions.add_task(_adding(world))
        async with world.serving():
            await asyncio.sleep(3600 + 5)
            added = await actions.show_task("added")
            assert added.task_id == task_id_of("added")
            assert added.definition.plan == str(world.plan)
            assert "added" not in {name for name, _ in Work.began}
            await asyncio.sleep(700)
            assert [name for name, _ in Work.began] == ["added"]
            (run,) = await actions.list_runs("adding")
            sample = (await actions.show_run(run.occurrence)).sample
            assert task_id_of("added") in sample

    world.run(test)


def test_a_plan_removes_a_task_and_its_own_run_ends_normally(world: World) -> None:
    (world.plan.parent / "removing.plan").write_text(REMOVING)
    plan = str(world.plan.parent / "removing.plan")

    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 1h"))
        rows = [{"task-id": task_id_of("a")}, {"task-id": task_id_of("removing")}, {"task-id": None}]
        task = {"name": "removing", "plan": plan, "schedule": "30 * * * *", "inputs": {"tasks": rows}}
        await actions.add_task({**task, "zone": "UTC"})
        async with world.serving():
            await asyncio.sleep(1900)
            assert await actions.list_tasks() == []
            await asyncio.sleep(7200)
        assert Work.began == []
        (run,) = await actions.list_runs()
        assert run.state == "succeeded"

    world.run(test)


@pytest.mark.parametrize("moment", ["requests taken", "requests deleted"])
def test_requests_are_carried_out_once_though_the_service_ends_meanwhile(world: World, moment: str) -> None:
    class EndedError(Exception):
        pass

    def end(name: str) -> None:
        if name == moment:
            raise EndedError

    async def test(actions: LocalActions) -> None:
        await actions.add_task(_adding(world))
        with crash_points.watch(end):
            work = asyncio.create_task(world.service().serve())
            await asyncio.sleep(3600 + 30)
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        # Between the two services a person changes the task: the request must not be carried out again.
        await actions.edit_task("added", {"schedule": "every 5h"})
        async with world.serving():
            await asyncio.sleep(60)
            assert (await actions.show_task("added")).definition.schedule == "every 5h"

    world.run(test)


def test_requests_wait_while_there_is_no_service(world: World, tmp_path: Path) -> None:
    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("keeps the database watched", "@yearly"))
        from aioflow import Engine, load

        (world.plan.parent / "adding.plan").write_text(SCHEDULING)
        wanted = {
            "plan": "work.plan",
            "schedule": "@daily",
            "name": "later",
            "input": "job=x seconds=1 fails=false",
        }
        async with Engine() as engine:
            result = await engine.run(load(world.plan.parent / "adding.plan"), wanted=[wanted])
        assert result.rows[0]["task-id"] == task_id_of("later")
        assert len(await actions.list_tasks()) == 1
        async with world.serving():
            await asyncio.sleep(30)
        assert [each.definition.name for each in await actions.list_tasks()][-1] == "later"

    world.run(test)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"plan": "missing.plan", "schedule": "@daily"}, "there is no file"),
        ({"plan": "work.plan", "schedule": "sometimes"}, "a schedule has five fields"),
        ({"plan": "work.plan", "schedule": "@daily"}, "needs rows for its input jobs"),
        ({"plan": "work.plan", "schedule": "@daily", "input": "nothing"}, "input must be a relation"),
        ({"plan": None, "schedule": "@daily"}, "plan must be a text"),
    ],
)
def test_a_wrong_request_fails_its_tuple(world: World, wanted: dict[str, object], message: str) -> None:
    async def test(actions: LocalActions) -> None:
        from aioflow import Engine, loads

        text = SCHEDULING.replace("OUTPUT: added", "OUTPUT: failed").replace(
            ": added)", ": _) {ERRORS: failed}"
        )
        plan = loads(text, folder=world.plan.parent)
        async with Engine() as engine:
            row = {"plan": None, "schedule": None, "name": None, "input": None, **wanted}
            result = await engine.run(plan, wanted=[row])
        assert message in str(result.rows[0]["error"])

    world.run(test)


def test_the_clock_of_the_world_is_virtual(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        assert world.now() == START

    world.run(test)
