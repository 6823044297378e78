"""The PostgreSQL driver against a real server: what all drivers do, connecting, statements and loads."""

import asyncio
import itertools
import re
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, nullcontext

import pytest

from aioflow.errors import InputError, MissingExtraError
from aioflow.relation import Batch, Schema
from aioflow.state.driver import ColumnNeed
from aioflow.state.errors import (
    BusyError,
    ConflictError,
    DamagedError,
    DatabaseError,
    DisconnectedError,
    DiskFullError,
)
from aioflow.state.postgres.driver import POSTGRES
from tests.servers.postgres import GUARDED_PASSWORD, GUARDED_USER, Postgres, query
from tests.state.driver_cases import CASES, Case, name_of, read_table
from tests.state.on_postgres import SHOWN, address, connected, is_idle, make, waits_for_a_lock

# Its writers wait for one another row by row, and not for all of the database.
_ANOTHER_WAY = "a_second_writer_is_told_at_once_that_the_database_is_busy"
SHARED = [each for each in CASES if name_of(each) != _ANOTHER_WAY]


@pytest.mark.parametrize("case", SHARED, ids=name_of)
async def test_postgres_does_what_every_driver_does(case: Case, schema_url: str) -> None:
    await case(lambda: POSTGRES.connect(address(schema_url)))


# --- connecting -----------------------------------------------------------------------------------


def test_without_asyncpg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(MissingExtraError, match=re.escape("aioflow[postgres]")):
        POSTGRES.check(address("postgresql://user@host/name"))


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://user:hidden@host:port/name", "no URL"),
        ("postgresql://user:hidden@host/name?sslmode=sure", "sslmode is 'sure'; it can be disable,"),
        ("postgresql://user:hidden@host/name?connect_timeout=soon", "'soon'"),
    ],
)
def test_a_wrong_url_is_told_without_its_password(url: str, told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        POSTGRES.check(address(url))
    assert SHOWN in str(caught.value)
    assert "hidden" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "url",
    ["postgres://one:1,two:2/name", "postgresql:///name?host=/run/postgresql", "postgresql://[::1]/name"],
)
def test_servers_are_addressed_in_many_ways(url: str) -> None:
    POSTGRES.check(address(url))


async def test_a_wrong_password_is_told_and_not_shown(postgres: Postgres) -> None:
    url = postgres.url(user=f"{GUARDED_USER}:hidden")
    with pytest.raises(DatabaseError, match=f"{SHOWN}: password authentication failed") as caught:
        await POSTGRES.connect(address(url))
    assert not isinstance(caught.value, DisconnectedError)
    assert "hidden" not in f"{caught.value} {caught.value.__cause__}"
    right = postgres.url(user=f"{GUARDED_USER}:{GUARDED_PASSWORD.replace(' ', '%20')}")
    async with connected(right) as connection:
        assert await connection.fetch("select current_user::text") == [(GUARDED_USER,)]


async def test_a_database_that_is_not_there_is_told(postgres: Postgres) -> None:
    with pytest.raises(DatabaseError, match='"nowhere" does not exist; its owner makes it') as caught:
        await POSTGRES.connect(address(postgres.url("nowhere")))
    assert not isinstance(caught.value, DisconnectedError)


async def test_a_server_that_does_not_answer_is_away(unused_port: int) -> None:
    with pytest.raises(DisconnectedError, match=f"{SHOWN}: the server cannot be reached"):
        await POSTGRES.connect(address(f"postgresql://postgres@127.0.0.1:{unused_port}/test"))


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


async def test_a_server_with_too_many_connections_is_away(postgres: Postgres) -> None:
    await query(postgres.url(), "create role crowd login connection limit 0")
    with pytest.raises(DisconnectedError, match="too many connections"):
        await POSTGRES.connect(address(postgres.url(user="crowd")))


async def test_tls_that_the_server_does_not_speak_is_no_reason_to_wait(postgres: Postgres) -> None:
    with pytest.raises(DatabaseError, match="does not speak TLS") as caught:
        await POSTGRES.connect(address(f"{postgres.url()}?sslmode=require"))
    assert not isinstance(caught.value, DisconnectedError)


async def test_a_silent_server_is_not_waited_for_forever() -> None:
    has_left = asyncio.Event()

    async def stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        has_left.set()

    server = await asyncio.start_server(stay_silent, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(DisconnectedError, match="did not answer in time"):
            await POSTGRES.connect(address(f"postgresql://a@127.0.0.1:{port}/b?connect_timeout=0.05"))
        await has_left.wait()


async def test_the_server_knows_connections_by_name(schema_url: str) -> None:
    sql = "select application_name from pg_stat_activity where pid = pg_backend_pid()"
    async with connected(schema_url) as connection:
        assert await connection.fetch(sql) == [("aioflow",)]
    async with connected(f"{schema_url}&application_name=mine") as connection:
        assert await connection.fetch(sql) == [("mine",)]


# --- statements -----------------------------------------------------------------------------------


async def test_rows_arrive_before_the_scan_ends(schema_url: str) -> None:
    sql = "select n, 1 / (90000 - n) as inverse from generate_series(1, 1000000) as n"
    found: Batch = []
    async with connected(schema_url) as connection, aclosing(connection.select(sql)) as results:
        assert await anext(results) == Schema.of(n="number", inverse="number")
        with pytest.raises(DatabaseError, match="division by zero"):
            await _collect(results, found)
    assert 80_000 < len(found) < 90_000


async def _collect(results: AsyncIterator[Schema | Batch], found: Batch) -> None:
    async for result in results:
        assert not isinstance(result, Schema)
        found += result


async def test_a_reader_who_has_enough_of_a_million_rows_ends_the_scan(schema_url: str) -> None:
    async with connected(schema_url) as connection:
        sql = "select n from generate_series(1, 1000000) as n"
        async with aclosing(connection.select(sql)) as results:
            await anext(results)
            assert len(await anext(results)) < 100
    assert await is_idle(schema_url)


async def test_the_first_batch_is_small_and_large_rows_come_few_at_a_time(schema_url: str) -> None:
    async def sizes(sql: str) -> list[int]:
        async with connected(schema_url) as connection, aclosing(connection.select(sql)) as results:
            return [len(result) async for result in results if not isinstance(result, Schema)]

    small = await sizes("select n from generate_series(1, 5000) as n")
    assert small[0] < 100 < max(small)
    assert max(await sizes("select repeat('x', 300000) as t from generate_series(1, 60)")) < 20


async def test_a_table_can_be_changed_once_its_reader_has_stopped_within_the_transaction(
    schema_url: str,
) -> None:
    async with connected(schema_url) as connection:
        await make(connection, "create table t as select n::bigint from generate_series(1, 5000) as n")
        async with connection.transaction("write"):
            for stops_early in (True, False):
                async with aclosing(connection.select("select n from t")) as results:
                    async for result in results:
                        if stops_early and not isinstance(result, Schema):
                            break
                need = ColumnNeed("n", classes={int}, is_wide=True)
                await connection.widen("t", [need])
                await connection.run("alter table t alter column n type bigint")


async def test_what_others_do_to_a_table_is_seen_by_the_next_statement(schema_url: str) -> None:
    async with connected(schema_url) as connection, connected(schema_url) as other:
        await make(connection, "create table t (a bigint)", "insert into t values (1)")
        assert await read_table(connection, "t") == await connection.fetch("select * from t") == [(1,)]
        await make(other, "alter table t alter a type text", "alter table t add b text default 'x'")
        assert await read_table(connection, "t") == await connection.fetch("select * from t") == [("1", "x")]
        async with connection.transaction("write"):
            assert await connection.fetch("select * from t") == [("1", "x")]
            await connection.run("alter table t drop b")
            assert await connection.fetch("select * from t") == [("1",)]


async def test_a_syntax_error_is_told_with_its_place(schema_url: str) -> None:
    async with connected(schema_url) as connection:
        with pytest.raises(DatabaseError, match=r"syntax error.* at line 2, column 3:   FORM t"):
            await connection.fetch("select a FORM\n  FORM t")


@pytest.mark.parametrize("within", [True, False])
async def test_a_missing_table_is_told_with_the_nearest(schema_url: str, within: bool) -> None:
    async with connected(schema_url) as connection:
        await make(connection, "create table houses (a bigint)")

        async def ask() -> None:
            async with connection.transaction("write") if within else nullcontext():
                await connection.fetch("select * from hosues")

        with pytest.raises(DatabaseError, match=r"\"hosues\" does not exist.*did you mean 'houses'"):
            await ask()


async def test_a_forbidden_table_is_told(schema_url: str, postgres: Postgres) -> None:
    await query(schema_url, "create role stranger login")
    await query(schema_url, "create table t (a bigint)")
    await query(schema_url, f"grant usage on schema {schema_url.rpartition('=')[2]} to stranger")
    async with connected(schema_url.replace("postgres@", "stranger@")) as connection:
        with pytest.raises(DatabaseError, match="permission denied for table t; its owner can GRANT"):
            await connection.fetch("select * from t")


@pytest.mark.parametrize(
    ("state", "kind", "told"),
    [
        ("53100", DiskFullError, "no room is left"),
        ("40001", BusyError, "nothing of this was kept"),
        ("55P03", BusyError, "holds a lock"),
        ("57P01", DisconnectedError, "sorry"),
        ("57P03", DisconnectedError, "take connections in a moment"),
        ("08006", DisconnectedError, "sorry"),
        ("XX001", DamagedError, "damaged"),
        ("23514", ConflictError, "sorry"),
        ("22012", ConflictError, "sorry"),
        ("P0001", DatabaseError, f"{SHOWN}: sorry; detail; hint, in: do"),
    ],
)
async def test_what_the_server_says_has_its_error(
    schema_url: str, state: str, kind: type[Exception], told: str
) -> None:
    using = f"errcode = '{state}', detail = 'detail', hint = 'hint'"
    async with connected(schema_url) as connection:
        with pytest.raises(kind, match=told) as caught:
            await connection.run(f"do $$ begin raise exception 'sorry' using {using}; end $$")
        assert type(caught.value) is kind


async def test_a_statement_must_get_as_many_values_as_it_takes(schema_url: str) -> None:
    async with connected(schema_url) as connection:
        with pytest.raises(DatabaseError, match="takes 2 values, not 1"):
            await connection.fetch("select $1::bigint + $2::bigint", (1,))


async def test_names_that_the_server_would_cut_are_refused(schema_url: str) -> None:
    async with connected(schema_url) as connection:
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: connection.columns("n" * 64),
            lambda: connection.create_table("ü" * 32, [ColumnNeed("a")]),
            lambda: connection.create_table("t", [ColumnNeed("n" * 64)]),
        ]
        for call in calls:
            with pytest.raises(DatabaseError, match="takes 64 bytes"):
                await call()
        await connection.create_table("n" * 63, [ColumnNeed("ü" * 31)])
        assert await connection.columns("n" * 63) is not None


async def test_a_dot_in_a_name_means_nothing_and_other_schemas_are_on_the_search_path(
    schema_url: str,
) -> None:
    other = schema_url.rpartition("=")[2] + "_other"
    async with connected(schema_url) as connection:
        await make(connection, f"create schema {other}", f"create table {other}.t as select 7 as a")
        assert await connection.columns(f"{other}.t") is None
        assert await connection.columns("t") is None
    async with connected(f"{schema_url},{other}") as connection:
        assert await read_table(connection, "t") == [(7,)]


# --- writing --------------------------------------------------------------------------------------


async def test_a_refused_row_is_named_wherever_it_stands(schema_url: str) -> None:
    rows: Batch = [(number, f"text {number}") for number in range(30_000)]
    rows[29_999] = (7, "twice")
    async with connected(schema_url) as connection:
        await make(connection, "create table t (a bigint primary key, b text)")
        with pytest.raises(ConflictError) as caught:
            await connection.load("t", ("b", "a"), [[(b, a) for a, b in rows]])
        assert "row 30000 (b='twice', a=7): duplicate key" in str(caught.value)
        assert await connection.fetch("select count(*) from t") == [(0,)]


async def test_a_load_without_a_transaction_is_whole_or_nothing(schema_url: str) -> None:
    def batches() -> Iterator[Batch]:
        for start in range(0, 300_000, 1000):
            yield [(number,) for number in range(start, start + 1000)]
        raise LookupError("no more rows")

    async with connected(schema_url) as connection:
        await make(connection, "create table t (a bigint)")
        with pytest.raises(LookupError, match="no more rows"):
            await connection.load("t", ("a",), batches())
        assert await connection.fetch("select count(*) from t") == [(0,)]


async def test_other_tasks_work_while_rows_are_loaded(
    schema_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioflow.state.postgres.connection.thread_time", itertools.count().__next__)
    turns = 0
    seen: list[int] = []

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    def slow_batches() -> Iterator[Batch]:
        for number in range(5):
            seen.append(turns)
            yield [(number,)]

    async with connected(schema_url) as connection:
        await make(connection, "create table t (a bigint)")
        task = asyncio.ensure_future(other())
        assert await connection.load("t", ("a",), slow_batches()) == 5
        task.cancel()
        await asyncio.wait([task])
    assert seen == sorted(set(seen))


async def test_a_table_or_column_that_is_not_there_is_told(schema_url: str) -> None:
    async with connected(schema_url) as connection:
        with pytest.raises(DatabaseError, match="there is no table 't'"):
            await connection.load("t", ("a",), [[(1,)]])
        await make(connection, "create table t (price bigint)")
        with pytest.raises(ConflictError, match="no column 'pirce'; did you mean 'price'"):
            await connection.load("t", ("pirce",), [[(1,)]])


async def test_who_makes_the_same_table_at_once_fails_without_a_conflict_of_rows(schema_url: str) -> None:
    async with connected(schema_url) as one, connected(schema_url) as two:
        async with one.transaction("write"):
            await one.run("create table t (a bigint)")
            second = asyncio.ensure_future(two.run("create table t (a bigint)"))
            await waits_for_a_lock(schema_url)
        with pytest.raises(DatabaseError):
            await second


# --- upgrades -------------------------------------------------------------------------------------


async def test_own_tables_are_copied_before_an_upgrade(schema_url: str) -> None:
    async with connected(schema_url) as connection:
        await make(
            connection,
            "create table aioflow_meta as select 1::bigint as version",
            "create table aioflow_runs as select 'a' as run_id",
            "create table others (a bigint)",
        )
        for run_id in ("a", "b"):
            await connection.run("update aioflow_runs set run_id = $1", (run_id,))
            told = await POSTGRES.copy_before_upgrade(connection, address(schema_url), 1)
            assert told == f"in the tables aioflow_*_before_v1 of {SHOWN}"
            assert await read_table(connection, "aioflow_runs_before_v1") == [(run_id,)]
        assert await read_table(connection, "aioflow_meta_before_v1") == [(1,)]
        assert await connection.columns("others_before_v1") is None
        assert await connection.columns("aioflow_runs_before_v1_before_v1") is None
