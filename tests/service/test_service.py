"""The service on a virtual clock: what runs when, what is skipped or missed, and who runs it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from aioflow.service.actions import LocalActions
from aioflow.service.task import task_id_of
from tests.service.world import START, Work, World, seconds_of, world

__all__ = ["world"]


def test_a_task_runs_at_its_times(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "*/10 * * * *"))
        async with world.serving():
            await asyncio.sleep(3605)
        runs = await actions.list_runs("a")
        assert seconds_of(runs, "succeeded") == [600.0 * number for number in range(1, 7)]
        assert {each.state for each in runs} == {"succeeded"}
        assert await world.stored() == ["a"] * 6
        # Each began at its time, not later than the service needs to look.
        assert [round(at) for _, at in Work.began] == [600 * number for number in range(1, 7)]

    world.run(test)


def test_a_change_is_noticed_within_a_second(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        async with world.serving():
            await asyncio.sleep(100)
            await actions.add_task(world.task("new", "every 1h"))
            await actions.run_task("new")
            await asyncio.sleep(0.99)
            assert [name for name, _ in Work.began] == ["new"]
            await actions.edit_task("new", {"schedule": "every 10s"})
            await asyncio.sleep(31.5)
            assert len(Work.began) == 4
            await actions.pause_task("new")
            await asyncio.sleep(60)
            assert len(Work.began) == 4
            await actions.remove_task("new")
            assert await actions.list_tasks() == []

    world.run(test)


@pytest.mark.parametrize(
    ("overlap", "succeeded", "skipped", "cancelled"),
    [
        # Each run takes 24 s and the task is due every 10 s, for 60 s.
        ("skip", [10, 40], [20, 30, 50, 60], []),
        ("buffer-one", [10, 20, 40, 60], [30, 50], []),
        ("allow-all", [10, 20, 30, 40, 50, 60], [], []),
        ("cancel-other", [60], [], [10, 20, 30, 40, 50]),
    ],
)
def test_runs_overlap_as_the_task_says(
    world: World, overlap: str, succeeded: list[float], skipped: list[float], cancelled: list[float]
) -> None:
    async def test(actions: LocalActions) -> None:
        ends = (START + timedelta(seconds=61)).isoformat()
        await actions.add_task(world.task("a", "every 10s", seconds=24, overlap=overlap, ends=ends))
        async with world.serving():
            await asyncio.sleep(110)
        runs = await actions.list_runs("a")
        assert seconds_of(runs, "skipped") == skipped, [(r.due, r.state, r.reason) for r in runs]
        assert seconds_of(runs, "succeeded") == succeeded
        assert seconds_of(runs, "cancelled") == cancelled
        assert (await actions.show_task("a")).state == "ended"

    world.run(test)


def test_buffered_runs_come_one_after_the_other(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        ends = (START + timedelta(seconds=41)).isoformat()
        await actions.add_task(world.task("a", "every 10s", seconds=15, overlap="buffer-all", ends=ends))
        async with world.serving():
            await asyncio.sleep(120)
        assert seconds_of(await actions.list_runs("a"), "succeeded") == [10, 20, 30, 40]
        assert Work.most == 1

    world.run(test)


@pytest.mark.parametrize(
    ("catch_up", "window", "late", "missed"),
    [
        ("one", "365d", [3600 * 5], [3600 * hour for hour in range(1, 5)]),
        ("all", "365d", [3600 * hour for hour in range(1, 6)], []),
        ("all", "2.6h", [3600 * 3, 3600 * 4, 3600 * 5], [3600, 7200]),
        ("none", "365d", [], [3600 * hour for hour in range(1, 6)]),
        ("one", "10m", [], [3600 * hour for hour in range(1, 6)]),
    ],
)
def test_times_that_were_missed_are_recorded_and_made_up_for(
    world: World, catch_up: str, window: str, late: list[float], missed: list[float]
) -> None:
    """The service is stopped for five and a half hours; the task is due every hour."""

    async def test(actions: LocalActions) -> None:
        more: dict[str, Any] = {
            "catch_up": catch_up,
            "catch_up_window_seconds": window,
            "overlap": "buffer-all",
        }
        await actions.add_task(world.task("a", "0 * * * *", **more))
        await asyncio.sleep(3600 * 5.5)
        async with world.serving():
            await asyncio.sleep(60)
        runs = await actions.list_runs("a")
        assert seconds_of(runs, "succeeded") == late
        assert seconds_of(runs, "missed") == missed
        assert all("no service ran" in each.reason for each in runs if each.state == "missed")

    world.run(test)


def test_the_many_times_of_a_long_stop_are_counted_without_a_row_for_each(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 1s"))
        await asyncio.sleep(400_000)
        service = world.service()
        async with world.serving(service):
            await asyncio.sleep(0.5)
        runs = await actions.list_runs("a", limit=10_000)
        counted = sum(each.number for each in runs if each.due <= START + timedelta(seconds=400_000))
        assert counted == 400_000
        assert len(runs) < 1_010

    world.run(test)


def test_a_failed_run_is_tried_again_after_pauses_that_double(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        task = world.task("a", "every 1h", fails=True, retries=3, retry_pause_seconds=60)
        await actions.add_task(task)
        async with world.serving():
            await asyncio.sleep(3600 + 600)
        (run,) = await actions.list_runs("a")
        assert (run.state, run.attempts) == ("failed", 4)
        assert "a failed" in run.reason
        times = [round(at - 3600) for _, at in Work.began]
        assert times == [0, 61, 182, 423]
        assert await world.stored() == []
        assert (await actions.show_task("a")).failures == 1

    world.run(test)


def test_a_task_is_paused_after_failures_in_a_row_and_resumes(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 1m", pause_after_failures=3))
        Work.failing = {"a"}
        async with world.serving():
            await asyncio.sleep(600)
            paused = await actions.show_task("a")
            assert (paused.state, paused.state_reason) == ("paused", "3 runs in a row have failed")
            Work.failing = set()
            await actions.resume_task("a")
            await asyncio.sleep(130)
        runs = await actions.list_runs("a")
        assert [each.state for each in reversed(runs)] == ["failed"] * 3 + ["succeeded"] * 2

    world.run(test)


def test_a_run_that_takes_too_long_is_ended(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 1h", seconds=1000, timeout_seconds="5m"))
        async with world.serving():
            await asyncio.sleep(3600 + 320)
        (run,) = await actions.list_runs("a")
        assert run.state == "failed"
        assert "timeout of 300 s" in run.reason

    world.run(test)


def test_jitter_moves_runs_by_the_same_time_in_every_service(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        for number in range(8):
            await actions.add_task(world.task(f"t{number}", "@hourly", jitter_seconds=600))
        async with world.serving():
            await asyncio.sleep(3600 + 700)
        times = sorted(at - 3600 for _, at in Work.began)
        assert len(times) == 8
        assert times[0] >= 0
        assert times[-1] <= 602
        assert times[-1] - times[0] > 100

    world.run(test)


def test_many_late_tasks_are_spread_when_a_service_begins(world: World) -> None:
    world.settings["late_spread_seconds"] = 60

    async def test(actions: LocalActions) -> None:
        for number in range(20):
            await actions.add_task(world.task(f"t{number}", "@hourly"))
        await asyncio.sleep(2 * 3600 + 600)
        began = asyncio.get_running_loop().time()
        async with world.serving():
            await asyncio.sleep(120)
        times = sorted(at - began for _, at in Work.began)
        assert len(times) == 20
        assert times[-1] - times[0] > 20

    world.run(test)


def test_urgent_tasks_go_first_where_few_runs_fit(world: World) -> None:
    world.settings["runs"] = 1

    async def test(actions: LocalActions) -> None:
        for name, priority in (("low", 0), ("high", 5), ("middle", 2)):
            await actions.add_task(world.task(name, "@hourly", priority=priority))
        async with world.serving():
            await asyncio.sleep(3700)
        assert [name for name, _ in Work.began] == ["high", "middle", "low"]

    world.run(test)


def test_two_services_run_each_due_task_once(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        for number in range(10):
            await actions.add_task(world.task(f"t{number}", "every 1m", seconds=5))
        async with world.serving(), world.serving():
            await asyncio.sleep(601)
            await asyncio.sleep(10)
        runs = await actions.list_runs(limit=1000)
        assert len(runs) == 100
        assert len(await world.stored()) == 100

    world.run(test, seed=3)


def test_a_stopped_service_gives_its_runs_back_and_another_runs_them(world: World) -> None:
    world.settings["grace_seconds"] = 10

    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 1h", seconds=100))
        async with world.serving():
            await asyncio.sleep(3650)
        (run,) = await actions.list_runs("a")
        assert (run.state, run.attempts) == ("waiting", 0)
        assert await world.stored() == []
        async with world.serving():
            await asyncio.sleep(200)
        (run,) = await actions.list_runs("a")
        assert run.state == "succeeded"
        assert await world.stored() == ["a"]

    world.run(test)


def test_the_runs_of_a_dead_service_pass_on(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 1h", seconds=20))
        dead = world.service()
        work = asyncio.create_task(dead.serve())
        await asyncio.sleep(3610)
        # As if the process were killed: nothing is noted, nothing is given back.
        await _kill(dead, work)
        async with world.serving():
            await asyncio.sleep(100)
        (run,) = await actions.list_runs("a")
        assert (run.state, run.attempts, run.lost) == ("succeeded", 2, 1)
        assert await world.stored() == ["a"]

    world.run(test)


def test_a_service_that_was_held_up_commits_nothing_stale(world: World) -> None:
    """As by SIGSTOP: its leases pass on while its run goes on, and later it wants to commit."""

    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 1h", seconds=200))
        held_up = world.service()
        held_up._keep_leases = _never  # type: ignore[method-assign]
        async with world.serving(held_up):
            await asyncio.sleep(3610)
            async with world.serving():
                await asyncio.sleep(400)
        (run,) = await actions.list_runs("a")
        assert (run.state, run.attempts, run.lost) == ("succeeded", 2, 1)
        assert len(Work.began) == 2
        assert await world.stored() == ["a"]

    world.run(test)


def test_a_run_that_had_committed_is_not_run_again(world: World) -> None:
    """The service ends between the commit of a run and the note of its end: the ledger decides."""

    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 1h"))
        dead = world.service()
        dead._note_end = _never  # type: ignore[method-assign, assignment]
        work = asyncio.create_task(dead.serve())
        await asyncio.sleep(3610)
        assert await world.stored() == ["a"]
        await _kill(dead, work)
        async with world.serving():
            await asyncio.sleep(100)
        (run,) = await actions.list_runs("a")
        assert (run.state, run.attempts) == ("succeeded", 1)
        assert "committed" in run.reason
        assert await world.stored() == ["a"]

    world.run(test)


def test_a_run_that_ends_its_service_again_and_again_fails(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "@daily", seconds=50))
        await actions.run_task("a")
        for _ in range(3):
            dead = world.service()
            work = asyncio.create_task(dead.serve())
            await asyncio.sleep(45)
            await _kill(dead, work)
        async with world.serving():
            await asyncio.sleep(100)
        (run,) = await actions.list_runs("a")
        assert (run.state, run.reason) == ("failed", "its service ended 3 times while it ran")

    world.run(test)


def test_a_run_is_cancelled_on_demand(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 1h", seconds=500))
        async with world.serving():
            await asyncio.sleep(3610)
            assert await actions.cancel_runs("a") == 1
            await asyncio.sleep(5)
            (run,) = await actions.list_runs("a")
            assert (run.state, run.reason) == ("cancelled", "it was cancelled")
        assert await world.stored() == []

    world.run(test)


def test_a_clock_that_is_set_forward_or_back_neither_drops_nor_doubles(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "*/10 * * * *", catch_up="all", overlap="buffer-all"))
        async with world.serving():
            await asyncio.sleep(1000)
            world.offset = timedelta(minutes=35)
            await asyncio.sleep(1000)
            world.offset = timedelta(minutes=5)
            await asyncio.sleep(3600)
        due = seconds_of(await actions.list_runs("a"), "succeeded")
        last = (5600 + 300) // 600
        assert due == [600.0 * number for number in range(1, last + 1)]

    world.run(test)


def test_a_run_that_waits_is_cancelled_at_once(world: World) -> None:
    """Without a service, after one has given it back, and in the pause before a retry."""
    world.settings["grace_seconds"] = 0

    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "@daily", seconds=50, retries=1, retry_pause_seconds=1000))
        assert await actions.cancel_runs("a") == 0
        await actions.run_task("a")
        assert await actions.cancel_runs("a") == 1
        await actions.run_task("a")
        async with world.serving():
            await asyncio.sleep(10)
        assert await actions.cancel_runs("a") == 1
        Work.failing = {"a"}
        await actions.run_task("a")
        async with world.serving():
            await asyncio.sleep(100)
            assert await actions.cancel_runs("a") == 1
            await asyncio.sleep(2000)
        retried, given_back, fresh = await actions.list_runs("a")
        assert {each.state for each in (retried, given_back, fresh)} == {"cancelled"}
        assert retried.reason == "it was cancelled while it waited for its retry"
        assert given_back.reason == fresh.reason == "it was cancelled before it began"
        assert given_back.started is None
        assert len(Work.began) == 2

    world.run(test)


def test_a_run_that_a_later_time_cancels_says_so(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 10s", seconds=24, overlap="cancel-other"))
        async with world.serving():
            await asyncio.sleep(25)
            cancelled = (await actions.list_runs("a", states=["cancelled"]))[0]
        assert cancelled.reason == "a later time came, and overlap is 'cancel-other'"
        assert cancelled.started is not None
        assert cancelled.ended is not None

    world.run(test)


@pytest.mark.parametrize("overlap", ["skip", "buffer-one", "cancel-other"])
def test_a_time_that_a_retry_makes_be_skipped_names_the_retry(world: World, overlap: str) -> None:
    async def test(actions: LocalActions) -> None:
        more: dict[str, Any] = {"retries": 1, "retry_pause_seconds": 100, "overlap": overlap}
        await actions.add_task(world.task("a", "every 1m", fails=True, **more))
        async with world.serving():
            await asyncio.sleep(130)
        skipped = (await actions.list_runs("a", states=["skipped"]))[-1]
        assert skipped.reason.startswith("the run before waited for its retry")

    world.run(test)


def test_a_run_whose_service_died_after_it_was_cancelled_does_not_run_again(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "@daily", seconds=50))
        await actions.run_task("a")
        dead = world.service()
        work = asyncio.create_task(dead.serve())
        await asyncio.sleep(10)
        await _kill(dead, work)
        await actions.cancel_runs("a")
        async with world.serving():
            await asyncio.sleep(100)
        (run,) = await actions.list_runs("a")
        assert (run.state, run.reason) == ("cancelled", "it was cancelled")
        assert len(Work.began) == 1

    world.run(test)


async def _never(*arguments: object) -> None:
    await asyncio.get_running_loop().create_future()


async def _kill(service: object, work: asyncio.Task[None]) -> None:
    """End a service without letting it write anything more."""

    class GoneError(Exception):
        pass

    def refuse() -> None:
        raise GoneError

    database = service.database  # type: ignore[attr-defined]
    database.writing = refuse
    database.reading = refuse
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


def test_a_run_that_was_cancelled_does_not_run_again_though_its_service_stops(world: World) -> None:
    world.settings["grace_seconds"] = 0

    async def test(actions: LocalActions) -> None:
        for name in ("cancelled", "stopped"):
            await actions.add_task(world.task(name, "@daily", seconds=500))
            await actions.run_task(name)
        async with world.serving():
            await asyncio.sleep(10)
            await actions.cancel_runs("cancelled")
            await asyncio.sleep(1)
        states = {run.task_id: run.state for run in await actions.list_runs()}
        assert states == {task_id_of("cancelled"): "cancelled", task_id_of("stopped"): "waiting"}

    world.run(test)


def test_a_service_that_ends_by_a_defect_gives_its_runs_back(world: World) -> None:
    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "@daily", seconds=500))
        await actions.run_task("a")
        work = asyncio.create_task(world.service().serve())
        await asyncio.sleep(10)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        (run,) = await actions.list_runs("a")
        assert (run.state, run.attempts) == ("waiting", 0)

    world.run(test)
