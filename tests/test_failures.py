"""Errors as data: which inputs fail, what leaves in spite of a failure, and which signals are sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any

import pytest

from aioflow import (
    Context,
    Engine,
    PlanError,
    Result,
    Row,
    RunError,
    Stream,
    function,
    loads,
    map_concurrently,
    operator,
)
from aioflow.authoring.context import Release
from aioflow.authoring.operator import Settings, same_as_input
from aioflow.errors import OperatorError
from aioflow.relation import Batch, Schema
from aioflow.runtime.session import MODES, Mode
from aioflow.testing import run, run_plan

_PIECE = 2000  # more than functions give at once, and than is kept in memory before it goes to disk


def numbers(count: int) -> list[dict[str, Any]]:
    return [{"n": number} for number in range(count)]


def body(statements: str, outputs: str = "out, bad") -> str:
    return f"PLAN p {{ INPUT: x (n number) OUTPUT: {outputs} BODY {{ {statements} }} }}"


def called(statement: str) -> str:
    """The statement in a plan of its own, whose call takes what fails."""
    return (
        f"PLAN inner {{ INPUT: x (n number) OUTPUT: out BODY {{ {statement} }} }}"
        " PLAN p { INPUT: x (n number) OUTPUT: out, bad BODY { inner (x : out) {ERRORS: bad} } }"
    )


def values(result: Result, output: str = "out", name: str = "n") -> list[Any]:
    return [record[name] for record in result.outputs[output]]


# --- operators that fail ----------------------------------------------------------------------------


def _halves(settings: Settings) -> Any:
    def halve(batch: Sequence[Row]) -> Batch:
        if any(row[0] % 10 == 3 for row in batch):
            raise ValueError("ends in 3")
        return [(row[0] // 2,) for row in batch if row[0] % 2 == 0]

    return halve


@operator(name="f_halves", schema=same_as_input, batchwise=_halves)
async def halves(rel: Stream) -> AsyncGenerator[Batch, None]:
    """Halve even numbers and drop the others; fail for those that end in 3."""
    halve = _halves({})
    async for batch in rel.batches():
        yield halve(batch)


@operator(name="f_until", schema=same_as_input)
async def until(rel: Stream, *, last: int) -> AsyncGenerator[Row, None]:
    """Pass on tuples, and fail at one of them."""
    async for row in rel:
        if row[0] == last:
            raise ValueError(f"{last} is too much")
        yield row


@operator(name="f_source", firing="tuple", schema=lambda inputs, settings: None)
async def source(*, fails: bool, context: Context) -> AsyncGenerator[Mapping[str, Any], None]:
    """Give two tuples, and fail or not: one firing."""
    yield {"n": 1}
    yield {"n": 2}
    if fails:
        context.fail((), ValueError("no more"))
    else:
        context.fired()


@operator(name="f_run_error", firing="tuple", schema=same_as_input)
async def run_error(rel: Stream, *, context: Context) -> AsyncGenerator[Row, None]:
    """Report something that nothing may take."""
    async for row in rel:
        context.fail(row, RunError("the disk is full"))
        yield row


@function(name="f_stream", returns="m number", pure=True)
async def stream(row: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
    """Give many results a second apart, and fail at the end for odd numbers."""
    for number in range(_PIECE):
        await asyncio.sleep(1)
        yield {"m": number}
    if row["n"] % 2:
        raise ValueError("odd")


@function(name="f_pieces", returns="m number", pure=True)
def pieces(row: Mapping[str, Any]) -> Iterator[int]:
    """Give many results, and fail at the end for odd numbers."""
    yield from range(_PIECE)
    if row["n"] % 2:
        raise ValueError("odd")


# --- tuple by tuple ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_of_a_batch_only_the_tuples_that_fail_are_taken(mode: Mode) -> None:
    result = run_plan(body("f_halves (x : out) {ERRORS: bad}"), mode=mode, x=numbers(1000))
    assert values(result) == list(range(500))
    assert values(result, "bad") == list(range(3, 1000, 10))
    assert dict(result.outputs["bad"][0]) == {
        "n": 3,
        "error": "ends in 3",
        "error-kind": "ValueError",
        "attempts": 1,
    }


@pytest.mark.parametrize(
    "statement",
    [
        'select (x, "n >= 0" : out)',
        'project (x, "n" : out)',
        'format (x, "{n}" : out)',
        "f_halves (x : out)",
    ],
)
def test_what_works_tuple_by_tuple_keeps_nothing_for_its_errors(statement: str) -> None:
    own = run_plan(body(f"{statement} {{ERRORS: bad}}"), x=numbers(5000), memory_bytes=1)
    outer = run_plan(called(statement), x=numbers(5000), memory_bytes=1)
    assert own.statistics.spilled_rows == outer.statistics.spilled_rows == 0


def test_a_call_takes_the_tuples_that_fail_inside_it() -> None:
    result = run_plan(called("f_halves (x : out)"), x=numbers(20))
    assert values(result) == list(range(10))
    assert [[row[0] for row in packed.rows] for packed in values(result, "bad", "tuple")] == [[3], [13]]


def test_failed_tuples_can_be_skipped() -> None:
    result = run_plan(body("f_halves (x : out) {ERRORS: skip}", "out"), x=numbers(20))
    assert values(result) == list(range(10))
    assert "2 failures were skipped, the first: ValueError: ends in 3" in result.statistics.warnings[0]


@pytest.mark.parametrize("mode", MODES)
def test_a_failure_in_a_batch_names_the_tuple(mode: Mode) -> None:
    with pytest.raises(OperatorError, match=r"(?s)f_halves: ValueError: ends in 3.*input tuple: n=13"):
        run_plan(body("f_halves (x : out)", "out"), mode=mode, x=[{"n": 2}, {"n": 13}, {"n": 4}])


def test_a_loop_names_the_tuple_that_failed() -> None:
    plan = """PLAN down { INPUT: a OUTPUT: out BODY {
            f_halves (a : half) select (half, "n > 0" : next)
            down (next : rest) union (next, rest : out) {ALL}
        } }"""
    with pytest.raises(OperatorError, match=r"(?s)f_halves: ValueError: ends in 3.*input tuple: n=13"):
        run_plan(plan, a=[{"n": 2}, {"n": 104}])


def test_a_bad_value_fails_to_unpack_by_itself() -> None:
    rows = [{"n": 1, "r": '[{"a": 1}, {"a": 2}]'}, {"n": 2, "r": "nothing"}, {"n": 3, "r": '[{"a": 3}]'}]
    plan = 'PLAN p { INPUT: x OUTPUT: out, bad BODY { unpack (x, "r" : out) {ERRORS: bad; ENABLE: e} } }'
    result = run_plan(plan, x=[*rows, {"n": 4, "r": '[{"a": 4, "b": 4}]'}])
    assert [record.row for record in result.outputs["out"]] == [(1, 1), (1, 2), (3, 3)]
    assert values(result, "bad") == [2, 4]
    assert values(result, "bad", "r") == ["nothing", '[{"a": 4, "b": 4}]']
    with pytest.raises(OperatorError, match=r"(?s)holds no relation, but 'nothing'.*input tuple: n=2"):
        run_plan('PLAN p { INPUT: x OUTPUT: out BODY { unpack (x, "r" : out) } }', x=rows)


def test_a_failure_that_ends_runs_is_taken_by_nothing() -> None:
    for text in (body("f_run_error (x : out) {ERRORS: bad}"), called("f_run_error (x : out)")):
        with pytest.raises(RunError, match="the disk is full"):
            run_plan(text, x=numbers(1))


# --- whole relations --------------------------------------------------------------------------------


@pytest.mark.parametrize("memory_bytes", [1, 1 << 20])
def test_a_statement_on_a_relation_that_fails_gives_no_results(memory_bytes: int) -> None:
    statement = "f_until (x, last=4000 : out)"
    own = run_plan(body(f"{statement} {{ERRORS: bad}}"), x=numbers(5000), memory_bytes=memory_bytes)
    assert values(own) == []
    (packed,) = values(own, "bad", "relation")
    assert [row[0] for row in packed.rows] == list(range(5000))
    outer = run_plan(called(statement), x=numbers(5000), memory_bytes=memory_bytes)
    assert values(outer) == []
    assert len(values(outer, "bad", "tuple")[0]) == 5000
    skipped = run_plan(
        body(f"{statement} {{ERRORS: skip}}", "out"), x=numbers(5000), memory_bytes=memory_bytes
    )
    assert values(skipped) == []


@pytest.mark.parametrize("mode", MODES)
def test_a_statement_on_a_relation_that_does_not_fail_gives_all_in_order(mode: Mode) -> None:
    text = body("f_until (x, last=9999 : out) {ERRORS: bad}")
    result = run_plan(text, x=numbers(5000), memory_bytes=1, mode=mode)
    assert values(result) == list(range(5000))
    assert values(result, "bad") == []


def test_without_errors_around_it_a_statement_streams() -> None:
    async def rows() -> AsyncGenerator[dict[str, Any], None]:
        for number in range(3):
            await asyncio.sleep(1)
            yield {"n": number}

    async def main() -> list[float]:
        async with Engine() as engine:
            clock = asyncio.get_running_loop().time
            plan = loads(body("f_until (x, last=99 : out)", "out"))
            return [clock() async for _ in engine.stream(plan, x=rows())]

    assert run(main()) == [1, 2, 3]


@pytest.mark.parametrize("fails", ["true", "false"])
def test_the_only_firing_of_a_statement_without_input_gives_all_or_nothing(fails: str) -> None:
    statements = f"f_source (fails={fails} : out) {{ERRORS: bad}}"
    result = run_plan(f"PLAN p {{ OUTPUT: out, bad BODY {{ {statements} }} }}")
    assert values(result) == ([] if fails == "true" else [1, 2])
    assert values(result, "bad", "error") == (["no more"] if fails == "true" else [])


# --- signals ----------------------------------------------------------------------------------------

SIGNALS = """PLAN p {{ INPUT: x (n number) OUTPUT: bad, done, enabled BODY {{
    {} {{ERRORS: bad; DONE: d; ENABLE: e}}
    select (x, "n = 0" : done) {{WAIT: d}}
    select (x, "n = 0" : enabled) {{WAIT: e}}
    log (out)
}} }}"""


@pytest.mark.parametrize(
    ("statement", "is_enabled"),
    [
        ("f_until (x, last=1 : out)", False),
        ("f_until (x, last=9 : out)", True),
        ("f_halves (x : out)", True),
        ('apply (x, "f_pieces" : out)', True),
    ],
)
def test_a_statement_whose_failures_were_taken_has_ended_well(statement: str, is_enabled: bool) -> None:
    result = run_plan(SIGNALS.format(statement), x=numbers(4))
    assert values(result, "done") == [0]
    assert values(result, "enabled") == ([0] if is_enabled else [])


def test_only_failed_firings_enable_nothing() -> None:
    text = SIGNALS.format("f_halves (y : out)").replace("BODY {", 'BODY { select (x, "n = 3" : y)')
    result = run_plan(text, x=numbers(4))
    assert values(result, "bad") == [3]
    assert (values(result, "done"), values(result, "enabled")) == ([0], [])


def test_a_call_whose_failures_were_taken_has_ended_well() -> None:
    inner = "PLAN inner { INPUT: x (n number) OUTPUT: out BODY { f_until (x, last=1 : out) } }"
    result = run_plan(f"{inner} {SIGNALS.format('inner (x : out)')}", x=numbers(4))
    assert values(result, "done") == [0]
    assert values(result, "enabled") == []


# --- firings with many results ----------------------------------------------------------------------


@pytest.mark.parametrize("memory_bytes", [1, 1 << 20])
@pytest.mark.parametrize("function_name", ["f_stream", "f_pieces"])
@pytest.mark.parametrize("words", ["", "; ORDERED"])
def test_a_firing_gives_all_its_results_or_none(memory_bytes: int, function_name: str, words: str) -> None:
    text = body(f'apply (x, "{function_name}" : out) {{ERRORS: bad{words}}}')
    result = run_plan(text, x=numbers(4), memory_bytes=memory_bytes)
    found = list(zip(values(result), values(result, name="m"), strict=True))
    assert sorted(found) == [(n, m) for n in (0, 2) for m in range(_PIECE)]
    assert sorted(values(result, "bad")) == [1, 3]
    if words:
        assert found == sorted(found)
    if memory_bytes == 1 and function_name == "f_stream":
        assert result.statistics.spilled_rows > 0


@pytest.mark.parametrize("function_name", ["f_stream", "f_pieces"])
def test_a_firing_inside_a_call_with_errors_gives_all_its_results_or_none(function_name: str) -> None:
    result = run_plan(called(f'apply (x, "{function_name}" : out)'), x=numbers(4))
    assert set(values(result)) == {0, 2}
    assert len(values(result)) == 2 * _PIECE


def test_without_errors_results_of_a_generator_leave_as_they_come() -> None:
    async def main() -> list[float]:
        async with Engine() as engine:
            clock = asyncio.get_running_loop().time
            plan = loads(body('apply (x, "f_stream" : out)', "out"))
            return [clock() async for _ in engine.stream(plan, x=numbers(1))]

    assert run(main()) == list(range(1, _PIECE + 1))


@function(name="f_gaps", returns="m number", pure=True)
def gaps(row: Mapping[str, Any]) -> Iterator[int | None]:
    """Give a result in three."""
    for number in range(_PIECE):
        yield None if number % 3 else number


@pytest.mark.parametrize("words", ["", "{ERRORS: skip}"])
def test_results_that_are_none_end_nothing(words: str) -> None:
    result = run_plan(body(f'apply (x, "f_gaps" : out) {words}', "out"), x=numbers(1))
    assert values(result, name="m") == list(range(0, _PIECE, 3))


# --- results that cannot be held --------------------------------------------------------------------


async def _released(row: Row) -> AsyncGenerator[Batch | Release, None]:
    """Give two results, and say that they cannot be held; fail a second later for odd numbers."""
    yield [(10,)]
    yield Release("it takes too much")
    yield [(20,)]
    await asyncio.sleep(1)
    if row and row[0] % 2:
        raise ValueError("odd")


@operator(name="f_released", firing="tuple", schema=lambda inputs, settings: Schema(("m",)))
async def released(rel: Stream, *, context: Context) -> AsyncGenerator[Batch, None]:
    """Give what `_released` does for each tuple."""
    async for _, results in map_concurrently(_released, rel, context):
        yield results


@operator(name="f_released_once", schema=lambda inputs, settings: Schema(("m",)))
async def released_once(*, start: int) -> AsyncGenerator[Batch | Release, None]:
    """Give what `_released` does, once."""
    async for results in _released((start,)):
        yield results


RELEASED = [
    "PLAN p {{ OUTPUT: out, bad BODY {{ f_released_once ({} : out) {{ERRORS: bad}} }} }}",
    "PLAN p {{ OUTPUT: out, bad BODY {{ f_number ({} : x) f_released (x : out) {{ERRORS: bad}} }} }}",
]


@operator(name="f_number", schema=lambda inputs, settings: Schema(("n",)))
async def number(*, start: int) -> AsyncGenerator[Row, None]:
    """Give a number."""
    yield (start,)


@pytest.mark.parametrize("text", RELEASED)
def test_results_that_are_released_leave_before_the_end(text: str) -> None:
    async def main() -> list[tuple[int, float]]:
        async with Engine() as engine:
            clock = asyncio.get_running_loop().time
            stream = engine.stream(loads(text.format(0)), output="out")
            return [(row["m"], clock()) async for row in stream]

    assert run(main()) == [(10, 0), (20, 0)]


@pytest.mark.parametrize("text", RELEASED)
def test_a_failure_after_results_were_released_ends_the_run(text: str) -> None:
    with pytest.raises(OperatorError, match=r"f_released.*ReleasedError: ValueError: odd; it takes too much"):
        run_plan(text.format(1))


# --- what never ends --------------------------------------------------------------------------------


@function(name="f_ticks", returns="m number", pure=True, endless=True)
async def ticks(row: Mapping[str, Any]) -> AsyncGenerator[int, None]:
    """Give numbers for ever."""
    number = 0
    while True:
        await asyncio.sleep(1)
        yield number
        number += 1


@pytest.mark.parametrize(
    "text",
    [
        body('apply (x, "f_ticks" : out) {ERRORS: bad}'),
        body('apply (x, "f_ticks" : out) {ERRORS: skip}', "out"),
        called('apply (x, "f_ticks" : out)'),
    ],
)
def test_errors_of_what_never_ends_are_a_mistake(text: str) -> None:
    with pytest.raises(PlanError, match="apply never ends, so that ERRORS would hold its results for ever"):
        run_plan(text, x=numbers(1))


def test_a_function_that_never_ends_is_refused_where_ends_are_awaited() -> None:
    with pytest.raises(PlanError, match="apply never ends"):
        run_plan(body('apply (x, "f_ticks" : out)', "out"), x=numbers(1), mode="D+S-")
    limited = body('apply (x, "f_ticks" : all) limit (all, 3 : out)', "out")
    assert values(run_plan(limited, x=numbers(1)), name="m") == [0, 1, 2]


# --- firings that give without end --------------------------------------------------------------


@function(returns="m number", pure=True)
async def f_many(row: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
    """Gives as many results as it is told, and then may fail."""
    for number in range(row["n"]):
        yield {"m": number}
    if row["fails"]:
        raise ValueError("at its end")


async def many_of(n: int, *, fails: bool) -> Result:
    text = 'PLAN p { INPUT: x OUTPUT: out, bad BODY { apply (x, "f_many" : out) {ERRORS: bad} } }'
    async with Engine(hold_rows=1_000, memory_bytes=1 << 16) as engine:
        return await engine.run(loads(text), x=[{"n": n, "fails": fails}])


def test_results_of_a_firing_are_held_up_to_a_bound() -> None:
    result = run(many_of(999, fails=True))
    assert (len(result.outputs["out"]), len(result.outputs["bad"])) == (0, 1)
    assert len(run(many_of(5_000, fails=False)).outputs["out"]) == 5_000


def test_a_firing_that_fails_after_its_results_have_left_ends_the_run() -> None:
    with pytest.raises(OperatorError, match=r"its results had left, being more than hold_rows \(1,000\)"):
        run(many_of(1_000, fails=True))


# --- who only waits for the first failure -------------------------------------------------------------


class Tried:
    numbers: list[int]


@function(name="failures_third", pure=True, returns="k number")
async def third(row: Mapping[str, Any]) -> int:
    """Fails for 3, after a while."""
    Tried.numbers.append(row["n"])
    await asyncio.sleep(1)
    if row["n"] == 3:
        raise ValueError("three")
    return 0


WAITING = """apply (x, "failures_third" : v) {ERRORS: bad; WORKERS: 1}
limit (v, 1 : out)
distinct (x : late) {WAIT: bad}"""


@pytest.mark.parametrize("mode", MODES)
def test_a_statement_is_not_stopped_while_another_waits_for_its_first_failure(mode: Mode) -> None:
    Tried.numbers = []
    result = run_plan(body(WAITING, "out, late"), mode=mode, x=numbers(6))
    assert values(result, "late") == list(range(6))


def test_who_waited_for_a_first_failure_does_not_keep_the_statement_at_work() -> None:
    Tried.numbers = []
    result = run_plan(body(WAITING, "out, late"), x=numbers(1000))
    assert len(values(result, "late")) == 1000
    assert len(Tried.numbers) <= 6
