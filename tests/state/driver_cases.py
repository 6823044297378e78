"""What every driver must do: cases that take a function which opens a connection to one empty database.

    @pytest.mark.parametrize("case", CASES, ids=name_of)
    async def test_sqlite(case: Case, tmp_path: Path) -> None:
        await case(lambda: SQLITE.connect(address(tmp_path)))

A case may open several connections; it closes them. Tables are its own to make, the database is empty when it
begins. `values` makes values of a type for property-based tests of any driver.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, TypeAlias

import pytest
from hypothesis import strategies as st

from aioflow.relation import Batch, Document, Relation, Row, Schema, Type, identity
from aioflow.state.driver import ColumnNeed, Connection, quote_name
from aioflow.state.errors import BusyError, ConflictError, DatabaseError
from aioflow.state.staged import observe

Connect: TypeAlias = Callable[[], Awaitable[Connection]]
Case: TypeAlias = Callable[[Connect], Awaitable[None]]

Characters: TypeAlias = str | st.SearchStrategy[str]

CASES: list[Case] = []


def case(function: Case) -> Case:
    CASES.append(function)
    return function


def name_of(each: Case) -> str:
    return getattr(each, "__name__", "case")


# --- tools --------------------------------------------------------------------------------------


@asynccontextmanager
async def opened(connect: Connect) -> AsyncGenerator[Connection, None]:
    connection = await connect()
    try:
        yield connection
    finally:
        await connection.close()


def bag(rows: Sequence[Row]) -> Counter[Hashable]:
    return Counter(map(identity, rows))


def needs_of(schema: Schema, rows: Batch) -> list[ColumnNeed]:
    needs: list[ColumnNeed] = []
    observe(needs, schema, rows)
    return needs


async def store(connection: Connection, table: str, schema: Schema, rows: Batch) -> None:
    async with connection.transaction("write"):
        needs = needs_of(schema, rows)
        await connection.create_table(table, needs)
        assert await connection.load(table, schema.names, [rows], needs) == len(rows)


async def read(connection: Connection, sql: str, values: Sequence[Any] = ()) -> tuple[Schema, Batch]:
    schema, rows = None, []
    async with aclosing(connection.select(sql, values)) as results:
        async for result in results:
            if isinstance(result, Schema):
                assert schema is None
                schema = result
            else:
                assert schema is not None
                rows += result
    assert schema is not None
    return schema, rows


async def read_table(connection: Connection, table: str) -> Batch:
    return (await read(connection, f"select * from {quote_name(table)}"))[1]


async def make(connection: Connection, table: str = "t", **kinds: str | None) -> None:
    schema = Schema.of(**kinds)
    async with connection.transaction("write"):
        await connection.create_table(table, needs_of(schema, []))


async def insert(connection: Connection, table: str, *rows: Row) -> None:
    async with connection.transaction("write"):
        width = len(rows[0])
        sql = f"insert into {quote_name(table)} values ({connection.dialect.placeholders(width)})"
        await connection.run_each(sql, rows)


# --- values -------------------------------------------------------------------------------------

NESTED = Relation(
    Schema.of("city", price="number", inner="relation"),
    [("Köln", Decimal("1.10"), Relation(Schema.of("a"))), (None, float("nan"), None)],
)
SAMPLES: dict[str, list[Any]] = {
    "char": ["", "Zürich", "a'b\"c;--", "\n\t", "𝄞", "1", "null", None],
    "number": [0, -1, 2**63 - 1, -(2**63), None],
    "float": [0.1, -0.0, 1e300, 5e-324, 12.0, None],
    "special": [float("nan"), float("inf"), float("-inf"), 1.5, None],
    "decimal": [Decimal("1.10"), Decimal("-0.1"), Decimal("12345678901234567890.123456789"), None],
    "wide": [2**63, -(2**200), 10**100, 0, None],
    "mixed number": [1, 0.1, Decimal("0.1"), 2**70, float("nan"), None],
    "boolean": [True, False, None],
    "date": [date(1, 1, 1), date(1899, 12, 31), date(9999, 12, 31), None],
    "naive datetime": [datetime(1583, 1, 1, 1, 2, 3, 4), datetime(2026, 1, 31), None],
    "aware datetime": [
        datetime(2026, 1, 31, 10, tzinfo=timezone(timedelta(hours=5, minutes=45))),
        datetime(1900, 1, 1, tzinfo=UTC),
        None,
    ],
    "dates and datetimes": [date(2026, 1, 31), datetime(2026, 1, 31, 12), None],
    "relation": [NESTED, Relation(Schema.of("a", b="char")), None],
    "document": [Document("<p>ü</p>"), Document("{}", "json"), Document("", "xml"), None],
    "anything": ["1", 1.5, True, date(2026, 1, 31), NESTED, Document("<a/>", "xml"), None],
    "booleans and numbers": [True, 1, False, 0, None],
    "nothing": [None],
}
_DECLARED = {"char", "number", "boolean", "date", "relation", "document"}


def values(kind: Type, *, characters: Characters | None = None) -> st.SearchStrategy[Any]:
    """Values of a type, of every class and size; texts are made of `characters`, else of all of Unicode."""
    return _strategies(characters)[kind]


def _strategies(characters: Characters | None) -> dict[Type, st.SearchStrategy[Any]]:
    text = st.text() if characters is None else st.text(characters)
    numbers = st.one_of(
        st.integers(),
        st.integers(-(2**64), 2**64),
        st.floats(),
        st.decimals(places=2),
        st.decimals(),
    )
    offsets = st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(timezone)
    dates = st.one_of(
        st.dates(),
        st.datetimes(),
        # At the ends of time another zone would have no such year.
        st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=offsets),
    )
    documents = st.builds(Document, text, st.sampled_from(("html", "xml", "json")))
    scalars = st.one_of(st.none(), text, numbers, st.booleans(), dates, documents)
    inner = st.builds(
        Relation, st.just(Schema.of("a", "b")), st.lists(st.tuples(scalars, scalars), max_size=3)
    )
    return {
        Type.CHAR: text,
        Type.NUMBER: numbers,
        Type.BOOLEAN: st.booleans(),
        Type.DATE: dates,
        Type.DOCUMENT: documents,
        Type.RELATION: inner,
    }


@case
async def values_of_every_kind_come_back_equal(connect: Connect) -> None:
    async with opened(connect) as connection:
        for number, (kind, column) in enumerate(SAMPLES.items()):
            declared = Type(kind) if kind in _DECLARED else None
            schema = Schema(("v", "n"), (declared, Type.NUMBER))
            rows = [(value, place) for place, value in enumerate(column)]
            await store(connection, f"t{number}", schema, rows)
            assert bag(await read_table(connection, f"t{number}")) == bag(rows), kind
            fetched = await connection.fetch(f"select v, n from t{number}")
            assert bag(fetched) == bag(rows), kind


@case
async def values_of_every_kind_come_back_equal_from_run_each(connect: Connect) -> None:
    async with opened(connect) as connection:
        for number, (kind, column) in enumerate(SAMPLES.items()):
            declared = Type(kind) if kind in _DECLARED else None
            schema = Schema(("v", "n"), (declared, Type.NUMBER))
            rows = [(value, place) for place, value in enumerate(column)]
            places = connection.dialect.placeholders(2)
            async with connection.transaction("write"):
                await connection.create_table(f"t{number}", needs_of(schema, rows))
                sql = f'insert into {quote_name(f"t{number}")} ("v", "n") values ({places})'
                assert await connection.run_each(sql, rows) == len(rows)
            assert bag(await connection.fetch(f"select v, n from t{number}")) == bag(rows), kind


# --- tables -------------------------------------------------------------------------------------


@case
async def columns_are_none_without_a_table_and_have_kinds_with_one(connect: Connect) -> None:
    async with opened(connect) as connection:
        assert await connection.columns("t") is None
        kinds = {"a": "char", "b": "number", "c": "boolean", "d": "date", "e": "relation", "f": "document"}
        await make(connection, **kinds)
        columns = await connection.columns("t")
        assert columns is not None
        assert [column.name for column in columns] == list(kinds)
        known = [(column.kind, Type(kinds[column.name])) for column in columns if column.kind is not None]
        assert all(found == asked for found, asked in known)
        assert [asked for _, asked in known][:4] == [Type.CHAR, Type.NUMBER, Type.BOOLEAN, Type.DATE]
        assert all(column.declared for column in columns)


@case
async def any_name_can_be_that_of_a_table_or_attribute(connect: Connect) -> None:
    names = (
        "price-info",
        'quo"te',
        "two words",
        "select",
        "größe",
        "a;drop table t",
        "CamelCase",
        "%s",
        "$1",
        "?",
    )
    async with opened(connect) as connection:
        for name in names:
            schema = Schema.of(name, "other")
            await store(connection, name, schema, [("x", 1)])
            found, rows = await read(connection, f"select * from {quote_name(name)}")
            assert (found.names, rows) == ((name, "other"), [("x", 1)])
            columns = await connection.columns(name)
            assert columns is not None
            assert columns[0].name == name
            await connection.add_columns(name, needs_of(Schema.of("more-" + name), [(1,)]))
            assert await read_table(connection, name) == [("x", 1, None)]


@case
async def added_columns_are_null_in_the_rows_that_were_there(connect: Connect) -> None:
    async with opened(connect) as connection:
        await store(connection, "t", Schema.of(a="number"), [(1,)])
        added = Schema.of(b="char", c="boolean")
        async with connection.transaction("write"):
            await connection.add_columns("t", needs_of(added, [("x", True)]))
            await connection.load("t", ("c", "a", "b"), [[(True, 2, "x")]])
        assert bag(await read_table(connection, "t")) == bag([(1, None, None), (2, "x", True)])


@case
async def columns_widen_to_hold_larger_numbers(connect: Connect) -> None:
    async with opened(connect) as connection:
        schema = Schema.of(a="number")
        rows: Batch = [(1,)]
        await store(connection, "t", schema, rows)
        more: list[Batch] = [[(0.5,)], [(2**80,)], [(Decimal("0.1"),)], [(float("nan"),)]]
        for batch in more:
            async with connection.transaction("write"):
                await connection.widen("t", needs_of(schema, batch))
                await connection.load("t", schema.names, [batch])
            rows += batch
            assert bag(await read_table(connection, "t")) == bag(rows)


@case
async def a_column_of_nulls_takes_values_later(connect: Connect) -> None:
    async with opened(connect) as connection:
        schema = Schema.of("a")
        for number, value in enumerate(("x", 1, 0.1, True, date(2026, 1, 31), NESTED, Document("<a/>"))):
            table = f"t{number}"
            await store(connection, table, schema, [(None,)])
            async with connection.transaction("write"):
                await connection.widen(table, needs_of(schema, [(value,)]))
                await connection.load(table, schema.names, [[(value,)]])
            assert bag(await read_table(connection, table)) == bag([(None,), (value,)])


@case
async def a_temporary_table_is_seen_by_its_connection_only(connect: Connect) -> None:
    async with opened(connect) as connection, opened(connect) as other:
        async with connection.transaction("write"):
            await connection.create_table("t", needs_of(Schema.of("a"), [(1,)]), temporary=True)
            await connection.load("t", ("a",), [[(1,)]])
        assert await connection.fetch("select a from t") == [(1,)]
        assert await connection.columns("t") is not None
        assert await other.columns("t") is None


# --- queries ------------------------------------------------------------------------------------


@case
async def a_query_tells_its_schema_even_without_rows(connect: Connect) -> None:
    async with opened(connect) as connection:
        await make(connection, a="char", b="number")
        schema, rows = await read(connection, 'select b, a as "x-y" from t')
        assert (schema.names, rows) == (("b", "x-y"), [])


@case
async def values_are_bound_and_never_read_as_sql(connect: Connect) -> None:
    async with opened(connect) as connection:
        await make(connection, a="char", b="number")
        evil = "'; drop table t; --"
        await insert(connection, "t", (evil, 1), ("other", 2))
        place = connection.dialect.placeholder.format(1)
        assert await connection.fetch(f"select b from t where a = {place}", (evil,)) == [(1,)]
        assert (await read(connection, f"select a from t where b = {place}", (2,)))[1] == [("other",)]
        assert await connection.run(f"delete from t where a = {place}", (evil,)) == 1


@case
async def many_rows_come_in_batches_in_their_order(connect: Connect) -> None:
    async with opened(connect) as connection:
        rows: Batch = [(number, f"text {number}") for number in range(5000)]
        await store(connection, "t", Schema.of(n="number", t="char"), rows)
        sizes = []
        async with aclosing(connection.select("select n, t from t order by n")) as results:
            found: Batch = []
            async for result in results:
                if not isinstance(result, Schema):
                    sizes.append(len(result))
                    found += result
        assert found == rows
        assert len(sizes) > 3


@case
async def a_reader_that_stops_early_leaves_the_connection_usable(connect: Connect) -> None:
    async with opened(connect) as connection:
        rows: Batch = [(number,) for number in range(5000)]
        await store(connection, "t", Schema.of(n="number"), rows)
        async with aclosing(connection.select("select n from t")) as results:
            async for result in results:
                if not isinstance(result, Schema):
                    break
        await connection.run("drop table t")
        assert await connection.columns("t") is None


ENDLESS = "with recursive n (i) as (select 1 union all select i + 1 from n) select count(*) from n"


@case
async def a_cancelled_query_ends_and_the_connection_works_on(connect: Connect) -> None:
    async with opened(connect) as connection:
        for _ in range(2):
            query = asyncio.ensure_future(connection.fetch(ENDLESS))
            done, _ = await asyncio.wait([query], timeout=0.05)
            assert not done
            query.cancel()
            with pytest.raises(asyncio.CancelledError):
                await query
        assert await connection.fetch("select 1") == [(1,)]


@case
async def two_columns_of_one_name_are_refused(connect: Connect) -> None:
    async with opened(connect) as connection:
        with pytest.raises(DatabaseError, match="'a'"):
            await read(connection, "select 1 as a, 2 as a")


@case
async def a_missing_table_is_named(connect: Connect) -> None:
    async with opened(connect) as connection:
        await make(connection, "houses", a="char")
        for wrong in (connection.fetch("select * from hosues"), connection.run("delete from hosues")):
            with pytest.raises(DatabaseError, match="hosues"):
                await wrong
        with pytest.raises(DatabaseError, match="hosues"):
            await read(connection, "select * from hosues")


@case
async def a_mistake_in_sql_is_told_and_the_connection_works_on(connect: Connect) -> None:
    async with opened(connect) as connection:
        with pytest.raises(DatabaseError, match="FORM"):
            await connection.fetch("select a FORM t")
        assert await connection.fetch("select 1") == [(1,)]


# --- writing ------------------------------------------------------------------------------------


@case
async def the_number_of_changed_rows_is_told(connect: Connect) -> None:
    async with opened(connect) as connection:
        await store(connection, "t", Schema.of(a="number", b="number"), [(1, 1), (2, 2), (3, 3)])
        assert await connection.run("update t set b = 0 where a > 1") == 2
        place = connection.dialect.placeholder.format(1)
        assert await connection.run_each(f"delete from t where a = {place}", [(1,), (2,), (9,)]) == 2
        assert await connection.run_each(f"delete from t where a = {place}", []) == 0


@case
async def batches_are_taken_one_by_one_and_all_are_loaded(connect: Connect) -> None:
    def batches() -> Iterator[Batch]:
        for start in range(0, 3000, 100):
            yield [(number, f"t{number}") for number in range(start, start + 100)]
            yield []

    async with opened(connect) as connection:
        await make(connection, a="number", b="char")
        async with connection.transaction("write"):
            assert await connection.load("t", ("a", "b"), batches()) == 3000
            assert await connection.load("t", ("a", "b"), []) == 0
        assert await connection.fetch("select count(*), max(a) from t") == [(3000, 2999)]


@case
async def a_load_names_the_row_that_was_refused(connect: Connect) -> None:
    async with opened(connect) as connection:
        await make(connection, a="number", url="char")
        await connection.run('create unique index "u" on "t" ("url")')
        rows: Batch = [(number, f"http://x/{number}") for number in range(700)]
        rows[650] = (650, "http://x/3")
        with pytest.raises(ConflictError, match="http://x/3") as caught:
            async with connection.transaction("write"):
                await connection.load("t", ("a", "url"), [rows[:300], rows[300:]])
        assert "http://x/300" not in str(caught.value)
        assert await connection.fetch("select count(*) from t") == [(0,)]


@case
async def a_failure_among_batches_is_raised_and_nothing_is_stored(connect: Connect) -> None:
    def batches() -> Iterator[Batch]:
        yield [(1,)]
        raise OSError("the staged rows cannot be read")

    async with opened(connect) as connection:
        await make(connection, a="number")
        with pytest.raises(OSError, match="staged"):
            async with connection.transaction("write"):
                await connection.load("t", ("a",), batches())
        assert await connection.fetch("select count(*) from t") == [(0,)]


# --- transactions -------------------------------------------------------------------------------


@case
async def a_transaction_that_fails_leaves_nothing(connect: Connect) -> None:
    async with opened(connect) as connection:
        await make(connection, a="number")

        async def fail() -> None:
            async with connection.transaction("write"):
                await connection.run("insert into t values (1)")
                raise KeyError

        with pytest.raises(KeyError):
            await fail()
        async with connection.transaction("write"):
            await connection.run("insert into t values (2)")
        assert await connection.fetch("select a from t") == [(2,)]


@case
async def what_is_not_committed_is_seen_by_its_own_connection_only(connect: Connect) -> None:
    async with opened(connect) as connection, opened(connect) as other:
        await make(connection, a="number")
        async with connection.transaction("write"):
            await connection.run("insert into t values (1)")
            assert await connection.fetch("select a from t") == [(1,)]
            assert await other.fetch("select a from t") == []
        assert await other.fetch("select a from t") == [(1,)]


@case
async def a_second_writer_is_told_at_once_that_the_database_is_busy(connect: Connect) -> None:
    async with opened(connect) as connection, opened(connect) as other:
        await make(connection, a="number")
        async with connection.transaction("write"):
            with pytest.raises(BusyError):
                async with other.transaction("write"):
                    pytest.fail("two at once")
        async with other.transaction("write"):
            await other.run("insert into t values (1)")


@case
async def a_snapshot_sees_nothing_of_what_is_committed_meanwhile(connect: Connect) -> None:
    async with opened(connect) as connection, opened(connect) as other:
        await make(connection, a="number")
        await insert(connection, "t", (1,))
        async with other.transaction("snapshot"):
            await insert(connection, "t", (2,))
            assert await other.fetch("select a from t") == [(1,)]
            assert (await read(other, "select a from t"))[1] == [(1,)]
        assert await other.fetch("select count(*) from t") == [(2,)]


@case
async def a_snapshot_cannot_write(connect: Connect) -> None:
    async with opened(connect) as connection:
        await make(connection, a="number")
        with pytest.raises(DatabaseError, match="dbquery and dbimport only read, and dbupdate writes"):
            async with connection.transaction("snapshot"):
                await connection.run("insert into t values (1)")
        async with connection.transaction("write"):
            await connection.run("insert into t values (2)")
        assert await connection.fetch("select a from t") == [(2,)]


@case
async def what_a_savepoint_loses_the_transaction_keeps_the_rest_of(connect: Connect) -> None:
    async with opened(connect) as connection:
        await make(connection, a="number")
        await connection.run('create unique index "u" on "t" ("a")')

        async def fail() -> None:
            async with connection.savepoint():
                await connection.run("insert into t values (2)")
                async with connection.savepoint():
                    await connection.run("insert into t values (3)")
                await connection.run("insert into t values (1)")

        async with connection.transaction("write"):
            await connection.run("insert into t values (1)")
            with pytest.raises(ConflictError):
                await fail()
            async with connection.savepoint():
                await connection.run("insert into t values (4)")
        assert bag(await connection.fetch("select a from t")) == bag([(1,), (4,)])


@case
async def a_cancelled_transaction_leaves_nothing_and_no_lock(connect: Connect) -> None:
    async with opened(connect) as connection, opened(connect) as other:
        await make(connection, a="number")
        inside = asyncio.Event()

        async def work() -> None:
            async with connection.transaction("write"):
                await connection.run("insert into t values (1)")
                inside.set()
                await connection.fetch(ENDLESS)

        task = asyncio.ensure_future(work())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with other.transaction("write"):
            assert await other.fetch("select a from t") == []


@case
async def sql_cannot_end_the_transaction_it_runs_in(connect: Connect) -> None:
    async with opened(connect) as connection:
        await make(connection, a="number")

        async def run(sql: str) -> None:
            async with connection.transaction("write"):
                await connection.run("insert into t values (1)")
                await connection.run(sql)

        for sql in ("commit", "-- now\n ROLLBACK", "/* a */ begin", "end"):
            with pytest.raises(DatabaseError, match="transaction"):
                await run(sql)
        assert await connection.fetch("select a from t") == []


@case
async def a_closed_connection_can_be_closed_again(connect: Connect) -> None:
    connection = await connect()
    await connection.close()
    await connection.close()
    with pytest.raises(DatabaseError):
        await connection.fetch("select 1")
