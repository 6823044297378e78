"""The transaction of a run: all or nothing, views of its own writes, waiting for others, lost connections."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from aioflow import Engine, InputError, Result, RunError, function, loads
from aioflow.errors import DeadlineError
from aioflow.state.crash_points import watch
from aioflow.state.databases import Databases, embedded_file
from aioflow.state.driver import Address, Connection, Kind
from aioflow.state.errors import CommitError, DisconnectedError
from aioflow.testing import run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "houses.db"


def rows(file: Path, query: str = "select n from t order by n") -> list[Any]:
    connection = sqlite3.connect(file)
    try:
        return [row[0] if len(row) == 1 else row for row in connection.execute(query)]
    finally:
        connection.close()


def configuration(file: Path, wait_seconds: float = 600.0) -> dict[str, Any]:
    return {"database": {"default": {"url": f"sqlite:{file}", "wait_seconds": wait_seconds}}}


def plan(statements: str, outputs: str = "", head: str = "") -> str:
    named = f"OUTPUT: {outputs}" if outputs else ""
    return f"PLAN p {{ INPUT: x {named} {head} BODY {{ {statements} }} }}"


async def engaged(
    text: str, file: Path, services: dict[type[Any], Any] | None = None, wait_seconds: float = 600.0, **x: Any
) -> Result:
    async with Engine(configuration=configuration(file, wait_seconds), services=services) as engine:
        return await engine.run(loads(text), x or {"x": [{"n": 1}, {"n": 2}]})


# --- all or nothing -----------------------------------------------------------------------------


def test_a_run_that_ends_well_has_written(file: Path) -> None:
    run(engaged(plan('dbappend (x, "t")'), file))
    assert rows(file) == [1, 2]
    assert rows(file, "select plan from aioflow_runs") == ["p"]


def test_a_run_that_fails_has_written_nothing(file: Path) -> None:
    text = plan('dbappend (x, "t") select (x, "n > 1" : y) apply (y, "no_such" : z) dbappend (z, "u")')
    with pytest.raises(Exception, match="no_such"):
        run(engaged(text, file))
    failing = plan(
        'dbappend (x, "t" : stored) dbquery ("select * from missing where n = :n", stored : y)', "y"
    )
    with pytest.raises(RunError, match="missing"):
        run(engaged(failing, file))
    assert rows(file, "select count(*) from sqlite_master where name = 't'") == [0]


def test_a_reader_that_leaves_early_has_the_run_write_nothing(file: Path) -> None:
    async def leave() -> None:
        async def endless() -> AsyncIterator[dict[str, int]]:
            number = 0
            while True:
                number += 1
                yield {"n": number}

        program = loads(plan('dbappend (x, "t" : out)', "out"))
        async with (
            Engine(configuration=configuration(file)) as engine,
            engine.stream(program, x=endless()) as stream,
        ):
            async for record in stream:
                if record["n"] == 10:
                    break

    run(leave())
    assert not file.exists() or rows(file, "select count(*) from sqlite_master where name = 't'") == [0]


@pytest.mark.parametrize("taken", [0, 1, 2, 3])
def test_a_run_commits_only_if_its_reader_comes_to_the_end(file: Path, taken: int) -> None:
    async def leave(*, at_the_end: bool) -> None:
        program = loads(plan('dbappend (x, "t" : out)', "out"))
        async with (
            Engine(configuration=configuration(file)) as engine,
            engine.stream(program, x=[{"n": 1}, {"n": 2}, {"n": 3}]) as stream,
        ):
            for _ in range(taken):
                await anext(stream)
            await asyncio.sleep(60)  # every statement has ended
            if at_the_end:
                async for _ in stream:
                    pass

    run(leave(at_the_end=False))
    assert not file.exists() or rows(file, "select count(*) from sqlite_master where name = 't'") == [0]
    run(leave(at_the_end=True))
    assert rows(file) == [1, 2, 3]


def test_a_run_that_writes_nothing_touches_no_database(file: Path) -> None:
    run(engaged(plan('select (x, "n > 5" : y) dbappend (y, "t")'), file))
    assert not file.exists()


def test_a_conflict_while_applying_names_statement_and_row_and_undoes_everything(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("create table t (n integer check (n < 2))")
    connection.commit()
    connection.close()
    text = plan('dbappend (x, "u")\n dbappend (x, "t")')
    with pytest.raises(CommitError) as caught:
        run(engaged(text, file))
    message = str(caught.value)
    assert "<plan>:2:2: dbappend" in message
    assert "2" in message
    assert message.endswith("nothing of this run was stored")
    assert rows(file, "select count(*) from sqlite_master where name = 'u'") == [0]


# --- a view of its own writes -------------------------------------------------------------------


def test_a_read_that_waits_for_a_write_sees_it(file: Path) -> None:
    text = plan(
        'dbappend (x, "t") {DONE: kept} dbquery ("select sum(n) as s from t" : out) {WAIT: kept}', "out"
    )
    assert [record["s"] for record in run(engaged(text, file))] == [3]


def test_a_read_beside_a_write_sees_what_was_there_before(file: Path) -> None:
    text = plan('dbappend (x, "t") dbimport ("t" : out) {IF_MISSING: empty}', "out")
    assert list(run(engaged(text, file))) == []
    assert [record["n"] for record in run(engaged(text, file))] == [1, 2]


def test_what_was_done_at_once_is_undone_when_the_run_fails(file: Path) -> None:
    run(engaged(plan('dbappend (x, "t")'), file))
    text = plan(
        'dbupdate ("delete from t") {DONE: d} dbquery ("select * from missing" : out) {WAIT: d}', "out"
    )
    with pytest.raises(RunError, match="missing"):
        run(engaged(text, file))
    assert rows(file) == [1, 2]


def test_a_file_that_is_removed_while_a_run_writes_to_it_fails_the_run(file: Path) -> None:
    async def removing() -> AsyncIterator[dict[str, int]]:
        yield {"n": 1}
        await asyncio.sleep(1)
        os.unlink(file)
        yield {"n": 2}

    text = plan('dbupdate ("create table if not exists c (n)", x : y)')
    with pytest.raises(CommitError, match="removed or replaced while the run wrote to it"):
        run(engaged(text, file, x=removing()))


def test_writes_after_an_update_follow_it(file: Path) -> None:
    run(engaged(plan('dbappend (x, "t")'), file))
    text = plan('dbupdate ("delete from t") {DONE: d} dbappend (x, "t") {WAIT: d}')
    run(engaged(text, file, x=[{"n": 7}]))
    assert rows(file) == [7]


def test_a_reader_that_leaves_does_not_have_writes_applied_twice(file: Path) -> None:
    text = plan(
        """
        dbappend (x, "t") {DONE: kept}
        dbimport ("t" : read) {WAIT: kept}
        limit (read, 1 : out)
        dbquery ("select count(*) as n from t" : counted) {WAIT: out}
        """,
        "out, counted",
    )
    numbers = [{"n": number} for number in range(3000)]
    for _ in range(5):
        file.unlink(missing_ok=True)
        asyncio.run(engaged(text, file, x=numbers))
        assert rows(file, "select count(*) from t") == [3000]


def test_a_write_that_cannot_be_applied_early_fails_the_run_whoever_takes_the_error(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("create table t (n integer check (n < 2))")
    connection.commit()
    connection.close()
    text = plan(
        'dbappend (x, "t") {DONE: d} dbquery ("select :n as m", x : out) {WAIT: d; ERRORS: skip}', "out"
    )
    with pytest.raises(CommitError, match="refused row 2"):
        run(engaged(text, file))
    assert rows(file) == []


def test_diff_behind_a_write_compares_with_what_was_written(file: Path) -> None:
    text = plan(
        'dbappend (x, "t") {DONE: d} diff (x, "t" : added, changed, removed) {KEY: "n"; WAIT: d}',
        "added, removed",
    )
    result = run(engaged(text, file))
    assert result.outputs["added"] == []
    assert rows(file) == [1, 2]


# --- waiting for others -------------------------------------------------------------------------


def test_a_run_waits_for_another_writer_and_says_so(file: Path) -> None:
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    other.execute("pragma journal_mode = wal")
    other.execute("begin immediate")

    async def main() -> Result:
        asyncio.get_running_loop().call_later(3, other.execute, "rollback")
        return await engaged(plan('dbappend (x, "t")'), file)

    try:
        result = run(main())
    finally:
        other.close()
    assert any("another run is writing to it" in warning for warning in result.warnings)
    assert rows(file) == [1, 2]


def test_patience_ends(file: Path) -> None:
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("pragma journal_mode = wal")
    other.execute("begin immediate")
    try:
        with pytest.raises(CommitError, match="wait_seconds"):
            run(engaged(plan('dbappend (x, "t")'), file, wait_seconds=5))
    finally:
        other.close()
    assert rows(file, "select count(*) from sqlite_master") == [0]


def test_runs_of_one_engine_commit_one_after_the_other(file: Path) -> None:
    async def main() -> None:
        text = plan('dbupdate ("create table if not exists c (n)") {DONE: d} dbappend (x, "c") {WAIT: d}')
        async with Engine(configuration=configuration(file)) as engine:
            await asyncio.gather(*(engine.run(loads(text), x=[{"n": number}]) for number in range(10)))

    run(main())
    assert rows(file, "select n from c order by n") == list(range(10))


@pytest.mark.parametrize("workers", [1, 2])
def test_runs_that_wait_for_the_lock_hold_no_permit_that_its_holder_needs(file: Path, workers: int) -> None:
    update = plan('dbupdate ("create table if not exists c (n)", x : y)')
    view = plan('dbappend (x, "t") {DONE: d} dbquery ("select :n as m", x : out) {WAIT: d}', "out")

    async def slowly() -> AsyncIterator[dict[str, int]]:
        for number in range(4):
            await asyncio.sleep(1)
            yield {"n": number}

    async def main() -> None:
        async with Engine(workers, configuration=configuration(file)) as engine:
            texts = [update, view] * 3
            await asyncio.gather(*(engine.run(loads(text), x=slowly()) for text in texts))

    run(main())
    assert rows(file, "select count(*) from t") == [12]


def test_a_run_waits_for_another_one_of_its_engine_and_says_so(file: Path) -> None:
    update = plan('dbupdate ("create table if not exists c (n)", x : y)')

    async def slowly() -> AsyncIterator[dict[str, int]]:
        for number in range(4):
            await asyncio.sleep(1)
            yield {"n": number}

    async def main() -> list[str]:
        async with Engine(configuration=configuration(file)) as engine:
            first = asyncio.create_task(engine.run(loads(update), x=slowly()))
            await asyncio.sleep(1.5)
            second = await engine.run(loads(plan('dbappend (x, "t")')), x=[{"n": 1}])
            await first
            return list(second.warnings)

    (warning,) = run(main())
    assert "another run is writing to it" in warning


# --- lost connections ---------------------------------------------------------------------------


class Flaky:
    """A connection that is lost at certain calls, as a server's is."""

    def __init__(self, inner: Connection, fail: Callable[[str], None]) -> None:
        self._inner = inner
        self._fail = fail

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in ("run", "run_each", "load", "fetch"):
            return found

        async def called(*arguments: Any) -> Any:
            self._fail(name)
            return await found(*arguments)

        return called

    @asynccontextmanager
    async def transaction(self, kind: Kind) -> AsyncIterator[None]:
        async with self._inner.transaction(kind):
            yield
            if kind == "write":
                self._fail("before commit")
        if kind == "write":
            self._fail("after commit")


class FlakyDatabases(Databases):
    """Loses the connection at the calls whose numbers are given."""

    def __init__(self, file: Path, lost: set[int]) -> None:
        super().__init__(configuration(file))
        self.lost = lost
        self.calls: list[str] = []

    def fail(self, what: str) -> None:
        self.calls.append(what)
        if len(self.calls) in self.lost:
            raise DisconnectedError("the server is gone")

    async def connect(self, address: Address) -> Any:
        self.fail("connect")
        return Flaky(await super().connect(address), self.fail)


APPEND = plan('dbappend (x, "t")')


def calls_of(file: Path, text: str) -> list[str]:
    databases = FlakyDatabases(file, set())
    run(engaged(text, file, {Databases: databases}))
    return databases.calls


def test_a_connection_that_is_lost_anywhere_in_a_commit_loses_and_doubles_nothing(tmp_path: Path) -> None:
    calls = calls_of(tmp_path / "first.db", APPEND)
    assert "after commit" in calls
    for number in range(1, len(calls) + 1):
        file = tmp_path / f"{number}.db"
        run(engaged(APPEND, file, {Databases: FlakyDatabases(file, {number, number + 3})}))
        assert rows(file) == [1, 2], calls[number - 1]


SEEN = [
    'dbupdate ("create table t (n)") {DONE: d} dbappend (x, "t") {WAIT: d}',
    'dbappend (x, "t" : stored) dbquery ("select n as m from t where n = :n", stored : seen)',
    'dbexport (x, "t" : stored) {ENABLE: e} dbimport ("t" : seen) {WAIT: e}',
]


@pytest.mark.parametrize("statements", SEEN)
def test_a_run_that_saw_its_writes_is_told_if_its_commit_was_lost(tmp_path: Path, statements: str) -> None:
    text = plan(statements)
    calls = calls_of(tmp_path / "first.db", text)
    outcomes = set()
    for number in range(1, len(calls) + 1):
        file = tmp_path / f"{number}.db"
        try:
            run(engaged(text, file, {Databases: FlakyDatabases(file, {number})}))
        except RunError:
            found = (
                rows(file, "select count(*) from sqlite_master where name = 't'") if file.exists() else [0]
            )
            assert found == [0], calls[number - 1]
            outcomes.add("failed")
        else:
            assert rows(file) == [1, 2], calls[number - 1]
            outcomes.add("stored")
    assert outcomes == {"failed", "stored"}


def test_a_server_that_stays_away_is_not_waited_for_forever(file: Path) -> None:
    databases = FlakyDatabases(file, set(range(2, 10_000)))
    with pytest.raises(CommitError, match=r"the server is gone \(waited"):
        run(engaged(APPEND, file, {Databases: databases}))


# --- COMMIT: batch ------------------------------------------------------------------------------


def test_a_plan_that_commits_in_batches_is_durable_while_it_streams(file: Path) -> None:
    async def main() -> list[list[int]]:
        seen: list[list[int]] = []

        async def ticks() -> AsyncIterator[dict[str, int]]:
            for number in range(6):
                yield {"n": number}
                await asyncio.sleep(2)
                seen.append(rows(file))

        await engaged(plan('dbappend (x, "t")', head="COMMIT: batch"), file, x=ticks())
        return seen

    seen = run(main())
    assert seen == [list(range(count + 1)) for count in range(6)]
    assert rows(file) == list(range(6))


@pytest.mark.parametrize("moment", ["transaction begun", "writes applied", "transaction committed"])
@pytest.mark.parametrize(
    "statements",
    ['dbappend (x, "t")', 'dbupdate ("insert into u values (:n)", x : _) dbappend (x, "t")'],
    ids=["staged", "opened early"],
)
def test_a_run_that_ends_while_a_checkpoint_is_made_writes_each_row_once(
    file: Path, statements: str, moment: str
) -> None:
    connection = sqlite3.connect(file)
    connection.execute("create table u (n integer)")
    connection.close()

    async def main() -> None:
        reached = asyncio.Event()

        async def ticks() -> AsyncIterator[dict[str, int]]:
            yield {"n": 1}
            await reached.wait()

        def passing(name: str) -> None:
            if name == moment:
                reached.set()

        with watch(passing):
            await engaged(plan(statements, head="COMMIT: batch"), file, x=ticks())

    run(main())
    assert rows(file) == [1]
    assert rows(file, "select n from u") == ([1] if "dbupdate" in statements else [])


@function(name="transaction_next", pure=True, returns="n number")
async def next_number(row: Mapping[str, Any]) -> dict[str, Any]:
    """The number of the next level, after a while."""
    await asyncio.sleep(0.7)
    return {"n": row["n"] + 1}


RECURSION = """PLAN p { INPUT: x OUTPUT: seen COMMIT: batch BODY {
    dbappend (x, "t" : one)
    dbappend (one, "u")
    select (x, "n < 30" : more)
    apply (more, "transaction_next" : next)
    p (next : rest)
    union (x, rest : seen) {ALL}
} }"""


def test_a_recursion_is_durable_while_it_goes_on_and_a_restart_loses_nothing(file: Path) -> None:
    async def killed() -> None:
        async with Engine(configuration=configuration(file)) as engine:
            await engine.run(loads(RECURSION), x=[{"n": 0}], timeout=10)

    with pytest.raises(DeadlineError):
        run(killed())
    kept = rows(file)
    assert kept == list(range(len(kept)))
    assert 10 <= len(kept) <= 15
    assert rows(file, "select n from u order by n") == kept
    run(engaged(RECURSION, file, x=[{"n": 0}]))
    assert sorted(rows(file)) == sorted([*kept, *range(31)])
    assert rows(file, "select n from u order by n") == rows(file)


# --- which database -----------------------------------------------------------------------------


def test_a_plan_has_its_database_beside_it(tmp_path: Path) -> None:
    assert embedded_file(tmp_path) == tmp_path / "aioflow.db"


def test_a_plan_of_the_library_has_its_database_among_the_users_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import aioflow

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    library = Path(aioflow.__file__).parent / "plans"
    assert embedded_file(library / "homeseekers") == tmp_path / "aioflow" / "aioflow.db"


@pytest.mark.parametrize(
    ("tables", "name", "message"),
    [
        ({}, "houses", "there is no database 'houses' (configured: none); write [database.houses] url"),
        ({"homes": {"url": "sqlite:a.db"}}, "homse", "did you mean 'homes'?"),
        ({"default": {"url": "sqlite::memory:"}}, None, "names no file"),
        ({"default": {"url": "mysql://x/y"}}, None, "no driver for databases mysql:…"),
    ],
)
def test_a_database_that_cannot_be_used_is_told_before_anything_runs(
    tables: dict[str, Any], name: str | None, message: str
) -> None:
    (problem,) = Databases({"database": tables}).problems(name, Path())
    assert message in problem


def test_without_a_default_a_statement_says_which_of_several_databases_it_means() -> None:
    tables = {"one": {"url": "sqlite:a.db"}, "two": {"url": "sqlite:b.db"}}
    (problem,) = Databases({"database": tables}).problems(None, Path())
    assert problem.startswith("several databases are configured (one, two) and none is called default")


def test_the_only_database_that_is_configured_is_the_default(tmp_path: Path) -> None:
    databases = Databases({"database": {"homes": {"url": f"sqlite:{tmp_path / 'h.db'}"}}})
    assert databases.address(None, Path()).path == tmp_path / "h.db"


@pytest.mark.parametrize("url", ["postgresql://ann:tea@host/db", "houses.db"])
def test_a_url_with_a_password_or_without_a_scheme_is_refused(url: str) -> None:
    with pytest.raises(InputError) as caught:
        Databases({"database": {"default": {"url": url}}})
    assert "database.default.url must be a URL" in str(caught.value)
    assert "tea" not in str(caught.value)


def test_a_password_is_filled_in_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIOFLOW_SECRET_PG", "t/a@")
    tables = {"default": {"url": "postgresql://ann@host/db", "password": "secret:PG"}}
    address = Databases({"database": tables}).address(None, Path())
    assert address.url == "postgresql://ann:t%2Fa%40@host/db"
    assert "t%2Fa" not in address.shown + repr(address)
    monkeypatch.setenv("AIOFLOW_SECRET_ALL", "postgresql://ann:tea@host/db")
    address = Databases({"database": {"default": {"url": "secret:ALL"}}}).address(None, Path())
    assert address.url == "postgresql://ann:tea@host/db"
    assert address.shown == "postgresql://host/db"
