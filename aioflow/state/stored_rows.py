"""The rows of a table as a comparison reads and finds them: by what the database itself tells rows apart."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from aioflow.dataclass import dataclass
from aioflow.errors import SettingError, suggestion
from aioflow.relation import Batch, Row, Schema, Value, picker
from aioflow.state.driver import Column, Connection, Dialect, quote_name

_LONGEST_SHOWN = 80


@dataclass(frozen=True)
class StoredRows:
    """How rows of a table are read: a relation's attributes, other columns of the table, and the row's id.

    `columns` is None while there is no such table. Attributes that it does not have are read as null.
    """

    table: str
    names: tuple[str, ...]
    columns: tuple[Column, ...] | None

    @classmethod
    async def of(cls, connection: Connection, table: str, schema: Schema | None) -> StoredRows:
        """For a relation; None stands for one of which nothing is known, since it has no tuples."""
        columns = await connection.columns(table)
        names = schema.names if schema is not None else tuple(column.name for column in columns or ())
        return cls(table, names, columns)

    @property
    def is_there(self) -> bool:
        return self.columns is not None

    @property
    def schema(self) -> Schema | None:
        """The attributes of the table."""
        if self.columns is None:
            return None
        return Schema(self._column_names, tuple(column.kind for column in self.columns))

    @property
    def missing(self) -> tuple[str, ...]:
        """Attributes of the relation for which the table has no column."""
        return tuple(name for name in self.names if name not in self._column_names)

    @property
    def others(self) -> tuple[str, ...]:
        """Columns of the table that the relation does not have."""
        return tuple(name for name in self._column_names if name not in self.names)

    @property
    def _column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns or ())

    def check(self, key: Sequence[str], evolve: bool) -> None:
        """A SettingError when the table cannot be compared with the relation by this KEY."""
        if self.columns is None:
            return
        for name in key:
            if name in self.missing:
                raise SettingError(
                    f"the table {self.table!r} has no column {name!r}"
                    f"{suggestion(name, self._column_names)} (there are: {', '.join(self._column_names)})",
                    setting="key",
                )
        if self.missing and not evolve:
            raise SettingError(
                f"the table {self.table!r} has no column for {', '.join(map(repr, self.missing))}; "
                "the option EVOLVE adds columns"
            )

    # --- reading --------------------------------------------------------------------------------

    async def scan(self, connection: Connection) -> AsyncGenerator[Batch, None]:
        """All rows."""
        if self.columns is None:
            return
        async with aclosing(connection.select(self._query(connection))) as parts:
            async for part in parts:
                if not isinstance(part, Schema):
                    yield part

    async def with_ids(self, connection: Connection, ids: Sequence[Value]) -> dict[Value, Row]:
        """The rows that have one of these ids, by id."""
        query = f"{self._query(connection)} WHERE {self._one_of(connection, len(ids))}"
        return {row[-1]: row for row in await connection.fetch(query, ids)}

    async def delete(self, connection: Connection, ids: Sequence[Value]) -> int:
        """Delete the rows that have one of these ids; how many there were."""
        found = self._one_of(connection, len(ids))
        return await connection.run(f"DELETE FROM {quote_name(self.table)} WHERE {found}", ids)

    def _one_of(self, connection: Connection, count: int) -> str:
        """The condition for rows with one of so many ids."""
        dialect = self.dialect(connection)
        places = [dialect.row_id_value.format(dialect.placeholders(1, at)) for at in range(1, count + 1)]
        return f"{dialect.row_id} IN ({', '.join(places)})"

    def _query(self, connection: Connection) -> str:
        missing = self.missing
        known = [
            f"NULL AS {quote_name(name)}" if name in missing else quote_name(name)
            for name in (*self.names, *self.others)
        ]
        row_id = self.dialect(connection).row_id_shown
        return f"SELECT {', '.join((*known, row_id))} FROM {quote_name(self.table)}"

    def dialect(self, connection: Connection) -> Dialect:
        """How SQL is written for this table."""
        try:
            return connection.dialect.beside((*self.names, *self._column_names))
        except ValueError as error:
            raise SettingError(f"the table {self.table!r} cannot be compared: {error}") from None

    @property
    def in_table_order(self) -> Callable[[Row], Row]:
        """A function that takes the table's own columns of a row that was read."""
        read = (*self.names, *self.others)
        return picker([read.index(name) for name in self._column_names])


def key_text(names: Sequence[str], values: Row) -> str:
    """`url = 'http://…', zip = 92612`, for people."""
    return ", ".join(f"{name} = {_shown(value)}" for name, value in zip(names, values, strict=True))


def _shown(value: Value) -> str:
    text = "null" if value is None else repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
