"""A connection to PostgreSQL: statements, queries that stream, loads by COPY, tables and transactions.

One COPY takes as many rows as can be encoded in a tenth of a second, so that other tasks get their turn. Rows
that are on disk are read by the disk thread, a few batches at a time.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from itertools import chain
from time import thread_time
from typing import Any

import asyncpg

from aioflow.config.masking import mask
from aioflow.errors import SettingError, suggestion
from aioflow.relation import Batch, Row, Schema
from aioflow.runtime.spill import OwnedItems, walk
from aioflow.state.driver import Address, Column, ColumnNeed, Dialect, Kind
from aioflow.state.errors import ConflictError, DatabaseError
from aioflow.state.postgres import schema as tables
from aioflow.state.postgres.schema import TableColumn, type_for
from aioflow.state.postgres.values import RowEncoder, is_binary, shown_value
from aioflow.state.postgres.wire import FIRST_ROWS, Wire, kinds_of, next_size, row_decoder, verb_of

_SECONDS = 0.1
_BATCH_ROWS = 4096
_SHOWN_CHARACTERS = 400
_LINE = re.compile(r"\bline (\d+)(?:, column ([^:]+))?")


class Load:
    """Copies batches of rows into columns of a table."""

    def __init__(
        self,
        wire: Wire,
        table: str,
        columns: Sequence[TableColumn],
        batches: Iterable[Batch],
        needs: Sequence[ColumnNeed],
    ) -> None:
        self._wire = wire
        self._table = table
        self._names = [column.name for column in columns]
        self._encoder = RowEncoder(columns, needs)
        self._is_binary = all(map(is_binary, columns))
        self._batches = _pieces(batches)
        self._on_disk: AsyncIterator[Batch] | None = None
        if isinstance(batches, OwnedItems) and batches.is_on_disk:
            self._on_disk = walk(batches, self._batches)
        self._sent: list[Batch] = []  # by the COPY that is under way
        self._before = 0  # rows that are copied
        self._has_ended = False
        self._lost: Exception | None = None  # what made the batches end too early

    async def run(self) -> int:
        """Copy all rows and return their number. After a failure the transaction must be undone."""
        while not self._has_ended:
            try:
                async with self._wire.calling(writes=True):
                    await self._copy_or_conflict()
            except Exception:
                if self._lost is not None:
                    raise self._lost from None
                raise
            self._before += sum(map(len, self._sent))
            self._sent = []
        return self._before

    async def _copy_or_conflict(self) -> None:
        try:
            await self._copy()
        except Exception as error:
            conflict = self._conflict(error) if self._lost is None else None
            if conflict is None:
                raise
            raise conflict from error

    async def _copy(self) -> None:
        if self._is_binary and self._on_disk is not None:
            async with aclosing(self._rows()) as records:
                await self._wire.raw.copy_records_to_table(self._table, columns=self._names, records=records)
        elif self._is_binary:
            rows = chain.from_iterable(map(self._encoder.encode, self._some()))
            await self._wire.raw.copy_records_to_table(self._table, columns=self._names, records=rows)
        else:
            async with aclosing(self._lines()) as lines:
                await self._wire.raw.copy_to_table(
                    self._table, columns=self._names, source=lines, format="text", encoding="utf-8"
                )

    async def _rows(self) -> AsyncGenerator[Row, None]:
        async with aclosing(self._some_from_disk()) as batches:
            async for batch in batches:
                for row in self._encoder.encode(batch):
                    yield row

    async def _lines(self) -> AsyncGenerator[bytes, None]:
        as_line = self._encoder.as_line
        async with aclosing(self._some_from_disk()) as batches:
            async for batch in batches:
                yield "".join([f"{as_line(row)}\n" for row in batch]).encode()

    async def _some_from_disk(self) -> AsyncGenerator[Batch, None]:
        """Yield the batches of one COPY, wherever they are."""
        if self._on_disk is None:
            for batch in self._some():
                yield batch
            return
        deadline = thread_time() + _SECONDS
        while (found := await self._next_from_disk(self._on_disk)) is not None:
            self._sent.append(found)
            yield found
            if thread_time() >= deadline:
                return
        self._has_ended = True

    async def _next_from_disk(self, batches: AsyncIterator[Batch]) -> Batch | None:
        try:
            return await anext(batches, None)
        except Exception as error:
            self._lost = error
            raise

    def _some(self) -> Iterator[Batch]:
        deadline = thread_time() + _SECONDS
        while (batch := self._next()) is not None:
            self._sent.append(batch)
            yield batch
            if thread_time() >= deadline:
                return
        self._has_ended = True

    def _next(self) -> Batch | None:
        try:
            return next(self._batches, None)
        except Exception as error:
            self._lost = error
            raise

    # --- what was refused -----------------------------------------------------------------------

    def _conflict(self, error: Exception) -> ConflictError | None:
        """Return the error that names a row, if one is at fault by its values or by the server's answer."""
        if not isinstance(error, asyncpg.PostgresError):
            return self._refusal()
        found = _LINE.search(error.context or "")
        if found is None or (error.sqlstate or "")[:2] not in ("22", "23", "54"):
            return None
        place = int(found[1]) - 1
        row = next((row for at, row in enumerate(chain.from_iterable(self._sent)) if at == place), None)
        if row is None:
            return None
        reason = self._encoder.refused(row) or "; ".join(filter(None, (error.args[0], error.detail)))
        return self._named(place, row, reason)

    def _refusal(self) -> ConflictError | None:
        for place, row in enumerate(chain.from_iterable(self._sent)):
            if (reason := self._encoder.refused(row)) is not None:
                return self._named(place, row, reason)
        return None

    def _named(self, place: int, row: Row, reason: str) -> ConflictError:
        pairs = zip(self._names, row, strict=False)
        shown = shown_row(", ".join(f"{name}={shown_value(value)}" for name, value in pairs))
        return ConflictError(
            mask(f"the table {self._table!r} cannot take row {self._before + place + 1} ({shown}): {reason}")
        )


def shown_row(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _pieces(batches: Iterable[Batch]) -> Generator[Batch, None, None]:
    """Yield batches that are small enough to be encoded quickly."""
    for batch in batches:
        if len(batch) <= _BATCH_ROWS:
            yield batch
        else:
            for start in range(0, len(batch), _BATCH_ROWS):
                yield batch[start : start + _BATCH_ROWS]


DIALECT = Dialect(
    "postgresql",
    "${}",
    row_id="ctid",
    row_id_shown="ctid::text as ctid",
    row_id_type="text",
    row_id_value="{}::text::tid",
    row_ids_grow=False,
    locks_database=False,
    mixes_dates=False,
)

_PIPELINED_ROWS = 10_000
_BEGIN: dict[Kind, str] = {
    "write": "begin isolation level read committed read write",
    # The server takes a snapshot with the first query, not before.
    # It waits for a lock, but not for ever: a statement of its own run may hold it, having widened a column.
    "snapshot": "begin isolation level repeatable read read only; set local lock_timeout = '60s'; select 1",
}
_COUNTED = frozenset({"insert", "update", "delete"})
# After any other statement the tables may be other ones.
_HARMLESS = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "SELECT", "EXPLAIN", "SHOW"})
_CHANGING = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})


async def connect(address: Address, arguments: dict[str, Any]) -> PostgresConnection:
    """Open a connection with the arguments for asyncpg."""
    return PostgresConnection(await Wire.open(address, arguments))


class PostgresConnection:
    """Implements `Connection`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._depth = 0  # of savepoints

    @property
    def dialect(self) -> Dialect:
        return DIALECT

    async def close(self) -> None:
        await self._wire.close()

    # --- statements -----------------------------------------------------------------------------

    async def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        async with self._wire.calling(sql, writes=True):
            statement = await self._wire.prepared(sql)
            await statement.fetch(*self._wire.bound(statement, values))
            return self._changed(statement.get_statusmsg())

    async def run_each(self, sql: str, rows: Sequence[Row]) -> int:
        if not rows:
            return 0
        if verb_of(sql) not in _COUNTED or "returning" in sql.lower() or ";" in sql:
            return sum([await self.run(sql, row) for row in rows])
        # Many go out before the first answer comes; then only rows tell how much each of them changed.
        counted, changed = f"{sql}\nreturning 1", 0
        async with self._wire.calling(sql, writes=True):
            statement = await self._wire.prepared(counted)
            for start in range(0, len(rows), _PIPELINED_ROWS):
                some = [self._wire.bound(statement, row) for row in rows[start : start + _PIPELINED_ROWS]]
                changed += len(await statement.fetchmany(some))
        return changed

    async def tolerate_damage(self) -> None:
        """Do nothing: in PostgreSQL a column holds values of its type, and every text is valid."""

    async def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        async with self._wire.calling(sql):
            statement = await self._wire.prepared(sql)
            attributes = statement.get_attributes()
            with self._wire.reading(attributes):
                records = await statement.fetch(*self._wire.bound(statement, values))
            self._changed(statement.get_statusmsg())
        return row_decoder(attributes)(records)

    def _changed(self, status: str) -> int:
        """Return how many rows a statement changed, as its answer says: `INSERT 0 3`."""
        verb, _, rest = status.partition(" ")
        if verb not in _HARMLESS:
            self._wire.forget_statements()
        return int(rest.rpartition(" ")[2]) if verb in _CHANGING else 0

    async def select(self, sql: str, values: Sequence[Any] = ()) -> AsyncGenerator[Schema | Batch, None]:
        async with self._within_transaction():
            async with self._wire.calling(sql):
                statement = await self._wire.prepared(sql, is_kept=False)
                attributes = statement.get_attributes()
                cursor = await statement.cursor(*self._wire.bound(statement, values))
            try:
                yield self._schema(attributes)
                decode, size = row_decoder(attributes), FIRST_ROWS
                while batch := decode(await self._next(cursor, size, sql, attributes)):
                    yield batch
                    size = next_size(size, batch)
            except GeneratorExit:
                await self._close_cursor(cursor)
                raise
            await self._close_cursor(cursor)

    async def _next(self, cursor: Any, size: int, sql: str, attributes: Sequence[Any]) -> Sequence[Any]:
        async with self._wire.calling(sql):
            with self._wire.reading(attributes):
                records: Sequence[Any] = await cursor.fetch(size)
                return records

    async def _close_cursor(self, cursor: Any) -> None:
        """Close a cursor: the tables that it reads cannot be changed otherwise, even in this transaction."""
        await self._wire.command(f"close {tables.quoted(cursor._portal_name)}")

    def _schema(self, attributes: Sequence[Any]) -> Schema:
        try:
            return Schema(tuple(each.name for each in attributes), kinds_of(attributes))
        except SettingError as error:
            raise DatabaseError(f"{self._wire.shown}: {error}; name one of them with AS") from None

    # --- tables ---------------------------------------------------------------------------------

    async def load(
        self,
        table: str,
        columns: Sequence[str],
        batches: Iterable[Batch],
        needs: Sequence[ColumnNeed] = (),
    ) -> int:
        described = await self._described(table)
        if described is None:
            raise DatabaseError(f"{self._wire.shown}: there is no table {table!r}")
        known = {column.name: column for column in described}
        for name in columns:
            if name not in known:
                raise ConflictError(
                    f"the table {table!r} has no column {name!r}{suggestion(name, known)} "
                    f"(it has: {', '.join(known)})"
                )
        loading = Load(self._wire, table, [known[name] for name in columns], batches, needs)
        async with self._within_transaction():
            return await loading.run()

    async def columns(self, table: str) -> tuple[Column, ...] | None:
        described = await self._described(table)
        if described is None:
            return None
        return tuple(Column(column.name, column.kind, column.declared) for column in described)

    async def create_table(self, table: str, needs: Sequence[ColumnNeed], *, temporary: bool = False) -> None:
        await self._run_all(tables.create_sql(table, needs, temporary=temporary))

    async def add_columns(self, table: str, needs: Sequence[ColumnNeed]) -> None:
        if needs:
            await self._run_all(tables.add_sql(table, needs))

    async def widen(self, table: str, needs: Sequence[ColumnNeed]) -> None:
        known = {column.name: column for column in await self._described(table) or ()}
        changes: list[str] = []
        for need in needs:
            if need.name not in known:
                raise ConflictError(f"the table {table!r} has no column {need.name!r}")
            changes += await self._widening(table, known[need.name], need)
        await self._run_all(changes)

    async def _widening(self, table: str, column: TableColumn, need: ColumnNeed) -> list[str]:
        """Return the statements that make a column able to hold what is needed."""
        if column.is_untyped and need.classes:
            ((has_values,),) = await self.fetch(tables.has_values_sql(table, column))
            if not has_values:
                return tables.first_type_sql(table, column, type_for(need)[0])
        largest = 0
        if tables.asks_for_largest(column, need):
            ((found,),) = await self.fetch(tables.largest_sql(table, column))
            largest = int(found)
        wider = tables.wider_type(column, need, largest)
        return tables.widen_sql(table, column, wider) if wider else []

    async def _described(self, table: str) -> list[TableColumn] | None:
        rows = await self.fetch(tables.DESCRIBE, (tables.quoted(table),))
        return [TableColumn(*row) for row in rows if row[0] is not None] if rows else None

    async def _run_all(self, statements: Sequence[str]) -> None:
        if not statements:
            return
        self._wire.forget_statements()
        async with self._within_transaction():
            for sql in statements:
                await self._wire.command(sql)

    # --- transactions ---------------------------------------------------------------------------

    @asynccontextmanager
    async def transaction(self, kind: Kind) -> AsyncIterator[None]:
        if self._wire.in_transaction:
            raise DatabaseError(
                f"{self._wire.shown}: a transaction is open already; this asks for a savepoint"
            )
        self._wire.forget_statements()
        try:
            await self._wire.command(_BEGIN[kind])
            yield
            status = await self._wire.command("commit")
        except BaseException:
            await self._wire.undo("rollback")
            raise
        self._wire.forget_statements()
        if status != "COMMIT":
            raise DatabaseError(
                f"{self._wire.shown}: nothing was committed, since a statement of the transaction had failed"
            )

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        name = f"aioflow_{self._depth}"
        await self._wire.command(f"savepoint {name}")
        self._depth += 1
        try:
            yield
            await self._wire.command(f"release savepoint {name}")
        except BaseException:
            await self._wire.undo(f"rollback to savepoint {name}; release savepoint {name}")
            raise
        finally:
            self._depth -= 1

    @asynccontextmanager
    async def _within_transaction(self) -> AsyncIterator[None]:
        """Use the open transaction, or else begin one for this call."""
        if self._wire.in_transaction:
            yield
            return
        async with self.transaction("write"):
            yield
