"""dbupdate's statements: executed at once, in the run's own view of its database."""

from __future__ import annotations

from contextlib import aclosing

from aioflow.context import Context
from aioflow.dataclass import dataclass
from aioflow.relation import Batch, Row, Schema
from aioflow.state.driver import Connection
from aioflow.state.errors import BusyError, DamagedError, DisconnectedError, DiskFullError
from aioflow.state.parameters import Sql
from aioflow.state.reading import query_rows
from aioflow.state.transaction import Transaction

CHANGED = Schema.of(changed="number")

# After these there is no transaction left to go on with.
_FATAL = (DisconnectedError, DiskFullError, DamagedError, BusyError)


@dataclass(frozen=True)
class Outcome:
    """What the statement gave for one tuple: the rows that it returned or their number, or why it failed."""

    row: Row
    schema: Schema = CHANGED
    results: tuple[Row, ...] | Batch = ()
    error: Exception | None = None


class Updates:
    """One statement of SQL, for tuples in their order."""

    def __init__(self, sql: Sql, database: str | None, context: Context) -> None:
        self._sql = sql
        self._database = database
        self._context = context
        self._transaction = context.service(Transaction)

    async def run(self, rows: Batch) -> list[Outcome]:
        """Execute for each tuple. One that fails leaves no trace, and the others are not touched by it."""
        async with self._transaction.own_view(self._database, self._context, changes=True) as connection:
            try:
                async with connection.savepoint():
                    return [await self._execute(connection, row) for row in rows]
            except _FATAL:
                raise
            except Exception as error:
                if len(rows) == 1:
                    return [Outcome(rows[0], error=error)]
            # Once more, each by itself: that costs too much to be done where all goes well.
            return [await self._try(connection, row) for row in rows]

    async def _try(self, connection: Connection, row: Row) -> Outcome:
        try:
            async with connection.savepoint():
                return await self._execute(connection, row)
        except _FATAL:
            raise
        except Exception as error:
            return Outcome(row, error=error)

    async def _execute(self, connection: Connection, row: Row) -> Outcome:
        if not self._sql.returns_rows:
            text, values = self._sql.for_dialect(connection.dialect)
            return Outcome(row, results=((await connection.run(text, values(row)),),))
        schema, results = Schema(()), Batch()
        async with aclosing(query_rows(connection, self._sql, row)) as items:
            async for item in items:
                if isinstance(item, Schema):
                    schema = item
                else:
                    results += item
        return Outcome(row, schema, results)
