"""aiosqlite's connections: cancelled calls come to rest, and no thread outlives its connection."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from aioflow.runtime.sqlite import SqliteWorker
from aioflow.testing import VirtualLoop

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


def one(database: sqlite3.Connection) -> int:
    return int(database.execute("SELECT 1").fetchone()[0])


@asynccontextmanager
async def opened() -> AsyncIterator[SqliteWorker]:
    worker = await SqliteWorker.open(memory)
    try:
        yield worker
    finally:
        await worker.close()


def is_thread_left() -> bool:
    ours = [thread for thread in threading.enumerate() if "_connection_worker_thread" in thread.name]
    for thread in ours:
        thread.join(1)
    return any(thread.is_alive() for thread in ours)


async def test_a_call_returns_what_its_function_returns() -> None:
    async with opened() as worker:
        assert await worker.call(one) == 1
    assert not worker.is_open
    assert not is_thread_left()


async def test_a_function_that_fails_leaves_the_connection_usable() -> None:
    async with opened() as worker:
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            await worker.call(lambda database: database.execute("SELECT * FROM missing"))
        assert await worker.call(one) == 1


async def test_a_cancelled_call_interrupts_its_statement() -> None:
    async with opened() as worker:
        task = asyncio.ensure_future(worker.call(lambda database: database.execute(ENDLESS).fetchall()))
        await asyncio.wait([task], timeout=0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await worker.call(one) == 1


async def test_a_cancelled_call_that_must_not_be_interrupted_ends_first() -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), []

    def work(database: sqlite3.Connection) -> None:
        begun.set()
        go_on.wait()
        ended.append(one(database))

    async with opened() as worker:
        task = asyncio.ensure_future(worker.call(work, interruptible=False))
        await asyncio.to_thread(begun.wait)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == [1]


async def test_a_connection_that_cannot_be_opened_leaves_no_thread() -> None:
    def connect() -> sqlite3.Connection:
        raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"):
        await SqliteWorker.open(connect)
    assert not is_thread_left()


async def test_a_cancelled_opening_closes_the_connection() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def connect() -> sqlite3.Connection:
        begun.set()
        go_on.wait()
        return memory()

    task = asyncio.ensure_future(SqliteWorker.open(connect))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_thread_left()


def test_a_worker_cancelled_at_any_step_leaves_no_thread() -> None:
    async def work() -> None:
        async with opened() as worker:
            await worker.call(one)

    async def main(loop: VirtualLoop, steps: int) -> bool:
        task = asyncio.ensure_future(work())
        end = loop.steps + steps

        def cancel_then(step: int) -> None:
            if step == end:
                task.cancel()

        loop.before_step = cancel_then
        await asyncio.wait([task])
        loop.before_step = None
        return task.cancelled()

    loop = VirtualLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        steps = 1
        while runner.run(main(loop, steps)):
            assert not is_thread_left()
            steps += 1
    assert steps > 5
    assert not is_thread_left()
