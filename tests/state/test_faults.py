"""Disks that are full or only to be read, and a PostgreSQL that is killed in the midst of commits."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from aioflow import Engine, RunError, loads
from tests.cli.program import AIOFLOW, environment, own_folders
from tests.clocks import PATIENCE_SECONDS
from tests.kills.server import kill_server_while_plans_run
from tests.servers.disks import SmallDisk, obey_permissions, small_disk
from tests.servers.postgres import Postgres

PLAN = """
PLAN keep
{
  BODY
  {
    read ("rows.jsonl" : rows)
    dbappend (rows, "kept")
  }
}
"""
DISK_BYTES = 400_000


def write_rows(folder: Path, first: int, count: int) -> None:
    rows = ({"n": number, "text": "x" * 200} for number in range(first, first + count))
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def run_plan(
    folder: Path,
    disk: SmallDisk | None = None,
    before: Callable[[], None] | None = None,
    memory: str = "64MB",
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """`aioflow run` of the plan beside its rows; the database is state.db in the folder, or on the disk."""
    arguments = ["run", str(folder / "keep.plan"), "--db", "sqlite:state.db", "--memory", memory]
    command = [*AIOFLOW, *arguments]
    return subprocess.run(
        command if disk is None else disk.command(command),
        cwd=folder,
        env=environment(**own_folders(folder), **variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        preexec_fn=before or (disk.limit if disk else None),
    )


def numbers(path: Path, scratch: Path) -> list[int]:
    """What the table holds, in a database that nobody uses and that is sound."""
    for suffix in ("", "-wal"):
        source = path.with_name(path.name + suffix)
        if source.exists():
            (scratch / source.name).write_bytes(source.read_bytes())
    with closing(sqlite3.connect(scratch / path.name)) as database:
        assert database.execute("pragma integrity_check").fetchall() == [("ok",)]
        return [number for (number,) in database.execute("select n from kept order by n")]


def assert_clear(result: subprocess.CompletedProcess[str], *words: str) -> None:
    """It failed, and said so in one line that people can do something with."""
    assert result.returncode not in (0, -9)
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    for word in words:
        assert word in result.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "keep.plan").write_text(PLAN)
    (tmp_path / "disk").mkdir()
    (tmp_path / "scratch").mkdir()
    return tmp_path


@pytest.fixture
def disk(folder: Path) -> Iterator[SmallDisk]:
    with small_disk(folder / "disk", DISK_BYTES) as disk:
        yield disk


# --- disks --------------------------------------------------------------------------------------


def test_a_full_disk_stops_a_run_and_nothing_of_it_is_stored(folder: Path, disk: SmallDisk) -> None:
    write_rows(folder, 0, 100)
    assert run_plan(folder, disk).returncode == 0
    write_rows(folder, 100, 3000)
    assert_clear(run_plan(folder, disk), "state.db", "disk")
    database = disk.folder / "state.db"
    assert numbers(database, folder / "scratch") == [*range(100)]
    disk.grow()
    again = run_plan(folder, disk)
    assert (again.returncode, again.stderr) == (0, "")
    assert numbers(database, folder / "scratch") == [*range(3100)]
    assert [path.name for path in disk.folder.iterdir()] == ["state.db"]


def test_no_room_for_what_is_staged_stops_a_run(folder: Path, disk: SmallDisk) -> None:
    write_rows(folder, 0, 3000)
    result = run_plan(folder, disk, memory="64KB", TMPDIR=".")
    assert_clear(result, "keep.plan:7:5: dbappend: ")
    assert re.search("no room is left in|File too large", result.stderr)
    assert not [path for path in disk.folder.iterdir() if path.name != "state.db"]


def test_a_database_that_can_only_be_read_stops_a_run_and_stays_as_it_was(folder: Path) -> None:
    write_rows(folder, 0, 5)
    assert run_plan(folder).returncode == 0
    database = folder / "state.db"
    database.chmod(0o444)
    before = database.read_bytes()
    assert_clear(run_plan(folder, before=obey_permissions), "state.db", "can only be read", "chmod u+w")
    assert database.read_bytes() == before
    for path in folder.glob("state.db*"):  # SQLite gives files that it makes beside it the same rights
        path.chmod(0o644)
    assert run_plan(folder, before=obey_permissions).returncode == 0
    assert numbers(database, folder / "scratch") == sorted([*range(5)] * 2)


# --- PostgreSQL ---------------------------------------------------------------------------------


def test_a_server_killed_in_mid_commit_loses_and_repeats_no_row(own_postgres: Postgres) -> None:
    url = own_postgres.create_database()
    report = asyncio.run(kill_server_while_plans_run(own_postgres, url, count=8, seed=1))
    assert report.problems == []
    assert report.kills.total() == 8
    # The server may be gone, starting up or breaking off when it is asked: the runs wait, and say so.
    assert [each for each in report.warnings if not each.startswith("waiting for the database ")] == []


def test_a_server_that_is_away_is_told_and_the_next_run_goes_on_with_it(own_postgres: Postgres) -> None:
    url = own_postgres.create_database()
    database = {"url": url, "wait_seconds": 0.1}
    program = loads('PLAN keep { INPUT: rows BODY { dbappend (rows, "kept") } }')

    async def run_thrice() -> None:
        async with Engine(configuration={"database": {"default": database}}) as engine:
            await engine.run(program, {"rows": [{"n": 1}]})
            own_postgres.stop()
            with pytest.raises(
                RunError, match=r"cannot be reached.*nothing of this run was stored"
            ) as caught:
                await engine.run(program, {"rows": [{"n": 2}]})
            assert str(own_postgres.port) in str(caught.value)
            own_postgres.start()
            await engine.run(program, {"rows": [{"n": 3}]})

    asyncio.run(run_thrice())
    assert own_postgres.run("select n from kept order by n", url=url) == [(1,), (3,)]


def test_a_server_killed_in_mid_scan_is_told_and_the_next_run_goes_on_with_it(own_postgres: Postgres) -> None:
    url = own_postgres.create_database()
    own_postgres.run("create table kept as select generate_series(1, 100000) as n", url=url)
    program = loads('PLAN look { OUTPUT: rows BODY { dbimport ("kept" : rows) } }')

    async def look_and_kill(engine: Engine) -> None:
        async with engine.stream(program) as stream:
            async for _ in stream.batches():
                if own_postgres.is_running:
                    own_postgres.kill()

    async def run_twice() -> int:
        async with Engine(configuration={"database": {"default": {"url": url}}}) as engine:
            with pytest.raises(RunError, match="connection"):
                await look_and_kill(engine)
            own_postgres.start()
            return len((await engine.run(program)).outputs["rows"])

    assert asyncio.run(run_twice()) == 100_000
