"""Reads of statements: a table or a query as it streams, and a query for each tuple on several connections.

A statement sees the database as it was when the statement began. After writes of its own run it sees the
database as these made it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import partial
from typing import TypeAlias

from aioflow.authoring.context import Context
from aioflow.errors import InputError
from aioflow.relation import Batch, Row, Schema
from aioflow.runtime.spill import RowBuffer, walk
from aioflow.state.driver import Address, Connection, quote_name
from aioflow.state.sql_text import Sql
from aioflow.state.tables import missing_table
from aioflow.state.transaction import Transaction

Results: TypeAlias = AsyncGenerator[Schema | Batch, None]

# Connections that one statement reads through: enough to hide the way to a server.
CONNECTIONS_AT_MOST = 4
# Then a statement that goes on for long looks at the database anew.
_RENEWED_AFTER_SECONDS = 60.0


async def table_rows(connection: Connection, address: Address, table: str, *, may_miss: bool) -> Results:
    """Yield the schema and rows of a table. A missing table that `may_miss` yields nothing."""
    if await connection.columns(table) is None:
        if may_miss:
            return
        if address.is_missing:
            found = f"there is no file {address.shown}, and so no table {table!r}"
        else:
            found = await missing_table(connection, table)
        raise InputError(f"{found}; IF_MISSING: empty gives no tuple instead")
    async with aclosing(connection.select(f"select * from {quote_name(table)}")) as results:
        async for item in results:
            yield item


async def query_rows(connection: Connection, sql: Sql, row: Row = ()) -> Results:
    """Yield the schema and rows of a query, with values of a tuple bound."""
    text, values = sql.for_dialect(connection.dialect)
    async with aclosing(connection.select(text, values(row))) as results:
        async for item in results:
            yield item


# --- one reading --------------------------------------------------------------------------------


async def read(
    read_from: Callable[[Connection], Results], database: str | None, context: Context
) -> AsyncGenerator[Schema | Batch, None]:
    """Yield the results of a reading as they come. Permits are held only while the database works."""
    transaction = context.service(Transaction)
    if context.sees_own_writes and transaction.may_write_to(database):
        async with aclosing(_collected(read_from, transaction, database, context)) as collected:
            async for item in collected:
                yield item
        return
    if context.run.writes_early:
        async with aclosing(_read_out(read_from, transaction, database, context)) as collected:
            async for item in collected:
                yield item
        return
    async with AsyncExitStack() as stack:
        async with context.permit():
            connection = await stack.enter_async_context(transaction.snapshot(database))
        results = await stack.enter_async_context(aclosing(read_from(connection)))
        while True:
            async with context.permit():
                found = await _next(results)
            if found is None:
                return
            yield found


async def _next(results: Results) -> Schema | Batch | None:
    try:
        return await anext(results)
    except StopAsyncIteration:
        return None


async def _read_out(
    read_from: Callable[[Connection], Results],
    transaction: Transaction,
    database: str | None,
    context: Context,
) -> Results:
    """Read everything from a snapshot, then yield it.

    A snapshot that waits for its reader would keep a server from changing a table for a write of the same
    run, which the reader may be waiting for.
    """
    with RowBuffer(context.memory) as kept:
        schema = None
        async with (
            context.permit(),
            transaction.snapshot(database) as connection,
            aclosing(read_from(connection)) as results,
        ):
            async for item in results:
                if isinstance(item, Schema):
                    schema = item
                else:
                    kept.append(item)
        if schema is not None:
            yield schema
            async for batch in walk(kept, kept.batches()):
                yield batch


async def _collected(
    read_from: Callable[[Connection], Results],
    transaction: Transaction,
    database: str | None,
    context: Context,
) -> Results:
    """Read everything in the run's own view, then yield it."""
    with RowBuffer(context.memory) as kept:
        schema = await _collect(read_from, transaction, database, context, kept)
        if schema is not None:
            yield schema
            async for batch in walk(kept, kept.batches()):
                yield batch


async def _collect(
    read_from: Callable[[Connection], Results],
    transaction: Transaction,
    database: str | None,
    context: Context,
    kept: RowBuffer,
) -> Schema | None:
    schema = None
    # A query that fails must leave the transaction as it was: ERRORS may take the failure.
    async with (
        transaction.own_view(database, context) as connection,
        connection.savepoint(),
        aclosing(read_from(connection)) as results,
    ):
        async for item in results:
            if isinstance(item, Schema):
                schema = item
            else:
                kept.append(item)
    return schema


# --- a query for each tuple ---------------------------------------------------------------------


class TupleQueries:
    """A query that is executed for each tuple. `ask` is for `map_concurrently`, in a `window` of tuples."""

    def __init__(self, sql: Sql, database: str | None, context: Context) -> None:
        self._sql = sql
        self._database = database
        self._context = context
        self._transaction = context.service(Transaction)
        self.in_own_view = context.sees_own_writes and self._transaction.may_write_to(database)
        # Then permits are taken when a connection is there.
        self.takes_permits = self.in_own_view or context.run.writes_early
        self._snapshots = Snapshots(self._transaction, database, context.clock)
        self.window = min(context.workers, CONNECTIONS_AT_MOST)

    async def ask(self, row: Row) -> AsyncGenerator[tuple[Schema, Batch], None]:
        """Yield the schema of the results, with batches as they come: at least one, perhaps empty."""
        results = self._in_own_view(row) if self.in_own_view else self._in_snapshot(row)
        schema, is_first = Schema(()), True
        async with aclosing(results):
            async for item in results:
                if isinstance(item, Schema):
                    schema = item
                else:
                    is_first = False
                    yield schema, item
        if is_first:
            yield schema, []

    async def _in_snapshot(self, row: Row) -> Results:
        if self._context.run.writes_early:
            read_from = partial(query_rows, sql=self._sql, row=row)
            async with aclosing(
                _read_out(read_from, self._transaction, self._database, self._context)
            ) as collected:
                async for item in collected:
                    yield item
            return
        async with (
            self._snapshots.one() as connection,
            aclosing(query_rows(connection, self._sql, row)) as results,
        ):
            async for item in results:
                yield item

    async def _in_own_view(self, row: Row) -> Results:
        with RowBuffer(self._context.memory) as kept:
            schema = await _collect(
                lambda connection: query_rows(connection, self._sql, row),
                self._transaction,
                self._database,
                self._context,
                kept,
            )
            if schema is not None:
                yield schema
            async for batch in walk(kept, kept.batches()):
                yield batch

    async def close(self) -> None:
        await self._snapshots.close()


class _Snapshot:
    """A connection with an open snapshot."""

    def __init__(self, connection: Connection, stack: AsyncExitStack, taken_at: float) -> None:
        self.connection = connection
        self.taken_at = taken_at
        self.close = stack.aclose


class Snapshots:
    """A pool of connections with snapshots, opened on demand."""

    def __init__(self, transaction: Transaction, database: str | None, clock: Callable[[], float]) -> None:
        self._transaction = transaction
        self._database = database
        self._clock = clock
        self._idle: list[_Snapshot] = []
        self._is_closed = False

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Connection]:
        """Lend a snapshot. One in which something failed is not used again."""
        snapshot = await self._take()
        try:
            yield snapshot.connection
        except BaseException:
            await snapshot.close()
            raise
        # A step that is stopped closes this before those who still use a connection have ended.
        if self._is_closed:
            await snapshot.close()
        else:
            self._idle.append(snapshot)

    async def _take(self) -> _Snapshot:
        oldest_good = self._clock() - _RENEWED_AFTER_SECONDS
        while self._idle:
            snapshot = self._idle.pop()
            if snapshot.taken_at >= oldest_good:
                return snapshot
            await snapshot.close()
        async with AsyncExitStack() as stack:
            connection = await stack.enter_async_context(self._transaction.snapshot(self._database))
            return _Snapshot(connection, stack.pop_all(), self._clock())

    async def close(self) -> None:
        self._is_closed = True
        while self._idle:
            await self._idle.pop().close()
