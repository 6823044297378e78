"""Disk work is done by one thread, and the loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import aioflow
from aioflow import AioflowError, Engine, Result, function
from aioflow.relation import Batch, Relation, Schema
from aioflow.runtime import temporary_files
from aioflow.runtime.disk import DiskThread, off_loop, walk
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.session import Mode
from aioflow.runtime.spill import KeySet, RowBuffer, RowQueue
from aioflow.runtime.temporary_files import DiskTable, SpillFile
from aioflow.testing import assert_nothing_left, run, run_plan

PLANS = {
    "distinct": "distinct (a : out)",
    "union": "union (a, b : out)",
    "intersect": "intersect (a, b : out)",
    "minus": "minus (a, b : out)",
    "join": 'join (a, b, "left.n = right.n" : out)',
    "outer join": 'join (a, b, "left.n = right.n" : out) {TYPE: full}',
    "join with a condition": 'join (a, b, "left.n = right.n and left.t <= right.t" : out) {TYPE: full}',
    "semi": 'join (a, b, "left.n = right.n" : out) {TYPE: semi}',
    "anti": 'join (a, b, "left.n = right.n" : out) {TYPE: anti}',
    "semi with a condition": 'join (a, b, "left.n = right.n and left.t <= right.t" : out) {TYPE: semi}',
    "sort": 'sort (a, "t" : out)',
    "groups": 'aggregate (a, "count() as c" : out) {BY: "n"; RELATION: false}',
    "kept groups": 'aggregate (a, "list(t) as c" : out) {BY: "n"; RELATION: false}',
    "distinct values": 'aggregate (a, "count(distinct t) as c" : out) {RELATION: false}',
    "groups packed": 'pack (a, "p" : x) project (x, "1 as one" : out)',
}


def rows(count: int, times: int = 1) -> list[dict[str, Any]]:
    return [{"n": number, "t": f"row {number}"} for number in range(count)] * times


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the threads that read or wrote; a forgotten value may close its file in any."""
    names: set[str] = set()

    def recorded(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any) -> Any:
            names.add(threading.current_thread().name)
            return function(*arguments)

        return wrapper

    for owner, name in (
        (SpillFile, "_write_batch"),
        (SpillFile, "read_here"),
        (SpillFile, "_clear"),
        (DiskTable, "_add"),
        (DiskTable, "_find"),
        (temporary_files, "_connected"),
    ):
        monkeypatch.setattr(owner, name, recorded(getattr(owner, name)))
    return names


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions of the disk thread for which the loop stood still."""
    names: list[str] = []
    wait = DiskThread.wait

    def recorded(disk: DiskThread, function: Callable[..., Any], *arguments: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            names.append(function.__qualname__)
        return wait(disk, function, *arguments)

    monkeypatch.setattr(DiskThread, "wait", recorded)
    return names


@pytest.mark.parametrize("statement", PLANS.values(), ids=PLANS)
def test_no_operator_does_disk_work_on_the_loop(statement: str, workers: set[str], waits: list[str]) -> None:
    before = set(threading.enumerate())
    inputs = {"a": rows(1500, 2)} | ({"b": rows(3000)} if "(a, b" in statement else {})
    text = f"PLAN p {{ INPUT: {', '.join(inputs)} OUTPUT: out BODY {{ {statement} }} }}"

    async def on_the_real_clock() -> int:
        async with Engine(memory_bytes=1) as engine:
            result = await engine.run(aioflow.loads(text), inputs)
            assert_nothing_left(engine, result)
            return result.statistics.spilled_rows

    assert asyncio.run(on_the_real_clock()) > 0
    assert not waits
    assert {name.rpartition("_")[0] for name in workers} == {"aioflow-disk"}
    assert {thread for thread in threading.enumerate() if thread.name.startswith("aioflow-disk")} <= before


def test_a_stream_that_holds_rows_writes_and_reads_them_off_the_loop(workers: set[str]) -> None:
    # minus reads b to its end first, and holds a meanwhile.
    result = run_plan(
        "PLAN p { INPUT: a, b OUTPUT: out BODY { minus (a, b : out) } }",
        a=rows(5000),
        b=rows(10),
        memory_bytes=1,
    )
    assert [record["n"] for record in result.outputs["out"]] == list(range(10, 5000))
    assert {name.rpartition("_")[0] for name in workers} == {"aioflow-disk"}


CALLED = """
PLAN p { INPUT: a OUTPUT: out BODY { both (a : out) } }
PLAN both { INPUT: a OUTPUT: out BODY {
    select (a, "n % 2 = 0" : even)
    sort (a, "n" : ordered)
    union (even, ordered : out) {ALL: true}
} }
"""
RECURSION = """
PLAN p { INPUT: a OUTPUT: out BODY { levels (a : out) } }
PLAN levels { INPUT: a OUTPUT: out MAX_DEPTH: 3 stop ONCE: "n" BODY {
    select (a, "n >= 0" : known)
    project (known, "n + 5000 as n, t" : next)
    levels (next : deeper)
    union (known, deeper : out) {ALL: true}
} }
"""


@pytest.mark.parametrize("mode", ["D+S+", "D+S-", "D-"])
@pytest.mark.parametrize(("text", "count"), [(CALLED, 7500), (RECURSION, 15_000)], ids=["call", "recursion"])
def test_calls_and_results_read_what_they_kept_off_the_loop(
    text: str, count: int, mode: Mode, waits: list[str]
) -> None:
    async def on_the_real_clock() -> None:
        async with Engine(memory_bytes=1, mode=mode) as engine:
            result = await engine.run(aioflow.loads(text), a=rows(5000))
            assert_nothing_left(engine, result)
            assert result.statistics.spilled_rows > 0
            assert len(result.outputs["out"]) == count

    asyncio.run(on_the_real_clock())
    assert waits == []


TAIL_CALL = """
PLAN p { INPUT: a OUTPUT: out BODY { levels (a : out) } }
PLAN levels { INPUT: a OUTPUT: out ONCE: "n" BODY {
    select (a, "n < 40000" : known)
    project (known, "n + 5000 as n, t" : next)
    levels (next : deeper)
    union (known, deeper : out) {ALL: true}
} }
"""


def test_once_in_a_tail_call_looks_values_up_off_the_loop(tmp_path: Path, waits: list[str]) -> None:
    result = on_the_loop(TAIL_CALL, tmp_path, a=rows(5000, 2))
    assert sorted(record["n"] for record in result.outputs["out"]) == list(range(40_000))
    assert waits == []


def test_a_level_whose_rows_are_on_disk_comes_before_the_next_one(tmp_path: Path) -> None:
    # The second level has 5000 to 9999, and the third would find them again.
    result = on_the_loop(
        """
        PLAN p { INPUT: a OUTPUT: out BODY { levels (a : out) } }
        PLAN levels { INPUT: a OUTPUT: out MAX_DEPTH: 4 stop ONCE: "n" BODY {
            sort (a, "n" : known)
            select (known, "depth = 1" : first)
            project (first, "n + 5000 as n, 2 as depth" : second)
            select (known, "depth > 1" : others)
            project (others, "n + 3000 as n, depth + 1 as depth" : third)
            union (second, third : next) {ALL: true}
            levels (next : deeper)
            union (known, deeper : out) {ALL: true}
        } }
        """,
        tmp_path,
        a=[{"n": number, "depth": 1} for number in range(5000)],
    )
    depths = {record["n"]: record["depth"] for record in result.outputs["out"]}
    assert {depths[number] for number in range(5000, 10_000)} == {2}
    assert {depths[number] for number in range(10_000, 13_000)} == {3}


@pytest.mark.parametrize("text", [TAIL_CALL, RECURSION], ids=["tail call", "levels"])
@pytest.mark.parametrize("most", [1, 3000, 9000])
def test_a_recursion_that_is_left_while_once_looks_values_up_leaves_nothing(text: str, most: int) -> None:
    async def main() -> None:
        async with Engine(memory_bytes=1) as engine:
            async with engine.stream(aioflow.loads(text), a=rows(5000)) as stream:
                count = 0
                async for _ in stream:
                    count += 1
                    if count == most:
                        break
            assert_nothing_left(engine)
            assert (engine.memory.used_bytes, engine.memory.open_files) == (0, 0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


@function(name="many_results", returns="m number", pure=True)
def _many_results(row: Mapping[str, Any]) -> Iterator[dict[str, int]]:
    return ({"m": number} for number in range(row["n"]))


def on_the_loop(text: str, folder: Path, **inputs: Any) -> Result:
    """Run a plan on the real clock, with hardly any memory and a database in this folder."""
    configuration = {
        "database": {"default": {"url": f"sqlite:{folder / 'kept.sqlite'}"}},
        "notify": {"default": {"url": "json://127.0.0.1:9"}},
        "outbox": {"deliver_seconds": 0},
    }

    async def main() -> Result:
        async with Engine(memory_bytes=1, configuration=configuration) as engine:
            result = await engine.run(aioflow.loads(text), inputs)
            assert_nothing_left(engine, result)
            return result

    return asyncio.run(main())


def test_results_of_one_call_that_are_held_are_read_off_the_loop(tmp_path: Path, waits: list[str]) -> None:
    result = on_the_loop(
        'PLAN p { INPUT: a OUTPUT: out BODY { apply (a, "many_results" : out) {ERRORS: failed} } }',
        tmp_path,
        a=[{"n": 5000}],
    )
    assert [record["m"] for record in result.outputs["out"]] == list(range(5000))
    assert result.statistics.spilled_rows > 0
    assert waits == []


def test_an_embedded_relation_on_disk_is_unpacked_off_the_loop(tmp_path: Path, waits: list[str]) -> None:
    result = on_the_loop(
        'PLAN p { INPUT: a OUTPUT: out BODY { pack (a, "p" : x) unpack (x, "p" : out) } }',
        tmp_path,
        a=rows(5000),
    )
    assert [record["n"] for record in result.outputs["out"]] == list(range(5000))
    assert result.statistics.spilled_rows > 0
    assert waits == []


def test_staged_messages_are_read_off_the_loop(
    tmp_path: Path, waits: list[str], workers: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioflow.messages.outbox.service._MEMORY_BYTES", 1)
    text = 'PLAN p { INPUT: a OUTPUT: out BODY { notify (a, "{t}" : out) {EACH} } }'
    on_the_loop(text, tmp_path, a=rows(2000))
    with closing(sqlite3.connect(tmp_path / "kept.sqlite")) as database:
        stored = database.execute("SELECT content FROM aioflow_outbox ORDER BY place").fetchall()
    assert [json.loads(content)["subject"] for (content,) in stored] == [
        f"row {number}" for number in range(2000)
    ]
    assert waits == []
    assert {name.rpartition("_")[0] for name in workers} == {"aioflow-disk"}


DIFF = """
PLAN p { INPUT: a OUTPUT: out BODY {
    diff (a, "kept" : out, x, y) {KEY: "n"; GUARD: off; FIRST: news}
} }
"""


def test_the_writes_of_a_comparison_are_read_off_the_loop(tmp_path: Path, waits: list[str]) -> None:
    on_the_loop(DIFF, tmp_path, a=rows(5000))
    changed = [{"n": number, "t": "changed"} for number in range(2000, 8000)]
    result = on_the_loop(DIFF, tmp_path, a=changed)
    assert len(result.outputs["out"]) == 3000
    assert result.statistics.spilled_rows > 0
    assert waits == []


def test_a_walk_that_is_cancelled_and_comes_again_misses_nothing() -> None:
    async def main() -> None:
        memory = MemoryBudget(1)
        with RowBuffer(memory) as buffer:
            buffer.append([(number,) for number in range(2000)])
            buffer.append([(2000,)])
            walking = walk(buffer, buffer.batches())
            begun, may_go_on = threading.Event(), threading.Event()
            memory.disk.write(begun.set)
            memory.disk.write(may_go_on.wait)  # type: ignore[arg-type]  # its result is not used
            reading = asyncio.ensure_future(anext(walking))
            await asyncio.to_thread(begun.wait)
            reading.cancel()
            may_go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await reading
            assert [row async for batch in walking for row in batch] == [(number,) for number in range(2001)]
        await memory.disk.close()

    asyncio.run(main())


def test_a_structure_in_memory_starts_no_thread() -> None:
    async def main() -> None:
        async with Engine() as engine:
            with KeySet(engine.memory) as seen:
                assert await off_loop(seen, threading.get_ident) == threading.get_ident()
                assert [item async for item in walk(seen, iter("abc"))] == ["a", "b", "c"]
            assert engine.memory.disk._executor is None

    run(main())


def test_reads_see_every_write_before_them() -> None:
    async def main() -> None:
        memory = MemoryBudget(1)
        with RowBuffer(memory) as buffer:
            for start in range(0, 200_000, 1024):
                buffer.append([(number,) for number in range(start, start + 1024)])
            found = [row async for batch in walk(buffer, buffer.batches()) for row in batch]
        assert found == [(number,) for number in range(len(found))]
        assert len(found) >= 200_000
        await memory.disk.close()

    asyncio.run(main())


def test_a_cancelled_caller_waits_for_the_function_that_works_for_it() -> None:
    begun, may_end = threading.Event(), threading.Event()
    ended = False

    def work() -> None:
        nonlocal ended
        begun.set()
        may_end.wait()
        ended = True

    async def main() -> None:
        disk = DiskThread()
        task = asyncio.create_task(disk.call(work))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended
        await disk.close()

    asyncio.run(main())


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(file: SpillFile, batch: Batch) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(SpillFile, "_write_batch", failing)


@pytest.mark.usefixtures("full_disk")
@pytest.mark.parametrize("statement", ['sort (a, "n" : out)', "minus (a, b : out)"])
def test_a_full_disk_ends_the_run_with_an_error(statement: str) -> None:
    with pytest.raises(AioflowError, match="No space left"):
        run_plan(
            f'PLAN p {{ INPUT: a, b OUTPUT: out, y BODY {{ {statement} project (b, "n" : y) }} }}',
            a=rows(5000),
            b=rows(10),
            memory_bytes=1,
        )


def test_a_queue_is_read_while_rows_come() -> None:
    async def main() -> None:
        memory = MemoryBudget(1)
        taken: Batch = []
        with RowQueue(memory) as queue:
            for start in range(0, 5000, 100):
                queue.append([(number,) for number in range(start, start + 100)])
                if start % 300 == 0:
                    fetched = asyncio.Event()
                    if not queue.is_ready:
                        queue.fetch(fetched.set)
                        await fetched.wait()
                    taken += queue.popleft()
            while queue.length:
                taken += queue.popleft()  # also where a fetch is under way
                if queue.length and not queue.is_ready:
                    queue.fetch(lambda: None)
        assert taken == [(number,) for number in range(5000)]
        await memory.disk.close()
        assert (memory.used_bytes, memory.open_files) == (0, 0)

    run(main())


def test_rows_that_wait_to_be_written_are_handed_out_with_what_they_embed() -> None:
    async def main() -> None:
        account = MemoryBudget(1).for_run()
        inner = RowBuffer(account)
        inner.append([(number,) for number in range(2000)])
        outer = RowBuffer(account)
        blocked = threading.Event()
        account.disk.write(blocked.wait)  # type: ignore[arg-type]  # nothing is written before it returns
        outer.append([(inner.relation(Schema.of("n")),)] * 2000)
        value = outer.relation(Schema.of("r"))
        account.hand_out([(value,)])
        account.close()
        blocked.set()
        first = next(iter(value))["r"]
        assert isinstance(first, Relation)
        assert len(first) == 2000
        await account.disk.close()

    asyncio.run(main())


def test_a_value_on_disk_can_be_read_after_its_engine_was_closed() -> None:
    result = run_plan(
        'PLAN p { INPUT: a OUTPUT: out BODY { pack (a, "p" : out) } }', a=rows(5000), memory_bytes=1
    )
    [record] = result.outputs["out"]
    assert [each["n"] for each in record["p"]] == list(range(5000))


def test_a_seed_replays_a_plan_that_spills() -> None:
    def steps(seed: int) -> list[str]:
        trace: list[str] = []

        async def main() -> None:
            async with Engine(memory_bytes=1, capacity_rows=4) as engine:
                text = 'PLAN p { INPUT: a, b OUTPUT: out BODY { join (a, b, "left.n = right.n" : out) } }'
                await engine.run(aioflow.loads(text), a=rows(700), b=rows(700))

        run(main(), seed=seed, trace=trace)
        return trace

    assert steps(3) == steps(3) != steps(4)
