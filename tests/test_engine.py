"""The engine through its public interface: streaming, several runs, ending, modes, budget, effects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import aioflow
from aioflow import Context, Engine, InputError, PlanError, Record, RunError, Stream, loads, operator
from aioflow.authoring.function import function
from aioflow.authoring.operator import same_as_input
from aioflow.errors import DeadlineError, DepthError, OperatorError
from aioflow.plan import Program
from aioflow.runtime.events import CallEnded, CallStarted, Event, StepEnded, StepStarted, TupleFailed
from aioflow.runtime.session import MODES, Mode
from aioflow.runtime.statistics import RunStatistics
from aioflow.testing import Script, assert_nothing_left, run

PASS = 'PLAN p { INPUT: numbers OUTPUT: out BODY { select (numbers, "n >= 0" : out) } }'


def numbers(count: int) -> list[dict[str, Any]]:
    return [{"n": number} for number in range(count)]


@function(pure=True, returns="page number")
async def engine_fetch(row: Mapping[str, Any]) -> dict[str, Any]:
    """Takes a second of the loop's clock."""
    Fetches.running += 1
    Fetches.most = max(Fetches.most, Fetches.running)
    Fetches.started.append(row["n"])
    try:
        await asyncio.sleep(1)
    finally:
        Fetches.running -= 1
    return {"page": row["n"] * 10}


class Fetches:
    """What engine_fetch saw."""

    running = 0
    most = 0
    started: list[int] = []  # noqa: RUF012  # one list for the process, emptied by each test

    @classmethod
    def reset(cls) -> None:
        cls.running = cls.most = 0
        cls.started = []


@pytest.fixture(autouse=True)
def _fresh_fetches() -> None:
    Fetches.reset()


def test_run_collects_rows_that_behave_like_mappings() -> None:
    result = aioflow.run(loads(PASS), numbers=[{"n": 1, "t": "a"}, {"n": -1, "t": "b"}])
    assert [dict(row) for row in result] == [{"n": 1, "t": "a"}]
    assert isinstance(result[0], Record)
    assert result[0]["t"] == "a"
    assert {**result[0]} == {"n": 1, "t": "a"}


def test_a_row_without_an_attribute_says_which_there_are() -> None:
    result = aioflow.run(loads(PASS), numbers=numbers(1))
    with pytest.raises(KeyError, match=r"'m' \(attributes: n\)"):
        result[0]["m"]


async def test_streamed_rows_arrive_while_the_source_still_gives_more() -> None:
    gate = asyncio.Event()

    async def source() -> AsyncIterator[dict[str, int]]:
        yield {"n": 1}
        await gate.wait()
        yield {"n": 2}

    seen = []
    async with Engine() as engine:
        async for row in engine.stream(loads(PASS), numbers=source()):
            seen.append(row["n"])
            gate.set()
    assert seen == [1, 2]


async def test_breaking_out_of_the_loop_stops_the_run_and_closes_the_source() -> None:
    closed = []

    async def source() -> AsyncIterator[dict[str, int]]:
        try:
            for number in range(1_000_000):
                yield {"n": number}
                await asyncio.sleep(0)
        finally:
            closed.append(True)

    async with Engine() as engine:
        async with engine.stream(loads(PASS), numbers=source()) as stream:
            async for row in stream:
                if row["n"] == 3:
                    break
        assert_nothing_left(engine)
    assert closed == [True]


async def test_a_bare_loop_that_is_left_stops_its_run_too() -> None:
    async with Engine() as engine:
        async for row in engine.stream(loads(PASS), numbers=Script().row(n=1).hang()):
            assert row["n"] == 1
            break
        await engine.close()
        assert_nothing_left(engine)


async def test_inside_a_loop_the_blocking_run_says_what_to_use_instead() -> None:
    with pytest.raises(InputError, match=r"use `await engine.run\(…\)` instead"):
        aioflow.run(loads(PASS), numbers=[])


async def test_leaving_the_engine_stops_what_still_runs() -> None:
    async with Engine() as engine:
        stream = engine.stream(loads(PASS), numbers=Script().row(n=1).hang())
        assert (await anext(aiter(stream)))["n"] == 1
    assert_nothing_left(engine)


async def test_several_outputs_come_by_name() -> None:
    plan = loads(
        'PLAN p { INPUT: x OUTPUT: low, high BODY { select (x, "n < 2" : low) select (x, "n >= 2" : high) } }'
    )
    async with Engine() as engine:
        result = await engine.run(plan, x=numbers(4))
        assert {name: [row["n"] for row in rows] for name, rows in result.outputs.items()} == {
            "low": [0, 1],
            "high": [2, 3],
        }
        named = [(name, row["n"]) async for name, row in engine.stream(plan, x=numbers(4)).named()]
        assert sorted(named) == [("high", 2), ("high", 3), ("low", 0), ("low", 1)]
        with pytest.raises(InputError, match="several outputs"):
            aiter(engine.stream(plan, x=numbers(4)))
        with pytest.raises(InputError, match=r"not one output but 2 \(low, high\)"):
            len(result)
        assert [row["n"] async for row in engine.stream(plan, x=numbers(4), output="high")] == [2, 3]


def test_an_output_that_nobody_picked_is_not_computed() -> None:
    plan = loads(
        'PLAN p { INPUT: x OUTPUT: a, b BODY { apply (x, "engine_fetch" : a) project (x, "n" : b) } }'
    )

    async def main() -> list[int]:
        async with Engine() as engine:
            return [row["n"] async for row in engine.stream(plan, x=numbers(3), output="b")]

    assert run(main()) == [0, 1, 2]
    assert Fetches.started == []


def test_limit_stops_the_fetches_upstream() -> None:
    plan = loads(
        """PLAN p { INPUT: x OUTPUT: out BODY {
            apply (x, "engine_fetch" : pages) {WORKERS: 2} limit (pages, 2 : out)
        } }"""
    )

    async def main() -> None:
        async with Engine() as engine:
            assert len(await engine.run(plan, x=numbers(1000))) == 2
            assert_nothing_left(engine)

    run(main())
    assert len(Fetches.started) <= 4


def test_an_effect_is_not_stopped_by_a_reader_that_leaves() -> None:
    done = []

    @function(name="engine_effect", returns="done number")
    def engine_effect(row: Mapping[str, Any]) -> dict[str, Any]:
        done.append(row["n"])
        return {"done": 1}

    plan = loads(
        'PLAN p { INPUT: x OUTPUT: out BODY { apply (x, "engine_effect" : all) limit (all, 1 : out) } }'
    )
    assert len(aioflow.run(plan, x=numbers(700))) == 1
    assert len(done) == 700


def test_the_worker_budget_bounds_what_waits_on_the_outside_world() -> None:
    plan = loads('PLAN p { INPUT: x OUTPUT: out BODY { apply (x, "engine_fetch" : out) } }')

    async def main(workers: int) -> float:
        async with Engine(workers=workers) as engine:
            result = await engine.run(plan, x=numbers(12))
            return result.statistics.elapsed_seconds

    assert run(main(3)) == pytest.approx(4)
    assert Fetches.most == 3
    assert run(main(100)) == pytest.approx(1)


def test_runs_on_one_engine_share_its_budget() -> None:
    plan = loads('PLAN p { INPUT: x OUTPUT: out BODY { apply (x, "engine_fetch" : out) } }')

    async def main() -> None:
        async with Engine(workers=4) as engine:
            await asyncio.gather(*(engine.run(plan, x=numbers(6)) for _ in range(3)))
            assert_nothing_left(engine)

    run(main())
    assert Fetches.most == 4


def test_a_partition_gives_a_source_permits_of_its_own() -> None:
    function(name="engine_other", pure=True, returns="page number", source="other")(engine_fetch)
    plan = loads(
        """PLAN p { INPUT: x OUTPUT: a, b BODY {
            apply (x, "engine_fetch" : a) apply (x, "engine_other" : b)
        } }"""
    )

    async def main() -> float:
        async with Engine(workers=2, partitions={"other": 3}) as engine:
            return (await engine.run(plan, x=numbers(6))).statistics.elapsed_seconds

    assert run(main()) == pytest.approx(3)
    assert Fetches.most == 5


def test_workers_of_a_statement_hold_over_all_calls_of_its_plan() -> None:
    plan = loads(
        """PLAN one { INPUT: x OUTPUT: out BODY { apply (x, "engine_fetch" : out) {WORKERS: 2} } }
        PLAN main { INPUT: x OUTPUT: all BODY { one (x : a) one (x : b) union (a, b : all) {ALL} } }"""
    )

    async def main() -> None:
        async with Engine(workers=20) as engine:
            await engine.run(plan, x=numbers(4))

    run(main())
    assert Fetches.most == 2


def test_what_leads_into_a_recursive_call_goes_first() -> None:
    """Two workers, pages with three details each: the next page never waits behind details."""
    pages_started: list[float] = []

    @function(name="engine_page", pure=True, returns="next number")
    async def page(row: Mapping[str, Any]) -> list[dict[str, Any]]:
        pages_started.append(asyncio.get_running_loop().time())
        await asyncio.sleep(1)
        return [{"next": row["next"] + 1}]

    @function(name="engine_detail", pure=True, returns="d number")
    async def detail(row: Mapping[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(1)
        return {"d": 1}

    plan = loads(
        """PLAN follow { INPUT: links OUTPUT: out BODY {
            apply (links, "engine_page" : pages)
            select (pages, "next < 4" : more)
            follow (more : rest)
            project (pages, "next, 1 as k" : a) project (pages, "next, 2 as k" : b)
            project (pages, "next, 3 as k" : c)
            union (a, b, c : here) {ALL}
            apply (here, "engine_detail" : details)
            project (details, "next, k" : found)
            union (found, rest : out) {ALL}
        } }"""
    )

    async def main() -> int:
        async with Engine(workers=2) as engine:
            return len(await engine.run(plan, links=[{"next": 0}]))

    assert run(main()) == 12
    # A page waits at most for the details that are under way when its link becomes known.
    assert pages_started == [0, 1, 3, 5]


@pytest.mark.parametrize("mode", MODES)
def test_all_modes_give_the_same_rows(mode: Mode) -> None:
    plan = loads(
        """PLAN urls { INPUT: page OUTPUT: out BODY {
            select (page, "n < 20" : more) project (more, "n + 7 as n" : next)
            urls (next : rest) union (page, rest : out)
        } }"""
    )
    result = aioflow.run(plan, page=numbers(5), mode=mode)
    expected = {start + 7 * level for start in range(5) for level in range(4)}
    assert {row["n"] for row in result} == {n for n in expected if n - 7 < 20}


def test_modes_differ_in_time_as_the_paper_says() -> None:
    plan = loads(
        """PLAN p { INPUT: x OUTPUT: out BODY {
            apply (x, "engine_fetch" : a) project (a, "page as n" : b) apply (b, "engine_fetch" : out)
        } }"""
    )

    async def main(mode: Mode) -> tuple[float, float]:
        async with Engine(workers=3, mode=mode) as engine:
            statistics = (await engine.run(plan, x=numbers(6))).statistics
            return statistics.first_tuple_seconds or 0.0, statistics.last_tuple_seconds or 0.0

    assert run(main("D-")) == (12, 12)
    assert run(main("D+S-")) == (4, 4)
    assert run(main("D+S+")) == (3, 4)


@operator(schema=same_as_input, endless=True, name="engine_endless")
async def endless(rows: Stream) -> AsyncGenerator[Any, None]:
    """Pass on; claims never to end."""
    async for batch in rows.batches():
        yield batch


def test_a_plan_that_never_ends_is_refused_where_ends_are_awaited() -> None:
    plan = loads("PLAN p { INPUT: x OUTPUT: out BODY { engine_endless (x : out) } }")
    with pytest.raises(
        PlanError, match="engine_endless never ends: the plan cannot run in mode D-, only in D"
    ):
        aioflow.run(plan, x=[], mode="D-")
    assert len(aioflow.run(plan, x=numbers(2))) == 2


def test_a_failure_names_place_operator_and_tuple() -> None:
    @function(name="engine_fails", pure=True)
    def fails(row: Mapping[str, Any]) -> None:
        raise ValueError("no such house")

    plan = loads('PLAN p { INPUT: x OUTPUT: out\n BODY { apply (x, "engine_fails" : out) } }', name="p.plan")
    with pytest.raises(RunError) as caught:
        aioflow.run(plan, x=[{"n": 7, "city": "Irvine"}])
    assert (
        str(caught.value)
        == "p.plan:2:9: apply: ValueError: no such house\n    input tuple: n=7, city='Irvine'"
    )
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_failure_in_a_branch_that_nobody_reads_is_still_raised() -> None:
    @function(name="engine_fails_too", pure=True)
    def fails(row: Mapping[str, Any]) -> None:
        raise ValueError("unseen")

    plan = loads('PLAN p { INPUT: x OUTPUT: x BODY { apply (x, "engine_fails_too" : unread) } }')
    with pytest.raises(RunError, match="unseen"):
        aioflow.run(plan, x=numbers(1))


def test_a_timeout_ends_the_run() -> None:
    async def main() -> None:
        async with Engine() as engine:
            with pytest.raises(DeadlineError, match="longer than its timeout of 5 s"):
                await engine.run(loads(PASS), numbers=Script().row(n=1).hang(), timeout=5)
            assert_nothing_left(engine)

    run(main())


def test_cancelling_the_reader_releases_everything() -> None:
    async def main() -> None:
        async with Engine() as engine:
            reading = asyncio.create_task(engine.run(loads(PASS), numbers=Script().row(n=1).hang()))
            await asyncio.sleep(1)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            assert_nothing_left(engine)

    run(main())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "plan p needs the input 'numbers': pass numbers=[…] (an empty list for none)"),
        (
            {"numbers": [], "nubmers": []},
            "plan p has no input 'nubmers'; did you mean 'numbers'? (inputs: numbers)",
        ),
        ({"numbers": [{"n": 1}, 5]}, "input 'numbers', row 2: expected a mapping, found 5"),
        (
            {"numbers": iter([{"n": 1}, {"n": 2, "m": 3}])},
            "input 'numbers', row 2: unknown attribute 'm' (there are: n)",
        ),
        (
            {"numbers": [{"n": object}]},
            "input 'numbers', row 1: a value of type 'type' cannot be carried by a relation "
            "(char, number, boolean, date, relation, document or null)",
        ),
    ],
)
def test_bad_inputs_are_told_by_row_and_attribute(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        aioflow.run(loads(PASS), given)
    assert str(caught.value) == message


def test_declared_inputs_are_read_as_declared() -> None:
    plan = loads("PLAN p { INPUT: x (city char, beds number) OUTPUT: x BODY { } }")
    assert [dict(row) for row in aioflow.run(plan, x=[{"beds": "3"}])] == [{"city": None, "beds": 3}]
    with pytest.raises(InputError, match="row 1: attribute 'beds' must be number, not 'many'"):
        aioflow.run(plan, x=[{"beds": "many"}])


def test_a_source_that_fails_ends_the_run_with_its_name() -> None:
    async def main() -> None:
        async with Engine() as engine:
            with pytest.raises(InputError, match="input 'numbers': its source failed: OSError: gone"):
                await engine.run(loads(PASS), numbers=Script().row(n=1).fail(OSError("gone")))

    run(main())


def test_deep_recursion_ends_at_max_depth_by_name() -> None:
    plan = loads(
        """PLAN loop { INPUT: x OUTPUT: out MAX_DEPTH: 1000 BODY { project (x, "n" : y) loop (y : out) } }"""
    )
    with pytest.raises(DepthError, match="the recursion of loop went past MAX_DEPTH: 1000"):
        aioflow.run(plan, x=numbers(1))


def test_thousands_of_levels_of_both_kinds_of_recursion() -> None:
    tail = loads(
        """PLAN down { INPUT: x OUTPUT: out BODY {
            select (x, "n > 0" : more) project (more, "n - 1 as n" : next)
            down (next : rest) union (x, rest : out) {ALL}
        } }"""
    )
    assert len(aioflow.run(tail, x=[{"n": 3_000}])) == 3_001
    # The project behind the call makes it no tail call: every level stays until the deepest has ended.
    other = loads(
        """PLAN down { INPUT: x OUTPUT: out BODY {
            select (x, "n = 0" : bottom) select (x, "n > 0" : more)
            project (more, "n - 1 as n" : next) down (next : rest)
            project (rest, "n + 2 as n" : up) union (bottom, up : out) {ALL}
        } }"""
    )
    assert [row["n"] for row in aioflow.run(other, x=[{"n": 3_000}])] == [6_000]


def test_a_chain_of_two_thousand_statements_does_not_grow_the_stack() -> None:
    steps = "\n".join(f'project (v{number}, "n + 1 as n" : v{number + 1})' for number in range(2_000))
    plan = loads(f"PLAN p {{ INPUT: v0 OUTPUT: v2000 BODY {{ {steps} }} }}")
    assert [row["n"] for row in aioflow.run(plan, v0=numbers(3))] == [2000, 2001, 2002]


def test_events_tell_of_calls_steps_and_firings() -> None:
    plan = loads(
        """PLAN one { INPUT: x OUTPUT: out BODY { apply (x, "engine_fetch" : out) } }
        PLAN main { INPUT: x OUTPUT: out BODY { one (x : out) } }"""
    )
    seen: list[str] = []

    async def main() -> None:
        async with Engine() as engine:
            stop = engine.subscribe(lambda event: seen.append(type(event).__name__))
            await engine.run(plan, x=numbers(1))
            stop()
            await engine.run(plan, x=numbers(1))

    run(main())
    assert seen == [
        "RunStarted",
        "CallStarted",
        "StepStarted",
        "FiringStarted",
        "FiringEnded",
        "StepEnded",
        "CallEnded",
        "RunEnded",
    ]


CHAIN = loads(
    """PLAN p { INPUT: x OUTPUT: out BODY {
        select (x, "n > 1" : some) project (some, "n * 2 as n" : out)
    } }"""
)
COUNTDOWN = loads(
    """PLAN down { INPUT: x OUTPUT: out BODY {
        select (x, "n > 0" : more) project (more, "n - 1 as n" : next)
        down (next : rest) union (x, rest : out) {ALL}
    } }"""
)


@function(name="engine_fussy", pure=True, takes="n", returns="page number")
def fussy(n: int) -> int:
    if n == 2:
        raise ValueError("no 2")
    return n


def events_of(plan: Program, **inputs: Any) -> tuple[list[Event], RunStatistics]:
    """The events and the statistics of a run that is watched and timed."""
    seen: list[Event] = []

    async def main() -> RunStatistics:
        async with Engine(timing=True) as engine:
            engine.subscribe(seen.append)
            return (await engine.run(plan, **inputs)).statistics

    return seen, run(main())


@pytest.mark.parametrize("plan", [CHAIN, COUNTDOWN])
def test_watching_a_run_does_not_change_how_it_runs(plan: Program) -> None:
    seen, watched = events_of(plan, x=numbers(5))
    unwatched = aioflow.run(plan, x=numbers(5)).statistics
    assert seen
    assert (watched.steps, watched.calls) == (unwatched.steps, unwatched.calls)


def test_steps_without_a_task_tell_that_they_begin_and_end() -> None:
    seen, _ = events_of(CHAIN, x=numbers(4))
    steps = [
        (type(event).__name__, event.operator, getattr(event, "rows_in", None))
        for event in seen
        if isinstance(event, StepStarted | StepEnded)
    ]
    assert steps == [
        ("StepStarted", "select", None),
        ("StepStarted", "project", None),
        ("StepEnded", "select", 4),
        ("StepEnded", "project", 2),
    ]


def test_the_further_levels_of_a_tail_recursion_are_one_call_with_all_rows() -> None:
    seen, _ = events_of(COUNTDOWN, x=[{"n": 100}])
    (started,) = [event for event in seen if isinstance(event, CallStarted)]
    ended = [event for event in seen if isinstance(event, StepEnded) and event.iteration == started.iteration]
    assert [(event.operator, event.rows_in, event.rows_out) for event in ended] == [
        ("select", 100, 99),
        ("project", 99, 99),
    ]
    assert [event.iteration for event in seen if isinstance(event, CallEnded)] == [started.iteration]


def test_a_step_without_a_task_that_nobody_reads_any_more_does_not_end_dead() -> None:
    plan = loads('PLAN p { INPUT: x OUTPUT: out BODY { select (x, "n >= 0" : some) limit (some, 2 : out) } }')
    seen, _ = events_of(plan, x=numbers(5000))
    assert [event.dead for event in seen if isinstance(event, StepEnded)] == [False, False]


def test_a_tuple_that_fails_in_a_step_without_a_task_is_told() -> None:
    plan = loads('PLAN p { INPUT: x OUTPUT: out BODY { apply (x, "engine_fussy" : out) } }')
    seen: list[Event] = []

    async def main() -> None:
        async with Engine() as engine:
            engine.subscribe(seen.append)
            await engine.run(plan, x=numbers(3))

    with pytest.raises(OperatorError):
        run(main())
    (failed,) = [event for event in seen if isinstance(event, TupleFailed)]
    assert (failed.operator, failed.error) == ("apply", "no 2")


def test_statistics_count_rows_firings_and_waiting() -> None:
    plan = loads('PLAN p { INPUT: x OUTPUT: out BODY { apply (x, "engine_fetch" : out) {WORKERS: 1} } }')

    async def main() -> RunStatistics:
        async with Engine(timing=True) as engine:
            return (await engine.run(plan, x=numbers(3))).statistics

    statistics = run(main())
    (step,) = statistics.steps
    assert (step.operator, step.rows_in, step.rows_out, step.firings, step.state) == (
        "apply",
        3,
        3,
        3,
        "ended",
    )
    assert statistics.first_tuple_seconds == pytest.approx(1)
    assert statistics.last_tuple_seconds == pytest.approx(3)
    assert statistics.rows_out == 3


def test_statistics_can_be_asked_for_while_the_run_goes_on() -> None:
    async def main() -> None:
        async with Engine() as engine, engine.stream(loads(PASS), numbers=Script().row(n=1).hang()) as stream:
            assert (await anext(aiter(stream)))["n"] == 1
            (step,) = stream.statistics().steps
            assert (step.state, step.rows_in, step.rows_out) == ("running", 1, 1)

    run(main())


@operator(schema=same_as_input, name="engine_first_then_second")
async def first_then_second(first: Stream, second: Stream) -> AsyncGenerator[Any, None]:
    """Read one input to its end before the other: the naive way, which must not deadlock."""
    async for batch in first.batches():
        yield batch
    async for batch in second.batches():
        yield batch


def test_an_operator_that_reads_one_input_first_cannot_deadlock_a_plan() -> None:
    plan = loads(
        """PLAN p { INPUT: x OUTPUT: out BODY {
            distinct (x : a) distinct (x : b) engine_first_then_second (b, a : out)
        } }"""
    )
    result = aioflow.run(plan, x=numbers(5_000), capacity_rows=1, memory_bytes=10_000)
    assert len(result) == 10_000


def test_operators_yield_mappings_rows_batches_and_several_outputs() -> None:
    @operator(name="engine_split", outputs=("even", "odd"))
    async def split(rows: Stream, *, context: Context) -> AsyncGenerator[Any, None]:
        """Split by parity."""
        async for record in rows.records():
            yield aioflow.To("odd" if record["n"] % 2 else "even", dict(record))

    plan = loads("PLAN p { INPUT: x OUTPUT: even, odd BODY { engine_split (x : even, odd) } }")
    outputs = aioflow.run(plan, x=numbers(4)).outputs
    assert [row["n"] for row in outputs["even"]] == [0, 2]
    assert [row["n"] for row in outputs["odd"]] == [1, 3]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ((1, 2), "engine_odd yields a row of 2 values, but its schema has 1 attributes: n"),
        ([(1, 2)], "engine_odd yields a row of 2 values, but its schema has 1 attributes: n"),
        (5, "engine_odd yields 5: a row is a tuple, a mapping, or a list of these"),
        ({"m": 1}, "unknown attribute 'm'"),
    ],
)
def test_what_an_operator_must_not_yield_is_told(item: Any, message: str) -> None:
    @operator(name="engine_odd", schema=same_as_input)
    async def odd(rows: Stream) -> AsyncGenerator[Any, None]:
        """Yield something odd."""
        async for _ in rows:
            yield item

    plan = loads("PLAN p { INPUT: x OUTPUT: out BODY { engine_odd (x : out) } }")
    with pytest.raises(RunError, match=message):
        aioflow.run(plan, x=numbers(1))


def test_an_output_of_no_such_name_is_told() -> None:
    async def main() -> None:
        async with Engine() as engine:
            with pytest.raises(
                InputError, match="plan p has no output 'zzz' and emitted to none of that name"
            ):
                async for _ in engine.stream(loads(PASS), numbers=numbers(1), output="zzz"):
                    pass
            with pytest.raises(InputError, match="unknown mode 'S'"):
                await engine.run(loads(PASS), numbers=[], mode="S")  # type: ignore[arg-type]  # on purpose

    run(main())


def test_a_parameter_in_a_call_is_put_in_once() -> None:
    plan = loads(
        """PLAN inner { INPUT: a OUTPUT: out PARAM: what = "y" BODY {
            project (a, "n, '${what}' as w" : out)
        } }
        PLAN p { INPUT: a OUTPUT: out BODY { inner (a : out) {WHAT: "$${x}"} } }"""
    )
    assert [row["w"] for row in aioflow.run(plan, a=numbers(1))] == ["${x}"]


def test_an_operator_that_yields_tuples_must_tell_their_attributes() -> None:
    @operator(name="engine_silent")
    async def silent(rows: Stream) -> AsyncGenerator[Any, None]:
        """Yield without a schema."""
        async for row in rows:
            yield row

    plan = loads("PLAN p { INPUT: x OUTPUT: out BODY { engine_silent (x : out) } }")
    with pytest.raises(RunError, match="engine_silent yields tuples without saying their attributes"):
        aioflow.run(plan, x=numbers(1))


def test_a_tuple_that_failed_before_carries_only_its_latest_error() -> None:
    @function(name="engine_fails_again", pure=True)
    def fails(row: Mapping[str, Any]) -> None:
        raise KeyError("again")

    plan = loads(
        """PLAN p { INPUT: x OUTPUT: bad BODY {
            apply (x, "engine_fails_again" : ok) {ERRORS: bad} log (ok)
        } }"""
    )
    (row,) = aioflow.run(plan, x=[{"error": "before", "n": 1}])
    assert dict(row) == {"error": "'again'", "n": 1, "error-kind": "KeyError", "attempts": 1}


def test_a_writer_that_waits_for_a_call_goes_on_when_the_called_statement_must_wait() -> None:
    """Found by a random plan: the second statement holds its input until the first one is done."""
    plan = loads(
        """PLAN inner { INPUT: a, b OUTPUT: late BODY {
            apply (a, "engine_fetch" : pages) {DONE: done}
            project (b, "n" : late) {WAIT: done}
            log (pages)
        } }
        PLAN main { INPUT: x OUTPUT: out BODY {
            inner (first, x : out)
            project (x, "n" : first)
        } }"""
    )

    async def main() -> int:
        async with Engine(capacity_rows=2) as engine:
            return len(await engine.run(plan, x=numbers(600)))

    assert run(main()) == 600


@pytest.mark.parametrize("between", ['select (r, "n > 0" : s)', "distinct (r : s)"])
def test_limit_stops_an_endless_recursion_that_is_no_tail_call(between: str) -> None:
    plan = loads(
        f"""PLAN forever {{ INPUT: a OUTPUT: b BODY {{
            project (a, "n + 1 as n" : q) forever (q : r) {between} union (a, s : b) {{ALL}}
        }} }}
        PLAN top {{ INPUT: a OUTPUT: l BODY {{ forever (a : z) limit (z, 1 : l) }} }}"""
    )

    async def main() -> list[int]:
        async with Engine() as engine:
            result = await engine.run(plan, a=[{"n": 0}], timeout=60)
            assert_nothing_left(engine)
            return [row["n"] for row in result]

    assert run(main()) == [0]


@function(name="engine_gives_up", pure=True, returns="x number")
async def gives_up(row: Mapping[str, Any]) -> int:
    """Raise what a task raises that was cancelled."""
    raise asyncio.CancelledError


@function(name="engine_exits", pure=True, returns="x number")
async def exits(row: Mapping[str, Any]) -> int:
    """Try to end the process."""
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("engine_gives_up", "the call was cancelled from inside"),
        ("engine_exits", r"the function wants to exit: SystemExit\(3\)"),
    ],
)
def test_a_function_that_gives_up_or_exits_has_failed(name: str, message: str) -> None:
    plan = loads(f'PLAN p {{ INPUT: x OUTPUT: out BODY {{ apply (x, "{name}" : out) }} }}')

    async def main() -> None:
        async with Engine() as engine:
            with pytest.raises(RunError, match=message):
                await engine.run(plan, x=numbers(1))
            assert_nothing_left(engine)

    run(main())


def test_a_stream_whose_engine_was_closed_does_not_look_whole() -> None:
    async def main() -> None:
        async with Engine() as engine:
            stream = engine.stream(loads(PASS), numbers=Script().row(n=1).hang())
            await anext(aiter(stream))
        with pytest.raises(RunError, match="the engine was closed before the run had ended"):
            await anext(stream)

    run(main())


def test_two_readers_of_one_stream_are_refused() -> None:
    async def main() -> None:
        async with Engine() as engine, engine.stream(loads(PASS), numbers=Script().hang()) as stream:
            first = asyncio.create_task(anext(stream))
            await asyncio.sleep(1)
            with pytest.raises(InputError, match="this stream already has a reader"):
                await anext(stream)
            first.cancel()

    run(main())


def test_an_attribute_that_a_function_lacks_at_run_time_ends_the_run_in_spite_of_errors() -> None:
    function(name="engine_takes_m", takes="m", returns="x number")(lambda m: m)
    plan = loads('PLAN p { INPUT: x OUTPUT: out, e BODY { apply (x, "engine_takes_m" : out) {ERRORS: e} } }')
    with pytest.raises(RunError, match="unknown attribute 'm'"):
        aioflow.run(plan, x=numbers(2))


ENDLESS = "PLAN p {{ INPUT: x OUTPUT: out BODY {{ {} limit (a, 2 : out) log (late) }} }}"


@pytest.mark.parametrize(
    "statements",
    [
        'apply (x, "engine_fetch" : a) select (x, "n = 0" : late) {WAIT: a}',
        'apply (x, "engine_fetch" : a) {ENABLE: e} select (x, "n = 0" : late) {WAIT: e}',
    ],
)
def test_who_waited_for_a_first_tuple_does_not_keep_its_writer_at_work(statements: str) -> None:
    async def main() -> int:
        async with Engine(workers=1) as engine:
            rows = await engine.run(loads(ENDLESS.format(statements)), x=numbers(1000))
            return len(rows)

    assert run(main()) == 2
    assert len(Fetches.started) <= 4


def test_a_failed_run_leaves_no_file_that_looks_whole(tmp_path: Path) -> None:
    @function(name="engine_fails_late", pure=True, returns="x number")
    def fails_late(row: Mapping[str, Any]) -> int:
        if row["n"] == 500:
            raise ValueError("late")
        return int(row["n"])

    plan = loads(
        """PLAN p { INPUT: x OUTPUT: y BODY {
            apply (x, "engine_fails_late" : y) write (y, "out.jsonl")
        } }""",
        folder=tmp_path,
    )

    async def main() -> None:
        async with Engine(capacity_rows=1) as engine:
            async for _ in engine.stream(plan, x=numbers(1000)):
                await asyncio.sleep(1)  # slower than the plan: the failure overtakes the rows

    with pytest.raises(RunError, match="late"):
        run(main())
    assert list(tmp_path.iterdir()) == []


def test_a_failure_is_raised_although_only_a_wait_looks_at_the_statement() -> None:
    @function(name="engine_fails_second", pure=True, returns="x number")
    async def fails_second(row: Mapping[str, Any]) -> int:
        await asyncio.sleep(1)
        if row["n"] == 1:
            raise ValueError("second")
        return 0

    plan = loads(
        """PLAN p { INPUT: x OUTPUT: out BODY {
            apply (x, "engine_fails_second" : watched) project (x, "n" : out) {WAIT: watched}
        } }"""
    )

    async def main() -> None:
        async with Engine(workers=1) as engine:
            await engine.run(plan, x=numbers(2))

    with pytest.raises(RunError, match="second"):
        run(main())
