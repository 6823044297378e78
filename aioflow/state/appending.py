"""dbappend's write: rows for the end of a table."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from aioflow.memory import Memory
from aioflow.relation import Batch, Schema
from aioflow.state.driver import ColumnNeed, Connection
from aioflow.state.shapes import Shape
from aioflow.state.staged import StagedRows, batches_of
from aioflow.state.tables import ensure_key, fit_table, refit_table
from aioflow.state.upserting import Upsert


class Append:
    """Rows that are to be appended; with a key, only those that are new, or also `updates` of the others."""

    whole = False

    def __init__(
        self,
        where: str,
        table: str,
        schema: Schema,
        memory: Memory,
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
        """Have a table that does not show whether all rows were written at once or some of them earlier."""
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
    """What the type of a new column may depend on."""
    largest = need.largest if float in need.classes else None
    return frozenset(need.classes), need.is_wide, largest, frozenset(need.zoned)
