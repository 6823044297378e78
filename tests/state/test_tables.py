"""Tables that plans write to: their names, columns and keys, on connections of real databases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioflow import SettingError
from aioflow.relation import Value, identity
from aioflow.state.databases import Databases
from aioflow.state.driver import ColumnNeed, Connection, Dialect
from aioflow.state.errors import ConflictError
from aioflow.state.tables import (
    TableName,
    WrittenTableName,
    check_names,
    ensure_key,
    fit_table,
    key_index,
    missing_table,
    table_names,
)
from aioflow.state.upsert import comparable


@asynccontextmanager
async def writing(url: str) -> AsyncIterator[Connection]:
    """A connection to a database, in a transaction."""
    databases = Databases({"database": {"default": {"url": url}}})
    connection = await databases.connect(databases.address(None, Path()))
    try:
        async with connection.transaction("write"):
            yield connection
    finally:
        await connection.close()


def needs(**classes: type) -> list[ColumnNeed]:
    return [ColumnNeed(name, None, {kind}) for name, kind in classes.items()]


# --- names --------------------------------------------------------------------------------------


def test_table_names_are_texts() -> None:
    assert TableName.bind("aioflow_runs", []) == "aioflow_runs"
    for value in (None, 7, "", "a\0b"):
        with pytest.raises(SettingError):
            TableName.bind(value, [])


@pytest.mark.parametrize("name", ["aioflow_outbox", "AIOFLOW_x", "sqlite_master"])
def test_tables_of_others_are_not_written_to(name: str) -> None:
    with pytest.raises(SettingError, match="names that begin with"):
        WrittenTableName.bind(name, [])
    assert WrittenTableName.bind("houses", []) == "houses"


def test_names_that_a_database_cannot_tell_apart_are_refused() -> None:
    check_names(Dialect("postgresql", "${}"), "t", ["url", "URL"])
    check_names(Dialect("sqlite", "?"), "t", ["ä", "Ä"])
    with pytest.raises(ConflictError, match="'url' and 'URL'"):
        check_names(Dialect("sqlite", "?"), "t", ["url", "URL"])


def test_names_that_a_database_would_cut_are_refused() -> None:
    check_names(Dialect("sqlite", "?"), "t" * 100, ["a" * 100])
    check_names(Dialect("postgresql", "${}"), "t" * 63, ["ä" * 31])
    for table, name in (("t" * 64, "a"), ("t", "ä" * 32)):
        with pytest.raises(ConflictError, match="too long"):
            check_names(Dialect("postgresql", "${}"), table, [name])


def test_the_name_of_an_index_is_stable_and_short() -> None:
    assert key_index("houses", ["url"]) == key_index("houses", ["url"])
    names = {
        key_index(table, key)
        for table in ("houses", "houses_url", 'x"; drop', "表", "x" * 1000)
        for key in (["url"], ["url", "city"], ["url_city"], ["\ud800"])
    }
    assert len(names) == 20
    assert all(len(name.encode()) <= 63 for name in names)


# --- columns ------------------------------------------------------------------------------------


async def test_a_table_is_made_and_gets_columns(database_url: str) -> None:
    async with writing(database_url) as connection:
        await fit_table(connection, "t", needs(a=str, b=int), evolve=False)
        await fit_table(connection, "t", needs(b=int), evolve=False)
        with pytest.raises(ConflictError, match=r"no column for the attribute 'bb'; did you mean 'b'\?"):
            await fit_table(connection, "t", needs(bb=int), evolve=False)
        await fit_table(connection, "t", needs(a=str, c=bool), evolve=True)
        columns = await connection.columns("t")
    assert [column.name for column in columns or ()] == ["a", "b", "c"]


async def test_tables_are_listed_without_our_own(database_url: str) -> None:
    async with writing(database_url) as connection:
        for name in ("houses", "aioflow_x", 'odd "name"'):
            await fit_table(connection, name, needs(a=str), evolve=False)
        assert sorted(await table_names(connection)) == ["houses", 'odd "name"']
        assert "did you mean 'houses'?" in await missing_table(connection, "hoses")


# --- keys ---------------------------------------------------------------------------------------


async def test_a_key_is_made_once(database_url: str) -> None:
    async with writing(database_url) as connection:
        await fit_table(connection, "t", needs(a=str, b=int), evolve=False)
        for key in (["a"], ["a"], ["b", "a"], ["a", "b"]):
            await ensure_key(connection, "t", key, [])
        await connection.run("insert into t values ('x', 1)")
        with pytest.raises(ConflictError):
            async with connection.savepoint():
                await connection.run("insert into t values ('x', 2)")


async def test_rows_that_share_a_key_are_counted_and_shown(database_url: str) -> None:
    async with writing(database_url) as connection:
        await fit_table(connection, "t", needs(a=str, b=int), evolve=False)
        await connection.run("insert into t values ('x', null), ('x', null), ('x', 1)")
        with pytest.raises(ConflictError, match="it has 2 rows with a='x', b=None"):
            await ensure_key(connection, "t", ["a", "b"], [])


async def test_a_key_of_several_types_is_refused_where_it_cannot_be_compared(postgres_url: str) -> None:
    async with writing(postgres_url) as connection:
        await fit_table(connection, "t", [ColumnNeed("a", None, {str, int})], evolve=False)
        with pytest.raises(ConflictError, match="'a' cannot be a key"):
            await ensure_key(connection, "t", ["a"], [])


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.decimals(allow_nan=True, allow_infinity=True, places=3),
    st.floats().map(lambda number: Decimal(repr(number))),
    st.floats(-(2.0**70), 2.0**70).map(lambda number: Decimal(number)),
    st.booleans(),
)

DATES = st.one_of(
    st.dates(),
    st.dates().map(lambda day: datetime(day.year, day.month, day.day)),
    st.datetimes(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=5, minutes=30))])),
)
VALUES = st.one_of(
    NUMBERS,
    DATES,
    st.sampled_from([0.1, Decimal("0.10"), Decimal.from_float(0.1), 2**70, 10**23, Decimal("1e23")]),
)


@given(VALUES, VALUES)
def test_comparable_keys_are_equal_when_the_values_are(first: Value, second: Value) -> None:
    for value in (first, second):
        assert identity(comparable((value,), [0], mixes_dates=True)) == identity((value,))
    (one,), (other,) = (comparable((value,), [0], mixes_dates=True) for value in (first, second))
    assert (identity((first,)) == identity((second,))) is (repr(one) == repr(other))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("0001-01-01T00:00:00+02:00", "0001-01-01T03:30:00+05:30"),
        ("9999-12-31T23:00:00-02:00", "9999-12-31T20:00:00-05:00"),
        ("2026-01-31T10:00:00+02:00", "2026-01-31T08:00:00+00:00"),
    ],
)
def test_moments_are_comparable_also_where_utc_has_no_such_year(first: str, second: str) -> None:
    moments = [datetime.fromisoformat(text) for text in (first, second)]
    for mixed in (True, False):
        (one,), (other,) = (comparable((moment,), [0], mixes_dates=mixed) for moment in moments)
        assert repr(one) == repr(other)
        assert identity((one,)) == identity((moments[0],))
        assert mixed or [one, other] == moments


def test_where_a_column_mixes_dates_a_midnight_is_its_date() -> None:
    midnights = [date(2026, 1, 31), datetime(2026, 1, 31), datetime(2026, 1, 31, tzinfo=UTC)]
    assert [comparable((each,), [0], mixes_dates=True) for each in midnights] == [(date(2026, 1, 31),)] * 3
    assert [comparable((each,), [0], mixes_dates=False) for each in midnights] == [
        (each,) for each in midnights
    ]


def test_only_the_key_is_made_comparable() -> None:
    assert repr(comparable((Decimal("1.0"), Decimal("1.0")), [1], mixes_dates=True)) == "(Decimal('1.0'), 1)"
