"""SQL texts in plans: which attributes they bind, and what is no single statement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioflow import Schema, SettingError
from aioflow.errors import InputError
from aioflow.state.driver import Dialect
from aioflow.state.sql_text import Change, Query, Sql, parse

HOUSES = Schema.of("zip", "city", "price-info", 'odd "name"')
SQLITE = Dialect("sqlite", "?")
POSTGRES = Dialect("postgresql", "${}")


def mistake(kind: type[Sql], text: object, *inputs: Schema | None) -> SettingError:
    with pytest.raises(SettingError) as caught:
        kind.bind(text, inputs)
    return caught.value


def test_attributes_are_bound_by_name_and_by_quoted_name() -> None:
    sql = Sql.bind('select * from t where zip = :zip and p > :"price-info"', [HOUSES])
    text, values = sql.for_dialect(SQLITE)
    assert text == "select * from t where zip = ? and p > ?"
    assert values(("8001", "Zürich", 7, None)) == ("8001", 7)


def test_a_repeated_name_is_bound_once_where_values_have_numbers() -> None:
    sql = Sql.bind("select :zip where :city = 1 or :zip is null", [HOUSES])
    row = ("z", "c", None, None)
    text, values = sql.for_dialect(POSTGRES)
    assert (text, values(row)) == ("select $1 where $2 = 1 or $1 is null", ("z", "c"))
    text, values = sql.for_dialect(SQLITE)
    assert (text, values(row)) == ("select ? where ? = 1 or ? is null", ("z", "c", "z"))


def test_a_quoted_name_may_hold_quotes() -> None:
    sql = Sql.bind('select :"odd ""name"""', [HOUSES])
    assert sql.names == ('odd "name"',)


@pytest.mark.parametrize(
    "text",
    [
        "select ':x', '\\', ':x'':x'",
        "select E'\\':x', e'it''s :x'",
        'select ":x", "a"":x"',
        "select `:x` from [:x], [it's :x]",
        "select 1 -- :x\n",
        "select /* :x /* :x */ :x */ 1",
        "select $$ :x $$, $a$ $$ :x $b$ $a$",
        "select x::int, '1'::int, f(a := 1)",
        "select a[1:2], a[low:high], a[1 :x], (a)[f(1):x], array[[1,2],[b:c]]",
        "select json_object('key' :x, 'other':y)",
        "select 'a', '12:30', 12 :x",
        "select name$:x",
    ],
)
def test_what_only_looks_like_a_parameter_is_left_alone(text: str) -> None:
    sql = parse(text)
    assert sql.parameters == ()
    assert sql.for_dialect(POSTGRES)[0] == text


@pytest.mark.parametrize(
    "text",
    [
        "select a[:x]",
        "select :x::int",
        "select (:x)",
        "values(1,:x)",
        "select array[[1, 2], [:x, 3]]",
        "select 1 -- '\n where a=:x",
        "select '' || :x",
        "select 'it''s' || :x || '\\'",
        "select /* ' */ :x /* ' */",
        "select $$'$$ || :x",
        "select a,:x from [a table]",
        "/* one /* two */ select :x",
    ],
)
def test_parameters_are_found_beside_all_of_that(text: str) -> None:
    assert parse(text).names == ("x",)


def test_a_closing_semicolon_and_comments_behind_it_are_left_out() -> None:
    assert parse("select 1 ; -- done\n /* really */ ").for_dialect(SQLITE)[0] == "select 1 "


@pytest.mark.parametrize(
    ("text", "offset"),
    [("select 1; select 2", 10), ("select 1;;", 9), ("select ';'; drop table x; --", 12)],
)
def test_a_second_statement_is_a_mistake_at_its_place(text: str, offset: int) -> None:
    error = mistake(Sql, text)
    assert "one statement" in error.message
    assert error.offset == offset


@pytest.mark.parametrize("text", ["", "  ", ";", "-- nothing\n", "/* nothing */ ;"])
def test_a_text_without_statement_is_a_mistake(text: str) -> None:
    assert "no statement" in mistake(Sql, text).message


@pytest.mark.parametrize(
    "text", ["select 'a", 'select "a', "select E'a\\'", "/* a", "select $x$ a", 'select :"a']
)
def test_what_never_ends_is_a_mistake_at_its_beginning(text: str) -> None:
    error = mistake(Sql, text, HOUSES)
    assert "never ends" in error.message
    assert error.offset == (0 if text.startswith("/*") else 7)


def test_an_unknown_attribute_is_named_with_a_near_one() -> None:
    error = mistake(Sql, "select 1 where a = :zipp", HOUSES)
    assert "unknown attribute 'zipp'; did you mean 'zip'?" in error.message
    assert error.offset == 19


def test_a_name_with_a_hyphen_outside_quotes_gets_the_hint() -> None:
    assert ':"price-info"' in mistake(Sql, "select :price-info", HOUSES).message
    assert ':"price-info"' in mistake(Sql, "select :price-info-1", HOUSES).message
    assert Sql.bind("select :zip-1", [HOUSES]).names == ("zip",)


def test_parameters_without_an_input_are_a_mistake() -> None:
    error = mistake(Query, "select * from t where a = :zip")
    assert "no input to take :zip from" in error.message
    assert error.offset == 26


def test_nothing_is_said_of_attributes_that_are_not_known_yet() -> None:
    assert Query.bind("select :anything", [None]).names == ("anything",)


def test_a_query_that_changes_something_is_sent_to_dbupdate() -> None:
    error = mistake(Query, "-- now\n delete from t")
    assert "dbupdate" in error.message
    assert error.offset == 8
    for text in ("(select 1) union (select 2)", "With a as (select 1) select * from a", "VALUES (1)"):
        Query.bind(text, [])


@pytest.mark.parametrize(
    "text", ["commit", "BEGIN", "rollback to x", "Savepoint a", "vacuum", "attach 'x' as y"]
)
def test_transactions_are_not_for_plans(text: str) -> None:
    assert "one transaction" in mistake(Change, text).message


def test_numbered_and_foreign_parameters_are_refused() -> None:
    assert "write :name" in mistake(Sql, "select $1", HOUSES).message
    for text in ("select ?", "select ?2", "select @zip", "select $zip"):
        with pytest.raises(InputError, match="write :name"):
            parse(text).for_dialect(SQLITE)
    assert parse("select a ? 'b', a @> b").for_dialect(POSTGRES)[0] == "select a ? 'b', a @> b"


def test_a_setting_that_is_no_text_is_a_mistake() -> None:
    assert "not 7" in mistake(Sql, 7).message


def test_returning_is_seen_outside_of_texts_only() -> None:
    assert parse("insert into t values (1) Returning id").returns_rows
    assert not parse("insert into t values ('returning', \"returning\") -- returning").returns_rows


@given(st.text(st.sampled_from("ab:'\"`$[]/*-;\\ \nE1")))
def test_any_text_is_either_one_statement_or_a_mistake_with_its_place(text: str) -> None:
    mistake = None
    try:
        sql = parse(text)
    except SettingError as error:
        mistake = error
    if mistake is None:
        assert text.startswith(sql.pieces[0])
        assert all(text[parameter.offset] == ":" for parameter in sql.parameters)
    else:
        assert 0 <= (-1 if mistake.offset is None else mistake.offset) <= len(text)


# --- what a text would do -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("with x as (select 1) delete from t returning k", "delete"),
        ("with x as (select 1)\nINSERT or ignore into t select * from x returning k", "insert"),
        ("with x as (select 1) replace into t select * from x returning k", "replace"),
        ("with x as (select 1) /* so */ update [t] set a = 1 returning k", "update"),
        ("with x as (delete from t returning k) select * from x", "delete"),
        ('with x as materialized (update "t" set a = 1 returning k) table x', "update"),
        (
            "with x as (merge into t using u on t.k = u.k when matched then delete returning k) table x",
            "merge",
        ),
        ("explain analyze delete from t", "delete"),
        ("explain (analyze, buffers) create table u as select 1", "create"),
        ("select 1 as k into u", "into"),
    ],
)
def test_a_query_that_would_change_something_is_refused(text: str, word: str) -> None:
    error = mistake(Query, text)
    assert error.message == f"{word!r} in it is no query; what changes a database is done by dbupdate"
    assert text[error.offset or 0 :].lower().startswith(word)


@pytest.mark.parametrize(
    "text",
    [
        "with x as (select 'delete from t' as a) select a, replace(a, 'x', '') from x",
        "with x as (select max(update) as delete from t) select (replace(a, 'a', 'b')), (update) from x",
        'with x as (select 1) select "delete" from t -- delete from t',
        "explain query plan delete from t",
        "pragma table_info(houses)",
        "pragma main.table_info('houses')",
        "pragma integrity_check",
        "pragma user_version",
    ],
)
def test_what_only_looks_like_a_change_is_a_query(text: str) -> None:
    assert Query.bind(text, []).text == text


@pytest.mark.parametrize(
    "text",
    [
        "pragma writable_schema = on",
        "PRAGMA main.Writable_Schema('on')",
        'pragma "writable_schema"(1)',
        "pragma 'writable_schema' = 1",
        "explain pragma writable_schema = on",
    ],
)
def test_no_change_opens_the_schema_itself(text: str) -> None:
    assert "a wrong schema makes a database unreadable" in mistake(Change, text).message


@pytest.mark.parametrize(
    "text",
    [
        "pragma query_only = off",
        "pragma query_only(off)",
        "PRAGMA main.user_version = 5",
        "pragma writable_schema('on')",
        "pragma wal_checkpoint",
        "pragma main.optimize",
        "pragma",
        "explain pragma query_only = off",
        "explain query plan pragma writable_schema(on)",
    ],
)
def test_a_pragma_that_sets_something_is_no_query(text: str) -> None:
    assert "a query may only ask: pragma table_info(houses)" in mistake(Query, text).message


@pytest.mark.parametrize(
    "text",
    [
        "delete from aioflow_meta",
        'update "aioflow_outbox" set state = 1',
        "drop table main.[AIOFLOW_RUNS]",
        "insert into t select * from `aioflow_suspects`",
    ],
)
def test_the_tables_of_aioflow_are_not_changed_by_plans(text: str) -> None:
    error = mistake(Change, text)
    assert "is for aioflow alone: a change there could lose or repeat what was sent" in error.message
    assert "aioflow_" in text.lower()[error.offset or 0 :][:9]


def test_copies_of_the_tables_of_aioflow_may_be_dropped() -> None:
    text = "drop table aioflow_outbox_before_v1"
    assert Change.bind(text, []).text == text
    assert Change.bind("update t set a = 'aioflow_meta'", []).verb == "update"
