"""dbexport's write: the contents of a whole table."""

from __future__ import annotations

from aioflow.memory import Memory
from aioflow.relation import Batch, Schema
from aioflow.state.driver import Connection, quote_name
from aioflow.state.errors import ConflictError
from aioflow.state.shapes import Shape
from aioflow.state.staged import StagedRows, batches_of
from aioflow.state.tables import check_names


class Export:
    """What a table is to become. Nothing may be known of the attributes of a relation without rows."""

    whole = True

    def __init__(self, where: str, table: str, schema: Schema | None, memory: Memory) -> None:
        self.where = where
        self._table = table
        self._attributes_known = schema is not None and len(schema) > 0
        self._rows = StagedRows(schema or Schema(()), memory)
        self._is_closed = False

    def add(self, batch: Batch) -> None:
        self._rows.add(batch)

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
        """Whether the table has just these columns, for such values: it then keeps its indexes."""
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
        """The whole is written once: there is nothing to come."""
        self.close()

    def close(self) -> None:
        self._is_closed = True
        self._rows.close()
