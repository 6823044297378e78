"""The file of a SQLite database and the thread that uses it: what goes wrong, and what stays behind."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

import pytest

from aioflow.relation import Batch, Schema
from aioflow.state.driver import Address, Connection
from aioflow.state.errors import BusyError, ConflictError, DamagedError, DatabaseError, DiskFullError
from aioflow.state.sqlite.driver import SQLITE
from aioflow.testing import VirtualLoop
from tests.state.driver_cases import ENDLESS, make, read_table, store
from tests.state.test_sqlite import address_of, connected, elsewhere

MANY: Batch = [(number, f"http://example.org/{number}") for number in range(5000)]
SCHEMA = Schema.of(n="number", url="char")


def threads() -> list[str]:
    """The threads of connections that were not closed; one that was closed may be about to end."""
    ours = [thread for thread in threading.enumerate() if "_connection_worker_thread" in thread.name]
    for thread in ours:
        thread.join(0.5)
    return [thread.name for thread in ours if thread.is_alive()]


def files(folder: Path) -> set[str]:
    return set(os.listdir(folder))


# --- addresses ----------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["sqlite::memory:", "sqlite:", "sqlite://", "sqlite:///"])
async def test_a_database_in_memory_or_without_a_file_is_refused(url: str) -> None:
    address = Address("default", url)
    with pytest.raises(DatabaseError, match="names no file"):
        SQLITE.check(address)
    with pytest.raises(DatabaseError, match="names no file"):
        await SQLITE.connect(address)


async def test_a_url_names_a_relative_or_absolute_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("sqlite:one.db", f"sqlite://{tmp_path}/two.db"):
        connection = await SQLITE.connect(Address("default", url))
        await connection.close()
    assert files(tmp_path) == {"one.db", "two.db"}


async def test_a_folder_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "houses.db").mkdir()
    with pytest.raises(DatabaseError, match=r"houses.db is a folder; name a file in it"):
        await SQLITE.connect(address_of(tmp_path))


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match=r"there is no folder .*missing"):
        SQLITE.check(address_of(tmp_path / "missing"))
    assert not (tmp_path / "missing").exists()


async def test_the_users_data_folder_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "data" / "aioflow"
    SQLITE.check(address_of(folder))
    async with connected(folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


# --- files --------------------------------------------------------------------------------------


async def test_what_is_committed_is_durable_and_others_may_read_meanwhile(tmp_path: Path) -> None:
    async with connected(tmp_path) as connection:
        for name, value in (("synchronous", 2), ("journal_mode", "wal"), ("foreign_keys", 1)):
            assert await connection.fetch(f"pragma {name}") == [(value,)]


async def test_a_file_that_is_no_database_is_reported_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "houses.db"
    file.write_text("houses, prices\n" * 1000)
    with pytest.raises(DamagedError, match=r"houses.db: the file is no SQLite database"):
        await SQLITE.connect(address_of(tmp_path))
    assert file.read_text() == "houses, prices\n" * 1000
    assert files(tmp_path) == {"houses.db"}
    assert threads() == []


async def test_a_damaged_database_is_reported(tmp_path: Path) -> None:
    async with connected(tmp_path) as connection:
        await store(connection, "t", SCHEMA, MANY)
    file = tmp_path / "houses.db"
    data = file.read_bytes()
    damaged = data[:8192] + b"\xaa" * (len(data) - 8192)
    file.write_bytes(damaged)
    async with connected(tmp_path) as connection:
        with pytest.raises(DamagedError, match=r"houses.db: the database is damaged .*\.recover"):
            await read_table(connection, "t")
    assert file.read_bytes() == damaged


@contextmanager
def as_somebody_else() -> Iterator[Path]:
    """A folder in which even root meets the rights of files."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    is_root = os.geteuid() == 0
    try:
        if is_root:
            os.chown(folder, 65534, 65534)
            os.seteuid(65534)
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o700)
        shutil.rmtree(folder)


async def test_a_file_that_may_only_be_read_is_read_and_says_what_to_do_on_a_write() -> None:
    with as_somebody_else() as folder:
        async with connected(folder) as connection:
            await store(connection, "t", Schema.of("a"), [(1,)])
        (folder / "houses.db").chmod(0o400)
        async with connected(folder) as connection:
            assert await read_table(connection, "t") == [(1,)]
            with pytest.raises(DatabaseError, match=r"houses.db: the database can only be read .*chmod u\+w"):
                await connection.run("insert into t values (2)")


async def test_a_folder_that_may_only_be_read_is_told() -> None:
    with as_somebody_else() as folder:
        folder.chmod(0o500)
        with pytest.raises(DatabaseError, match=r"houses.db: the database cannot be opened .* folder"):
            await SQLITE.connect(address_of(folder))
        assert threads() == []


async def test_a_full_disk_stores_nothing_and_says_so(tmp_path: Path) -> None:
    async with connected(tmp_path) as connection:
        await make(connection, n="number", url="char")
        await connection.run("pragma max_page_count = 20")  # SQLite then acts as on a full disk

        async def write() -> None:
            async with connection.transaction("write"):
                await connection.load("t", SCHEMA.names, [MANY])

        with pytest.raises(DiskFullError, match=r"houses.db: no room is left .*Make room"):
            await write()
        assert await connection.fetch("select count(*) from t") == [(0,)]
        await connection.run("pragma max_page_count = 100000")
        await write()
        assert await connection.fetch("select count(*) from t") == [(5000,)]


async def test_another_program_that_writes_makes_a_busy_error(tmp_path: Path) -> None:
    async with connected(tmp_path) as connection:
        await make(connection, a="number")
        await connection.run("pragma busy_timeout = 600000")  # who waits, waits too long for a test
        with elsewhere(tmp_path) as database:
            database.execute("begin immediate")
            with pytest.raises(BusyError, match="another process or run is writing"):
                async with connection.transaction("write"):
                    pytest.fail("two at once")
            async with connection.transaction("snapshot"):
                assert await read_table(connection, "t") == []


# --- mistakes in SQL ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("select * from hosues", r"there is no table 'hosues'; did you mean 'houses'\?.*there are: houses"),
        ("select pirce from houses", r"there is no column 'pirce'; did you mean 'price'\?"),
        ("insert into houses (pirce) values (1)", r"there is no column 'pirce'; did you mean 'price'\?"),
        ("select *\n  FORM houses", r"a mistake in the SQL at 'FORM', line 2, column 3"),
        ("select", "incomplete input"),
        ("select 1; select 2", "one statement at a time"),
        ("select 1\0", "null character"),
        ("select ?", "0 supplied"),
        ("select '\ud800'", "surrogates not allowed"),
        ("attach 'other.db' as other", "ATTACH is not for plans"),
    ],
)
async def test_mistakes_in_sql_are_told_with_the_database(sql: str, message: str, tmp_path: Path) -> None:
    async with connected(tmp_path) as connection:
        await make(connection, "houses", price="number")
        with pytest.raises(DatabaseError, match=rf"(?s)houses.db: .*{message}"):
            await connection.fetch(sql)
        assert await connection.fetch("select 1") == [(1,)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((1, "b", 1), "another row has the same id"),
        ((3, None, 1), "name must not be null"),
        ((3, "b", -1), "the table's check 'positive' does not hold"),
        ((3, "b", 9), "refers to a row that is not there"),
    ],
)
async def test_a_refused_row_is_told_with_its_reason(
    row: tuple[object, ...], message: str, tmp_path: Path
) -> None:
    with elsewhere(tmp_path) as database:
        database.execute(
            "create table t (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, "
            "next INTEGER REFERENCES t (id), CONSTRAINT positive CHECK (next > 0))"
        )
    async with connected(tmp_path) as connection:
        rows: Batch = [(1, "a", None), (2, "a", 1), row]
        with pytest.raises(
            ConflictError, match=rf"houses.db: table 't' refused row 3 \(id={row[0]}.*{message}"
        ):
            await connection.load("t", ("id", "name", "next"), [rows])
        with pytest.raises(ConflictError, match=f"refused row 3 .*{message}"):
            await connection.run_each("insert into t values (?, ?, ?)", rows)
        assert await connection.fetch("select count(*) from t") == [(0,)]


# --- transactions -------------------------------------------------------------------------------


async def test_nothing_goes_on_alone_after_the_database_undid_the_transaction(tmp_path: Path) -> None:
    async with connected(tmp_path) as connection:
        await make(connection, a="number")
        await connection.run("create unique index u on t (a)")

        async def write() -> None:
            async with connection.transaction("write"):
                await connection.run("insert into t values (1)")
                with pytest.raises(ConflictError):
                    async with connection.savepoint():
                        await connection.run("insert or rollback into t values (1)")
                with pytest.raises(DatabaseError, match="undone the whole transaction"):
                    await connection.run("insert into t values (2)")

        with pytest.raises(DatabaseError, match="undone the whole transaction"):
            await write()
        assert await connection.fetch("select a from t") == []
        async with connection.transaction("write"):
            await connection.run("insert into t values (3)")
        assert await connection.fetch("select a from t") == [(3,)]


async def test_a_conflict_that_shows_only_at_the_commit_undoes_the_transaction(tmp_path: Path) -> None:
    with elsewhere(tmp_path) as database:
        database.execute(
            "create table t (id INTEGER PRIMARY KEY, up REFERENCES t DEFERRABLE INITIALLY DEFERRED)"
        )
    async with connected(tmp_path) as connection:

        async def write(up: int) -> None:
            async with connection.transaction("write"):
                await connection.run("insert into t values (1, ?)", (up,))

        with pytest.raises(ConflictError, match="refers to a row that is not there"):
            await write(9)
        await write(1)
        assert await connection.fetch("select * from t") == [(1, 1)]


async def test_a_second_transaction_on_one_connection_is_refused(tmp_path: Path) -> None:
    async with connected(tmp_path) as connection:
        async with connection.transaction("write"):
            with pytest.raises(DatabaseError, match="open already"):
                async with connection.transaction("snapshot"):
                    pytest.fail("two at once")
        async with connection.transaction("snapshot"):
            pass


# --- cancellation -------------------------------------------------------------------------------


async def test_rows_arrive_while_the_scan_goes_on_and_closing_stops_it(tmp_path: Path) -> None:
    async with connected(tmp_path) as connection:
        sql = "with recursive n (i) as (select 1 union all select i + 1 from n) select i from n"
        async with aclosing(connection.select(sql)) as results:
            assert await anext(results) == Schema.of("i")
            found: Batch = []
            while len(found) < 100:
                batch = await anext(results)
                assert isinstance(batch, list)
                found += batch
        assert found[:100] == [(number,) for number in range(1, 101)]
        await connection.run("create table t (a)")  # nothing holds the file


async def test_a_scan_that_finds_little_hands_it_on_before_it_looks_further(tmp_path: Path) -> None:
    async with connected(tmp_path) as connection:
        # After its twentieth row this query finds no other, and never ends.
        sql = "with recursive n (i) as (select 1 union all select i + 1 from n) select i from n where i < 21"
        async with aclosing(connection.select(sql)) as results:
            assert await anext(results) == Schema.of("i")
            found: Batch = []
            while len(found) < 19:  # Python's module keeps a row until it has found the next
                batch = await anext(results)
                assert isinstance(batch, list)
                found += batch
        assert found == [(number,) for number in range(1, 20)]
        assert await connection.fetch("select 1") == [(1,)]


@pytest.mark.parametrize("outside", [True, False])
async def test_a_cancelled_load_leaves_nothing(outside: bool, tmp_path: Path) -> None:
    started = threading.Event()

    def endless() -> Iterator[Batch]:
        while True:
            yield MANY
            started.set()

    async def write(connection: Connection) -> None:
        if outside:
            await connection.load("t", SCHEMA.names, endless())
        else:
            async with connection.transaction("write"):
                await connection.load("t", SCHEMA.names, endless())

    async with connected(tmp_path) as connection, connected(tmp_path) as other:
        await make(connection, n="number", url="char")
        task = asyncio.ensure_future(write(connection))
        await asyncio.to_thread(started.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with other.transaction("write"):
            assert await other.fetch("select count(*) from t") == [(0,)]
        async with connection.transaction("write"):
            assert await connection.load("t", SCHEMA.names, [MANY]) == len(MANY)


async def test_a_cancelled_load_asks_for_no_more_rows(tmp_path: Path) -> None:
    waiting, cancelled, asked = threading.Event(), threading.Event(), []

    def batches() -> Iterator[Batch]:
        waiting.set()
        cancelled.wait()
        for _ in range(10):
            asked.append(1)
            yield MANY[:300]

    async with connected(tmp_path) as connection:
        await make(connection, n="number", url="char")
        task = asyncio.ensure_future(connection.load("t", SCHEMA.names, batches()))
        await asyncio.to_thread(waiting.wait)
        task.cancel()
        await asyncio.sleep(0)  # the thread is asked to stop
        cancelled.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(asked) == 1
        assert await connection.fetch("select count(*) from t") == [(0,)]


async def test_a_second_cancellation_waits_for_the_thread_too(tmp_path: Path) -> None:
    async with connected(tmp_path) as connection:
        task = asyncio.ensure_future(connection.fetch(ENDLESS))
        await asyncio.wait([task], timeout=0.02)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await connection.fetch("select 1") == [(1,)]


def test_a_transaction_cancelled_at_any_step_leaves_no_lock_and_all_or_nothing(tmp_path: Path) -> None:
    async def work(connection: Connection) -> None:
        async with connection.transaction("write"):
            await connection.load("t", SCHEMA.names, [MANY[:10]])
            async with connection.savepoint():
                await connection.run("insert into t values (-1, 'x')")
            async with aclosing(connection.select("select * from t")) as results:
                async for _ in results:
                    pass

    async def main(loop: VirtualLoop, steps: int) -> bool:
        async with connected(tmp_path) as connection, connected(tmp_path) as other:
            await connection.run("delete from t")
            task = asyncio.ensure_future(work(connection))
            end = loop.steps + steps

            def cancel_then(step: int) -> None:
                if step == end:
                    task.cancel()

            loop.before_step = cancel_then
            await asyncio.wait([task])
            loop.before_step = None
            async with other.transaction("write"):
                ((count,),) = await other.fetch("select count(*) from t")
            assert count in (0, 11)
            return task.cancelled()

    async def prepare() -> None:
        async with connected(tmp_path) as connection:
            await make(connection, n="number", url="char")

    loop = VirtualLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(prepare())
        steps = 1
        while runner.run(main(loop, steps)):
            steps += 1
    assert steps > 15
    assert threads() == []


async def test_closing_ends_the_thread_and_leaves_one_file(tmp_path: Path) -> None:
    async with connected(tmp_path) as connection:
        await store(connection, "t", SCHEMA, MANY)
        assert len(threads()) == 1
        results = connection.select("select * from t")
        await anext(results)
    await results.aclose()
    assert threads() == []
    assert files(tmp_path) == {"houses.db"}


# --- copies -------------------------------------------------------------------------------------


async def test_a_copy_is_whole_and_never_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    address = address_of(tmp_path)
    async with connected(tmp_path) as connection:
        await store(connection, "t", SCHEMA, MANY)
        first = await SQLITE.copy_before_upgrade(connection, address, 3)
        await connection.run("delete from t")
        second = await SQLITE.copy_before_upgrade(connection, address, 3)
    assert (Path(first).name, Path(second).name) == ("houses.version-3.db", "houses.version-3-2.db")
    assert files(tmp_path) == {"houses.db", "houses.version-3.db", "houses.version-3-2.db"}
    for name, count in (("houses.version-3.db", 5000), ("houses.version-3-2.db", 0)):
        database = sqlite3.connect(tmp_path / name)
        assert database.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert database.execute("select count(*) from t").fetchall() == [(count,)]
        database.close()


async def test_a_copy_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    async with connected(tmp_path) as connection:
        await make(connection, a="number")
        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(DiskFullError, match="no room is left"):
            await SQLITE.copy_before_upgrade(connection, address_of(tmp_path), 3)
    assert files(tmp_path) == {"houses.db"}


async def test_a_file_system_without_hard_links_gets_a_copy_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    async with connected(tmp_path) as connection:
        await store(connection, "t", SCHEMA, MANY)
        for _ in range(2):
            await SQLITE.copy_before_upgrade(connection, address_of(tmp_path), 3)
    assert files(tmp_path) == {"houses.db", "houses.version-3.db", "houses.version-3-2.db"}
