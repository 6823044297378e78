"""Values in PostgreSQL tables of our own: they come back equal, whatever a column had to become for that."""

import asyncio
import math
import os
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow.relation import Batch, Document, Relation, Schema, Type
from aioflow.state.driver import Connection
from aioflow.state.errors import ConflictError, DatabaseError
from aioflow.state.postgres.driver import POSTGRES
from tests.state.driver_cases import bag, needs_of, read, read_table, store, values
from tests.state.on_postgres import address, connected, make

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
OF_A_KIND = {
    "char": TEXTS,
    "number": values(Type.NUMBER),
    "integer": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(),
    "boolean": st.booleans(),
    "date": st.dates(),
    "naive": st.datetimes(),
    "aware": st.datetimes(timezones=st.sampled_from((UTC, timezone(timedelta(hours=-9, seconds=7))))),
    "dates": values(Type.DATE),
    "document": values(Type.DOCUMENT),
    "relation": values(Type.RELATION),
    "anything": st.one_of(*map(values, Type)),
}
EXAMPLES = int(os.environ.get("AIOFLOW_TEST_EXAMPLES", "12"))
QUICK = settings(max_examples=EXAMPLES, deadline=None, database=None)

Check = Callable[[Callable[[Connection], Awaitable[None]]], None]


@pytest.fixture
def on_connection(schema_url: str) -> Iterator[Check]:
    """Runs a check of one example, each on the same connection, and takes back what it has stored."""
    with asyncio.Runner() as runner:
        connection = runner.run(POSTGRES.connect(address(schema_url)))

        async def undone(check: Callable[[Connection], Awaitable[None]]) -> None:
            await check(connection)
            await connection.run("drop table t")

        yield lambda check: runner.run(undone(check))
        runner.run(connection.close())


# --- tables of our own ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", OF_A_KIND)
def test_whatever_is_stored_comes_back_equal(kind: str, on_connection: Check) -> None:
    schema = Schema(("v",))

    @QUICK
    @given(st.lists(st.tuples(st.none() | OF_A_KIND[kind]), max_size=6))
    def check(rows: Batch) -> None:
        async def store_and_read(connection: Connection) -> None:
            await store(connection, "t", schema, rows)
            assert bag(await read_table(connection, "t")) == bag(rows)

        on_connection(store_and_read)

    check()


async def test_more_days_than_are_remembered_come_back_equal(schema_url: str) -> None:
    rows: Batch = [(date.fromordinal(day),) for day in (*range(700_000, 770_000), 1, date.max.toordinal())]
    async with connected(schema_url) as connection:
        await store(connection, "t", Schema(("day",)), rows)
        assert await read_table(connection, "t") == rows


async def test_values_are_made_to_fit_also_where_it_is_known_what_they_are(schema_url: str) -> None:
    schema, rows = Schema(("n", "x")), [(3.0, 1), (None, Decimal("0.5"))]
    async with connected(schema_url) as connection:
        await make(connection, "create table t (n bigint, x double precision)")
        await connection.load("t", schema.names, [rows], needs_of(schema, rows))
        assert await read_table(connection, "t") == [(3, 1.0), (None, 0.5)]
        with pytest.raises(ConflictError, match="no whole number"):
            await connection.load("t", ("n",), [[(0.5,)]], needs_of(Schema(("n",)), [(0.5,)]))


def test_numbers_stay_equal_however_a_column_widens(on_connection: Check) -> None:
    schema = Schema(("v",))
    integers = st.integers() | st.integers(-(2**64), 2**64) | st.integers(2**53 - 2, 2**53 + 2)
    classes = (integers, st.floats(), st.decimals(allow_nan=False))
    batches = st.one_of(*(st.lists(st.tuples(each), min_size=1, max_size=4) for each in classes))

    @settings(QUICK, max_examples=3 * EXAMPLES)
    @given(st.lists(batches, min_size=2, max_size=3))
    def check(parts: list[Batch]) -> None:
        async def widen_and_read(connection: Connection) -> None:
            await store(connection, "t", schema, parts[0])
            for part in parts[1:]:
                async with connection.transaction("write"):
                    await connection.widen("t", needs_of(schema, part))
                    await connection.load("t", ("v",), [part])
            assert bag(await read_table(connection, "t")) == bag([row for part in parts for row in part])

        on_connection(widen_and_read)

    check()


POWERS = [-1074, -1073, -1023, -1022, -1021, *range(-1000, 1000, 17), *range(-70, 70), 1022, 1023]


async def test_doubles_of_every_size_become_numeric_exactly(schema_url: str) -> None:
    numbers = [math.ldexp(fraction, power) for power in POWERS for fraction in (1.0, -1.9)]
    rows: Batch = [(number,) for number in (*numbers, 0.0, math.inf, -math.inf, math.nan)]
    async with connected(schema_url) as connection:
        await store(connection, "t", Schema.of("v"), rows)
        await connection.widen("t", needs_of(Schema.of("v"), [(Decimal(1),)]))
        columns = await connection.columns("t")
        assert columns is not None
        assert columns[0].declared == "numeric"
        assert bag(await read_table(connection, "t")) == bag(rows)
        assert await connection.fetch("select v::text from t where v = 0.5") == [("0.5",)]


@pytest.mark.parametrize(
    ("column", "declared"),
    [
        (["x"], "text"),
        ([1, -(2**63)], "bigint"),
        ([2**63], "numeric"),
        ([0.5], "double precision"),
        ([0.5, 2**53], "double precision"),
        ([0.5, 2**53 + 1], "numeric"),
        ([1, Decimal("0.5")], "numeric"),
        ([True], "boolean"),
        ([True, 1], "json"),
        ([date(2026, 1, 31)], "date"),
        ([datetime(2026, 1, 31)], "timestamp without time zone"),
        ([datetime(2026, 1, 31, tzinfo=UTC)], "timestamp with time zone"),
        ([datetime(2026, 1, 31, tzinfo=UTC), datetime(2026, 1, 31)], "json"),
        ([date(2026, 1, 31), datetime(2026, 1, 31)], "json"),
        ([Relation(Schema.of("a"))], "json"),
        ([Document("<a/>")], "json"),
        (["x", 1], "json"),
    ],
    ids=str,
)
async def test_a_column_has_the_type_of_its_values(schema_url: str, column: list[Any], declared: str) -> None:
    async with connected(schema_url) as connection:
        await store(connection, "t", Schema.of("v"), [(value,) for value in column])
        columns = await connection.columns("t")
        assert columns is not None
        assert columns[0].declared == declared


async def test_a_column_without_values_gets_the_type_of_the_first_ones(schema_url: str) -> None:
    schema = Schema.of("a", b="number", c="date")
    rows: Batch = [("x", 0.1, datetime(2026, 1, 31, tzinfo=UTC))]
    async with connected(schema_url) as connection:
        await store(connection, "t", schema, [])
        await connection.run("create unique index u on t (a)")
        await connection.run("insert into t default values")
        async with connection.transaction("write"):
            await connection.widen("t", needs_of(schema, rows))
            await connection.load("t", schema.names, [rows])
        found = await connection.columns("t")
        assert found is not None
        assert [each.declared for each in found] == ["text", "double precision", "timestamp with time zone"]
        # From now on it is like any other column.
        with pytest.raises(ConflictError, match="'c' is timestamp with time zone and cannot hold"):
            await connection.widen("t", needs_of(schema, [(None, None, date(2026, 1, 31))]))


async def test_values_that_somebody_put_into_a_column_without_a_type_are_kept(schema_url: str) -> None:
    async with connected(schema_url) as connection:
        await store(connection, "t", Schema.of("a"), [])
        await connection.run("insert into t values ('theirs')")
        with pytest.raises(ConflictError, match=r"'a' is text and cannot hold all values .*int"):
            await connection.widen("t", needs_of(Schema.of("a"), [(1,)]))
        assert await read_table(connection, "t") == [("theirs",)]


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("boolean", "x"),
        ("text", 1),
        ("bigint", "x"),
        ("bigint", True),
        ("date", datetime(2026, 1, 31)),
        ("timestamp", datetime(2026, 1, 31, tzinfo=UTC)),
        ("timestamptz", datetime(2026, 1, 31)),
        ("numeric", Document("1")),
    ],
)
async def test_what_a_column_can_never_hold_is_a_conflict(schema_url: str, declared: str, value: Any) -> None:
    async with connected(schema_url) as connection:
        await make(connection, f"create table t (v {declared})")
        with pytest.raises(ConflictError, match="the column 'v' is"):
            await connection.widen("t", needs_of(Schema.of("v"), [(value,)]))
        with pytest.raises(ConflictError, match=r"row 2 \(v=.*\): v = .*\(the column is "):
            await connection.load("t", ("v",), [[(None,), (value,)]])
        assert await read_table(connection, "t") == []


@pytest.mark.parametrize("text", ["nul \0", "half \ud800"])
async def test_a_text_that_cannot_be_stored_is_named(schema_url: str, text: str) -> None:
    async with connected(schema_url) as connection:
        await make(connection, "create table t (n bigint, b text, j json)")
        rows: Batch = [(number, "fine", text) for number in range(3000)]
        await connection.load("t", ("n", "b", "j"), [rows])
        assert (await read_table(connection, "t"))[7] == (7, "fine", text)
        rows[2500] = (1, text, "fine")
        with pytest.raises(ConflictError, match=r"row 2501 .*: b = .* holds .*the column is text"):
            await connection.load("t", ("n", "b", "j"), [rows])
        with pytest.raises(ConflictError, match=r"value 1, .* holds "):
            await connection.run("insert into t (b) values ($1)", (text,))


@pytest.mark.parametrize(
    "number", [Decimal("1E+131072"), Decimal("1E-16384"), 10**131072, Decimal("-1E+200000")], ids=range(4)
)
async def test_a_number_without_end_is_refused_and_not_changed(schema_url: str, number: Any) -> None:
    async with connected(schema_url) as connection:
        await make(connection, "create table t (v numeric)")
        with pytest.raises(ConflictError, match=r"row 1 .*more digits than it can hold"):
            await connection.load("t", ("v",), [[(number,)]])
        with pytest.raises(ConflictError, match="more digits than it can hold"):
            await connection.run("insert into t values ($1)", (number,))


async def test_the_longest_numbers_come_back_equal(schema_url: str) -> None:
    rows: Batch = [(Decimal("9E+131071"),), (Decimal("1E-16383"),), (10**131071,)]
    async with connected(schema_url) as connection:
        await store(connection, "t", Schema.of("v"), rows)
        assert await read_table(connection, "t") == rows


async def test_the_ends_of_the_calendar_are_no_infinity(schema_url: str) -> None:
    ends: Batch = [(date.min, datetime.min), (date.max, datetime.max)]
    async with connected(schema_url) as connection:
        await store(connection, "t", Schema.of("a", "b"), ends)
        assert bag(await read_table(connection, "t")) == bag(ends)
        assert (
            await connection.fetch("select a::text, b::text from t where not isfinite(a) or not isfinite(b)")
            == []
        )


@pytest.mark.parametrize(
    "sql",
    ["'infinity'::date", "'-infinity'::timestamp", "'10000-01-01'::timestamptz", "'0001-01-01 BC'::date"],
)
async def test_dates_outside_of_the_calendar_are_told(schema_url: str, sql: str) -> None:
    async with connected(schema_url) as connection:
        with pytest.raises(
            DatabaseError, match="'v', 'w': a date is infinite or outside of the years 1 to 9999"
        ):
            await connection.fetch(f"select 1 as n, {sql} as v, {sql} as w")
        with pytest.raises(DatabaseError, match="cast it to text"):
            await read(connection, f"select {sql} as v")
        assert await connection.fetch("select 1") == [(1,)]
