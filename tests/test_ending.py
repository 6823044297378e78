"""How runs, streams of results and engines end: from other tasks, with threads at work, with files open."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, suppress
from typing import Any

import pytest

from aioflow import Context, Engine, InputError, Record, Relation, RunError, Stream, loads, operator
from aioflow.authoring.function import function
from aioflow.authoring.operator import same_as_input
from aioflow.errors import ClosedError
from aioflow.runtime.events import Event, Warned
from aioflow.runtime.session import MODES, Mode
from aioflow.testing import Script, assert_nothing_left, run

PASS = 'PLAN p { INPUT: numbers OUTPUT: out BODY { select (numbers, "n >= 0" : out) } }'


def numbers(count: int) -> list[dict[str, Any]]:
    return [{"n": number} for number in range(count)]


async def turns(count: int = 20) -> None:
    """Let everything happen that needs no time."""
    for _ in range(count):
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what a thread does."""
    while not condition():  # noqa: ASYNC110  # threads set no events of the loop
        await asyncio.sleep(0)


# --- streams that another task closes, or reads ---------------------------------------------------

READERS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda stream: stream,
    "named": lambda stream: stream.named(),
    "batches": lambda stream: stream.batches(),
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize("closed", ["the stream", "its iterator"])
def test_a_stream_that_another_task_closes_ends_its_reader_with_an_error(
    reader: Callable[[Any], Any], closed: str
) -> None:
    async def main() -> None:
        async with Engine() as engine:
            stream = engine.stream(loads(PASS), numbers=Script().row(n=1).hang())
            results = reader(stream)
            await anext(results)
            reading = asyncio.create_task(anext(results))
            await turns()
            await (stream if closed == "the stream" else results).aclose()
            with pytest.raises(ClosedError, match="the stream was closed before its end"):
                await reading
            assert_nothing_left(engine)

    run(main())


def test_a_stream_that_was_left_early_does_not_look_whole_afterwards() -> None:
    async def main() -> None:
        async with Engine() as engine:
            async with engine.stream(loads(PASS), numbers=numbers(3)) as stream:
                await anext(stream)
            with pytest.raises(ClosedError, match="the stream was closed before its end"):
                await anext(stream)
            never_read = engine.stream(loads(PASS), numbers=numbers(3))
            await never_read.aclose()
            with pytest.raises(ClosedError, match="the stream was closed before its end"):
                await anext(never_read)

    run(main())


def test_a_stream_that_was_read_to_its_end_stays_at_its_end() -> None:
    async def main() -> None:
        async with Engine() as engine, engine.stream(loads(PASS), numbers=numbers(3)) as stream:
            assert [row["n"] async for row in stream] == [0, 1, 2]
            await stream.aclose()
            assert [row["n"] async for row in stream] == []

    run(main())


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_second_reader_is_refused_and_the_first_goes_on(reader: Callable[[Any], Any]) -> None:
    async def main() -> None:
        source = Script().row(n=1).wait(1).row(n=2)
        async with Engine() as engine, engine.stream(loads(PASS), numbers=source) as stream:

            async def read() -> list[Any]:
                return [item async for item in reader(stream)]

            first = asyncio.create_task(read())
            await asyncio.sleep(0.5)
            for other in READERS.values():
                with pytest.raises(InputError, match="this stream already has a reader"):
                    await anext(other(stream))
            assert len(await first) == 2

    run(main())


def test_a_second_reader_is_refused_also_when_rows_have_just_come() -> None:
    async def main() -> None:
        gate = asyncio.Event()

        async def source() -> AsyncIterator[dict[str, int]]:
            await gate.wait()
            yield {"n": 1}

        async with Engine() as engine, engine.stream(loads(PASS), numbers=source()) as stream:
            first = asyncio.create_task(anext(stream))
            await turns()
            gate.set()
            refused = 0
            while not first.done():
                try:
                    await anext(stream)
                except InputError:
                    refused += 1
                await asyncio.sleep(0)
            assert refused
            assert (await first)["n"] == 1

    run(main())


@operator(schema=same_as_input, name="ending_closes")
async def closes(rows: Stream, *, context: Context) -> AsyncGenerator[Any, None]:
    """Close the input while a task of one's own waits for it."""
    await rows.receive()
    reading = asyncio.create_task(rows.receive())
    await turns()
    rows.close()
    with pytest.raises(ClosedError, match="the stream was closed before its end"):
        await reading
    yield [(1,)]


@operator(schema=same_as_input, name="ending_reads_twice")
async def reads_twice(rows: Stream, *, context: Context) -> AsyncGenerator[Any, None]:
    """Have two tasks wait for one input."""
    await rows.receive()
    reading = asyncio.create_task(rows.receive())
    await turns()
    with pytest.raises(InputError, match="this stream already has a reader"):
        await rows.receive()
    yield await reading


@pytest.mark.parametrize("name", ["ending_closes", "ending_reads_twice"])
def test_an_input_of_an_operator_keeps_no_reader_waiting_for_ever(name: str) -> None:
    async def main() -> list[int]:
        plan = loads(f"PLAN p {{ INPUT: x (n number) OUTPUT: out BODY {{ {name} (x : out) }} }}")
        async with Engine(mode="D+S+") as engine:
            source = Script().row(n=2).wait(1).row(n=1)  # the first row lets the operator begin
            return [row["n"] async for row in engine.stream(plan, x=source)]

    assert run(main()) == [1]


@operator(schema=same_as_input, name="ending_closes_and_fails")
async def closes_and_fails(rows: Stream, *, context: Context) -> AsyncGenerator[Any, None]:
    """Close the input, then fail."""
    await rows.receive()
    rows.close()
    raise OSError("gone")
    yield


def test_a_statement_that_fails_after_it_closed_its_input_hands_its_failure_on() -> None:
    async def main() -> None:
        plan = loads("""PLAN p { INPUT: x OUTPUT: out, e
            BODY { ending_closes_and_fails (x : out) {ERRORS: e} } }""")
        async with Engine() as engine:
            result = await engine.run(plan, x=Script().row(n=1).wait(1).row(n=2))
            assert [row["error"] for row in result.outputs["e"]] == ["gone"]

    run(main())


# --- loops that are left --------------------------------------------------------------------------


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_loop_that_is_left_ends_the_tasks_of_its_run(reader: Callable[[Any], Any]) -> None:
    """At once where nothing else holds the stream: no collection of garbage is needed."""

    async def left_by_break(engine: Engine) -> None:
        async for _ in reader(engine.stream(loads(PASS), numbers=Script().row(n=1).hang())):
            break

    async def left_by_exception(engine: Engine) -> None:
        with suppress(KeyError):
            async for _ in reader(engine.stream(loads(PASS), numbers=Script().row(n=1).hang())):
                raise KeyError("left")

    async def main() -> None:
        gc.disable()
        async with Engine() as engine:
            for leave in (left_by_break, left_by_exception):
                await leave(engine)
                await turns()
                assert_nothing_left(engine)

    try:
        run(main())
    finally:
        gc.enable()


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_aclosing_ends_the_run_before_control_leaves_it(reader: Callable[[Any], Any]) -> None:
    async def main() -> None:
        async with Engine() as engine:
            stream = engine.stream(loads(PASS), numbers=Script().row(n=1).hang())
            async with aclosing(reader(stream)) as results:
                async for _ in results:
                    break
            assert_nothing_left(engine)

    run(main())


# --- blocking functions ---------------------------------------------------------------------------


class Blocked:
    """A blocking function that counts its threads and returns when it is let go."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.at_work = 0
        self.most = 0
        self.calls = 0
        self._lock = threading.Lock()

    def __call__(self, row: Mapping[str, Any]) -> int:
        with self._lock:
            self.calls += 1
            self.at_work += 1
            self.most = max(self.most, self.at_work)
        self.release.wait(60)
        with self._lock:
            self.at_work -= 1
        return int(row["n"])

    async def begun(self, count: int) -> None:
        """Wait until so many calls have begun."""
        await until(lambda: self.calls >= count)


@pytest.fixture
def blocked() -> Iterator[Blocked]:
    blocked = Blocked()
    function(name="ending_blocked", pure=True, returns="x number", blocking=True)(
        lambda row: blocked(row),
    )
    function(name="ending_of_a_source", pure=True, returns="x number", blocking=True, source="site")(
        lambda row: blocked(row),
    )
    yield blocked
    blocked.release.set()


BLOCKED = 'PLAN p { INPUT: x OUTPUT: out BODY { apply (x, "ending_blocked" : out) } }'
OF_A_SOURCE = 'PLAN p { INPUT: x OUTPUT: out BODY { apply (x, "ending_of_a_source" : out) } }'


async def cancelled(running: asyncio.Task[Any]) -> None:
    await turns()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("text", "workers"), [(BLOCKED, 4), (OF_A_SOURCE, 2)])
async def test_cancelled_runs_never_have_more_threads_at_work_than_workers(
    blocked: Blocked, text: str, workers: int, mode: Mode
) -> None:
    async with Engine(workers=4, partitions={"site": 2}, mode=mode) as engine:
        for _ in range(10):
            await cancelled(asyncio.create_task(engine.run(loads(text), x=numbers(8))))
        await blocked.begun(workers)
        assert blocked.most == blocked.calls == workers
        assert engine.budget.used == workers
        blocked.release.set()
        result = await engine.run(loads(text), x=numbers(20))
        assert sorted(row["x"] for row in result) == list(range(20))
        assert blocked.most <= workers
        await until(lambda: not engine.budget.used)  # functions of cancelled runs are about to return


async def test_a_run_that_waits_for_blocking_functions_of_earlier_runs_says_so(
    blocked: Blocked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioflow.runtime.budget.PATIENCE_SECONDS", 0.0)
    warned: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, Warned):
            warned.append(event.message)

    async with Engine(workers=2) as engine:
        await cancelled(asyncio.create_task(engine.run(loads(BLOCKED), x=numbers(1))))
        engine.subscribe(listen)
        first = asyncio.create_task(engine.run(loads(BLOCKED), x=numbers(1)))
        await blocked.begun(2)
        assert warned == []  # one permit is left
        waiting = asyncio.create_task(engine.run(loads(BLOCKED, name="p.plan"), x=numbers(3)))
        await until(lambda: bool(warned))
        blocked.release.set()
        await first
        result = await waiting
        told = (
            "p.plan:1:38: apply: waits for a permit: a blocking function that was cancelled and has not "
            "returned holds 1 of 2"
        )
        assert warned == [told]
        assert result.warnings == (told,)


async def test_a_run_that_waits_already_when_another_is_cancelled_says_so_too(
    blocked: Blocked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioflow.runtime.budget.PATIENCE_SECONDS", 0.0)
    async with Engine(workers=1) as engine:
        first = asyncio.create_task(engine.run(loads(BLOCKED), x=numbers(1)))
        await blocked.begun(1)
        stream = engine.stream(loads(BLOCKED), x=numbers(1))
        waiting = asyncio.create_task(anext(stream))
        await turns()
        assert stream.statistics().warnings == ()
        await cancelled(first)
        await until(lambda: bool(stream.statistics().warnings))
        blocked.release.set()
        assert (await waiting)["x"] == 0


async def test_a_function_that_returns_soon_is_no_reason_to_warn(
    blocked: Blocked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioflow.runtime.budget.PATIENCE_SECONDS", 3600.0)
    async with Engine(workers=1) as engine:
        await cancelled(asyncio.create_task(engine.run(loads(BLOCKED), x=numbers(1))))
        waiting = asyncio.create_task(engine.run(loads(BLOCKED), x=numbers(1)))
        await turns()
        blocked.release.set()
        assert (await waiting).warnings == ()


async def test_a_blocking_function_that_nobody_needs_keeps_its_permit_within_the_run(
    blocked: Blocked,
) -> None:
    plan = loads("""PLAN p { INPUT: x OUTPUT: out BODY {
        apply (x, "ending_blocked" : a) project (a, "n" : b) union (x, b : c) {ALL} limit (c, 2 : out)
    } }""")

    async def source() -> AsyncIterator[dict[str, int]]:
        yield {"n": 1}
        await blocked.begun(1)
        yield {"n": 2}

    async with Engine(workers=1) as engine:
        assert len(await engine.run(plan, x=source())) == 2
        assert engine.budget.used == blocked.calls == 1
        blocked.release.set()
        await until(lambda: not engine.budget.used)


async def test_an_engine_closes_at_once_although_a_blocking_function_is_at_work(blocked: Blocked) -> None:
    async with Engine(workers=1) as engine:
        running = asyncio.create_task(engine.run(loads(BLOCKED), x=numbers(1)))
        await blocked.begun(1)
    with pytest.raises(RunError, match="the engine was closed before the run had ended"):
        await running
    assert blocked.at_work == 1


def test_a_permit_comes_back_although_the_loop_of_its_function_was_closed(blocked: Blocked) -> None:
    engine = Engine(workers=1)

    async def cancel() -> None:
        running = asyncio.create_task(engine.run(loads(BLOCKED), x=numbers(1)))
        await blocked.begun(1)
        await cancelled(running)

    async def run_again() -> int:
        running = asyncio.create_task(engine.run(loads(BLOCKED), x=numbers(2)))
        await turns()
        blocked.release.set()
        return len(await running)

    asyncio.run(cancel())
    assert asyncio.run(run_again()) == 2
    asyncio.run(engine.close())


def test_time_stands_still_also_while_a_cancelled_function_is_at_work(blocked: Blocked) -> None:
    async def main() -> None:
        async with Engine(workers=1) as engine:
            running = asyncio.create_task(engine.run(loads(BLOCKED), x=numbers(1)))
            await blocked.begun(1)
            await cancelled(running)
            threading.Timer(0.05, blocked.release.set).start()
            assert len(await engine.run(loads(BLOCKED), x=numbers(2))) == 2

    run(main())


@function(name="ending_stops", pure=True, blocking=True, returns="x number")
def stops(row: Mapping[str, Any]) -> int:
    raise StopIteration("no more")


def test_a_blocking_function_that_raises_stop_iteration_has_failed() -> None:
    async def main() -> None:
        async with Engine() as engine:
            with pytest.raises(RunError, match="StopIteration"):
                await engine.run(loads(BLOCKED.replace("ending_blocked", "ending_stops")), x=numbers(1))
            assert_nothing_left(engine)

    run(main())


# --- closed engines -------------------------------------------------------------------------------

REFUSED = "the engine is closed: make another one"


@pytest.mark.parametrize(
    "use",
    [
        lambda engine, stream: engine.run(loads(PASS), numbers=[]),
        lambda engine, stream: anext(engine.stream(loads(PASS), numbers=[])),
        lambda engine, stream: anext(stream),
        lambda engine, stream: anext(stream.named()),
        lambda engine, stream: anext(stream.batches()),
        lambda engine, stream: engine.__aenter__(),
    ],
    ids=["run", "stream", "rows", "named", "batches", "async with"],
)
def test_a_closed_engine_refuses_to_run(use: Callable[[Engine, Any], Awaitable[Any]]) -> None:
    async def main() -> None:
        engine = Engine()
        stream = engine.stream(loads(PASS), numbers=numbers(1))
        await engine.close()
        with pytest.raises(ClosedError, match=REFUSED):
            await use(engine, stream)
        assert_nothing_left(engine)

    run(main())


def test_closing_twice_is_harmless_and_the_second_waits_for_the_first() -> None:
    async def main() -> None:
        engine = Engine()
        readers = [
            asyncio.create_task(engine.run(loads(PASS), numbers=Script().row(n=1).hang())) for _ in range(3)
        ]
        await turns()
        first = asyncio.create_task(engine.close())
        await asyncio.sleep(0)
        await engine.close()
        assert_nothing_left_but(engine, first, *readers)
        for reader in readers:
            with pytest.raises(RunError, match="the engine was closed before the run had ended"):
                await reader
        await first
        await engine.close()
        assert_nothing_left(engine)

    run(main())


def assert_nothing_left_but(engine: Engine, *others: asyncio.Task[Any]) -> None:
    ours = {asyncio.current_task(), *others}
    assert not [task for task in asyncio.all_tasks() if task not in ours]
    assert not engine.budget.used
    assert not engine.memory.open_files


def test_a_close_that_is_cancelled_still_ends_every_run() -> None:
    async def main() -> None:
        engine = Engine()
        streams = [engine.stream(loads(PASS), numbers=Script().row(n=1).hang()) for _ in range(3)]
        for stream in streams:
            await anext(stream)
        closing = asyncio.create_task(engine.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert_nothing_left(engine)

    run(main())


@pytest.mark.parametrize("what", ["engine", "stream"])
def test_a_function_that_closes_its_own_run_ends_it(what: str) -> None:
    async def main() -> None:
        engine = Engine()

        @function(name="ending_closes_its_run", returns="x number")
        async def closes_its_run(row: Mapping[str, Any]) -> int:
            await (engine.close() if what == "engine" else stream.aclose())
            return 1

        plan = loads('PLAN p { INPUT: x OUTPUT: out BODY { apply (x, "ending_closes_its_run" : out) } }')
        stream = engine.stream(plan, x=numbers(1))
        with pytest.raises((RunError, ClosedError), match="was closed before"):
            await anext(stream)
        await engine.close()
        assert_nothing_left(engine)

    run(main())


# --- files ----------------------------------------------------------------------------------------


def rows_of(count: int) -> list[dict[str, Any]]:
    return [{"k": number % 3, "n": number, "text": "x" * 50} for number in range(count)]


@function(name="ending_fails", pure=True, returns="y number")
def fails(row: Mapping[str, Any]) -> int:
    raise OSError("gone")


@function(name="ending_hangs", pure=True, returns="y number")
async def hangs(row: Mapping[str, Any]) -> int:
    await asyncio.Event().wait()
    return 1


EMBEDDING = {
    "pack": 'pack (x, "r" : r)',
    "groups": 'pack (x, "r" : r) {BY: "k"}',
    "nested": 'pack (x, "q" : q) {BY: "k"} pack (q, "r" : r)',
    "aggregate": 'aggregate (x, "count() as n" : r) {BY: "k"}',
    "window": "window (x, 100 : r)",
    "errors": "ending_closes_and_fails (x : _) {ERRORS: r}",
}


def embedding(name: str, after: str, output: str = "out") -> str:
    return f"PLAN p {{ INPUT: x OUTPUT: {output} BODY {{ {EMBEDDING[name]} {after} }} }}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", EMBEDDING)
def test_a_failed_run_leaves_no_file_open_although_its_error_is_kept(name: str, mode: Mode) -> None:
    async def main() -> None:
        gc.disable()
        async with Engine(memory_bytes=1, mode=mode) as engine:
            plan = loads(embedding(name, 'apply (r, "ending_fails" : out)'))
            with pytest.raises(RunError) as caught:
                await engine.run(plan, x=rows_of(9000))
            assert "gone" in str(caught.value)
            assert (engine.memory.open_files, engine.memory.used_bytes) == (0, 0)

    try:
        run(main())
    finally:
        gc.enable()


@pytest.mark.parametrize("name", EMBEDDING)
def test_a_cancelled_run_leaves_no_file_open_although_its_error_is_kept(name: str) -> None:
    async def main() -> None:
        gc.disable()
        async with Engine(memory_bytes=1) as engine:
            plan = loads(embedding(name, 'apply (r, "ending_hangs" : out)', "out, r"))
            running = asyncio.create_task(engine.run(plan, x=rows_of(9000)))
            for _ in range(9000):
                await asyncio.sleep(0)
            assert engine.memory.open_files
            running.cancel()
            with pytest.raises(asyncio.CancelledError) as caught:
                await running
            assert caught.value.__traceback__ is not None
            assert (engine.memory.open_files, engine.memory.used_bytes) == (0, 0)

    try:
        run(main())
    finally:
        gc.enable()


def test_a_relation_that_was_handed_out_can_be_read_after_its_run() -> None:
    async def main() -> None:
        async with Engine(memory_bytes=1) as engine:
            result = await engine.run(loads(embedding("pack", "", "r")), x=rows_of(9000))
            async with engine.stream(loads(embedding("pack", "", "r")), x=rows_of(9000)) as stream:
                streamed = [row async for row in stream]
            assert engine.memory.open_files == 2
        for rows in (result.rows, streamed):
            assert sorted(row["n"] for row in rows[0]["r"]) == list(range(9000))
        del result, streamed, rows
        assert engine.memory.open_files == 0

    run(main())


def test_relations_within_a_relation_that_was_handed_out_can_be_read_too() -> None:
    async def main() -> None:
        # So much that the groups are on disk, but not the relation of them.
        async with Engine(memory_bytes=5_000) as engine:
            result = await engine.run(loads(embedding("nested", "", "r")), x=rows_of(9000))
        inner = [row["n"] for group in result[0]["r"] for row in group["q"]]
        assert sorted(inner) == list(range(9000))

    run(main())


@pytest.mark.parametrize("ending", ["broken off", "failed"])
def test_rows_that_a_stream_gave_stay_readable_when_it_ends_early(ending: str) -> None:
    async def main() -> None:
        async with Engine(memory_bytes=1) as engine:
            plan = loads("""PLAN p { INPUT: x, y OUTPUT: r, late
                BODY { pack (x, "r" : r) apply (y, "ending_fails" : late) } }""")
            later = Script().wait(5)
            given: list[Record] = []
            with suppress(RunError):
                stream = engine.stream(plan, x=rows_of(9000), y=later.row(n=1))
                async with stream:
                    async for _, row in stream.named():
                        given.append(row)
                        if ending == "broken off":
                            break
            assert sorted(row["n"] for row in given[0]["r"]) == list(range(9000))
            assert engine.memory.open_files == 1

    run(main())


def test_a_relation_whose_run_has_ended_does_not_look_empty() -> None:
    kept: list[Relation | Iterator[Record]] = []

    @function(name="ending_keeps", returns="y number")
    def keeps(row: Mapping[str, Any]) -> int:
        begun = iter(row["r"])
        next(begun)
        kept.extend((row["r"], begun))
        return 1

    async def main() -> None:
        async with Engine(memory_bytes=1) as engine:
            plan = loads(embedding("pack", 'apply (r, "ending_keeps" : s) project (s, "y" : out)'))
            await engine.run(plan, x=rows_of(9000))
            assert engine.memory.open_files == 0
        for rows in kept:
            with pytest.raises(
                ClosedError, match="the rows of this relation were released when its run ended"
            ):
                list(rows)

    run(main())
