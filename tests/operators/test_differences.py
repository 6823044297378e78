"""diff against real databases: what is added, changed and removed, and what the table remembers then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import aioflow.operators.differences  # noqa: F401  # registers it
from aioflow import Engine, InputError, PlanError, Result, Row, loads
from aioflow.errors import OperatorError
from aioflow.relation import Document, Relation, Schema
from aioflow.runtime.events import Event, FiringEnded, FiringStarted
from aioflow.runtime.session import MODES, Mode
from aioflow.state.errors import CommitError
from aioflow.testing import assert_nothing_left, run_plan
from tests.operators.database_plans import ALL_OWN_TABLES, configuration, run_on, table
from tests.operators.running import NO_MEMORY, bag
from tests.servers.postgres import Postgres

OUTPUTS = ("added", "changed", "removed")
# Everything is believed at once, and told in the first run too; test_suspicion has what is held back.
STATEMENT = 'diff (rel, "t" : added, changed, removed) {KEY: "k"; IGNORE: "v"; GUARD: off; FIRST: news}'


@pytest.fixture(scope="module")
def shared_url(postgres: Postgres) -> Iterator[str]:
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without the table t, and without suspicions; making one takes PostgreSQL a second."""
    if request.param == "sqlite":
        yield f"sqlite:{tmp_path / 'test.db'}"
        return
    url = request.getfixturevalue("shared_url")
    yield url
    postgres = request.getfixturevalue("postgres")
    postgres.run(f"drop table if exists t, {ALL_OWN_TABLES}", url=url)


def records(*rows: Row, names: str = "kav") -> list[dict[str, Any]]:
    return [dict(zip(names, row, strict=True)) for row in rows]


async def diff_on(url: str, *rows: Row, statement: str = STATEMENT, **options: Any) -> Result:
    return await run_on(url, statement, outputs=", ".join(OUTPUTS), rel=records(*rows), **options)


def diff(url: str, *rows: Row, **options: Any) -> tuple[list[Row], ...]:
    """The rows of the three outputs."""
    result = asyncio.run(diff_on(url, *rows, **options))
    return tuple([record.row for record in result.outputs[name]] for name in OUTPUTS)


def many(count: int, first: int = 0) -> list[Row]:
    return [(number, f"a{number}", 0) for number in range(first, first + count)]


# --- what comes out -----------------------------------------------------------------------------


def test_the_first_run_adds_everything_and_the_next_nothing(database_url: str) -> None:
    rows = [("x", 1, 2), ("y", 2, 3)]
    assert diff(database_url, *rows) == (rows, [], [])
    assert diff(database_url, *rows) == ([], [], [])
    assert table(database_url) == rows


def test_a_changed_tuple_has_its_old_values_and_the_names_that_differ(database_url: str) -> None:
    diff(database_url, ("x", 1, 2), ("y", 2, 3))
    statement = 'diff (rel, "t" : added, changed, removed) {KEY: "k"; GUARD: off; FIRST: news}'
    result = asyncio.run(diff_on(database_url, ("x", 5, 6), ("y", 2, 4), statement=statement))
    assert [dict(record) for record in result.outputs["changed"]] == [
        {"k": "x", "a": 5, "v": 6, "old-a": 1, "old-v": 2, "changes": "a, v"},
        {"k": "y", "a": 2, "v": 4, "old-a": 2, "old-v": 3, "changes": "v"},
    ]
    assert table(database_url) == [("x", 5, 6), ("y", 2, 4)]


def test_ignored_attributes_are_refreshed_in_silence(database_url: str) -> None:
    diff(database_url, ("x", 1, 2))
    assert diff(database_url, ("x", 1, 99)) == ([], [], [])
    assert table(database_url) == [("x", 1, 99)]


def test_what_is_there_no_more_is_removed_as_the_table_had_it(database_url: str) -> None:
    diff(database_url, ("x", 1, 2), ("y", 2, 3))
    assert diff(database_url, ("y", 2, 3)) == ([], [], [("x", 1, 2)])
    assert table(database_url) == [("y", 2, 3)]


def test_an_empty_relation_removes_everything(database_url: str) -> None:
    rows = [("x", 1, 2), ("y", 2, 3)]
    diff(database_url, *rows)
    added, changed, removed = diff(database_url)
    assert (added, changed, sorted(removed)) == ([], [], rows)
    assert table(database_url) == []


def test_an_empty_relation_and_no_table_leave_nothing(database_url: str) -> None:
    assert diff(database_url) == ([], [], [])
    declared = f"PLAN test {{ INPUT: rel (k, a, v) OUTPUT: added, changed, removed BODY {{ {STATEMENT} }} }}"
    assert loads(declared)
    with pytest.raises(OperatorError, match="no table 't'"):
        table(database_url)


def test_without_key_tuples_are_compared_as_a_whole(database_url: str) -> None:
    statement = 'diff (rel, "t" : added, changed, removed) {GUARD: off; FIRST: news}'
    diff(database_url, ("x", 1, None), ("x", 2, None), statement=statement)
    assert diff(database_url, ("x", 1, None), ("x", 3, None), statement=statement) == (
        [("x", 3, None)],
        [],
        [("x", 2, None)],
    )


def test_values_of_every_kind_are_remembered(database_url: str) -> None:
    moment = datetime(2026, 1, 31, 10, tzinfo=UTC)
    rows: list[Row] = [
        (1, Decimal("1.10"), True),
        (2, float("nan"), moment),
        (3, None, Document("<p>", "html")),
        (4, Relation(Schema(("n",)), [(1,), (None,)]), "text"),
        (5, 10**30, moment.date()),
    ]
    statement = 'diff (rel, "t" : added, changed, removed) {KEY: "k"; GUARD: off; FIRST: news}'
    diff(database_url, *rows, statement=statement)
    assert bag(table(database_url)) == bag(rows)
    assert diff(database_url, *rows, statement=statement) == ([], [], [])
    turned = [(row[0], row[2], row[1]) for row in rows]
    changed = diff(database_url, *turned, statement=statement)[1]
    assert bag(changed) == bag([(*turned[at], *rows[at][1:], "a, v") for at in range(len(rows))])
    assert bag(table(database_url)) == bag(turned)
    assert diff(database_url, *turned, statement=statement) == ([], [], [])


# --- the table ----------------------------------------------------------------------------------


def test_columns_that_the_relation_does_not_have_stay_as_they_are(database_url: str) -> None:
    asyncio.run(run_on(database_url, 'dbappend (rel, "t")', rel=records(("n1", 1, "x"), names="nka")))
    statement = 'diff (rel, "t" : added, changed, removed) {KEY: "k"; GUARD: off; FIRST: news}'
    result = asyncio.run(
        run_on(
            database_url, statement, outputs=", ".join(OUTPUTS), rel=records((1, "y"), (2, "z"), names="ka")
        )
    )
    assert [dict(record) for record in result.outputs["changed"]] == [
        {"k": 1, "a": "y", "old-a": "x", "changes": "a"}
    ]
    assert table(database_url) == [("n1", 1, "y"), (None, 2, "z")]
    result = asyncio.run(
        run_on(database_url, statement, outputs=", ".join(OUTPUTS), rel=records((2, "z"), names="ka"))
    )
    assert [dict(record) for record in result.outputs["removed"]] == [{"n": "n1", "k": 1, "a": "y"}]


def test_new_attributes_are_a_mistake_or_columns_that_begin_without_a_word(database_url: str) -> None:
    first = 'diff (rel, "t") {KEY: "k"}'
    asyncio.run(run_on(database_url, first, rel=records((1, "x"), names="ka")))
    with pytest.raises(OperatorError, match="no column for 'v'; the option EVOLVE adds columns"):
        diff(database_url, (1, "x", 7))
    statement = 'diff (rel, "t" : added, changed, removed) {KEY: "k"; EVOLVE; GUARD: off}'
    assert diff(database_url, (1, "x", 7), statement=statement) == ([], [], [])
    assert diff(database_url, (1, "x", 8), statement=statement)[1] == [(1, "x", 8, "x", 7, "v")]
    assert table(database_url) == [(1, "x", 8)]


def test_columns_become_wider_while_rows_change(database_url: str) -> None:
    keys = [1, 2.5, None, float("nan"), Decimal("0.1")]
    diff(database_url, *((key, number, 1) for number, key in enumerate(keys)))
    wider = [(key, Decimal(number) / 8, 10**30) for number, key in enumerate(keys)]
    changed = diff(database_url, *wider)[1]
    assert len(changed) == len(keys) - 1  # 0 is 0
    assert bag(table(database_url)) == bag(wider)


def test_a_key_that_the_table_has_not_is_named(database_url: str) -> None:
    asyncio.run(run_on(database_url, 'dbappend (rel, "t")', rel=records(("x", 1), names="av")))
    with pytest.raises(OperatorError, match="the table 't' has no column 'k'"):
        diff(database_url, ("x", 1, 2))


def test_a_table_with_several_rows_of_one_key_is_refused(database_url: str) -> None:
    rows = records(("x", 1, 1), ("x", 2, 2), ("y", 3, 3))
    asyncio.run(run_on(database_url, 'dbappend (rel, "t")', rel=rows))
    for memory_bytes in (NO_MEMORY, 1 << 20):
        with pytest.raises(OperatorError, match=r"the table 't' has several rows with k = 'x'"):
            diff(database_url, ("x", 1, 1), memory_bytes=memory_bytes)


# --- tuples that come again ---------------------------------------------------------------------


@pytest.mark.parametrize("memory_bytes", [NO_MEMORY, 1 << 20])
def test_the_same_tuple_several_times_counts_once(database_url: str, memory_bytes: int) -> None:
    rows = [("x", 1, 1), ("y", 2, 2), ("x", 1.0, 9), ("x", 1, 1)]
    added, _, _ = diff(database_url, *rows, memory_bytes=memory_bytes)
    assert added == rows[:2]
    changed = [("x", 3, 0), ("y", 2, 5), ("x", 3, 1), ("y", 2, 6), ("z", 1, 1), ("z", 1, 1)]
    assert [len(rows) for rows in diff(database_url, *changed, memory_bytes=memory_bytes)] == [1, 1, 0]
    assert table(database_url) == [("x", 3, 0), ("y", 2, 5), ("z", 1, 1)]


@pytest.mark.parametrize("before", [[], [("x", 1, 1)], [("x", 7, 1)]], ids=["new", "known", "changed"])
def test_different_tuples_of_one_key_are_a_mistake_unless_the_first_is_to_be_kept(
    database_url: str, before: list[Row]
) -> None:
    if before:
        diff(database_url, *before)
    rows = [("x", 1, 1), ("x", 2, 1)]
    with pytest.raises(OperatorError, match=r"two different tuples have k = 'x': a = 1, then a = 2"):
        diff(database_url, *rows)
    if before:
        assert table(database_url) == before
    statement = STATEMENT.replace("IGNORE", "DUPLICATES: first; IGNORE")
    diff(database_url, *rows, statement=statement)
    assert table(database_url) == rows[:1]


# --- other runs ---------------------------------------------------------------------------------


OTHER_WRITES = {
    "changed": ('dbupdate ("update t set a = 9 where k = 1")', [(1, 5, 0), (2, 2, 0)]),
    "removed": ('dbupdate ("delete from t where k = 1")', [(1, 5, 0), (2, 2, 0)]),
    "added": ('dbupdate ("insert into t (k, a, v) values (3, 3, 3)")', [(1, 1, 0), (2, 2, 0), (3, 1, 0)]),
}


async def diff_while(url: str, other: str, *rows: Row) -> None:
    """Run diff, and another plan after it has read the table and before it has written to it."""
    was_read = asyncio.Event()

    async def rel() -> AsyncIterator[dict[str, Any]]:
        yield records((0, 0, 0))[0]
        await was_read.wait()
        await engine.run(loads(f"PLAN other {{ INPUT: rel BODY {{ {other} }} }}"), rel=records((5, 5, 5)))
        for record in records(*rows):
            yield record

    reading: set[int] = set()

    def watch(event: Event) -> None:
        if isinstance(event, FiringStarted) and event.label == "read t":
            reading.add(event.firing)
        elif isinstance(event, FiringEnded) and event.firing in reading:
            was_read.set()

    program = loads(f"PLAN test {{ INPUT: rel OUTPUT: added BODY {{ {STATEMENT} }} }}")
    async with Engine(configuration=configuration(url)) as engine:
        engine.subscribe(watch)
        await engine.run(program, rel=rel())


@pytest.mark.parametrize("what", OTHER_WRITES)
async def test_a_row_that_another_run_has_written_meanwhile_fails_the_run(
    database_url: str, what: str
) -> None:
    await diff_on(database_url, (1, 1, 0), (2, 2, 0))
    other, rows = OTHER_WRITES[what]
    done = "added" if what == "added" else "changed or removed"
    message = (
        rf"diff: the row of the table 't' with k = [13] was {done} by another run .* nothing of this run"
    )
    with pytest.raises(CommitError, match=message):
        await diff_while(database_url, other, *rows)


async def test_a_table_that_another_run_has_made_meanwhile_fails_the_run(database_url: str) -> None:
    with pytest.raises(CommitError, match="the table 't' was made by another run"):
        await diff_while(database_url, STATEMENT, (1, 1, 1))


async def test_what_others_write_to_other_rows_is_no_conflict(database_url: str) -> None:
    await diff_on(database_url, (1, 1, 0), (2, 2, 0))
    other = 'dbupdate ("insert into t (k, a, v) values (7, 7, 7)")'
    await diff_while(database_url, other, (1, 5, 0), (2, 2, 0), (3, 3, 0))
    found = await run_on(database_url, 'dbimport ("t" : out)', outputs="out")
    assert sorted(record.row for record in found) == [
        (0, 0, 0),
        (1, 5, 0),
        (2, 2, 0),
        (3, 3, 0),
        (7, 7, 7),
    ]


def test_diff_sees_what_its_own_run_has_written_before(database_url: str) -> None:
    diff(database_url, (1, 1, 0), (2, 2, 0))
    update = 'dbupdate ("update t set a = 5 where k = 1") {DONE: updated}'
    statement = STATEMENT.replace("{", "{WAIT: updated; ", 1)
    found = diff(database_url, (1, 1, 0), (2, 2, 0), statement=f"{update} {statement}")
    assert found == ([], [(1, 1, 0, 5, 0, "a")], [])
    assert table(database_url) == [(1, 1, 0), (2, 2, 0)]


def test_a_second_comparison_with_a_table_sees_the_first(database_url: str) -> None:
    statements = (
        'select (rel, "k < 2" : low) diff (low, "t") {KEY: "k"; DONE: done} '
        'diff (rel, "t" : added, changed, removed) {KEY: "k"; WAIT: done; FIRST: news}'
    )
    assert diff(database_url, (1, 1, 0), (2, 2, 0), statement=statements)[0] == [(2, 2, 0)]
    assert table(database_url) == [(1, 1, 0), (2, 2, 0)]


# --- readers and failures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_reader_that_stops_early_leaves_nothing_out(database_url: str, mode: Mode) -> None:
    statement = STATEMENT.replace("added, changed, removed", "new") + " limit (new, 1 : out)"
    result = asyncio.run(run_on(database_url, statement, outputs="out", rel=records(*many(30)), mode=mode))
    assert len(result.outputs["out"]) == 1
    assert len(table(database_url)) == 30


async def test_a_run_that_is_cancelled_leaves_the_table_as_it_was(database_url: str) -> None:
    await diff_on(database_url, (1, 1, 0))
    is_reading = asyncio.Event()

    async def rel() -> AsyncIterator[dict[str, Any]]:
        yield records((2, 2, 0))[0]
        is_reading.set()
        await asyncio.Event().wait()

    program = loads(f"PLAN test {{ INPUT: rel OUTPUT: added BODY {{ {STATEMENT} }} }}")
    async with Engine(configuration=configuration(database_url)) as engine:
        run = asyncio.create_task(engine.run(program, rel=rel()))
        await is_reading.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert_nothing_left(engine)
        found = await engine.run(loads('PLAN look { OUTPUT: out BODY { dbimport ("t" : out) } }'))
    assert [record.row for record in found] == [(1, 1, 0)]


def test_a_run_that_fails_leaves_the_table_as_it_was(database_url: str) -> None:
    diff(database_url, ("x", 1, 1))

    async def rel() -> Any:
        yield records(("y", 1, 1))[0]
        raise InputError("no more")

    with pytest.raises(InputError):
        asyncio.run(run_on(database_url, STATEMENT, outputs=", ".join(OUTPUTS), rel=rel()))
    assert table(database_url) == [("x", 1, 1)]


def test_what_fails_into_errors_is_not_written(database_url: str) -> None:
    statement = STATEMENT.replace("{", "{ERRORS: failed; ")
    rows = records(("x", 1, 1), ("x", 2, 2), ("y", 1, 1))
    result = asyncio.run(run_on(database_url, statement, outputs="added, failed", rel=rows))
    assert [record["error-kind"] for record in result.outputs["failed"]] == ["InputError"]
    assert diff(database_url, ("z", 1, 1))[0] == [("z", 1, 1)]
    assert table(database_url) == [("z", 1, 1)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ('{KEY: "k, x"}', "unknown attribute 'x'"),
        ('{KEY: "k"; IGNORE: "k"}', "cannot be both part of the KEY and ignored"),
        ('{IGNORE: "k, a, v"}', "nothing is left to tell tuples apart by"),
        ('{KEY: "k"; GUARD: 2}', "GUARD|guard"),
        ('{KEY: "k"; DUPLICATES: last}', "must be one of error, first"),
    ],
)
def test_mistakes_are_found_before_anything_runs(options: str, message: str) -> None:
    text = f'PLAN test {{ INPUT: rel (k, a, v) BODY {{ diff (rel, "t") {options} }} }}'
    with pytest.raises(PlanError, match=message):
        run_plan(text, rel=records(("x", 1, 1)))
