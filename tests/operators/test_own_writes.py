"""A statement that reads or updates a database after a write of its own run sees what was passed on to it.

By data it sees every row that it got, by ENABLE every row that was taken before, by DONE all rows: in every
mode, whatever the buffers hold.

PostgreSQL is asked in some of the modes only, and there are just more rows than a buffer holds. With
AIOFLOW_TEST_LONG=1 it is asked in all of them, with 1,000 rows. Random chains are in
test_own_writes_oracle.py, and on SQLite in tests/naive/databases.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from aioflow import Engine, Row, RunError, loads
from aioflow.relation import Batch
from aioflow.state.databases import Databases
from aioflow.state.errors import CommitError
from aioflow.state.staged import StagedRows
from aioflow.testing import Script, rows, run_plan
from tests.operators.database_plans import configuration, out, run, table, text_of
from tests.operators.running import NO_MEMORY, Mode, bag

IS_LONG = os.environ.get("AIOFLOW_TEST_LONG") == "1"
MANY = 1000 if IS_LONG else 300
NUMBERS = [(number, 2 * number) for number in range(MANY)]

# Where steps wait for the end of their inputs, buffers take everything.
SETUPS = [
    (database, mode, capacity)
    for database in ("sqlite", "postgresql")
    for mode, capacity in (("D-", 256), ("D+S-", 256), ("D+S+", 1), ("D+S+", 256))
    if IS_LONG or database == "sqlite" or (mode, capacity) in (("D-", 256), ("D+S+", 1))
]
BUFFERS = pytest.mark.parametrize(("database_url", "mode", "capacity"), SETUPS, indirect=["database_url"])
MODES = pytest.mark.parametrize(
    ("database_url", "mode"),
    list(dict.fromkeys((database, mode) for database, mode, _ in SETUPS)),
    indirect=["database_url"],
)


def numbers(given: Iterable[Row] = NUMBERS) -> Script:
    """Rows that come one by one."""
    return Script(*({"n": n, "m": m} for n, m in given))


def found(url: str, statements: str, outputs: str, **settings: Any) -> list[list[Row]]:
    """The rows of several outputs, in an order that can be compared."""
    result = run(url, statements, outputs=outputs, **settings)
    return [sorted(record.row for record in result.outputs[name]) for name in outputs.split(", ")]


def run_plans(url: str, text: str, *, mode: Mode = "D+S+", **inputs: Any) -> list[Row]:
    """The rows of the output of the plan `main` of a text."""

    async def main() -> list[Row]:
        async with Engine(8, mode=mode, configuration=configuration(url)) as engine:
            return [record.row for record in await engine.run(loads(text, plan="main"), inputs)]

    return asyncio.run(main())


# --- by data ------------------------------------------------------------------------------------


@BUFFERS
def test_an_update_changes_the_rows_that_were_passed_on_to_it(
    database_url: str, mode: Mode, capacity: int
) -> None:
    statements = """dbappend (rel, "c" : stored)
    dbupdate ("update c set m = m + 1 where n = :n", stored : out)"""
    changed = out(database_url, statements, rel=numbers(), mode=mode, capacity_rows=capacity)
    assert sorted(changed) == [(n, m, 1) for n, m in NUMBERS]
    assert sorted(table(database_url, "c")) == [(n, m + 1) for n, m in NUMBERS]


@BUFFERS
def test_a_query_for_each_tuple_finds_the_row_that_was_passed_on(
    database_url: str, mode: Mode, capacity: int
) -> None:
    statements = """dbappend (rel, "c" : stored)
    dbquery ("select count(*) as found from c where n = :n and m = :m", stored : out)"""
    seen = out(database_url, statements, rel=numbers(), mode=mode, capacity_rows=capacity)
    assert sorted(seen) == [(n, m, 1) for n, m in NUMBERS]
    assert sorted(table(database_url, "c")) == NUMBERS


@BUFFERS
@pytest.mark.parametrize("updates", [False, True], ids=["ignore", "update"])
def test_rows_with_a_key_are_seen_as_they_were_stored(
    database_url: str, mode: Mode, capacity: int, updates: bool
) -> None:
    before = [(number, -1) for number in range(0, MANY, 2)]
    run(database_url, 'dbappend (rel, "c") {KEY: "n"}', rel=numbers(before))
    option = "; ON_CONFLICT: update" if updates else ""
    statements = f"""dbappend (rel, "c" : stored) {{KEY: "n"{option}}}
    dbquery ("select m as seen from c where n = :n", stored : out)"""
    seen = out(database_url, statements, rel=numbers(), mode=mode, capacity_rows=capacity)
    kept = NUMBERS if updates else sorted({**dict(NUMBERS), **dict(before)}.items())
    assert sorted(seen) == [(n, m, kept[n][1]) for n, m in NUMBERS]
    assert sorted(table(database_url, "c")) == kept


@MODES
@pytest.mark.parametrize("updates", [False, True], ids=["ignore", "update"])
def test_of_tuples_with_one_key_the_table_has_the_same_one_as_if_nothing_had_read_it(
    database_url: str, mode: Mode, updates: bool
) -> None:
    option = "; ON_CONFLICT: update" if updates else ""
    given = [(number % 7 or None, number) for number in range(300)]
    statements = f"""dbappend (rel, "c" : stored) {{KEY: "n"{option}}}
    dbquery ("select 1 as one from c where n = :n", stored : out)"""
    run(database_url, statements, outputs="out", rel=numbers(given), mode=mode)
    expected = dict(given if updates else reversed(given))
    assert dict(table(database_url, "c")) == expected


@BUFFERS
def test_diff_compares_with_the_rows_that_were_passed_on_to_it(
    database_url: str, mode: Mode, capacity: int
) -> None:
    statements = """dbappend (rel, "c" : stored)
    diff (stored, "c" : added, changed, removed) {KEY: "n"}"""
    settings: dict[str, Any] = {"mode": mode, "capacity_rows": capacity}
    assert found(database_url, statements, "added, changed, removed", rel=numbers(), **settings) == [
        [],
        [],
        [],
    ]
    assert sorted(table(database_url, "c")) == NUMBERS


@BUFFERS
def test_an_update_changes_the_rows_that_diff_passed_on_to_it(
    database_url: str, mode: Mode, capacity: int
) -> None:
    run(database_url, 'dbappend (rel, "c")', rel=numbers([(number, -1) for number in range(10)]))
    statements = """diff (rel, "c" : added, changed, removed) {KEY: "n"}
    dbupdate ("update c set m = m + 1 where n = :n", added : new)
    dbquery ("select m as seen from c where n = :n", changed : old)"""
    new, old = found(database_url, statements, "new, old", rel=numbers(), mode=mode, capacity_rows=capacity)
    assert new == [(n, m, 1) for n, m in NUMBERS[10:]]
    assert [(row[0], row[-1]) for row in old] == NUMBERS[:10]


@BUFFERS
def test_what_dbexport_passes_on_is_in_the_table(database_url: str, mode: Mode, capacity: int) -> None:
    statements = """dbexport (rel, "c" : stored)
    dbquery ("select count(*) as found from c where n = :n", stored : out)"""
    seen = out(database_url, statements, rel=numbers(), mode=mode, capacity_rows=capacity)
    assert sorted(seen) == [(n, m, 1) for n, m in NUMBERS]


def test_what_dbexport_passes_on_may_be_more_than_fits_into_memory(database_url: str) -> None:
    statements = """dbexport (rel, "c" : stored)
    dbquery ("select count(*) as found from c where n = :n", stored : out)"""
    seen = out(database_url, statements, rel=numbers(), memory_bytes=NO_MEMORY)
    assert sorted(seen) == [(n, m, 1) for n, m in NUMBERS]


@BUFFERS
def test_rows_of_several_writes_are_seen_after_a_union(database_url: str, mode: Mode, capacity: int) -> None:
    statements = """dbappend (rel, "c" : first)
    dbappend (late, "c" : second)
    union (first, second : both)
    dbquery ("select count(*) as found from c where n = :n", both : out)"""
    late = Script(*({"n": number, "m": 0} for number in range(MANY, MANY + 50)))
    seen = out(database_url, statements, rel=numbers(), late=late, mode=mode, capacity_rows=capacity)
    assert [count for *_, count in seen] == [1] * (MANY + 50)


@BUFFERS
def test_a_row_is_never_written_before_the_one_that_it_came_from(
    database_url: str, mode: Mode, capacity: int
) -> None:
    keyed = '{KEY: "n"; ON_CONFLICT: update}'
    statements = f"""dbappend (rel, "c" : first) {keyed}
    dbappend (late, "c" : second) {keyed}
    union (first, second : both) {{ALL}}
    project (both, "n, m + 1 as m" : more)
    dbappend (more, "c" : stored) {keyed}
    dbquery ("select m as seen from c where n = :n", stored : out)"""
    late = numbers((number, 0) for number in range(MANY, MANY + 200))
    seen = out(
        database_url, statements, rel=numbers(NUMBERS[:200]), late=late, mode=mode, capacity_rows=capacity
    )
    assert len(seen) == 400
    assert [row for row in seen if row[1] != row[2]] == []
    expected = {n: m + 1 for n, m in NUMBERS[:200]} | dict.fromkeys(range(MANY, MANY + 200), 1)
    assert dict(table(database_url, "c")) == expected


@MODES
def test_rows_that_a_called_plan_wrote_are_seen(database_url: str, mode: Mode) -> None:
    text = """
    PLAN keep { INPUT: x OUTPUT: y BODY { dbappend (x, "c" : y) } }
    PLAN look { INPUT: x OUTPUT: y BODY { dbquery ("select count(*) as k from c where n = :n", x : y) } }
    PLAN main { INPUT: rel OUTPUT: out BODY { keep (rel : stored) look (stored : out) } }"""
    found = run_plans(database_url, text, mode=mode, rel=numbers())
    assert [count for *_, count in found] == [1] * MANY


MIXED: dict[str, list[Any]] = {
    "text": [1, 2, 3, "x"],
    "numbers": [1, 2.5, 2**60, 0.1, Decimal("0.1"), 2**80],
    "booleans": [True, 1, "x"],
    "dates": [date(2026, 1, 1), datetime(2026, 1, 1, 5)],
    "nulls": [None, None, 3, 2.5, "x"],
}


@pytest.mark.parametrize("values", MIXED.values(), ids=MIXED)
def test_a_table_that_was_seen_early_takes_values_of_other_types_later(
    database_url: str, values: list[Any]
) -> None:
    given = [(number, values[number // 20]) for number in range(20 * len(values))]
    statements = """dbappend (rel, "c" : stored)
    dbquery ("select m as seen from c where n = :n", stored : out)"""
    tables = []
    for mode in ("D+S-", "D+S+"):
        seen = out(database_url, statements, rel=numbers(given), mode=mode, capacity_rows=1)
        assert bag((n, m) for n, _, m in seen) == bag(given)
        assert bag(table(database_url, "c")) == bag(given)
        tables.append(columns(database_url, "c"))
        run(database_url, 'dbupdate ("drop table c")')
    assert tables[0] == tables[1]


def columns(url: str, name: str) -> list[tuple[str, str]]:
    """The columns of a table, as they are declared."""

    async def find() -> list[tuple[str, str]]:
        databases = Databases(configuration(url))
        connection = await databases.connect(databases.address(None, Path()))
        try:
            return [(column.name, column.declared) for column in await connection.columns(name) or ()]
        finally:
            await connection.close()

    return asyncio.run(find())


# --- what a statement does not see --------------------------------------------------------------


@BUFFERS
def test_a_query_sees_nothing_that_is_written_after_it(database_url: str, mode: Mode, capacity: int) -> None:
    run(database_url, 'dbexport (rel, "seen")', rel=rows(schema="k n"))
    statements = """dbappend (rel, "log" : stored)
    dbquery ("select count(*) as known from seen where k = :k", stored : out)
    dbappend (out, "seen") {EVOLVE}"""
    given = rows(*((number % 3, number) for number in range(300)), schema="k n")
    found = out(database_url, statements, rel=given, mode=mode, capacity_rows=capacity)
    assert [known for *_, known in found] == [0] * 300


@MODES
@pytest.mark.parametrize("clause", ["", "{DONE: ended}"], ids=["tail", "deep"])
def test_a_level_of_a_recursion_sees_what_those_above_it_wrote(
    database_url: str, mode: Mode, clause: str
) -> None:
    text = f"""PLAN main {{ INPUT: x (n number, m number) OUTPUT: out BODY {{
      dbappend (x, "c" : stored)
      dbquery ("select count(*) as above from c where m = :m", stored : here)
      select (here, "n > 0" : more)
      project (more, "n - 1 as n, m" : next)
      main (next : rest) {clause}
      union (here, rest : out) {{ALL}}
    }} }}"""
    given = numbers((5, number) for number in range(60))
    assert sorted(run_plans(database_url, text, mode=mode, x=given)) == sorted(
        (5 - level, number, level + 1) for level in range(6) for number in range(60)
    )


@MODES
def test_another_database_is_read_as_it_is(database_url: str, mode: Mode, tmp_path: Path) -> None:
    other = f"sqlite:{tmp_path / 'other.db'}"
    run(other, 'dbappend (rel, "c")', rel=numbers(NUMBERS[:3]))
    statements = """dbappend (rel, "c" : stored) {DONE: d}
    dbimport ("c" : imported) {DB: other; WAIT: d}
    dbquery ("select count(*) as k from c where n = :n", stored : asked) {DB: other}"""
    imported, asked = found(
        database_url,
        statements,
        "imported, asked",
        rel=numbers(NUMBERS[:5]),
        databases={"other": other},
        mode=mode,
    )
    assert imported == NUMBERS[:3]
    assert [count for *_, count in asked] == [1, 1, 1, 0, 0]


# --- by signals ---------------------------------------------------------------------------------


@BUFFERS
def test_an_import_sees_by_enable_what_was_taken_before_and_by_done_everything(
    database_url: str, mode: Mode, capacity: int
) -> None:
    statements = """dbappend (rel, "c") {ENABLE: begun; DONE: ended}
    dbimport ("c" : early) {WAIT: begun}
    dbimport ("c" : late) {WAIT: ended}"""
    early, late = found(
        database_url, statements, "early, late", rel=numbers(), mode=mode, capacity_rows=capacity
    )
    assert NUMBERS[0] in early
    assert early == NUMBERS[: len(early)]
    assert late == NUMBERS


def test_an_import_sees_by_enable_just_what_was_taken_before(tmp_path: Path) -> None:
    source = Script().row(n=0, m=0).row(n=1, m=2).wait(3).row(n=2, m=4)
    statements = """dbappend (rel, "c") {ENABLE: begun}
    select (go, "n > 0" : gone)
    dbimport ("c" : out) {WAIT: begun, gone}"""
    text = text_of(statements, ["rel", "go"], "out")
    url = f"sqlite:{tmp_path / 'test.db'}"
    result = run_plan(text, configuration=configuration(url), rel=source, go=Script().wait(1).row(n=1))
    assert sorted(record.row for record in result) == NUMBERS[:2]
    assert table(url, "c") == NUMBERS[:3]


@BUFFERS
def test_dbexport_sends_enable_at_its_end(database_url: str, mode: Mode, capacity: int) -> None:
    run(database_url, 'dbappend (rel, "c")', rel=numbers([(-1, -1)]))
    # All rows are there when it begins, but not all of them are taken when it has the first.
    statements = """log (rel, "given") {DONE: given}
    dbexport (rel, "c" : stored) {WAIT: given; ENABLE: begun}
    dbimport ("c" : out) {WAIT: begun}
    dbquery ("select n as again from c where n = :n", stored : _)"""
    seen = out(database_url, statements, rel=numbers(), mode=mode, capacity_rows=capacity)
    assert sorted(seen) == NUMBERS


# --- writers that fail --------------------------------------------------------------------------


def _fail_to_stage(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """The batch with a certain row cannot be kept."""
    add = StagedRows.add

    def failing(staged: StagedRows, batch: Batch) -> None:
        if any(row[0] == number for row in batch):
            raise OSError("torn tape")
        add(staged, batch)

    monkeypatch.setattr(StagedRows, "add", failing)


def test_nobody_sees_rows_of_a_writer_whose_failure_is_taken(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail_to_stage(monkeypatch, MANY - 1)
    statements = """dbexport (rel, "c" : stored) {ERRORS: bad}
    dbquery ("select count(*) as k from c where n = :n", stored : out)"""
    result = run(database_url, statements, outputs="out, bad", rel=numbers(), capacity_rows=1)
    assert (len(result.outputs["out"]), len(result.outputs["bad"])) == (0, 1)
    assert out(database_url, 'dbimport ("c" : out) {IF_MISSING: empty}') == []


def test_a_writer_that_fails_after_its_rows_were_seen_ends_the_run(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail_to_stage(monkeypatch, MANY - 1)
    statements = """dbappend (rel, "c" : stored)
    dbquery ("select count(*) as k from c where n = :n", stored : out)"""
    told = (
        r"dbappend: OSError: torn tape; the run has read rows of it already; nothing of this run was stored"
    )
    with pytest.raises(CommitError, match=told):
        run(database_url, statements, outputs="out", rel=numbers(), capacity_rows=1)
    assert out(database_url, 'dbimport ("c" : out) {IF_MISSING: empty}') == []


def test_errors_takes_the_tuples_of_dbappend_and_not_that_it_cannot_keep_them(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = """dbappend (rel, "c" : stored) {ERRORS: bad}
    dbquery ("select count(*) as k from c where n = :n", stored : out)"""
    settings: dict[str, Any] = {"outputs": "out, bad", "capacity_rows": 1}
    result = run(database_url, statements, rel=numbers(), **settings)
    assert [len(result.outputs[name]) for name in ("out", "bad")] == [MANY, 0]
    _fail_to_stage(monkeypatch, MANY - 1)
    with pytest.raises(RunError, match="dbappend: OSError: torn tape"):
        run(database_url, statements, rel=numbers(), **settings)
    assert len(table(database_url, "c")) == MANY


def test_of_a_writer_whose_failure_may_be_taken_nothing_is_seen_before_its_end(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = """dbexport (rel, "c" : stored) {ERRORS: bad; ENABLE: begun}
    dbquery ("select count(*) as k from c where n = :n", stored : out)
    dbimport ("c" : seen) {WAIT: begun}"""
    settings: dict[str, Any] = {"outputs": "out, seen, bad", "capacity_rows": 1}
    result = run(database_url, statements, rel=numbers(), **settings)
    assert [len(result.outputs[name]) for name in ("out", "seen", "bad")] == [MANY, MANY, 0]
    _fail_to_stage(monkeypatch, MANY - 1)
    result = run(database_url, statements, rel=numbers(), **settings)
    assert [len(result.outputs[name]) for name in ("out", "seen", "bad")] == [0, 0, 1]
    assert len(table(database_url, "c")) == MANY


def test_a_writer_that_fails_before_its_rows_were_seen_writes_nothing_and_the_run_goes_on(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail_to_stage(monkeypatch, MANY - 1)
    run(database_url, 'dbexport (rel, "c")', rel=numbers([(-1, -1)]))
    statements = """dbexport (rel, "c" : stored) {ERRORS: bad}
    dbimport ("c" : seen) {WAIT: bad}
    unpack (bad, "relation" : failed)"""
    seen, failed = found(database_url, statements, "seen, failed", rel=numbers(), capacity_rows=1)
    assert seen == table(database_url, "c") == [(-1, -1)]
    assert len(failed) == MANY


# --- checkpoints --------------------------------------------------------------------------------


@pytest.mark.parametrize("options", ["", '{KEY: "n"}', '{KEY: "n"; ON_CONFLICT: update}'])
def test_a_plan_that_commits_as_it_streams_sees_each_row_once(tmp_path: Path, options: str) -> None:
    url = f"sqlite:{tmp_path / 'test.db'}"
    source = Script()
    for number in range(40):
        source.row(n=number, m=0)
        if number % 3 == 0:
            source.wait(0.7)
    statements = f"""dbappend (rel, "c" : stored) {options}
    dbquery ("select count(*) as k from c where n = :n", stored : seen)
    dbupdate ("update c set m = m + 1 where n = :n", seen : out)"""
    text = text_of(statements, ["rel"], "out", head="COMMIT: batch")
    result = run_plan(text, configuration=configuration(url), rel=source)
    assert sorted((record["n"], record["k"], record["changed"]) for record in result) == [
        (number, 1, 1) for number in range(40)
    ]
    assert sorted(table(url, "c")) == [(number, 1) for number in range(40)]
