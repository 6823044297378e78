"""dbimport, dbquery, dbappend, dbexport and dbupdate on real databases."""

from __future__ import annotations

import asyncio
import errno
import inspect
import math
import sqlite3
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from aioflow import (
    AioflowError,
    Document,
    Engine,
    InputError,
    PlanError,
    Relation,
    Row,
    RunError,
    Schema,
    loads,
)
from aioflow.authoring.function import function
from aioflow.errors import DeadlineError, OperatorError
from aioflow.relation import Batch
from aioflow.runtime.spill import RowBuffer
from aioflow.state.errors import CommitError
from aioflow.testing import Script, assert_nothing_left, rows, run_plan
from tests.clocks import PATIENCE_SECONDS
from tests.operators.database_plans import configuration, out, run, table, text_of
from tests.operators.running import NO_MEMORY, Mode, bag
from tests.servers.postgres import Postgres

HOUSES = rows(("a", 1), ("b", 2), ("c", None), schema="url price")
MODES = pytest.mark.parametrize("mode", ["D-", "D+S-", "D+S+"])
NASTY = '"; drop table x; --'


def execute(url: str, *statements: str) -> None:
    """Statements of SQL, by dbupdate."""
    for statement in statements:
        run(url, "dbupdate ($sql)", head="PARAM: sql", parameters={"sql": statement})


# --- dbimport -----------------------------------------------------------------------------------


def test_what_was_appended_is_imported(database_url: str) -> None:
    run(database_url, 'dbappend (rel, "t")', rel=HOUSES)
    assert table(database_url) == [("a", 1), ("b", 2), ("c", None)]


def test_every_kind_of_value_comes_back_equal(database_url: str) -> None:
    inner = Relation(Schema.of("x", "y"), [(1, None), ("two", Decimal("2.20"))])
    zone = timezone(timedelta(hours=5, minutes=30))
    values: list[Row] = [
        (1, "text", True, date(2026, 1, 31), inner, Document("<a>", "html"), 0.1),
        (2, "", False, datetime(2026, 1, 31, 10, tzinfo=zone), None, None, float("nan")),
        (
            3,
            "a'b\"c",
            None,
            datetime(2026, 1, 31, 10, 0, 0, 1),
            Relation(inner.schema),
            None,
            Decimal("1.10"),
        ),
        (2**70, None, True, None, inner, Document("[1]", "json"), float("inf")),
    ]
    relation = Relation(Schema(("n", "s", "b", "d", "r", "doc", "x")), values)
    run(database_url, 'dbappend (rel, "t")', rel=relation)
    assert bag(out(database_url, 'dbimport ("t" : out)')) == bag(values)


def test_lists_of_values_come_back_as_lists(database_url: str) -> None:
    tags = Relation.of_values(["One", Decimal("1.10"), date(2026, 1, 2), None, Relation.of_values([1])])
    run(database_url, 'dbappend (rel, "t")', rel=rows((1, tags), schema="id tags"))
    [(_, found)] = out(database_url, 'dbimport ("t" : out)')
    assert (found, found.is_list) == (tags, True)
    unpacked = 'dbimport ("t" : all) unpack (all, "tags" : out)'
    assert bag(out(database_url, unpacked)) == bag((1, value) for (value,) in tags.rows)


def test_a_missing_table_is_an_error_that_names_a_near_one(database_url: str) -> None:
    run(database_url, 'dbappend (rel, "houses")', rel=HOUSES)
    with pytest.raises(OperatorError, match=r"no table 'house'; did you mean 'houses'\?"):
        run(database_url, 'dbimport ("house" : out)', outputs="out")


@MODES
def test_a_first_run_takes_what_it_has_never_seen_for_nothing(database_url: str, mode: Mode) -> None:
    statements = (
        'dbimport ("seen" : seen) {IF_MISSING: empty} minus (urls, seen : out) dbappend (out, "seen" : _)'
    )
    first = out(database_url, statements, urls=rows(("a",), ("b",), schema="url"), mode=mode)
    second = out(database_url, statements, urls=rows(("b",), ("c",), schema="url"), mode=mode)
    assert (sorted(first), second) == ([("a",), ("b",)], [("c",)])


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("union (rel, seen : out)", [("a",)]),
        ("intersect (rel, seen : out)", []),
        ('join (rel, seen, "left.url = right.url" : out) {TYPE: anti}', [("a",)]),
        ('join (rel, seen, "left.url = right.url" : out) {TYPE: left}', [("a",)]),
        ('aggregate (seen, "count() as n" : out) {RELATION: false}', [(0,)]),
        ("null (seen, rel, rel : out, _)", [("a",)]),
    ],
)
def test_other_operators_take_a_missing_table_for_nothing(
    tmp_path: Path, statement: str, found: list[Row]
) -> None:
    statements = f'dbimport ("seen" : seen) {{IF_MISSING: empty}} {statement} log (rel, "x" : _)'
    assert out(f"sqlite:{tmp_path / 'test.db'}", statements, rel=rows(("a",), schema="url")) == found


def test_a_reader_that_has_enough_ends_the_import(database_url: str) -> None:
    run(database_url, 'dbappend (rel, "t")', rel=rows(*((n,) for n in range(2000)), schema="n"))
    assert len(out(database_url, 'dbimport ("t" : all) limit (all, 3 : out)')) == 3


def test_another_database_can_be_read(database_url: str, tmp_path: Path) -> None:
    other = f"sqlite:{tmp_path / 'other.db'}"
    run(other, 'dbappend (rel, "t")', rel=HOUSES)
    databases = {"other": other}
    run(database_url, 'dbimport ("t" : rel) {DB: other} dbappend (rel, "t")', databases=databases)
    assert table(database_url) == table(other)


def test_an_unknown_database_is_told_before_anything_runs(tmp_path: Path) -> None:
    source = Script({"n": 1})
    with pytest.raises(PlanError, match=r"dbimport: there is no database 'othr'; did you mean 'other'\?"):
        run(
            f"sqlite:{tmp_path / 'a.db'}",
            'dbimport ("t" : out) {DB: othr} log (rel)',
            outputs="out",
            databases={"other": "sqlite:b.db"},
            rel=source,
        )
    assert source.given == 0


# --- dbquery ------------------------------------------------------------------------------------


def test_a_query_streams_its_rows(database_url: str) -> None:
    run(database_url, 'dbappend (rel, "t")', rel=HOUSES)
    assert out(database_url, 'dbquery ("select price, url as u from t where price > 1" : out)') == [(2, "b")]


@MODES
def test_a_query_for_each_tuple_is_joined_to_it(database_url: str, mode: Mode) -> None:
    run(database_url, 'dbappend (rel, "t")', rel=rows(("a", 1), ("a", 2), ("b", 3), schema="url price"))
    asked = rows(("a", "x", 0), ("c", "y", 0), schema="url tag price")
    statement = 'dbquery ("select price, price + 1 as more from t where url = :url", rel : out)'
    found = out(database_url, statement, rel=asked, mode=mode)
    assert sorted(found) == [("a", "x", 1, 2), ("a", "x", 2, 3)]
    outer = out(database_url, statement + " {OUTER}", rel=asked, mode=mode)
    assert bag(outer) == bag([*found, ("c", "y", None, None)])


def test_attributes_with_hyphens_are_bound(database_url: str) -> None:
    run(database_url, 'dbappend (rel, "t")', rel=rows(("a", 7), schema="url price-info"))
    statement = (
        """dbquery ('select "price-info" as p from t where "price-info" = :"price-info"', rel : out)"""
    )
    assert out(database_url, statement, rel=rows((7,), (8,), schema="price-info")) == [(7, 7)]


def test_results_of_an_ordered_query_keep_the_order_of_tuples(database_url: str) -> None:
    run(database_url, 'dbappend (rel, "t")', rel=rows(*((n, n * n) for n in range(50)), schema="n square"))
    statement = 'dbquery ("select square from t where n = :n", rel : out) {ORDERED}'
    found = out(database_url, statement, rel=rows(*((n,) for n in range(50)), schema="n"))
    assert found == [(n, n * n) for n in range(50)]


def test_a_query_that_fails_for_a_tuple_goes_to_errors(database_url: str) -> None:
    run(database_url, 'dbappend (rel, "t")', rel=rows((1, "one"), (2, "two"), schema="n name"))
    # abs() of the smallest integer is too large in both databases.
    size = "abs(cast(:n as bigint))"
    statement = f'dbquery ("select name, {size} as size from t where n = {size}", rel : out) {{ERRORS: bad}}'
    rel = rows((1,), (-(2**63),), (-2,), schema="n")
    result = run(database_url, statement, outputs="out, bad", rel=rel)
    assert sorted(record.row for record in result.outputs["out"]) == [(-2, "two", 2), (1, "one", 1)]
    (failure,) = result.outputs["bad"]
    assert failure["n"] == -(2**63)
    assert failure["error-kind"] == "DatabaseError"


def test_a_bad_query_names_the_statement(database_url: str) -> None:
    with pytest.raises(OperatorError, match=r"<plan>:1:\d+: dbquery"):
        run(database_url, 'dbquery ("select * from nowhere" : out)', outputs="out")


def test_mistakes_in_sql_are_found_before_anything_runs() -> None:
    text = text_of(
        """dbquery ("select :zip" : a)
        dbquery ("select :zpi", rel : b)
        dbquery ("delete from t" : c)
        dbupdate ("commit") dbupdate ("delete from t; drop table t")
        dbappend (rel, "aioflow_runs") dbimport ("" : d)""",
        ["rel (zip char)"],
        "a, b, c, d",
    )
    found = [each for each in Engine().check(loads(text)) if each.severity == "error"]
    assert [each.span.line for each in found if each.span] == [1, 2, 3, 4, 4, 5, 5]


def test_many_queries_are_under_way_and_consistent(database_url: str) -> None:
    run(database_url, 'dbappend (rel, "t")', rel=rows(*((n, n + 1) for n in range(300)), schema="n next"))
    statement = 'dbquery ("select next from t where n = :n", rel : out)'
    rel = rows(*((n,) for n in range(300)), schema="n")
    for capacity in (1, 256):
        assert (
            len(out(database_url, statement, rel=rel, capacity_rows=capacity, memory_bytes=NO_MEMORY)) == 300
        )


def test_a_reader_that_has_enough_ends_the_queries(database_url: str) -> None:
    rel = Script(*({"n": n} for n in range(100))).hang()
    assert len(out(database_url, 'dbquery ("select 1 as one", rel : all) limit (all, 3 : out)', rel=rel)) == 3
    assert rel.closed


@pytest.mark.parametrize(
    "statement",
    [
        'dbquery ("${endless}" : out)',
        'dbquery ("${endless} where n > :n", rel : out)',
        'dbappend (rel, "t") {DONE: there} dbquery ("${endless}" : out) {WAIT: there}',
        'dbupdate ("create table t as ${endless}" : out)',
    ],
)
def test_a_run_that_takes_too_long_ends_in_the_middle_of_a_query(database_url: str, statement: str) -> None:
    endless = "with recursive c(n) as (select 1 union all select n + 1 from c) select count(*) as m from c"
    program = loads(text_of(statement.replace("${endless}", endless) + " log (rel)", ["rel"], "out"))

    async def main() -> None:
        async with Engine(configuration=configuration(database_url)) as engine:
            with pytest.raises(DeadlineError):
                await engine.run(program, {"rel": rows((1,), (2,), schema="n")}, timeout=0.3)
            assert_nothing_left(engine)

    asyncio.run(main())
    assert out(database_url, 'dbimport ("t" : out) {IF_MISSING: empty}') == []


# --- dbappend -----------------------------------------------------------------------------------


def test_stored_passes_on_every_tuple(database_url: str) -> None:
    found = out(database_url, 'dbappend (rel, "t" : out)', rel=HOUSES)
    assert found == [("a", 1), ("b", 2), ("c", None)]
    assert table(database_url) == found


def test_a_reader_of_stored_that_has_enough_does_not_stop_the_write(database_url: str) -> None:
    rel = Script(*({"n": n} for n in range(500)))
    found = out(database_url, 'dbappend (rel, "t" : all) limit (all, 1 : out)', rel=rel)
    assert len(found) == 1
    assert len(table(database_url)) == 500


def test_nothing_is_written_when_the_run_fails(database_url: str) -> None:
    run(database_url, 'dbappend (rel, "t")', rel=HOUSES)
    with pytest.raises(AioflowError, match="gone"):
        run(
            database_url,
            'dbappend (rel, "t") dbexport (rel, "other") dbappend (good, "more")',
            rel=Script({"url": "z", "price": 9}).fail(OSError("gone")),
            good=HOUSES,
        )
    assert len(table(database_url)) == 3
    for name in ("other", "more"):
        assert out(database_url, f'dbimport ("{name}" : out) {{IF_MISSING: empty}}') == []


def test_nothing_is_written_when_the_run_is_cancelled(database_url: str) -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            engine = Engine(configuration=configuration(database_url))
            async with engine:
                source = Script({"n": 1}).hang()
                program = loads(text_of('dbappend (rel, "t" : out)', ["rel"], "out"))
                async for _ in engine.stream(program, {"rel": source}):
                    break

    asyncio.run(main())
    assert out(database_url, 'dbimport ("t" : out) {IF_MISSING: empty}') == []


def test_a_failure_that_errors_takes_leaves_the_table_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:{tmp_path / 'test.db'}"
    run(url, 'dbexport (rel, "t")', rel=HOUSES)
    _fail_to_stage(monkeypatch, ValueError("odd"))
    given = Script({"n": 1}).wait(0.01).row(n=2)
    result = run(url, 'dbexport (rel, "t") {ERRORS: bad}', outputs="bad", rel=given)
    assert len(result.outputs["bad"]) == 1
    assert table(url) == HOUSES.rows
    # The tuples of dbappend fail one by one; what fails all of them at once is no failure of a tuple.
    with pytest.raises(RunError, match="dbappend: ValueError: odd"):
        run(url, 'dbappend (rel, "t") {ERRORS: bad}', outputs="bad", rel=given)
    assert table(url) == HOUSES.rows


def test_a_full_disk_ends_the_run_whatever_errors_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail_to_stage(monkeypatch, OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(CommitError, match=r"dbappend: no room is left in .*; nothing of this run was stored"):
        run(
            f"sqlite:{tmp_path / 'test.db'}",
            'dbappend (rel, "t" : out) {ERRORS: bad}',
            outputs="out, bad",
            rel=Script({"n": 1}).wait(0.01).row(n=2),
        )


def _fail_to_stage(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """The second batch cannot be kept."""
    append = RowBuffer.append

    def failing(buffer: RowBuffer, batch: Batch) -> None:
        if len(buffer) and inspect.stack()[1].filename.endswith("staged.py"):
            raise error
        append(buffer, batch)

    monkeypatch.setattr(RowBuffer, "append", failing)


@pytest.mark.parametrize("rel", [rows(schema="n"), []], ids=["known", "unknown"])
def test_an_empty_relation_appends_nothing(database_url: str, rel: Any) -> None:
    assert out(database_url, 'dbappend (rel, "t" : out)', rel=rel) == []
    assert out(database_url, 'dbimport ("t" : out) {IF_MISSING: empty}') == []


def test_much_more_than_memory_holds_is_appended(database_url: str) -> None:
    rel = rows(*((n, f"text {n}") for n in range(5000)), schema="n s")
    run(database_url, 'dbappend (rel, "t") dbappend (rel, "k") {KEY: "n"}', rel=rel, memory_bytes=NO_MEMORY)
    assert bag(table(database_url)) == bag(rel.rows) == bag(table(database_url, "k"))


def test_new_attributes_need_evolve(database_url: str) -> None:
    run(database_url, 'dbappend (rel, "t")', rel=rows((1,), schema="n"))
    more = rows((2, "x"), schema="n tag")
    with pytest.raises(
        RunError, match=r"dbappend: the table 't' has no column for the attribute 'tag'.*EVOLVE"
    ):
        run(database_url, 'dbappend (rel, "t")', rel=more)
    run(database_url, 'dbappend (rel, "t") {EVOLVE}', rel=more)
    run(database_url, 'dbappend (rel, "t")', rel=rows(("y",), schema="tag"))
    assert table(database_url) == [(1, None), (2, "x"), (None, "y")]


def test_columns_become_wider_where_values_need_it(database_url: str) -> None:
    values = [1, 2.5, Decimal("0.1"), 2**80]
    for value in values:
        run(database_url, 'dbappend (rel, "t")', rel=rows((value,), schema="v"))
    assert bag(table(database_url)) == bag([(value,) for value in values])


# --- dbappend with KEY --------------------------------------------------------------------------


def keyed(
    url: str, *given: Row, update: bool = False, key: str = "a", schema: str = "a b", **settings: Any
) -> None:
    option = "; ON_CONFLICT: update" if update else ""
    run(url, f'dbappend (rel, "t") {{KEY: "{key}"{option}}}', rel=rows(*given, schema=schema), **settings)


def test_rows_that_are_there_are_ignored(database_url: str) -> None:
    keyed(database_url, ("x", 1), ("y", 1), ("x", 2))
    keyed(database_url, ("y", 3), ("z", 3))
    assert table(database_url) == [("x", 1), ("y", 1), ("z", 3)]


@MODES
def test_rows_that_are_there_are_updated(database_url: str, mode: Mode) -> None:
    keyed(database_url, ("x", 1), ("y", 1), ("x", 2), update=True, mode=mode)
    keyed(database_url, ("y", 3), ("z", 3), ("y", 4), update=True, mode=mode)
    assert table(database_url) == [("x", 2), ("y", 4), ("z", 3)]


def test_an_update_keeps_columns_that_the_relation_does_not_have(database_url: str) -> None:
    keyed(database_url, ("x", 1, "kept"), schema="a b c")
    keyed(database_url, ("x", 2), ("y", 3), update=True)
    assert table(database_url) == [("x", 2, "kept"), ("y", 3, None)]


def test_null_equals_null_in_a_key(database_url: str) -> None:
    for update in (False, True):
        run(database_url, 'dbexport (rel, "t")', rel=rows((None, None, 0), schema="a b c"))
        given = [
            (None, None, 1),
            (None, 1, 1),
            (1, None, 1),
            (None, 1, 2),
            (1, None, 3),
            (1, 1, 4),
            (None, None, 5),
        ]
        for _ in range(2):
            keyed(database_url, *given, key="a, b", schema="a b c", update=update)
        first = [(1, 1, 4), (1, None, 1), (None, 1, 1), (None, None, 0)]
        last = [(1, 1, 4), (1, None, 3), (None, 1, 2), (None, None, 5)]
        assert table(database_url) == (last if update else first)
        execute(database_url, "drop table t")


def test_a_key_of_all_attributes_keeps_each_tuple_once(database_url: str) -> None:
    for update in (False, True):
        keyed(database_url, ("x", 1), ("x", 1), (None, 1), (None, 1), key="a, b", update=update)
    assert table(database_url) == [("x", 1), (None, 1)]


SAME: list[list[Any]] = [
    [1, 1.0, Decimal("1.00"), Decimal(1)],
    [Decimal("2.50"), 2.5, Decimal("2.5")],
    [0.1, Decimal("0.1"), Decimal("0.10")],
    [float("nan"), Decimal("nan"), math.nan],
    [2**70, float(2**70), Decimal(2**70)],
    [datetime(2026, 1, 31, 12, tzinfo=UTC), datetime(2026, 1, 31, 13, tzinfo=timezone(timedelta(hours=1)))],
]


def test_keys_that_are_equal_in_the_language_are_one(database_url: str) -> None:
    for same in SAME:
        keyed(database_url, *((value, place) for place, value in enumerate(same)), update=True)
        ((key, last),) = table(database_url)
        assert bag([(key,)]) == bag([(same[0],)])
        assert last == len(same) - 1
        execute(database_url, "drop table t")


def test_keys_that_differ_in_the_language_stay_apart(database_url: str) -> None:
    given = [(0.1, 1), (Decimal.from_float(0.1), 2), (1, 3), (2**63 - 1, 4), (2**63, 5)]
    keyed(database_url, *given)
    assert bag(table(database_url)) == bag(given)


def test_a_table_whose_rows_share_a_key_is_refused(database_url: str) -> None:
    run(database_url, 'dbappend (rel, "t")', rel=rows(("x", 1), ("x", 2), schema="a b"))
    with pytest.raises(RunError, match=r"a cannot be the key of the table 't': it has 2 rows with a='x'"):
        keyed(database_url, ("y", 1))


def test_a_table_that_others_made_with_a_key_is_used_as_it_is(database_url: str) -> None:
    execute(database_url, "create table t (a varchar(9) primary key, b integer not null)")
    keyed(database_url, ("x", 1), ("y", 1), ("x", 2), update=True)
    assert table(database_url) == [("x", 2), ("y", 1)]


def test_a_row_that_is_refused_is_named(database_url: str) -> None:
    execute(database_url, "create table t (a varchar(9) primary key, b integer not null check (b < 100))")
    given = [(f"k{n}", n) for n in range(80)]
    for statement in ('dbappend (rel, "t")', 'dbappend (rel, "t") {KEY: "a"}'):
        with pytest.raises(RunError, match=r"dbappend: (.|\n)*bad(.|\n)*nothing of this run was stored"):
            run(database_url, statement, rel=rows(*given, ("bad", 1000), ("good", 1), schema="a b"))
    assert table(database_url) == []


def test_relations_and_documents_are_no_keys(database_url: str) -> None:
    with pytest.raises(RunError, match="relation or document cannot be a key: 'a'"):
        keyed(database_url, (Document("<a>"), 1))
    text = text_of('dbappend (rel, "t") {KEY: "a"}', ["rel (a document)"])
    (mistake,) = Engine().check(loads(text))
    assert "a document cannot be a key: 'a'" in mistake.message


# --- dbexport -----------------------------------------------------------------------------------


@MODES
def test_a_table_becomes_exactly_the_relation(database_url: str, mode: Mode) -> None:
    assert out(database_url, 'dbexport (rel, "t" : out)', rel=HOUSES, mode=mode) == HOUSES.rows
    run(database_url, 'dbexport (rel, "t")', rel=rows((9, "z"), schema="price url"), mode=mode)
    assert table(database_url) == [("z", 9)]
    run(database_url, 'dbexport (rel, "t")', rel=rows((True, "z"), schema="seen url"), mode=mode)
    assert table(database_url) == [(True, "z")]
    run(database_url, 'dbexport (rel, "t")', rel=rows(schema="seen url"), mode=mode)
    assert table(database_url) == []


def test_a_table_with_the_same_columns_keeps_its_indexes(database_url: str) -> None:
    keyed(database_url, ("x", 1))
    run(database_url, 'dbexport (rel, "t")', rel=rows(("y", 1), schema="a b"))
    with pytest.raises(RunError, match="dbexport"):
        run(database_url, 'dbexport (rel, "t")', rel=rows(("z", 1), ("z", 2), schema="a b"))
    assert table(database_url) == [("y", 1)]


def test_an_empty_relation_of_which_nothing_is_known_empties_the_table(database_url: str) -> None:
    run(database_url, 'dbexport (rel, "t")', rel=HOUSES)
    run(database_url, 'dbexport (rel, "t") dbexport (rel, "other")', rel=[])
    assert table(database_url) == []
    execute(database_url, "insert into t (url, price) values ('kept', 1)")


@MODES
@pytest.mark.parametrize(
    "statements",
    [
        'dbexport (rel, "t")',
        'select (rel, "price > 3" : some) dbexport (some, "t")',
        'format (rel, "{url}" : some) dbexport (some, "t")',
        'dbquery ("select :price as p", rel : some) {ERRORS: failed} dbexport (failed, "t")',
        'join (rel, rel, "left.url = right.url" : some) {TYPE: full} dbexport (some, "t")',
    ],
)
def test_an_export_of_nothing_keeps_the_columns_that_it_cannot_know(
    database_url: str, statements: str, mode: Mode
) -> None:
    run(database_url, 'dbexport (rel, "t")', rel=HOUSES)
    run(database_url, statements, rel=[], mode=mode)
    assert table(database_url) == []
    run(database_url, 'dbappend (rel, "t")', rel=HOUSES)  # which it would refuse without the columns
    assert len(table(database_url)) == 3
    run(database_url, statements.replace('"t"', '"other"'), rel=[], mode=mode)
    with pytest.raises(RunError, match="there is no table 'other'"):
        table(database_url, "other")


def test_an_empty_relation_makes_the_table(database_url: str) -> None:
    run(database_url, 'dbexport (rel, "t")', rel=rows(schema="n s"))
    assert table(database_url) == []


# --- dbupdate -----------------------------------------------------------------------------------


def test_an_update_for_each_tuple_tells_how_many_rows_it_changed(database_url: str) -> None:
    run(database_url, 'dbappend (rel, "t")', rel=rows(("a", 1), ("a", 2), ("b", 3), schema="url price"))
    found = out(
        database_url,
        'dbupdate ("update t set price = :price where url = :url", rel : out)',
        rel=rows(("a", 9), ("c", 9), schema="url price"),
    )
    assert found == [("a", 9, 2), ("c", 9, 0)]
    assert table(database_url) == [("a", 9), ("a", 9), ("b", 3)]


def test_an_update_without_tuples_gives_one(database_url: str) -> None:
    run(database_url, 'dbappend (rel, "t")', rel=HOUSES)
    assert out(database_url, 'dbupdate ("delete from t where price > 0" : out)') == [(2,)]
    assert table(database_url) == [("c", None)]


def test_returned_rows_are_joined_to_the_tuple(database_url: str) -> None:
    run(database_url, 'dbappend (rel, "t")', rel=rows(("a", 1), ("a", 2), schema="url price"))
    statement = 'dbupdate ("update t set price = price + 1 where url = :url returning price", rel : out)'
    found = out(database_url, statement, rel=rows(("a",), ("b",), schema="url"))
    assert sorted(found) == [("a", 2), ("a", 3)]


def test_an_update_that_fails_goes_to_errors_and_leaves_no_trace(database_url: str) -> None:
    execute(database_url, "create table t (n integer primary key, twice integer check (twice < 100))")
    statement = 'dbupdate ("insert into t values (:n, 2 * :n)", rel : out) {ERRORS: bad}'
    rel = rows((1,), (2,), (1,), (60,), (3,), schema="n")
    result = run(database_url, statement, outputs="out, bad", rel=rel)
    assert [record.row for record in result.outputs["out"]] == [(1, 1), (2, 1), (3, 1)]
    assert [record["n"] for record in result.outputs["bad"]] == [1, 60]
    assert table(database_url) == [(1, 2), (2, 4), (3, 6)]


def test_an_update_that_fails_ends_the_run_and_undoes_it(database_url: str) -> None:
    execute(database_url, "create table t (n integer primary key)")
    with pytest.raises(OperatorError, match=r"dbupdate(.|\n)*input tuple: n=1"):
        run(
            database_url,
            'dbupdate ("insert into t values (:n)", rel)',
            rel=rows((2,), (1,), (1,), schema="n"),
        )
    assert table(database_url) == []


@MODES
def test_reads_behind_writes_see_them(database_url: str, mode: Mode) -> None:
    result = run(
        database_url,
        """dbappend (rel, "t") {DONE: there}
        dbimport ("t" : imported) {WAIT: there}
        dbquery ("select count(*) as n from t" : counted) {WAIT: there}
        dbquery ("select price + 1 as more from t where url = :url", rel : asked) {WAIT: there}
        dbupdate ("delete from t where price is null" : gone) {WAIT: there; DONE: deleted}
        dbimport ("t" : rest) {WAIT: deleted}""",
        outputs="imported, counted, asked, gone, rest",
        rel=rows(("a", 1), ("b", 2), schema="url price"),
        mode=mode,
    )
    found = {name: [record.row for record in records] for name, records in result.outputs.items()}
    assert sorted(found["imported"]) == sorted(found["rest"]) == [("a", 1), ("b", 2)]
    assert (found["counted"], found["gone"]) == ([(2,)], [(0,)])
    assert sorted(found["asked"]) == [("a", 1, 2), ("b", 2, 3)]


def test_a_query_that_fails_behind_writes_leaves_them_alone(database_url: str) -> None:
    result = run(
        database_url,
        """dbappend (rel, "t") {DONE: there}
        dbquery ("select abs(cast(:n as bigint)) as size from t", numbers : out) {WAIT: there; ERRORS: bad}
        dbquery ("select nothing from t" : none) {WAIT: there; ERRORS: worse}""",
        outputs="out, bad, none, worse",
        rel=rows((1,), schema="a"),
        numbers=rows((-(2**63),), (-3,), schema="n"),
    )
    assert [len(result.outputs[name]) for name in ("out", "bad", "none", "worse")] == [1, 1, 0, 1]
    assert table(database_url) == [(1,)]


def test_an_update_in_a_plan_that_fails_later_is_undone(database_url: str) -> None:
    run(database_url, 'dbappend (rel, "t")', rel=HOUSES)
    with pytest.raises(AioflowError, match="gone"):
        run(
            database_url,
            'dbupdate ("delete from t") {DONE: deleted} log (rel) {WAIT: deleted}',
            rel=Script().wait(0.01).fail(OSError("gone")),
        )
    assert len(table(database_url)) == 3


# --- names and values that attack ---------------------------------------------------------------

NAMES = [
    NASTY,
    'quote"quote',
    "quote'quote",
    "semi;colon -- comment",
    "per%cent {brace} $1 ?1 :name",
    "sélect 表 \n tab\t",
    "select",
    "a" * 60,
]


def test_any_text_is_the_name_of_tables_and_attributes(database_url: str) -> None:
    run(database_url, 'dbappend (rel, "x")', rel=HOUSES)
    for name in NAMES:
        _use_as_a_name(database_url, name)
    assert table(database_url, "x") == HOUSES.rows


def _use_as_a_name(url: str, name: str) -> None:
    given = Relation(Schema((name, "n")), [(NASTY, 1), ("'; delete from x; --", 2)])
    sql = f"select n as m from {_quoted(name)} where {_quoted(name)} = :{_quoted(name)}"
    settings = {"head": "PARAM: name, key, sql", "parameters": {"name": name, "key": (name,), "sql": sql}}
    run(
        url,
        """dbappend (rel, $name) {DONE: appended}
        dbappend (rel, $name) {KEY: $key; ON_CONFLICT: update; EVOLVE; WAIT: appended}""",
        rel=given,
        **settings,
    )
    found = out(
        url, 'dbimport ($name : rel) dbquery ($sql, rel : all) project (all, "n, m" : out)', **settings
    )
    assert sorted(found) == [(1, 1), (2, 2)]
    run(url, "dbexport (rel, $name)", rel=given, **settings)
    assert table(url, name) == sorted(given.rows, key=repr)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def test_any_text_is_a_value(database_url: str) -> None:
    values = [NASTY, "'; drop table x; --", "\\'; drop table x; --", "%s ? $1 :x", "x" * 100_000]
    given = list(enumerate(values))
    run(database_url, 'dbappend (rel, "x") dbappend (rel, "y") {KEY: "n"}', rel=rows(*given, schema="n v"))
    query = 'dbquery ("select n from x where v = :v", rel : out)'
    found = out(database_url, query, rel=rows(*((value,) for value in values), schema="v"))
    assert sorted(n for _, n in found) == list(range(len(values)))
    changed = rows(*((value, value + "'") for value in values), schema="v w")
    run(database_url, 'dbupdate ("update x set v = :w where v = :v", rel)', rel=changed)
    assert table(database_url, "x") == [(n, value + "'") for n, value in given]
    assert table(database_url, "y") == given


def test_a_text_with_nul_is_stored_or_clearly_refused(database_url: str) -> None:
    rel = rows((1, "a\0b"), schema="n v")
    if database_url.startswith("sqlite"):
        run(database_url, 'dbappend (rel, "t")', rel=rel)
        assert table(database_url) == [(1, "a\0b")]
        return
    with pytest.raises(RunError, match=r"dbappend: (.|\n)*v"):
        run(database_url, 'dbappend (rel, "t")', rel=rel)


@pytest.mark.parametrize("text", ["a\0b", "\0", "half \ud800"])
def test_a_text_that_postgresql_cannot_hold_fails_its_tuple(postgres_url: str, text: str) -> None:
    given = [{"n": n, "v": text if n == 2 else str(n)} for n in range(4)]
    body = 'dbappend (rel, "t" : out) {ERRORS: failed}'
    result = run(postgres_url, body, head="OUTPUT: out, failed", rel=given)
    assert [row["n"] for row in result.outputs["out"]] == [0, 1, 3]
    ((failed),) = result.outputs["failed"]
    assert (failed["n"], failed["v"], failed["error-kind"]) == (2, text, "UnstorableError")
    assert failed["error"].startswith("the value of 'v' holds ")
    assert table(postgres_url) == [(0, "0"), (1, "1"), (3, "3")]


@pytest.mark.parametrize("statement", ['dbexport (rel, "t")', 'diff (rel, "t" : a, c, r) {KEY: "n"}'])
def test_a_whole_relation_that_postgresql_cannot_hold_leaves_its_table(
    postgres_url: str, statement: str
) -> None:
    run(postgres_url, statement, rel=[{"n": 1, "v": "x"}])
    given = [{"n": 1, "v": "x"}, {"n": 2, "v": "a\0b"}]
    with pytest.raises(RunError, match="the value of 'v' holds the character NUL"):
        run(postgres_url, statement, rel=given)
    taken = statement + " {ERRORS: failed}" if "{" not in statement else statement[:-1] + "; ERRORS: failed}"
    result = run(postgres_url, taken, head="OUTPUT: failed", rel=given)
    ((failed),) = result.outputs["failed"]
    assert [row["n"] for row in failed["relation"]] == [1, 2]
    assert table(postgres_url) == [(1, "x")]


@pytest.mark.parametrize(
    "statement",
    ['dbquery ("select :v as w", rel : out)', 'dbupdate ("delete from t where v = :v", rel : out)'],
)
def test_a_parameter_that_postgresql_cannot_hold_fails_its_tuple(postgres_url: str, statement: str) -> None:
    run(postgres_url, 'dbappend (rel, "t")', rel=[{"n": 1, "v": "x"}])
    given = [{"n": 1, "v": "a\0b"}, {"n": 2, "v": "y"}]
    head = "OUTPUT: out, failed"
    result = run(postgres_url, statement + " {ERRORS: failed}", head=head, rel=given)
    assert [[row["n"] for row in result.outputs[name]] for name in ("out", "failed")] == [[2], [1]]


def test_names_that_cannot_be_are_clearly_refused(database_url: str) -> None:
    with pytest.raises(PlanError, match="cannot be the name of a table"):
        run(
            database_url, "dbappend (rel, $name)", head="PARAM: name", parameters={"name": "a\0b"}, rel=HOUSES
        )
    with pytest.raises(RunError, match="cannot be the name of a column"):
        run(database_url, 'dbappend (rel, "t")', rel=Relation(Schema(("a\0b",)), [(1,)]))
    with pytest.raises(RunError, match="cannot be the name of a column"):
        run(database_url, 'dbappend (rel, "t")', rel=Relation(Schema(("",)), [(1,)]))


def test_names_that_the_database_cannot_keep_are_clearly_refused(database_url: str) -> None:
    if database_url.startswith("sqlite"):
        with pytest.raises(RunError, match=r"'URL' cannot both be columns.*capitals"):
            run(database_url, 'dbappend (rel, "t")', rel=rows((1, 2), schema="url URL"))
    else:
        with pytest.raises(RunError, match="too long for a name"):
            run(database_url, 'dbappend (rel, "t")', rel=Relation(Schema(("a" * 64,)), [(1,)]))


# --- runs ---------------------------------------------------------------------------------------


def test_a_plan_that_writes_runs_on_virtual_time(tmp_path: Path) -> None:
    for seed in range(5):
        result = run_plan(
            text_of(
                'dbimport ("t" : old) {IF_MISSING: empty} minus (rel, old : out) dbappend (out, "t")',
                ["rel"],
                "out",
            ),
            seed=seed,
            configuration=configuration(f"sqlite:{tmp_path / f'{seed}.db'}"),
            rel=rows((1,), (2,), schema="n"),
        )
        assert len(result) == 2


@pytest.mark.parametrize("options", ["", '{KEY: "n"}', '{KEY: "n"; ON_CONFLICT: update}'])
def test_a_plan_that_commits_as_it_streams_keeps_what_came_before_a_failure(
    tmp_path: Path, options: str
) -> None:
    url = f"sqlite:{tmp_path / 'test.db'}"
    execute(url, "create table u (n integer)")
    source = Script().row(n=1).wait(3).row(n=2).wait(3).row(n=3).fail(OSError("gone"))
    statements = f"""dbappend (rel, "t" : stored) {options} dbexport (rel, "whole")
    dbupdate ("insert into u values (:n)", stored)"""
    with pytest.raises(AioflowError, match="gone"):
        run_plan(
            text_of(statements, ["rel"], head="COMMIT: batch"), configuration=configuration(url), rel=source
        )
    assert table(url) == table(url, "u") == [(1,), (2,)]
    assert out(url, 'dbimport ("whole" : out) {IF_MISSING: empty}') == []


def test_runs_at_once_all_store(database_url: str) -> None:
    program = loads(text_of('dbappend (rel, "t") {KEY: "n"}', ["rel"]))

    async def main() -> None:
        async with Engine(configuration=configuration(database_url)) as engine:
            runs = (engine.run(program, {"rel": rows((n,), (7,), schema="n")}) for n in range(5))
            await asyncio.gather(*runs)

    asyncio.run(main())
    assert table(database_url) == [(0,), (1,), (2,), (3,), (4,), (7,)]


def test_an_import_is_as_it_was_when_it_began(tmp_path: Path) -> None:
    file = tmp_path / "test.db"
    url = f"sqlite:{file}"
    run(url, 'dbappend (rel, "t")', rel=rows(*((n,) for n in range(5000)), schema="n"))

    async def main() -> int:
        async with Engine(configuration=configuration(url), capacity_rows=1) as engine:
            count = 0
            async for _ in engine.stream(loads(text_of('dbimport ("t" : out)', (), "out")), {}):
                if count == 0:
                    with sqlite3.connect(file) as other:
                        other.execute("delete from t")
                    other.close()
                count += 1
            return count

    assert asyncio.run(main()) == 5000


def test_a_bound_attribute_that_only_the_run_can_know_is_named(database_url: str) -> None:
    with pytest.raises(OperatorError, match="unknown attribute 'm'"):
        run(database_url, 'dbquery ("select :m as x", rel : out)', outputs="out", rel=rows((1,), schema="n"))


def test_positional_parameters_are_refused_where_nothing_binds_them(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="write :name") as caught:
        run(f"sqlite:{tmp_path / 'a.db'}", 'dbquery ("select ?" : out)', outputs="out")
    assert isinstance(caught.value.__cause__, InputError)


def test_a_query_behind_a_write_changes_nothing(database_url: str) -> None:
    run(database_url, 'dbappend (rel, "t")', rel=HOUSES)
    text = "with x as (select 1) delete from t returning url"
    statements = f"""dbupdate ("update t set price = 1") {{DONE: d}}
        dbquery ("{text}" : out) {{WAIT: d}}"""
    with pytest.raises(PlanError, match="'delete' in it is no query; what changes a database"):
        out(database_url, statements)
    assert table(database_url) == [("a", 1), ("b", 2), ("c", None)]


def test_a_key_may_be_a_moment_of_which_utc_has_no_year(database_url: str) -> None:
    first = datetime.fromisoformat("0001-01-01T00:00:00+02:00")
    same = datetime.fromisoformat("0001-01-01T01:00:00+03:00")
    append = 'dbappend (rel, "t") {KEY: "at"}'
    if database_url.startswith("sqlite"):
        run(database_url, append, rel=[{"at": first, "a": 1}])
        run(database_url, append, rel=[{"at": same, "a": 2}])
        assert len(table(database_url)) == 1
    else:
        with pytest.raises(AioflowError, match="outside of the years 1 to 9999 in UTC"):
            run(database_url, append, rel=[{"at": first, "a": 1}])


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (
            {"k": 2, "a": 10**6, "b": "x"},
            "'t' cannot take row 2 (k=2, a=1000000, b='x'): a = 1000000 is too large",
        ),
        ({"k": 2, "a": 1, "b": None}, "(2, 1, null), for the row k=2, a=1, b=None; nothing of this run"),
        ({"k": None, "a": 1, "b": "x"}, "(null, 1, x), for the row k=None, a=1, b='x'; nothing of this run"),
    ],
)
def test_a_row_that_is_refused_is_told_by_the_names_of_the_plan(
    postgres_url: str, postgres: Postgres, row: dict[str, Any], told: str
) -> None:
    postgres.run("create table t (k bigint primary key, a smallint, b text not null)", url=postgres_url)
    with pytest.raises(CommitError) as caught:
        run(postgres_url, 'dbappend (rel, "t") {KEY: "k"}', rel=[{"k": 1, "a": 1, "b": "x"}, row])
    assert told in str(caught.value)
    assert "aioflow_" not in str(caught.value)
    assert "number" not in str(caught.value)


# --- relations that are not whole ---------------------------------------------------------------


@function(pure=True, returns="ok boolean")
def export_halting(row: Any) -> bool:
    """Fails for 13."""
    if row["n"] == 13:
        raise ValueError("it broke off")
    return True


NOT_WHOLE = {
    "partial": 'apply (rel, "export_halting" : some) {ERRORS: skip} project (some, "n" : lacking)',
    "doubtful": 'apply (rel, "export_halting" : some) {ERRORS: skip} project (some, "n" : known) '
    "minus (rel, known : lacking)",
}


@MODES
@pytest.mark.parametrize("how", NOT_WHOLE)
def test_dbexport_leaves_a_table_as_it_was_unless_the_relation_is_whole(
    database_url: str, how: str, mode: Mode
) -> None:
    export = f'{NOT_WHOLE[how]} dbexport (lacking, "t" : out)'
    before = [{"n": 1}, {"n": 2}]
    run(database_url, 'dbexport (rel, "t")', rel=before)
    result = run(database_url, export, outputs="out", rel=[{"n": 3}, {"n": 13}], mode=mode)
    assert list(result.outputs["out"]) == []
    assert table(database_url) == [(1,), (2,)]
    assert any("the table 't' stays as it was" in each and "it broke off" in each for each in result.warnings)
    allowed = run(database_url, f"{export} {{PARTIAL: allow}}", outputs="out", rel=[{"n": 3}, {"n": 13}])
    assert len(allowed.outputs["out"]) == 1
    assert len(table(database_url)) == 1
