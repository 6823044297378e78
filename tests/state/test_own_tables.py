"""aioflow's own tables: made once, checked, upgraded after a copy, or refused."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow.relation import Row
from aioflow.state.databases import driver_for
from aioflow.state.driver import Address, Connection
from aioflow.state.errors import DamagedError, DatabaseError, VersionError
from aioflow.state.system_tables import (
    META,
    OWN_TABLES,
    Tables,
    are_there,
    from_stamp,
    note_run,
    prepare,
    stamp,
    was_committed,
)

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
OLD = Tables(
    (
        (
            f"CREATE TABLE {META} (id bigint PRIMARY KEY, version bigint NOT NULL)",
            "CREATE TABLE aioflow_things (name text PRIMARY KEY)",
        ),
    ),
    {"aioflow_things": ("name",)},
)
NEW = Tables(
    (*OLD.migrations, ("ALTER TABLE aioflow_things ADD COLUMN size bigint",)),
    {"aioflow_things": ("name", "size")},
)
BROKEN = Tables(
    (*OLD.migrations, ("ALTER TABLE aioflow_things ADD COLUMN size bigint", "CREATE NONSENSE")),
    {"aioflow_things": ("name", "size")},
)


class Place:
    """An empty database, and what is told of it."""

    def __init__(self, url: str) -> None:
        path = Path(url.partition(":")[2]) if url.startswith("sqlite") else None
        self.address = Address("default", url, "the database", path)
        self.driver = driver_for(url)
        self.told: list[str] = []

    async def prepare(self, connection: Connection, tables: Tables = OWN_TABLES) -> None:
        await prepare(connection, self.driver, self.address, self.told.append, tables)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        connection = await self.driver.connect(self.address)
        try:
            yield connection
        finally:
            await connection.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    sqlite = request.param == "sqlite"
    return Place(f"sqlite:{tmp_path / 'test.db'}" if sqlite else request.getfixturevalue("schema_url"))


async def names(connection: Connection) -> list[Row]:
    return await connection.fetch("SELECT name FROM aioflow_things ORDER BY name")


async def test_tables_are_made_once_and_then_cost_one_query(place: Place) -> None:
    async with place.connection() as connection:
        assert not await are_there(connection, place.address)
        await place.prepare(connection)
        assert await are_there(connection, place.address)
        await note_run(connection, "a", "plan", NOON, NOON)
        counted = Counted(connection)
        await place.prepare(counted)
        assert counted.calls == ["fetch"]
        assert await was_committed(connection, "a", NOON)
    assert place.told == []


class Counted:
    """A connection whose calls are listed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self._connection, name)


async def test_who_only_looks_makes_nothing(place: Place) -> None:
    async with place.connection() as connection:
        assert not await are_there(connection, place.address)
        assert await connection.columns(META) is None


async def test_many_that_start_at_once_make_the_tables_once(place: Place) -> None:
    async def start(name: str) -> None:
        async with place.connection() as connection:
            await place.prepare(connection, OLD)
            await connection.run(f"INSERT INTO aioflow_things VALUES ('{name}')")

    async with place.connection() as connection:
        await asyncio.gather(*map(start, "abcde"))
        assert await names(connection) == [("a",), ("b",), ("c",), ("d",), ("e",)]
        assert await connection.fetch(f"SELECT version FROM {META}") == [(1,)]


async def test_a_newer_database_is_refused_and_stays_as_it_is(place: Place) -> None:
    async with place.connection() as connection:
        await place.prepare(connection, NEW)
        await connection.run("INSERT INTO aioflow_things VALUES ('a', 1)")
        with pytest.raises(VersionError, match=r"newer version.*version 2.*up to 1.*upgrade aioflow"):
            await place.prepare(connection, OLD)
        with pytest.raises(VersionError):
            await are_there(connection, place.address, OLD)
        assert await connection.fetch("SELECT * FROM aioflow_things") == [("a", 1)]
        assert await connection.fetch(f"SELECT version FROM {META}") == [(2,)]


async def test_an_older_database_is_upgraded_after_a_copy_that_is_told(place: Place) -> None:
    async with place.connection() as connection:
        await place.prepare(connection, OLD)
        await connection.run("INSERT INTO aioflow_things VALUES ('a')")
        assert not await are_there(connection, place.address, NEW)
        await place.prepare(connection, NEW)
        assert await connection.fetch("SELECT * FROM aioflow_things") == [("a", None)]
        (told,) = place.told
        assert "upgraded from version 1 to 2; a copy of what they held before is " in told
        await place.prepare(connection, NEW)
        assert len(place.told) == 1


async def test_an_upgrade_that_fails_changes_nothing_and_names_the_copy(place: Place) -> None:
    async with place.connection() as connection:
        await place.prepare(connection, OLD)
        await connection.run("INSERT INTO aioflow_things VALUES ('a')")
        with pytest.raises(DatabaseError, match=r"could not be upgraded, nothing was changed \(a copy is"):
            await place.prepare(connection, BROKEN)
        assert await connection.fetch("SELECT * FROM aioflow_things") == [("a",)]
        await place.prepare(connection, OLD)


async def test_many_that_upgrade_at_once_do_it_once(place: Place) -> None:
    async with place.connection() as connection:
        await place.prepare(connection, OLD)
        await connection.run("INSERT INTO aioflow_things VALUES ('a')")

        async def start() -> None:
            async with place.connection() as other:
                await place.prepare(other, NEW)

        await asyncio.gather(start(), start(), start())
        assert await connection.fetch("SELECT * FROM aioflow_things") == [("a", None)]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (("DROP TABLE aioflow_outbox",), "there is no table aioflow_outbox"),
        (("ALTER TABLE aioflow_outbox DROP COLUMN answer",), "aioflow_outbox has no column answer"),
        ((f"DROP TABLE {META}",), f"there is no proper {META}"),
        ((f"DELETE FROM {META}",), f"{META} has 0 rows"),
        ((f"DROP TABLE {META}", f"CREATE TABLE {META} (a text)"), f"there is no proper {META}"),
    ],
)
async def test_what_is_half_there_is_reported_and_never_made_anew(
    place: Place, damage: Sequence[str], message: str
) -> None:
    async with place.connection() as connection:
        await place.prepare(connection)
        await note_run(connection, "a", "plan", NOON, NOON)
        for statement in damage:
            await connection.run(statement)
        for look in (place.prepare(connection), are_there(connection, place.address)):
            with pytest.raises(
                DamagedError, match=f"the database: .*damaged: {message}.*nothing was changed"
            ):
                await look
        assert await was_committed(connection, "a", NOON)


async def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "notes.db"
    file.write_text("not a database at all, but long enough to be read as the header of one\n" * 20)
    place = Place(f"sqlite:{file}")
    with pytest.raises(DamagedError, match="no SQLite database"):
        async with place.connection() as connection:
            await place.prepare(connection)
    assert file.read_text().startswith("not a database")


async def test_the_last_commit_of_a_run_is_known_and_old_runs_are_let_go_of(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioflow.state.system_tables.KEPT_RUNS", 3)
    async with place.connection() as connection:
        await place.prepare(connection)
        later = NOON + timedelta(seconds=1)
        await note_run(connection, "stream", "plan", NOON, NOON)
        await note_run(connection, "stream", "plan", NOON, later)
        assert await was_committed(connection, "stream", later)
        assert not await was_committed(connection, "stream", NOON)
        for number in range(4):
            await note_run(connection, f"run {number}", "plan", NOON, later + timedelta(hours=number + 1))
        kept = await connection.fetch("SELECT run_id FROM aioflow_runs ORDER BY run_id")
        assert kept == [("run 1",), ("run 2",), ("run 3",)]
        await note_run(connection, "new", "plan", NOON, NOON + timedelta(days=91))
        assert await connection.fetch("SELECT run_id FROM aioflow_runs") == [("new",)]


async def test_a_run_that_still_commits_is_kept_although_many_began_after_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioflow.state.system_tables.KEPT_RUNS", 3)
    async with place.connection() as connection:
        await place.prepare(connection)
        for number in range(6):
            hour = NOON + timedelta(hours=number)
            await note_run(connection, "stream", "plan", NOON, hour)
            await note_run(connection, f"run {number}", "plan", hour, hour + timedelta(minutes=1))
        kept = [run_id for (run_id,) in await connection.fetch("SELECT run_id FROM aioflow_runs")]
        assert {"stream", "run 4", "run 5"} <= set(kept)
        assert not {"run 0", "run 1", "run 2"} & set(kept)


@settings(deadline=None)
@given(st.lists(st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-7))])), min_size=2))
def test_stamps_order_as_their_moments_do_and_are_read_back(moments: list[datetime]) -> None:
    safe = [moment for moment in moments if 1 < moment.year < 9999]
    assert sorted(safe, key=stamp) == sorted(safe)
    assert [from_stamp(stamp(moment)) for moment in safe] == safe
    assert {len(stamp(moment)) for moment in safe} <= {27}
