"""Transactions on PostgreSQL, calls that are cancelled, and connections that are lost."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, nullcontext
from typing import Any

import pytest

from aioflow.relation import Batch
from aioflow.runtime.disk import DiskThread
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.spill import RowBuffer
from aioflow.state.driver import ColumnNeed, Connection
from aioflow.state.errors import BusyError, ConflictError, DatabaseError, DisconnectedError
from aioflow.state.staged import batches_of
from tests.servers.postgres import query
from tests.state.driver_cases import ENDLESS, read, read_table
from tests.state.on_postgres import SHOWN, at_work, connected, is_idle, make, waits_for_a_lock

# --- transactions ---------------------------------------------------------------------------------


async def test_writers_of_different_rows_do_not_wait_for_one_another(schema_url: str) -> None:
    async with connected(schema_url) as one, connected(schema_url) as two:
        await make(one, "create table t (a bigint)")
        async with one.transaction("write"), two.transaction("write"):
            await one.run("insert into t values (1)")
            await two.run("insert into t values (2)")
        assert await one.fetch("select count(*) from t") == [(2,)]


async def test_two_who_wait_for_one_another_are_told_that_the_database_is_busy(schema_url: str) -> None:
    async with connected(f"{schema_url}&deadlock_timeout=10") as one, connected(schema_url) as two:
        await make(one, "create table t as select 1 as a union all select 2")

        async def cross() -> None:
            async with one.transaction("write"):
                await one.run("update t set a = a where a = 1")
                second.append(asyncio.ensure_future(two.run("update t set a = a where a = 1")))
                await waits_for_a_lock(schema_url)
                await one.run("update t set a = a where a = 2")

        second: list[asyncio.Future[int]] = []
        async with two.transaction("write"):
            await two.run("update t set a = a where a = 2")
            with pytest.raises(BusyError, match="deadlock"):
                await cross()
            assert await second[0] == 1


async def test_a_transaction_whose_failure_was_passed_over_is_not_committed(schema_url: str) -> None:
    async with connected(schema_url) as connection:
        await make(connection, "create table t (a bigint primary key)")

        async def pass_over() -> None:
            async with connection.transaction("write"):
                await connection.run("insert into t values (1)")
                with pytest.raises(ConflictError, match="duplicate"):
                    await connection.run("insert into t values (1)")

        with pytest.raises(DatabaseError, match="nothing was committed"):
            await pass_over()
        assert await read_table(connection, "t") == []


@pytest.mark.parametrize(
    "sql",
    ["commit", "; commit", "/* /* nested */ */ ABORT", "--\n start transaction", "prepare transaction 'x'"],
)
async def test_a_statement_cannot_end_a_transaction_by_any_trick(schema_url: str, sql: str) -> None:
    async with connected(schema_url) as connection:
        await make(connection, "create table t (a bigint)")

        async def trick() -> None:
            async with connection.transaction("write"):
                await connection.run("insert into t values (1)")
                await connection.run(sql)

        with pytest.raises(DatabaseError, match="transaction begins and ends"):
            await trick()
        assert await read_table(connection, "t") == []


# --- cancellation and lost connections --------------------------------------------------------------


async def test_a_cancelled_load_leaves_nothing_behind(schema_url: str) -> None:
    async with connected(schema_url) as connection:
        await make(connection, "create table t (a bigint)")

        def batches() -> Iterator[Batch]:
            for number in range(100_000):
                if number == 200:
                    task.cancel()
                yield [(number,)] * 1000

        task = asyncio.ensure_future(connection.load("t", ("a",), batches()))
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await is_idle(schema_url)
        assert await read_table(connection, "t") == []


@pytest.mark.parametrize("kind", ["bigint", "json"], ids=["binary", "text"])
async def test_rows_on_disk_are_copied_off_the_loop(
    schema_url: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: set[bool] = set()
    wait = DiskThread.wait

    def recorded(disk: DiskThread, *arguments: Any) -> Any:
        readers.add(threading.current_thread() is threading.main_thread())
        return wait(disk, *arguments)

    monkeypatch.setattr(DiskThread, "wait", recorded)
    memory = MemoryBudget(1)
    async with connected(schema_url) as connection:
        await make(connection, f"create table t (a {kind})")
        with RowBuffer(memory) as buffer:
            for start in range(0, 20_000, 500):
                buffer.append([(number,) for number in range(start, start + 500)])
            assert await connection.load("t", ("a",), batches_of([buffer])) == 20_000
        assert await connection.fetch("select count(*) from t") == [(20_000,)]
    await memory.disk.close()
    assert readers == {False}


async def test_a_load_from_disk_that_is_cancelled_leaves_nothing_behind(schema_url: str) -> None:
    memory = MemoryBudget(1)
    begun, may_go_on = threading.Event(), threading.Event()
    async with connected(schema_url) as connection:
        await make(connection, "create table t (a bigint)")
        with RowBuffer(memory) as buffer:
            for start in range(0, 20_000, 500):
                buffer.append([(number,) for number in range(start, start + 500)])
            memory.disk.write(begun.set)
            memory.disk.write(may_go_on.wait)  # type: ignore[arg-type]  # its result is not used
            task = asyncio.ensure_future(connection.load("t", ("a",), batches_of([buffer])))
            await asyncio.to_thread(begun.wait)
            await at_work(schema_url)
            task.cancel()
            may_go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert await is_idle(schema_url)
        assert await read_table(connection, "t") == []
    await memory.disk.close()
    assert (memory.used_bytes, memory.open_files) == (0, 0)


@pytest.mark.parametrize(
    "call",
    [
        lambda connection: read(connection, ENDLESS),
        lambda connection: connection.fetch(ENDLESS),
        lambda connection: connection.run(ENDLESS),
    ],
)
async def test_a_cancelled_call_ends_when_the_server_has_ended_it(
    schema_url: str, call: Callable[[Connection], Awaitable[object]]
) -> None:
    async with connected(schema_url) as connection:
        task = asyncio.ensure_future(call(connection))
        await at_work(schema_url)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # What asks the server to give up is a task as well.
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert await is_idle(schema_url)
        assert await connection.fetch("select 1") == [(1,)]


async def test_a_cancelled_wait_for_a_lock_ends(schema_url: str) -> None:
    async with connected(schema_url) as one, connected(schema_url) as two:
        await make(one, "create table t (a bigint primary key)")
        async with one.transaction("write"):
            await one.run("insert into t values (1)")
            task = asyncio.ensure_future(two.run("insert into t values (1)"))
            await waits_for_a_lock(schema_url)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert await is_idle(schema_url)


async def lose(connection: Connection, url: str) -> None:
    ((pid,),) = await connection.fetch("select pg_backend_pid()")
    await query(url, "select pg_terminate_backend($1, 10000)", pid)


@pytest.mark.parametrize(
    "call",
    [
        lambda connection: connection.fetch("select 1"),
        lambda connection: connection.run("insert into t values (1)"),
        lambda connection: connection.run_each("insert into t values ($1)", [(1,)]),
        lambda connection: connection.load("t", ("a",), [[(1,)]]),
        lambda connection: connection.columns("t"),
        lambda connection: connection.create_table("u", [ColumnNeed("a")]),
        lambda connection: read(connection, "select * from t"),
    ],
)
@pytest.mark.parametrize("within", [True, False])
async def test_every_call_tells_that_the_connection_was_lost(
    schema_url: str, call: Callable[[Connection], Awaitable[object]], within: bool
) -> None:
    async with connected(schema_url) as connection:
        await make(connection, "create table t (a bigint)")

        async def ask() -> None:
            async with connection.transaction("write") if within else nullcontext():
                await lose(connection, schema_url)
                await call(connection)

        with pytest.raises(DisconnectedError, match=SHOWN):
            await ask()
        with pytest.raises(DisconnectedError):
            await call(connection)


async def test_a_connection_that_is_lost_in_the_middle_is_told(schema_url: str) -> None:
    async with connected(schema_url) as connection:
        ((pid,),) = await connection.fetch("select pg_backend_pid()")
        task = asyncio.ensure_future(connection.fetch(ENDLESS))
        await at_work(schema_url)
        await query(schema_url, "select pg_terminate_backend($1)", pid)
        with pytest.raises(DisconnectedError, match="terminating connection due to administrator command"):
            await task


async def test_a_connection_that_is_lost_before_the_commit_is_told(schema_url: str) -> None:
    async with connected(schema_url) as connection:
        await make(connection, "create table t (a bigint)")

        async def commit() -> None:
            async with connection.transaction("write"):
                await connection.run("insert into t values (1)")
                await lose(connection, schema_url)

        with pytest.raises(DisconnectedError):
            await commit()
    assert await query(schema_url, "select * from t") == []


async def test_a_scan_tells_that_the_connection_was_lost(schema_url: str) -> None:
    async with connected(schema_url) as connection:
        ((pid,),) = await connection.fetch("select pg_backend_pid()")
        async with aclosing(connection.select("select n from generate_series(1, 100000) as n")) as results:
            await anext(results)
            await query(schema_url, "select pg_terminate_backend($1, 10000)", pid)
            with pytest.raises(DisconnectedError):
                async for _ in results:
                    pass
