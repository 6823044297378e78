"""The writes of operators on databases: `Append` (dbappend), `Export` (dbexport) and `Updates` (dbupdate).

Appends and exports are staged and applied in the run's transaction. Updates are executed at once, in the
run's own view of its database. `Storable` finds rows that a database cannot hold while they are staged: they
fail as tuples, not as a whole run.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import aclosing

import msgspec

from aioflow.authoring.context import Context
from aioflow.relation import Batch, Row, Schema
from aioflow.runtime.memory import MemoryBudget
from aioflow.state.databases import driver_for
from aioflow.state.driver import ColumnNeed, Connection, quote_name
from aioflow.state.errors import BusyError, ConflictError, DamagedError, DisconnectedError, DiskFullError
from aioflow.state.queries import query_rows
from aioflow.state.sql_text import Sql
from aioflow.state.staged import StagedRows, batches_of
from aioflow.state.tables import Shape, check_names, ensure_key, fit_table, refit_table
from aioflow.state.transaction import Transaction
from aioflow.state.upsert import Upsert


class Append:
    """Rows for the end of a table. With a key only new rows are added, or with `updates` old ones updated."""

    whole = False

    def __init__(
        self,
        where: str,
        table: str,
        schema: Schema,
        memory: MemoryBudget,
        *,
        key: Sequence[str] = (),
        updates: bool = False,
        evolve: bool = False,
    ) -> None:
        self.where = where
        self._table = table
        self._key = tuple(key)
        self._updates = updates
        self._evolve = evolve
        self._memory = memory
        self._rows = StagedRows(schema, memory)
        # What the columns were made for, of a table that this statement made.
        self._made_for: list[Hashable] | None = None

    def add(self, batch: Batch) -> None:
        self._rows.add(batch)

    async def settle(self) -> None:
        """Wait until the rows are where they wait for the commit."""
        await self._rows.settle()

    @property
    def shape(self) -> Shape | None:
        schema = self._rows.schema
        return None if schema.open else Shape(self.where, self._table, schema.names, self._evolve)

    @property
    def is_empty(self) -> bool:
        return not len(self._rows)

    def seal(self) -> None:
        self._rows.seal()

    async def apply(self, connection: Connection) -> None:
        buffers = self._rows.sealed
        if not buffers:
            return
        names, needs = self._rows.schema.names, self._rows.needs
        await self._fit_table(connection, needs)
        if self._key:
            await ensure_key(connection, self._table, self._key, needs)
            await Upsert(connection, self._table, names, self._key, updates=self._updates).write(buffers)
        else:
            await connection.load(self._table, names, batches_of(buffers), needs)

    async def _fit_table(self, connection: Connection, needs: Sequence[ColumnNeed]) -> None:
        """Make or fit the table.

        It shows no difference between rows written at once and rows written earlier.
        """
        made_for = [_decides_on_type(need) for need in needs]
        if self._made_for is not None and self._made_for != made_for:
            await refit_table(connection, self._table, needs, self._memory)
        made = await fit_table(connection, self._table, needs, evolve=self._evolve)
        if made or self._made_for is not None:
            self._made_for = made_for

    def forget(self) -> None:
        self._rows.forget()

    def close(self) -> None:
        self._rows.close()


def _decides_on_type(need: ColumnNeed) -> Hashable:
    """Return everything that the type of a new column may depend on."""
    largest = need.largest if float in need.classes else None
    return frozenset(need.classes), need.is_wide, largest, frozenset(need.zoned)


class Export:
    """The contents of a whole table. The attributes of a relation without rows may be unknown."""

    whole = True

    def __init__(self, where: str, table: str, schema: Schema | None, memory: MemoryBudget) -> None:
        self.where = where
        self._table = table
        self._attributes_known = schema is not None and len(schema) > 0
        self._rows = StagedRows(schema or Schema(()), memory)
        self._is_closed = False

    def add(self, batch: Batch) -> None:
        self._rows.add(batch)

    async def settle(self) -> None:
        """Wait until the rows are where they wait for the commit."""
        await self._rows.settle()

    @property
    def shape(self) -> Shape | None:
        if not self._attributes_known:
            return None
        return Shape(self.where, self._table, self._rows.schema.names)

    @property
    def is_empty(self) -> bool:
        return self._is_closed

    def seal(self) -> None:
        self._rows.seal()

    async def apply(self, connection: Connection) -> None:
        columns = await connection.columns(self._table)
        if columns is not None:
            await connection.run(f"delete from {quote_name(self._table)}")
        if self._attributes_known and not await self._fits(
            {column.name for column in columns or ()}, connection
        ):
            await self._make(connection, replace=columns is not None)
        if buffers := self._rows.sealed:
            rows = self._rows
            await connection.load(self._table, rows.schema.names, batches_of(buffers), rows.needs)

    async def _fits(self, known: set[str], connection: Connection) -> bool:
        """Return whether the table has just these columns, for such values. Then it keeps its indexes."""
        if known != set(self._rows.schema.names):
            return False
        try:
            async with connection.savepoint():
                await connection.widen(self._table, self._rows.needs)
        except ConflictError:
            return False
        return True

    async def _make(self, connection: Connection, *, replace: bool) -> None:
        check_names(connection.dialect, self._table, self._rows.schema.names)
        if replace:
            await connection.run(f"drop table {quote_name(self._table)}")
        await connection.create_table(self._table, self._rows.needs)

    def forget(self) -> None:
        """Release everything: a whole table is written only once."""
        self.close()

    def close(self) -> None:
        self._is_closed = True
        self._rows.close()


CHANGED = Schema.of(changed="number")

# After these there is no transaction left to go on with.
_FATAL = (DisconnectedError, DiskFullError, DamagedError, BusyError)


class UpdateOutcome(msgspec.Struct, frozen=True):
    """The outcome of a statement for one tuple: the rows that it returned or their number, or its failure."""

    row: Row
    schema: Schema = CHANGED
    results: tuple[Row, ...] | Batch = ()
    error: Exception | None = None


class Updates:
    """One statement of SQL that is executed for tuples in their order."""

    def __init__(self, sql: Sql, database: str | None, context: Context) -> None:
        self._sql = sql
        self._database = database
        self._context = context
        self._transaction = context.service(Transaction)

    async def run(self, rows: Batch) -> list[UpdateOutcome]:
        """Execute the statement for each tuple. A tuple that fails leaves no trace, and spares the others."""
        async with self._transaction.own_view(self._database, self._context, changes=True) as connection:
            try:
                async with connection.savepoint():
                    return [await self._execute(connection, row) for row in rows]
            except _FATAL:
                raise
            except Exception as error:
                if len(rows) == 1:
                    return [UpdateOutcome(rows[0], error=error)]
            # Once more, each by itself: that costs too much to be done where all goes well.
            return [await self._try(connection, row) for row in rows]

    async def _try(self, connection: Connection, row: Row) -> UpdateOutcome:
        try:
            async with connection.savepoint():
                return await self._execute(connection, row)
        except _FATAL:
            raise
        except Exception as error:
            return UpdateOutcome(row, error=error)

    async def _execute(self, connection: Connection, row: Row) -> UpdateOutcome:
        if not self._sql.returns_rows:
            text, values = self._sql.for_dialect(connection.dialect)
            return UpdateOutcome(row, results=((await connection.run(text, values(row)),),))
        schema, results = Schema(()), Batch()
        async with aclosing(query_rows(connection, self._sql, row)) as items:
            async for item in items:
                if isinstance(item, Schema):
                    schema = item
                else:
                    results += item
        return UpdateOutcome(row, schema, results)


class UnstorableError(ValueError):
    """A tuple has a value that its database cannot hold."""


class Storable:
    """Separates the tuples that a database can hold from those that it cannot."""

    def __init__(self, schema: Schema, db: str | None, context: Context) -> None:
        self._schema = schema
        self._unstorable = driver_for(context.service(Transaction).database_of(db).url).unstorable

    def check(self, batch: Batch) -> None:
        """Raise an UnstorableError for the first tuple that cannot be stored."""
        for error in self.refused(batch).values():
            raise error

    def refused(self, batch: Batch) -> dict[int, UnstorableError]:
        """Return the reasons why tuples cannot be stored, by their numbers in the batch."""
        names = self._schema.names
        return {
            number: UnstorableError(f"the value of {names[place]!r} {reason}")
            for number, place, reason in self._unstorable(self._schema, batch)
        }
