"""The public testing tools: virtual time, seeded order, scripted sources, running things, leaks."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextvars import ContextVar, copy_context
from typing import Any
from weakref import ref

import aiosqlite
import pytest
from anyio import to_thread

import aioflow
from aioflow import AioflowError, Context, Row, Stream, To, same_as_input
from aioflow.authoring.operator import Registry, describe, load_operators
from aioflow.engine import Engine
from aioflow.relation import Relation, Schema
from aioflow.testing import (
    Answer,
    DeadlockError,
    Script,
    ScriptedSite,
    VirtualLoop,
    assert_nothing_left,
    rows,
    run,
    run_operator,
    run_plan,
)
from aioflow.web import Client, ConnectionFailedError, Request, Response

# --- the loop -----------------------------------------------------------------------------------


def test_time_jumps_to_the_next_timer() -> None:
    async def sleeps() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    began = time.monotonic()
    assert run(sleeps()) == 3600.0
    assert time.monotonic() - began < 1800


def test_timers_fire_in_the_order_of_their_times() -> None:
    seen: list[float] = []

    async def sleep_until(moment: float) -> None:
        await asyncio.sleep(moment)
        seen.append(asyncio.get_running_loop().time())

    async def main() -> None:
        await asyncio.gather(*(sleep_until(moment) for moment in (3.0, 1.0, 2.0, 1.0)))

    run(main())
    assert seen == [1.0, 1.0, 2.0, 3.0]


def test_a_cancelled_timer_does_not_move_the_clock() -> None:
    async def main() -> float:
        async with asyncio.timeout(1000):
            await asyncio.sleep(1)
        return asyncio.get_running_loop().time()

    assert run(main()) == 1.0


def test_cancelled_timers_are_forgotten_before_their_time() -> None:
    class Content:
        pass

    variable = ContextVar[Content]("content")
    kept: list[ref[Content]] = []

    def set_timer() -> None:
        content = Content()
        variable.set(content)
        kept.append(ref(content))
        asyncio.get_running_loop().call_later(1e6, print).cancel()

    async def main() -> int:
        asyncio.get_running_loop().call_later(1e5, print)  # stands before them
        for _ in range(1000):
            copy_context().run(set_timer)
            await asyncio.sleep(1)
        return sum(each() is not None for each in kept)

    assert run(main()) < 300


def test_a_timeout_fires_in_virtual_time() -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await asyncio.sleep(61)

    with pytest.raises(TimeoutError):
        run(main())


async def _mingled() -> list[tuple[int, int]]:
    seen: list[tuple[int, int]] = []

    async def work(number: int) -> None:
        for step in range(4):
            seen.append((number, step))
            await asyncio.sleep(0)

    await asyncio.gather(*(work(number) for number in range(4)))
    return seen


def test_without_a_seed_tasks_run_in_the_order_of_asyncio() -> None:
    assert run(_mingled()) == asyncio.run(_mingled())


def test_a_seed_gives_the_same_order_again() -> None:
    assert run(_mingled(), seed=7) == run(_mingled(), seed=7)


def test_seeds_give_different_orders() -> None:
    assert len({tuple(run(_mingled(), seed=seed)) for seed in range(50)}) > 40


def test_a_seed_gives_the_same_order_in_another_process() -> None:
    program = (
        "from tests.test_testing import _mingled\n"
        "from aioflow.testing import run\n"
        "print([run(_mingled(), seed=seed) for seed in range(20)])"
    )
    outputs = set()
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(done.stdout)
    assert outputs == {f"{[run(_mingled(), seed=seed) for seed in range(20)]}\n"}


def test_callbacks_that_are_no_tasks_keep_their_order() -> None:
    async def main() -> list[int]:
        seen: list[int] = []
        for number in range(20):
            asyncio.get_running_loop().call_soon(seen.append, number)
        await asyncio.sleep(1)
        return seen

    assert all(run(main(), seed=seed) == list(range(20)) for seed in range(20))


def test_answers_of_threads_come_while_the_next_step_is_chosen() -> None:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        answers = 0

        def answer() -> None:
            nonlocal answers
            answers += 1

        def flood() -> None:
            for _ in range(3000):
                loop.call_soon_threadsafe(answer)

        # The search for an answer among many tasks takes so long that others come meanwhile.
        spinning = [asyncio.create_task(spin()) for _ in range(300)]
        await asyncio.gather(to_thread.run_sync(flood), *spinning)
        return answers

    async def spin() -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        assert run(main(), seed=1) == 3000
    finally:
        sys.setswitchinterval(interval)


def test_a_deadlock_is_found_and_names_who_waits() -> None:
    async def waits_for_nothing() -> None:
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError, match=r"(?s)nothing can happen any more, waiting:.*Event\.wait"):
        run(waits_for_nothing())


def test_after_a_deadlock_the_tasks_are_ended() -> None:
    ended: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waits")

    async def main() -> None:
        await asyncio.gather(waits(), waits())

    with pytest.raises(DeadlockError):
        run(main())
    assert ended == ["waits", "waits"]


def test_a_task_that_only_waits_for_a_timer_is_no_deadlock() -> None:
    async def main() -> str:
        event = asyncio.Event()
        asyncio.get_running_loop().call_later(5, event.set)
        await event.wait()
        return "woken"

    assert run(main()) == "woken"


def _answer_slowly() -> str:
    # The real clock moves: that is what the virtual one must not notice.
    threading.Event().wait(0.02)
    return "answer"


async def _in_aiosqlite(function: Callable[[], str]) -> str:
    async with aiosqlite.connect(":memory:") as database:
        await database.create_function("answer", 0, function)
        async with database.execute("SELECT answer()") as cursor:
            # An async generator hides from its task what it awaits.
            [text] = [str(text) async for (text,) in cursor]
            return text


@pytest.mark.parametrize(
    "in_thread",
    [asyncio.to_thread, to_thread.run_sync, _in_aiosqlite],
    ids=["asyncio", "anyio", "aiosqlite"],
)
def test_time_stands_still_while_a_thread_works(in_thread: Any) -> None:
    async def main() -> tuple[str, float]:
        async with asyncio.timeout(10):
            answer = await in_thread(_answer_slowly)
        return answer, asyncio.get_running_loop().time()

    assert run(main()) == ("answer", 0.0)


def test_steps_are_counted_and_told_before_they_run() -> None:
    told: list[int] = []
    trace: list[str] = []
    run(_mingled(), before_step=told.append, trace=trace)
    assert told == list(range(len(told)))
    assert len(trace) >= len(told)
    assert "_mingled" in trace[0]


def test_the_loop_can_be_used_by_itself() -> None:
    loop = VirtualLoop(seed=1)
    try:
        assert loop.run_until_complete(asyncio.wait_for(_mingled(), 5))
    finally:
        loop.close()


# --- sources ------------------------------------------------------------------------------------


def test_rows_make_a_relation() -> None:
    assert rows((1, "x"), (2, "y")) == Relation(Schema(("a", "b")), [(1, "x"), (2, "y")])
    assert rows((1,), schema="price").schema.names == ("price",)
    assert rows(schema="city, price").schema.names == ("city", "price")
    assert len(rows()) == 0


async def _arrivals(script: Script) -> list[tuple[float, Any]]:
    loop = asyncio.get_running_loop()
    return [(loop.time(), dict(row)) async for row in script]


def test_a_script_gives_rows_at_their_times() -> None:
    script = Script({"n": 0}).row(n=1).wait(2.5).row({"house-url": "x"}).at(10, n=3).at(4, n=4)
    assert run(_arrivals(script)) == [
        (0.0, {"n": 0}),
        (0.0, {"n": 1}),
        (2.5, {"house-url": "x"}),
        (10.0, {"n": 3}),
        (10.0, {"n": 4}),
    ]
    assert script.given == 5
    assert script.closed


def test_a_script_fails() -> None:
    script = Script().rows({"n": 1}, {"n": 2}).fail(OSError("gone"))
    with pytest.raises(OSError, match="gone"):
        run(_arrivals(script))
    assert script.given == 2
    assert script.closed


def test_a_script_that_hangs_is_closed_with_its_reader() -> None:
    script = Script().row(n=1).hang()

    async def main() -> None:
        async with asyncio.timeout(5):
            await _arrivals(script)

    with pytest.raises(TimeoutError):
        run(main())


# --- one operator -------------------------------------------------------------------------------
# `describe` instead of the decorator: these must not appear among the operators of other tests.


async def _keep_even(numbers: Stream, *, every: int = 2) -> AsyncGenerator[Row, None]:
    """Keep the numbers that `every` divides."""
    async for row in numbers:
        if row[0] % every == 0:
            yield row


_keep_even.operator = describe(_keep_even, schema=same_as_input)  # type: ignore[attr-defined]


async def _split(numbers: Stream, *, where: Any) -> AsyncGenerator[To, None]:
    """Two outputs, by a Python function."""
    async for row in numbers:
        yield To("yes" if where(row) else "no", row)


_split.operator = describe(_split, outputs=("yes", "no"), schema=same_as_input)  # type: ignore[attr-defined]


async def test_an_operator_runs_on_rows() -> None:
    assert await run_operator(_keep_even, rows((1,), (2,), (4,))) == [(2,), (4,)]


async def test_an_operator_gets_its_settings() -> None:
    assert await run_operator(_keep_even, rows((3,), (4,)), every=3) == [(3,)]


async def test_a_setting_may_be_a_value_that_no_plan_can_write() -> None:
    assert await run_operator(_split, rows((1,), (2,)), where=lambda row: row[0] > 1) == {
        "yes": [(2,)],
        "no": [(1,)],
    }


async def test_an_operator_runs_on_an_empty_input() -> None:
    assert await run_operator(_keep_even, rows()) == []


def test_an_operator_runs_on_a_script_in_virtual_time() -> None:
    script = Script().row(n=2).wait(100).row(n=3).wait(100).row(n=4)
    assert run(run_operator(_keep_even, script), seed=3) == [(2,), (4,)]


def test_an_operators_failure_is_raised() -> None:
    with pytest.raises(AioflowError, match="gone"):
        run(run_operator(_keep_even, Script().row(n=2).fail(OSError("gone"))))


# --- plans --------------------------------------------------------------------------------------

PLAN = """
PLAN small
{
  INPUT: numbers (n number)
  OUTPUT: few, many
  PARAM: most = 2
  BODY
  {
    select (numbers, "n <= ${most}" : few)
    select (numbers, "n > ${most}" : many)
  }
}
"""


def test_a_plan_runs_from_its_text() -> None:
    result = run_plan(PLAN, seed=1, capacity_rows=1, numbers=rows((1,), (2,), (3,), schema="n"))
    assert [dict(record) for record in result.outputs["many"]] == [{"n": 3}]


def test_a_plan_takes_parameters_and_mappings() -> None:
    result = run_plan(PLAN, parameters={"most": 1}, numbers=[{"n": 1}, {"n": 2}])
    assert {name: len(records) for name, records in result.outputs.items()} == {"few": 1, "many": 1}


# --- sites --------------------------------------------------------------------------------------

SITE = "http://homes.example/"
PAGES = """
WRAPPER page (name)
{
  GET: "http://homes.example/{name}"
  EMPTY: 410
  title: "b"
  where: response url
}

PLAN pages { INPUT: names (name) OUTPUT: out, failed BODY {
  wrapper ("page", names : out) {ERRORS: failed}
} }
"""


def _visit(site: Any, *names: str, **keywords: Any) -> tuple[list[Any], list[Any]]:
    """The titles that were found, and the kinds of errors with what was tried."""
    result = run_plan(PAGES, network=site, names=[{"name": name} for name in names], **keywords)
    failed = [(row["error-kind"], row["attempts"]) for row in result.outputs["failed"]]
    return sorted(row["title"] for row in result.outputs["out"]), failed


def test_a_site_answers_by_url_and_keeps_what_was_asked() -> None:
    site = ScriptedSite({SITE + "a": "<b>One</b>", SITE + "b": "<b>Zwölf</b>".encode(), SITE + "c": 410})
    assert _visit(site, "a", "b", "c") == (["One", "Zwölf"], [])
    assert sorted(site.urls) == [SITE + "a", SITE + "b", SITE + "c"]
    assert {request.method for request in site.requests} == {"GET"}


def test_what_a_site_does_not_know_is_404() -> None:
    assert _visit(ScriptedSite({}), "a") == ([], [("HttpStatusError", 1)])


def test_answers_in_a_list_come_one_after_the_other_and_the_real_client_tries_again() -> None:
    site = ScriptedSite({SITE + "a": [503, ConnectionFailedError("reset"), "<b>One</b>"]})
    assert _visit(site, "a") == (["One"], [])
    assert _visit(site, "a") == (["One"], [])
    assert site.urls == [SITE + "a"] * 4


def test_an_exception_is_raised_as_often_as_it_is_asked_for() -> None:
    site = ScriptedSite({SITE + "a": ConnectionFailedError("reset")})
    assert _visit(site, "a", configuration={"http": {"retries": 2}}) == (
        [],
        [("ConnectionFailedError", 3)],
    )


def test_an_answer_says_status_headers_and_how_long_it_takes() -> None:
    site = ScriptedSite(
        {
            SITE + "a": Answer(status=302, headers={"Location": "/b"}, seconds=60),
            SITE + "b": Answer("<b>Two</b>", seconds=0),
        },
        seconds=5,
    )
    assert _visit(site, "a") == (["Two"], [])
    assert site.times == [0.0, 60.0]


def test_a_function_answers_for_one_url_or_for_all() -> None:
    def shout(request: Request) -> str:
        return f"<b>{request.url.rpartition('/')[2].upper()}</b>"

    async def later(request: Request) -> str:
        await asyncio.sleep(7)
        return shout(request)

    assert _visit(ScriptedSite(shout), "a", "b") == (["A", "B"], [])
    assert _visit(ScriptedSite({SITE + "a": later}), "a", "b") == (["A"], [("HttpStatusError", 1)])


def test_a_response_can_be_given_again_and_again() -> None:
    given = Response("", 200, {"content-type": "text/html"}, b"<b>One</b>")
    site = ScriptedSite({SITE + "a": given, SITE + "b": Answer(status=301, headers=[("Location", "a")])})
    assert _visit(site, "a") == (["One"], [])
    assert _visit(site, "b") == (["One"], [])
    assert (given.url, given.hops) == ("", ())


def test_requests_to_a_site_wait_for_their_turn_as_everywhere() -> None:
    site = ScriptedSite(lambda request: "<b>x</b>", seconds=1)
    _visit(site, *"abcdef", configuration={"http": {"concurrency": 3}})
    assert site.most_at_once == 3
    assert site.times == [0, 0, 0, 1, 1, 1]


def test_robots_are_asked_about_only_if_wanted() -> None:
    answers = {SITE + "robots.txt": "User-agent: *\nDisallow: /", SITE + "a": "<b>One</b>"}
    assert _visit(ScriptedSite(answers), "a") == (["One"], [])
    polite = ScriptedSite(answers)
    assert _visit(polite, "a", configuration={"http": {"robots": True}})[1] == [("RobotsRefusedError", 0)]
    assert polite.urls == [SITE + "robots.txt"]


def test_an_engine_takes_the_client_over_a_site() -> None:
    site = ScriptedSite({SITE + "a": Answer("<b>One</b>", headers={"Set-Cookie": "c=1"})})

    async def main() -> list[Any]:
        async with site.client() as client, Engine(services={Client: client}) as engine:
            program = aioflow.loads(PAGES)
            result = await engine.run(program, names=[{"name": "a"}])
            return [row["title"] for row in result.outputs["out"]]

    assert run(main()) == ["One"]


def test_what_is_no_answer_is_told() -> None:
    with pytest.raises(ValueError, match="empty list"):
        ScriptedSite({SITE: []})
    assert _visit(ScriptedSite({SITE + "a": {"b": 1}}), "a") == ([], [("TypeError", 1)])


# --- leaks --------------------------------------------------------------------------------------


def test_a_task_that_is_left_is_found() -> None:
    async def main() -> None:
        task = asyncio.create_task(asyncio.sleep(60), name="forgotten")
        assert_nothing_left()
        await task

    with pytest.raises(AssertionError, match="left behind: task forgotten"):
        run(main())


def test_a_permit_that_is_held_is_found() -> None:
    async def main() -> None:
        async with Engine() as engine:
            await engine.budget.common.acquire()
            assert_nothing_left(engine)

    with pytest.raises(AssertionError, match="left behind: 1 permits"):
        run(main())


def test_a_generator_that_nobody_closed_is_found() -> None:
    async def numbers() -> AsyncGenerator[int, None]:
        yield 1
        yield 2

    async def main() -> None:
        async for _ in numbers():
            break
        assert_nothing_left()

    with pytest.raises(AssertionError, match=r"unclosed generator .*numbers"):
        run(main())


def test_an_exception_that_nobody_took_is_found() -> None:
    async def fails() -> None:
        raise ValueError("unseen")

    async def main() -> None:
        task = asyncio.create_task(fails())
        await asyncio.sleep(1)
        del task
        assert_nothing_left()

    with pytest.raises(AssertionError, match=r"never retrieved.*unseen"):
        run(main())


def test_nothing_is_left_after_an_ordinary_run() -> None:
    async def main() -> None:
        async with Engine(registry=Registry([*load_operators()])) as engine:
            async with engine.stream(_one_output(), numbers=Script().row(n=1).hang()) as stream:
                async for record in stream:
                    assert record["n"] == 1
                    break
            assert_nothing_left(engine)

    run(main(), seed=5)


def _one_output() -> Any:
    return aioflow.loads(PLAN.replace("few, many", "few"))


def test_an_operator_that_forgets_a_permit_is_found() -> None:
    async def forgets(numbers: Stream, *, context: Context) -> AsyncGenerator[Row, None]:
        await context.permit().__aenter__()
        async for row in numbers:
            yield row

    forgets.operator = describe(forgets, schema=same_as_input)  # type: ignore[attr-defined]
    with pytest.raises(AssertionError, match="left behind"):
        run(run_operator(forgets, rows((1,))))
