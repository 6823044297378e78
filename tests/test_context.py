"""map_concurrently and the rest of what operators ask their context for."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest

import aioflow
from aioflow import Context, Engine, Row, Stream, loads, map_concurrently, operator
from aioflow.authoring.operator import same_as_input
from aioflow.testing import Script, run, run_plan


@operator(schema=same_as_input, firing="tuple", name="context_slowly")
async def slowly(rows: Stream, *, context: Context) -> AsyncGenerator[Row, None]:
    """Pass each tuple on after a time that depends on it."""

    async def wait(row: Row) -> None:
        await asyncio.sleep(row[0] % 3)

    async for row, _ in map_concurrently(wait, rows, context):
        yield row


@pytest.mark.parametrize("seed", range(60))
def test_concurrent_calls_lose_no_tuple_whatever_the_order_of_events(seed: int) -> None:
    script = Script()
    for number in range(25):
        script = script.row(n=number)
        if number % 4 == 3:
            script = script.wait(number % 3)
    plan = "PLAN p { INPUT: x OUTPUT: out BODY { context_slowly (x : out) {%s} } }"
    capacity = 1 + seed % 3
    result = run_plan(plan % "WORKERS: 4", x=script, seed=seed, capacity_rows=capacity)
    assert sorted(row["n"] for row in result) == list(range(25))
    result = run_plan(plan % "ORDERED", x=script, seed=seed, capacity_rows=capacity)
    assert [row["n"] for row in result] == list(range(25))


def test_results_leave_as_they_come_unless_ordered() -> None:
    plan = "PLAN p { INPUT: x OUTPUT: out BODY { context_slowly (x : out) {%s} } }"
    rows = [{"n": 2}, {"n": 1}, {"n": 0}]
    assert [row["n"] for row in run_plan(plan % "WORKERS: 3", x=rows)] == [0, 1, 2]
    assert [row["n"] for row in run_plan(plan % "ORDERED", x=rows)] == [2, 1, 0]


def _process_number() -> int:
    return os.getpid()


@operator(name="context_elsewhere")
async def elsewhere(rows: Stream, *, context: Context) -> AsyncGenerator[Mapping[str, Any], None]:
    """Tell where functions were called."""
    async for _ in rows:
        thread = await context.in_thread(threading.get_ident)
        process = await context.in_process(_process_number)
        yield {"thread": thread, "process": process, "permits": context.workers}


def test_threads_and_processes_are_others_and_give_their_permits_back() -> None:
    async def main() -> None:
        async with Engine(workers=2) as engine:
            plan = loads("PLAN p { INPUT: x OUTPUT: out BODY { context_elsewhere (x : out) } }")
            (row,) = await engine.run(plan, x=[{"n": 1}])
            assert row["thread"] != threading.get_ident()
            assert row["process"] != os.getpid()
            assert row["permits"] == 2
            assert engine.budget.used == 0

    asyncio.run(main())


@operator(schema=same_as_input, name="context_talks")
async def talks(rows: Stream, *, context: Context) -> AsyncGenerator[Any, None]:
    """Count, warn and emit."""
    async for batch in rows.batches():
        context.count("seen", len(batch))
        context.warn("look here")
        assert rows.schema is not None
        await context.emit("extra", rows.schema, batch)
        yield batch


def test_counters_warnings_and_emitted_rows_reach_the_result() -> None:
    plan = loads("PLAN p { INPUT: x OUTPUT: out BODY { context_talks (x : out) } }", name="p.plan")
    result = aioflow.run(plan, x=[{"n": 1}, {"n": 2}])
    (step,) = result.statistics.steps
    assert step.counters == {"seen": 2}
    assert result.warnings == ("p.plan:1:38: context_talks: look here",)
    assert [row["n"] for row in result.outputs["extra"]] == [1, 2]
    assert len(result) == 2


def test_rows_are_not_emitted_among_those_of_a_declared_output() -> None:
    plan = loads("PLAN p { INPUT: x OUTPUT: extra BODY { context_talks (x : extra) } }", name="p.plan")
    with pytest.raises(aioflow.RunError, match="'extra' is an output of the plan p: emit to another name"):
        aioflow.run(plan, x=[{"n": 1}])


def test_an_emitted_output_can_be_picked() -> None:
    async def main() -> list[int]:
        async with Engine() as engine:
            plan = loads("PLAN p { INPUT: x OUTPUT: out BODY { context_talks (x : out) } }")
            return [row["n"] async for row in engine.stream(plan, x=[{"n": 1}], output="extra")]

    assert run(main()) == [1]


@aioflow.function(name="context_ticks", pure=True, returns="tick number")
async def ticks(row: Mapping[str, Any]) -> AsyncGenerator[int, None]:
    """Several results, ten seconds apart."""
    for tick in range(row["n"]):
        await asyncio.sleep(10)
        yield tick


def test_results_of_an_async_generator_leave_as_they_come() -> None:
    async def main() -> list[tuple[int, float]]:
        async with Engine() as engine:
            plan = loads('PLAN p { INPUT: x OUTPUT: out BODY { apply (x, "context_ticks" : out) {OUTER} } }')
            clock = asyncio.get_running_loop().time
            return [(row["tick"], clock()) async for row in engine.stream(plan, x=[{"n": 3}, {"n": 0}])]

    assert run(main()) == [(None, 0), (0, 10), (1, 20), (2, 30)]


def test_a_generator_that_nobody_reads_fast_enough_holds_no_permit() -> None:
    plan = """PLAN p { INPUT: x OUTPUT: out BODY {
        apply (x, "context_ticks" : ticks) apply (ticks, "context_ticks" : out)
    } }"""
    result = run_plan(plan, x=[{"n": 100}], workers=1, capacity_rows=1)
    assert len(result) == 100 * 100


def test_ordered_results_of_generators_stay_together() -> None:
    plan = 'PLAN p { INPUT: x OUTPUT: out BODY { apply (x, "context_ticks" : out) {ORDERED} } }'
    result = run_plan(plan, x=[{"n": 3}, {"n": 1}, {"n": 2}])
    assert [(row["n"], row["tick"]) for row in result] == [(3, 0), (3, 1), (3, 2), (1, 0), (2, 0), (2, 1)]


@operator(schema=same_as_input, firing="tuple", name="context_at_once")
async def at_once(rows: Stream, *, context: Context) -> AsyncGenerator[Row, None]:
    """Pass each tuple on after a moment, and count the calls that were begun."""

    async def call(row: Row) -> None:
        begun.append(row)
        await asyncio.sleep(0)

    async for row, _ in map_concurrently(call, rows, context, permit=False, window=8):
        yield row


begun: list[Row] = []


def test_calls_do_not_run_ahead_of_a_slow_reader() -> None:
    plan = loads("PLAN p { INPUT: x OUTPUT: out BODY { context_at_once (x : out) } }")

    async def main() -> int:
        begun.clear()
        most = taken = 0
        rows = [{"n": number} for number in range(200)]
        async with Engine(capacity_rows=1) as engine, engine.stream(plan, x=rows) as stream:
            async for _ in stream:
                taken += 1
                for _ in range(20):
                    await asyncio.sleep(0)
                most = max(most, len(begun) - taken)
        return most

    assert asyncio.run(main()) < 32


@operator(schema=same_as_input, firing="tuple", name="context_two_hosts")
async def two_hosts(rows: Stream, *, context: Context) -> AsyncGenerator[Row, None]:
    """Take each tuple's permit when its host is ready: `slow` in ten seconds; who `lingers` ends late."""

    async def call(row: Row) -> None:
        begun.append(row)
        if row[0] == "slow":
            await asyncio.sleep(10)
        async with context.permit():
            await asyncio.sleep(1)
        if row[0] == "lingers":
            await asyncio.sleep(100)

    async for row, _ in map_concurrently(call, rows, context, permit=False, window=8):
        yield row


def when_begun(hosts: list[str], workers: int, most: float) -> int:
    """How many calls were begun before a time had passed."""

    async def main() -> int:
        begun.clear()
        plan = loads("PLAN p { INPUT: x OUTPUT: out BODY { context_two_hosts (x : out) } }")
        async with Engine(workers=workers) as engine:
            running = asyncio.ensure_future(engine.run(plan, x=[{"host": host} for host in hosts]))
            await asyncio.sleep(most)
            count = len(begun)
            assert len(await running) == len(hosts)
        return count

    return run(main())


def test_calls_that_could_only_queue_for_permits_are_not_begun() -> None:
    # A few begin together, before any of them has its permit.
    assert when_begun(["fast"] * 20, workers=2, most=0.5) <= 4


def test_calls_are_begun_past_those_that_wait_for_their_host() -> None:
    assert when_begun(["slow"] * 4 + ["fast"] * 2, workers=2, most=0.5) == 6


def test_calls_are_begun_when_permits_are_given_back_that_nobody_wants() -> None:
    hosts = ["lingers"] * 4 + ["fast"]
    assert (when_begun(hosts, workers=4, most=0.5), when_begun(hosts, workers=4, most=1.5)) == (4, 5)
