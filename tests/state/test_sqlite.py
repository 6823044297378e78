"""The SQLite driver: the cases of every driver, and what only a file can do."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow.relation import Batch, Document, Relation, Schema, Type
from aioflow.state.driver import Address, Connection, quote_name
from aioflow.state.errors import ConflictError, DatabaseError
from aioflow.state.sqlite.driver import SQLITE
from tests.state.driver_cases import (
    CASES,
    Case,
    bag,
    make,
    name_of,
    needs_of,
    opened,
    read,
    read_table,
    store,
    values,
)


def address_of(folder: Path, name: str = "houses.db") -> Address:
    return Address("default", f"sqlite:{folder / name}", name, folder / name)


@asynccontextmanager
async def connected(folder: Path) -> AsyncGenerator[Connection, None]:
    async with opened(lambda: SQLITE.connect(address_of(folder))) as connection:
        yield connection


@contextmanager
def elsewhere(folder: Path) -> Iterator[sqlite3.Connection]:
    """The database as another program sees it."""
    database = sqlite3.connect(folder / "houses.db", isolation_level=None)
    try:
        yield database
    finally:
        database.close()


@pytest.mark.parametrize("case", CASES, ids=name_of)
async def test_every_case_of_a_driver(case: Case, tmp_path: Path) -> None:
    await case(lambda: SQLITE.connect(address_of(tmp_path)))


# --- values -------------------------------------------------------------------------------------

ANY_CHARACTER = st.characters(exclude_categories=())
KINDS: dict[Type | None, st.SearchStrategy[Any]] = {
    kind: values(kind, characters=ANY_CHARACTER) for kind in Type
}
KINDS[None] = st.one_of(*KINDS.values())


@st.composite
def relations(draw: st.DrawFn) -> Relation:
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=4))
    declared = [draw(st.sampled_from((kind, None))) for kind in kinds]
    schema = Schema(tuple(f"a{number}" for number in range(len(kinds))), tuple(declared))
    row = st.tuples(*(st.one_of(st.none(), KINDS[kind]) for kind in kinds))
    return Relation(schema, draw(st.lists(row, max_size=5)))


def in_empty_database(work: Callable[[Connection], Any]) -> None:
    async def main(folder: Path) -> None:
        async with connected(folder) as connection:
            await work(connection)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))


@settings(max_examples=35, deadline=None)
@given(relations())
def test_any_relation_that_is_loaded_is_read_back_equal(relation: Relation) -> None:
    rows = list(relation.rows)

    async def work(connection: Connection) -> None:
        await store(connection, "t", relation.schema, rows)
        schema, found = await read(connection, "select * from t")
        assert schema.names == relation.schema.names
        assert bag(found) == bag(rows)

    in_empty_database(work)


@settings(max_examples=35, deadline=None)
@given(relations())
def test_any_relation_that_is_inserted_row_by_row_is_read_back_equal(relation: Relation) -> None:
    rows = list(relation.rows)

    async def work(connection: Connection) -> None:
        await connection.create_table("t", needs_of(relation.schema, rows))
        names = ", ".join(map(quote_name, relation.schema.names))
        sql = f"insert into t ({names}) values ({connection.dialect.placeholders(len(relation.schema))})"
        await connection.run_each(sql, rows)
        for row in rows:
            await connection.run(f"{sql} on conflict do nothing", row)
        assert bag(await connection.fetch("select * from t")) == bag(rows + rows)

    in_empty_database(work)


@settings(max_examples=20, deadline=None)
@given(relations(), st.sampled_from(list(Type)))
def test_values_of_another_type_than_the_columns_are_read_back_equal(relation: Relation, kind: Type) -> None:
    rows = list(relation.rows)
    other = Schema(relation.schema.names, (kind,) * len(relation.schema))

    async def work(connection: Connection) -> None:
        await connection.create_table("t", needs_of(other, []))
        await connection.widen("t", needs_of(relation.schema, rows))
        await connection.load("t", relation.schema.names, [rows])
        assert bag(await connection.fetch("select * from t")) == bag(rows)

    in_empty_database(work)


async def test_texts_with_nul_and_halves_of_characters_come_back(tmp_path: Path) -> None:
    rows: Batch = [("a\0b",), ("\0",), ("\ud800",), ("x\udfff\0",), ("ü",)] + [("plain",)] * 300
    async with connected(tmp_path) as connection:
        await store(connection, "t", Schema.of(a="char"), rows)
        assert await read_table(connection, "t") == rows
        for (value,) in rows[:4]:
            assert await connection.fetch("select a from t where a = ?", (value,)) == [(value,)]


async def test_what_sqlite_can_hold_is_readable_for_other_programs(tmp_path: Path) -> None:
    schema = Schema.of(a="char", b="number", c="boolean", d="date", e="relation", f="document")
    row = ("x", 1.5, True, date(2026, 1, 31), Relation(Schema.of("a"), [(1,)]), Document("<p>"))
    async with connected(tmp_path) as connection:
        await store(connection, "t", schema, [row])
        assert await connection.fetch("select count(*) from t where d > '2025-12-31' and c and b < 2") == [
            (1,)
        ]
    with elsewhere(tmp_path) as database:
        assert database.execute("select a, b, c, d from t").fetchall() == [("x", 1.5, 1, "2026-01-31")]
        found = database.execute("select json_extract(e, '$.$relation.rows[0][0]') from t").fetchall()
        assert found == [(1,)]


async def test_values_that_sqlite_has_no_form_for_decode_in_any_expression(tmp_path: Path) -> None:
    async with connected(tmp_path) as connection:
        await store(connection, "t", Schema.of(a="number"), [(Decimal("1.10"),)])
        sql = "with x as (select a from t) select coalesce(null, a), (select max(a) from x) from x"
        assert await connection.fetch(sql) == [(Decimal("1.10"), Decimal("1.10"))]
        assert str((await connection.fetch("select a from t"))[0][0]) == "1.10"
        assert await connection.fetch("select 1 from t where a = ?", (Decimal("1.10"),)) == [(1,)]


async def test_whole_decimals_are_integers_for_sql_and_its_indexes(tmp_path: Path) -> None:
    async with connected(tmp_path) as connection:
        await store(connection, "t", Schema.of(a="number"), [(Decimal(7),), (Decimal("1E+3"),)])
        await connection.run("create unique index u on t (a)")
        assert await connection.fetch("select sum(a) from t") == [(1007,)]
        with pytest.raises(ConflictError, match="same a"):
            await connection.load("t", ("a",), [[(7,)]])


# --- tables that others made --------------------------------------------------------------------

OTHERS = """
create table o (
    id INTEGER PRIMARY KEY, sold BOOLEAN, day DATE, seen DATETIME, at TIMESTAMP, price DECIMAL(10, 2),
    name VARCHAR(20), note, image BLOB
)
"""


async def test_tables_of_others_are_read_by_their_declared_types(tmp_path: Path) -> None:
    with elsewhere(tmp_path) as database:
        database.execute(OTHERS)
        database.execute(
            "insert into o values (1, 1, '2026-01-31', '2026-01-31 10:00:00', '2026-01-31T10:00:00.5Z', "
            "12.5, 'x', null, null)"
        )
        database.execute(
            "insert into o values (2, 7, 'soon', 1700000000, 1700000000123, '1.10', 'y', 5, null)"
        )
    async with connected(tmp_path) as connection:
        assert await read_table(connection, "o") == [
            (
                1,
                True,
                date(2026, 1, 31),
                datetime(2026, 1, 31, 10),
                datetime.fromisoformat("2026-01-31T10:00:00.5Z"),
                12.5,
                "x",
                None,
                None,
            ),
            (2, 7, "soon", 1700000000, 1700000000123, 1.1, "y", 5, None),
        ]
        columns = await connection.columns("o")
        assert columns is not None
        assert [column.kind for column in columns] == [
            Type.NUMBER,
            Type.BOOLEAN,
            Type.DATE,
            Type.DATE,
            Type.DATE,
            Type.NUMBER,
            Type.CHAR,
            None,
            None,
        ]


async def test_tables_of_others_are_written_in_their_own_types(tmp_path: Path) -> None:
    moment = datetime(2026, 1, 31, 10, 30)
    with elsewhere(tmp_path) as database:
        database.execute(OTHERS)
    async with connected(tmp_path) as connection:
        names = ("id", "sold", "day", "seen", "price", "name")
        await connection.load(
            "o", names, [[(1, True, moment.date(), moment, Decimal("12.10"), Document("<p>"))]]
        )
    with elsewhere(tmp_path) as database:
        assert database.execute(f"select {', '.join(names)} from o").fetchall() == [
            (1, 1, "2026-01-31", "2026-01-31 10:30:00", 12.1, "<p>")
        ]


@pytest.mark.parametrize("value", [float("nan"), 2**70, Decimal("NaN"), "\ud800"], ids=ascii)
async def test_what_a_column_of_others_cannot_hold_names_the_row(value: Any, tmp_path: Path) -> None:
    with elsewhere(tmp_path) as database:
        database.execute(OTHERS)
    async with connected(tmp_path) as connection:
        rows: Batch = [(number, 1) for number in range(400)] + [(400, value)]
        with pytest.raises(ConflictError, match=r"table 'o' refused row 401 \(id=400, price="):
            await connection.load("o", ("id", "price"), [rows])
        assert await connection.fetch("select count(*) from o") == [(0,)]


async def test_a_blob_of_others_is_refused_by_name(tmp_path: Path) -> None:
    with elsewhere(tmp_path) as database:
        database.execute(OTHERS)
        database.execute("insert into o (id, image) values (1, x'ffd8ff')")
    async with connected(tmp_path) as connection:
        with pytest.raises(DatabaseError, match=r"image: a BLOB of 3 bytes .* hex"):
            await read_table(connection, "o")
        assert await connection.fetch("select hex(image) from o") == [("FFD8FF",)]


async def test_a_view_has_columns(tmp_path: Path) -> None:
    async with connected(tmp_path) as connection:
        await make(connection, a="date", b="number")
        await connection.run('create view v as select a, b + 1 as "b-1" from t')
        columns = await connection.columns("v")
        assert columns is not None
        assert [(column.name, column.kind) for column in columns] == [("a", Type.DATE), ("b-1", None)]


# --- names --------------------------------------------------------------------------------------


async def test_attributes_that_differ_by_case_only_are_refused_clearly(tmp_path: Path) -> None:
    async with connected(tmp_path) as connection:
        with pytest.raises(DatabaseError, match=r"both 'Price' and 'price'.*capitals"):
            await connection.create_table("t", needs_of(Schema.of("Price", "price"), []))
        await make(connection, a="char", Ä="char", ä="char")  # SQLite folds ASCII only
        with pytest.raises(DatabaseError, match="both 'a' and 'A'"):
            await connection.add_columns("t", needs_of(Schema.of("b", "A"), []))
        columns = await connection.columns("t")
        assert columns is not None
        assert [column.name for column in columns] == ["a", "Ä", "ä"]


async def test_names_that_nothing_can_have_are_refused(tmp_path: Path) -> None:
    async with connected(tmp_path) as connection:
        for name in ("", "a\0b", "\ud800"):
            with pytest.raises(DatabaseError):
                await connection.create_table("t", needs_of(Schema.of(name), []))
            with pytest.raises(DatabaseError):
                await connection.load(name, ("a",), [[(1,)]])
        with pytest.raises(DatabaseError, match="at least one attribute"):
            await connection.create_table("t", [])
        with pytest.raises(DatabaseError, match="without attributes"):
            await connection.load("t", (), [[()]])
        with pytest.raises(DatabaseError, match="reserved"):
            await connection.create_table("sqlite_x", needs_of(Schema.of("a"), []))
