"""Rows into a table with a key: those that are there already stay as they are, or are updated.

Null equals null in a key, as everywhere in the language where tuples are compared. Unique indexes do not see
it so: rows with a null in their key are looked for one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count

from aioflow.relation import Batch, Row, Value, identity, picker
from aioflow.spill import RowBuffer
from aioflow.state.driver import Connection, quote_name
from aioflow.state.errors import ConflictError
from aioflow.state.staged import batches_of
from aioflow.state.tables import quoted
from aioflow.state.values import LARGEST_INTEGER, SMALLEST_INTEGER

_CHUNK_ROWS = 1000
_SHOWN_CHARACTERS = 80
_STAGED = "aioflow_staged"
# Here rows travel faster all at once into a table of their own.
_LOADS_FASTER = frozenset({"postgresql"})


class Upsert:
    """Writes rows into a table that has a unique index on its key."""

    def __init__(
        self, connection: Connection, table: str, names: Sequence[str], key: Sequence[str], *, updates: bool
    ) -> None:
        self._connection = connection
        self._table = quote_name(table)
        self._names = tuple(names)
        self._key = tuple(key)
        self._positions = [self._names.index(name) for name in key]
        self._key_of = picker(self._positions)
        others = [name for name in names if name not in key]
        self._updated = others if updates else []

    async def write(self, buffers: Sequence[RowBuffer]) -> None:
        if self._connection.dialect.name in _LOADS_FASTER:
            await self._load(buffers)
        else:
            sql = f"{self._insert(f'values ({self._placeholders()})')} {self._on_conflict()}"
            for rows in _chunks(self._rows(buffers, with_null=False)):
                await self._run_each(sql, rows)
        for rows in _chunks(self._rows(buffers, with_null=True)):
            await self._write_with_null(rows)

    def _rows(self, buffers: Sequence[RowBuffer], *, with_null: bool) -> Iterator[Row]:
        """The rows that have a null in their key, or those that do not."""
        key_of, positions = self._key_of, self._positions
        for batch in batches_of(buffers):
            for row in batch:
                if (None in key_of(row)) is with_null:
                    yield comparable(row, positions)

    # --- rows without null ----------------------------------------------------------------------

    async def _load(self, buffers: Sequence[RowBuffer]) -> None:
        """Load all rows into a table of their own, and move them from there in one statement."""
        connection = self._connection
        number = self._unused_name("number")
        await connection.run(
            f"create temporary table {_STAGED} as select {quoted(self._names)}, "
            f"cast(0 as bigint) as {quote_name(number)} from {self._table} where 1 = 0"
        )
        rows = self._rows(buffers, with_null=False)
        numbered = ((*row, place) for place, row in enumerate(rows, 1))
        await connection.load(_STAGED, (*self._names, number), _chunks(numbered))
        await connection.run(f"{self._insert(self._staged_rows(quote_name(number)))} {self._on_conflict()}")
        await connection.run(f"drop table {_STAGED}")

    def _staged_rows(self, number: str) -> str:
        names = quoted(self._names)
        if not self._updated:  # of several rows with one key the first is taken anyway
            return f"select {names} from {_STAGED} order by {number}"
        place = quote_name(self._unused_name("place"))
        last = f"row_number() over (partition by {quoted(self._key)} order by {number} desc)"
        return (
            f"select {names} from (select *, {last} as {place} from {_STAGED}) as numbered "
            f"where {place} = 1 order by {number}"
        )

    def _unused_name(self, name: str) -> str:
        while name in self._names:
            name += "_"
        return name

    def _insert(self, rows: str) -> str:
        return f"insert into {self._table} ({quoted(self._names)}) {rows}"

    def _placeholders(self) -> str:
        return self._connection.dialect.placeholders(len(self._names))

    def _on_conflict(self) -> str:
        updates = ", ".join(f"{quote_name(name)} = excluded.{quote_name(name)}" for name in self._updated)
        return f"on conflict ({quoted(self._key)}) do " + (f"update set {updates}" if updates else "nothing")

    # --- rows with null -------------------------------------------------------------------------

    async def _write_with_null(self, rows: Batch) -> None:
        chosen: dict[object, Row] = {}
        for row in rows:
            same_key = identity(self._key_of(row))
            if self._updated or same_key not in chosen:
                chosen[same_key] = row
        by_nulls: dict[tuple[bool, ...], Batch] = {}
        for row in chosen.values():
            by_nulls.setdefault(tuple(value is None for value in self._key_of(row)), []).append(row)
        for nulls, alike in by_nulls.items():
            if self._updated:
                await self._update(nulls, alike)
            await self._insert_new(nulls, alike)

    async def _update(self, nulls: Sequence[bool], rows: Batch) -> None:
        placeholder = self._connection.dialect.placeholder
        pick = picker([self._names.index(name) for name in self._updated])
        sets = ", ".join(
            f"{quote_name(name)} = {placeholder.format(number)}"
            for number, name in enumerate(self._updated, 1)
        )
        sql = f"update {self._table} set {sets} where {self._same_key(nulls, len(self._updated) + 1)}"
        await self._run_each(sql, [(*pick(row), *self._key_values(row)) for row in rows])

    async def _insert_new(self, nulls: Sequence[bool], rows: Batch) -> None:
        there = f"select 1 from {self._table} where {self._same_key(nulls, len(self._names) + 1)}"
        sql = self._insert(f"select {self._placeholders()} where not exists ({there})")
        await self._run_each(sql, [(*row, *self._key_values(row)) for row in rows])

    def _same_key(self, nulls: Sequence[bool], first: int) -> str:
        """A condition that an index can help with, for keys that are null in just these places."""
        numbers = count(first)
        placeholder = self._connection.dialect.placeholder
        return " and ".join(
            f"{quote_name(name)} is null"
            if null
            else f"{quote_name(name)} = {placeholder.format(next(numbers))}"
            for name, null in zip(self._key, nulls, strict=True)
        )

    def _key_values(self, row: Row) -> Row:
        return tuple(value for value in self._key_of(row) if value is not None)

    # --- conflicts ------------------------------------------------------------------------------

    async def _run_each(self, sql: str, rows: Batch) -> None:
        """Run a statement for each row; where one is refused, find out which."""
        try:
            async with self._connection.savepoint():
                await self._connection.run_each(sql, rows)
        except ConflictError:
            for row in rows:
                await self._run_one(sql, row)
            raise

    async def _run_one(self, sql: str, row: Row) -> None:
        try:
            await self._connection.run_each(sql, [row])
        except ConflictError as error:
            raise ConflictError(f"{error}, for the row {self._shown(row)}") from error

    def _shown(self, row: Row) -> str:
        return ", ".join(
            f"{name}={repr(value)[:_SHOWN_CHARACTERS]}" for name, value in zip(self._names, row, strict=False)
        )


def _chunks(rows: Iterable[Row]) -> Iterator[Batch]:
    chunk: Batch = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == _CHUNK_ROWS:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


# --- keys that databases compare as the language does -------------------------------------------


def comparable(row: Row, positions: Sequence[int]) -> Row:
    """A row whose values at these places are equal for a database when they are equal for us.

    A value is only ever replaced by one that equals it: 1 by 1.0 or a Decimal, a time by the same in UTC.
    """
    for position in positions:
        value = row[position]
        if value.__class__ not in _COMPARED_RIGHTLY:
            row = (*row[:position], _comparable(value), *row[position + 1 :])
    return row


_COMPARED_RIGHTLY = frozenset({str, bool, type(None)})


def _comparable(value: Value) -> Value:
    if isinstance(value, int | float | Decimal):
        return _comparable_number(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value


def _comparable_number(value: float | Decimal) -> Value:
    if value != value:
        return float("nan")
    if SMALLEST_INTEGER <= value <= LARGEST_INTEGER and value == int(value):
        return int(value)
    try:
        rounded = float(value)
    except OverflowError:
        rounded = float("inf")
    if rounded == value:
        return rounded
    return value.normalize() if isinstance(value, Decimal) else value
