"""Values in PostgreSQL tables that others made, and as parameters of statements: as these have them."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from aioflow.relation import Batch, Document, Schema, Type
from aioflow.state.errors import ConflictError
from tests.state.driver_cases import bag, needs_of, read, read_table
from tests.state.on_postgres import connected, make

# --- tables of others -----------------------------------------------------------------------------

OTHERS: list[tuple[str, Any, Type]] = [
    ("smallint", 7, Type.NUMBER),
    ("integer", -7, Type.NUMBER),
    ("real", 0.5, Type.NUMBER),
    ("numeric(10,2)", Decimal("1.50"), Type.NUMBER),
    ("oid", 4_000_000_000, Type.NUMBER),
    ("varchar(5)", "short", Type.CHAR),
    ("name", "short", Type.CHAR),
    ("uuid", "550e8400-e29b-41d4-a716-446655440000", Type.CHAR),
    ("inet", "10.0.0.1/8", Type.CHAR),
    ("interval", "1 mon 2 days 00:00:01", Type.CHAR),
    ("time", "12:34:56", Type.CHAR),
    ("bytea", r"\x00ff", Type.CHAR),
    ("bit(3)", "101", Type.CHAR),
    ("point", "(1,2)", Type.CHAR),
    ("money", "$1.50", Type.CHAR),
    ("tsvector", "'a' 'b'", Type.CHAR),
    ("mood", "fine", Type.CHAR),
    ("positive", 5, Type.NUMBER),
]


@pytest.mark.parametrize(("declared", "value", "kind"), OTHERS, ids=[each[0] for each in OTHERS])
async def test_columns_of_any_type_are_read_and_written(
    schema_url: str, declared: str, value: Any, kind: Type
) -> None:
    async with connected(schema_url) as connection:
        await make(
            connection,
            "create type mood as enum ('fine', 'bad')",
            "create domain positive as integer check (value > 0)",
            f"create table t (n bigint, v {declared})",
        )
        columns = await connection.columns("t")
        assert columns is not None
        assert (columns[1].declared, columns[1].kind) == (declared_as(declared), kind)
        await connection.widen("t", needs_of(Schema.of("v"), [(value,)]))
        assert await connection.load("t", ("v", "n"), [[(value, 1), (None, 2)]]) == 2
        assert await connection.run("insert into t (n, v) values (3, $1)", (value,)) == 1
        schema, rows = await read(connection, "select v, n from t order by n")
        assert schema.type_of("v") is kind
        assert rows == [(value, 1), (None, 2), (value, 3)]


def declared_as(declared: str) -> str:
    return {"varchar(5)": "character varying(5)", "time": "time without time zone"}.get(declared, declared)


@pytest.mark.parametrize(
    ("declared", "text"), [("int4range", "[1,5)"), ("datemultirange", "{[2026-01-01,2026-02-01)}")]
)
async def test_ranges_are_texts(schema_url: str, declared: str, text: str) -> None:
    async with connected(schema_url) as connection:
        await make(connection, f"create table t (v {declared})")
        await connection.load("t", ("v",), [[(text,)]])
        await connection.run(f"insert into t values (cast(cast($1 as text) as {declared}))", (text,))
        assert await read_table(connection, "t") == [(text,), (text,)]
        with pytest.raises(ConflictError, match=r"cast\(cast\(… as text\) as …\)"):
            await connection.run("insert into t values ($1)", (text,))


async def test_arrays_and_rows_are_documents(schema_url: str) -> None:
    async with connected(schema_url) as connection:
        schema, rows = await read(
            connection,
            "select array[1, null] as a, array[['x'], ['y']] as b, row(1, 'z') as c, array[1.10] as d, "
            "array[date '2026-01-31'] as e, array['nan'::float8] as f, null::int[] as g",
        )
        assert set(schema.types) == {Type.DOCUMENT}
        texts = ["[1, null]", '[["x"], ["y"]]', '[1, "z"]', '["1.10"]', '["2026-01-31"]', '["nan"]']
        assert rows == [(*(Document(text, "json") for text in texts), None)]


async def test_arrays_are_written_as_the_server_writes_them(schema_url: str) -> None:
    async with connected(schema_url) as connection:
        await make(connection, "create table t (a text[], b text)")
        evil = 'tab\t line\n back\\slash \\. "quote"'
        await connection.load("t", ("a", "b"), [[("{x,y}", evil), (None, "\\N")]])
        assert await read_table(connection, "t") == [(Document('["x", "y"]', "json"), evil), (None, "\\N")]
        with pytest.raises(ConflictError, match=r"row 2 \(a='no array'"):
            await connection.load("t", ("a",), [[("{}",), ("no array",)]])


async def test_json_of_others_is_a_document_or_a_plain_value(schema_url: str) -> None:
    texts = ['{"a": 1}', '[1, {"$date": "2026-01-31"}]', '"text"', "12", "1.5", "true", '{"$odd": 1}', "{}"]
    async with connected(schema_url) as connection:
        await make(connection, "create table t (j json, b jsonb)")
        for text in texts:
            await connection.run("insert into t select x::json, x::jsonb from cast($1 as text) as x", (text,))
        plain = ["text", 12, 1.5, True]
        expected = [Document(text, "json") for text in texts if text[0] in "[{"]
        found = await connection.fetch("select j from t")
        assert bag(found) == bag([(value,) for value in (*expected, *plain)])
        assert bag(await connection.fetch("select b from t")) == bag(found)


async def test_documents_of_json_are_json_for_others(schema_url: str) -> None:
    documents = ['{"a": [1]}', "[]", '{"$date": "2026-01-31"}', "no json", "[NaN]", '"text"', "[\ud800]"]
    rows: Batch = [(Document(text, "json"), Document(text, "json")) for text in documents]
    async with connected(schema_url) as connection:
        await make(connection, "create table t (j json, b jsonb)")
        await connection.load("t", ("j", "b"), [rows])
        assert bag(await read_table(connection, "t")) == bag(rows)
        assert await connection.fetch("select j -> 'a' ->> 0, b -> 'a' ->> 0 from t limit 1") == [("1", "1")]


@pytest.mark.parametrize(
    ("declared", "value", "told"),
    [
        ("varchar(3)", "long", "too long"),
        ("smallint", 40_000, "too large"),
        ("integer", 2**31, "too large"),
        ("bigint", 2**63, "too large"),
        ("integer", 1.5, "no whole number"),
        ("real", 1e39, "too large"),
        ("double precision", 2**53 + 1, "more digits"),
        ("double precision", Decimal("0.12345678901234567890"), "more digits"),
        ("numeric(3,1)", 1000, "overflow"),
        ("inet", "nowhere", "invalid input"),
        ("positive", -1, "violates check constraint"),
        ("text not null", None, "null value in column"),
    ],
)
async def test_what_does_not_fit_is_told_with_row_and_type(
    schema_url: str, declared: str, value: Any, told: str
) -> None:
    async with connected(schema_url) as connection:
        await make(
            connection,
            "create domain positive as integer check (value > 0)",
            f"create table t (n bigint, v {declared})",
        )
        with pytest.raises(ConflictError, match=rf"the table 't' cannot take row 2 \(n=2, v=.*{told}"):
            await connection.load("t", ("n", "v"), [[(1, fitting(declared))], [(2, value)]])


def fitting(declared: str) -> Any:
    return {"varchar(3)": "x", "inet": "::1", "text not null": "x"}.get(declared, 1)


async def test_whole_numbers_of_any_class_fit_integers(schema_url: str) -> None:
    async with connected(schema_url) as connection:
        await make(connection, "create table t (v integer)")
        await connection.load("t", ("v",), [[(1,), (2.0,), (Decimal("3.00"),), (None,)]])
        assert await read_table(connection, "t") == [(1,), (2,), (3,), (None,)]


# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "value", "result"),
    [
        ("select $1::bigint", "12", 12),
        ("select $1::bigint", Decimal("12.0"), 12),
        ("select $1::numeric", "1.10", Decimal("1.10")),
        ("select $1::double precision", Decimal("1.1"), 1.1),
        ("select $1::double precision", "1.5", 1.5),
        ("select $1::text", 12, "12"),
        ("select $1::text", True, "true"),
        ("select $1::text", date(2026, 1, 31), "2026-01-31"),
        ("select $1::date", "2026-01-31", date(2026, 1, 31)),
        ("select $1::timestamptz", "2026-01-31T10:00:00+01:00", datetime(2026, 1, 31, 9, tzinfo=UTC)),
        (
            "select $1::uuid::text",
            "550E8400-E29B-41D4-A716-446655440000",
            "550e8400-e29b-41d4-a716-446655440000",
        ),
        ("select $1::json", Decimal("1.10"), Decimal("1.10")),
        ("select $1::bigint", None, None),
    ],
)
async def test_a_value_is_read_as_what_the_statement_takes(
    schema_url: str, sql: str, value: Any, result: Any
) -> None:
    async with connected(schema_url) as connection:
        assert await connection.fetch(sql, (value,)) == [(result,)]


@pytest.mark.parametrize(
    ("sql", "value", "told"),
    [
        ("select $1::bigint", "a dozen", "value 1, 'a dozen', cannot be read as one"),
        ("select $1::bigint", 1.5, "is no whole number"),
        ("select $1::boolean", 1, r"is no boolean \(bool is asked for\)"),
        ("select $1::date", datetime(2026, 1, 31), "is no date without a time"),
    ],
)
async def test_a_value_that_a_statement_cannot_take_is_told(
    schema_url: str, sql: str, value: Any, told: str
) -> None:
    async with connected(schema_url) as connection:
        with pytest.raises(ConflictError, match=told):
            await connection.fetch(sql, (value,))
        assert await connection.fetch("select 1") == [(1,)]


async def test_a_row_is_found_again_by_its_id(schema_url: str) -> None:
    async with connected(schema_url) as connection:
        dialect = connection.dialect
        await make(connection, "create table t as select n from generate_series(1, 3) as n")
        rows = await connection.fetch(f"select n, {dialect.row_id_shown} from t")
        place = dialect.row_id_value.format(dialect.placeholders(1))
        assert await connection.run(f"delete from t where {dialect.row_id} = {place}", (rows[1][1],)) == 1
        assert bag(await read_table(connection, "t")) == bag([(1,), (3,)])
