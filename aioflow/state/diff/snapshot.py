"""The rows of a table as a comparison reads them: scanned once, then looked up by key.

`StoredRows` reads them, with the id by which the database tells them apart. `TableSnapshot` keeps them in
memory up to the limit, then on disk.
"""

from __future__ import annotations

import pickle
from collections.abc import AsyncGenerator, Callable, Hashable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import TypeAlias

import msgspec

from aioflow.errors import SettingError, suggestion
from aioflow.relation import Batch, Row, Schema, Value, picker
from aioflow.runtime.memory import MemoryBudget, Spillable
from aioflow.runtime.spill import off_loop
from aioflow.runtime.temporary_files import MOST_VARIABLES, TemporaryDatabase
from aioflow.state.driver import Column, Connection, Dialect, quote_name
from aioflow.state.errors import DiskFullError

Keys: TypeAlias = Callable[[Batch], Sequence[Hashable]]
Found: TypeAlias = tuple[int, Row]  # the number of a row, and the row

_BATCH_ROWS = 1024
_KEY_OVERHEAD_BYTES = 160  # a slot in a dictionary, a number and the tuple around a key


class SameKeyError(Exception):
    """Two rows have one key."""

    def __init__(self, row: Row) -> None:
        super().__init__(row)
        self.row = row


class TableSnapshot(Spillable):
    """Rows with different keys, numbered as they came. `seen` marks rows by number.

    Call `append` for all rows, then `seal`, then `find`. Beyond the memory limit a row costs one byte.
    """

    def __init__(self, memory: MemoryBudget, keys: Keys) -> None:
        super().__init__(memory)
        self._keys = keys
        self._numbers: dict[Hashable, int] = {}
        self._rows: Batch = []
        self._disk: _RowFile | None = None
        self.seen = bytearray()

    def __len__(self) -> int:
        return len(self.seen)

    @property
    def is_on_disk(self) -> bool:
        return self._disk is not None

    async def add(self, batch: Batch) -> None:
        """Add rows as `append` does. The disk thread writes those that do not fit into memory."""
        self._make_room(batch)
        await off_loop(self, self._append, batch)

    def append(self, batch: Batch) -> None:
        """Add rows. Raise a SameKeyError if one has the key of another."""
        self._make_room(batch)
        self._append(batch)

    def _make_room(self, batch: Batch) -> None:
        """Go to disk if these rows do not fit into memory any more."""
        if self._disk is None and not self.reserve(self.size_of(batch) + _KEY_OVERHEAD_BYTES * len(batch)):
            self._disk = _RowFile(self._memory)

    def _append(self, batch: Batch) -> None:
        keys = self._keys(batch)
        if self._disk is not None:
            self._append_on_disk(self._disk, keys, batch)
        else:
            self._append_in_memory(keys, batch)
        self.seen.extend(bytes(len(batch)))

    def _append_in_memory(self, keys: Sequence[Hashable], batch: Batch) -> None:
        first = len(self._rows)
        self._numbers.update(zip(keys, range(first, first + len(batch)), strict=True))
        self._rows += batch
        if len(self._numbers) != len(self._rows):
            raise SameKeyError(self._repeated(keys, batch, first))

    def _append_on_disk(self, disk: _RowFile, keys: Sequence[Hashable], batch: Batch) -> None:
        twice = [row for key, row in zip(keys, batch, strict=True) if key in self._numbers]
        if twice:
            raise SameKeyError(twice[0])
        disk.append(list(map(hash, keys)), batch)

    def _repeated(self, keys: Sequence[Hashable], batch: Batch, first: int) -> Row:
        """Return the row of a batch whose key an earlier row has."""
        known = set(self._keys(self._rows[:first]))
        for key, row in zip(keys, batch, strict=True):
            if key in known:
                return row
            known.add(key)
        raise AssertionError("no key is there twice")

    def seal(self) -> None:
        """Finish adding. Raise a SameKeyError if two rows on disk have one key."""
        if self._disk is not None:
            self._disk.seal()
            for rows in self._disk.of_one_hash():
                keys = self._keys(rows)
                for place, key in enumerate(keys):
                    if key in keys[:place]:
                        raise SameKeyError(rows[place])

    def find(self, keys: Sequence[Hashable]) -> list[Found | None]:
        """Return for each key the number and the row that has it, or None."""
        rows, number_of = self._rows, self._numbers.get
        numbers = list(map(number_of, keys))
        found: list[Found | None] = [None if each is None else (each, rows[each]) for each in numbers]
        if self._disk is not None:
            self._find_on_disk(self._disk, keys, found)
        return found

    def _find_on_disk(self, disk: _RowFile, keys: Sequence[Hashable], found: list[Found | None]) -> None:
        wanted = [place for place, each in enumerate(found) if each is None]
        numbers, rows = disk.find({hash(keys[place]) for place in wanted})
        first = len(self._rows)
        stored = {
            key: (first + number, row)
            for key, number, row in zip(self._keys(rows), numbers, rows, strict=True)
        }
        for place in wanted:
            found[place] = stored.get(keys[place])

    def see(self, which: Callable[[Batch], Sequence[bool]]) -> int:
        """Mark unseen rows for which `which` says so. Return how many."""
        unseen = (number for number, is_seen in enumerate(bytes(self.seen)) if not is_seen)
        found = 0
        for batch in self.unseen():
            # In this order: a batch that has ended takes no further number.
            for is_seen, number in zip(which(batch), unseen, strict=False):
                self.seen[number] = is_seen
                found += is_seen
        return found

    def unseen(self) -> Iterator[Batch]:
        """Yield the rows that were not seen, in order."""
        seen = self.seen
        for start in range(0, len(self._rows), _BATCH_ROWS):
            batch = self._rows[start : start + _BATCH_ROWS]
            left = [row for number, row in enumerate(batch, start) if not seen[number]]
            if left:
                yield left
        if self._disk is not None:
            yield from self._disk.rows_without(seen[len(self._rows) :])

    def close_files(self) -> None:
        self._numbers, self._rows = {}, []
        if self._disk is not None:
            self._disk.close()
            self._disk = None

    def forget_files(self) -> None:
        if self._disk is not None:
            self._disk.forget()


class _RowFile:
    """Rows in a private SQLite database: written in order, then found by hash."""

    def __init__(self, memory: MemoryBudget) -> None:
        self._database = TemporaryDatabase(
            memory, "CREATE TABLE entries (number INTEGER PRIMARY KEY, hash INTEGER, entry BLOB)"
        )

    def append(self, hashes: Sequence[int], rows: Batch) -> None:
        self._database.count_spilled(len(rows))
        self._database.disk.wait(self._append, hashes, rows)

    def _append(self, hashes: Sequence[int], rows: Batch) -> None:
        dump = pickle.dumps
        with _told():
            self._database.connection().executemany(
                "INSERT INTO entries (hash, entry) VALUES (?, ?)",
                ((code, dump(row, 5)) for code, row in zip(hashes, rows, strict=True)),
            )

    def seal(self) -> None:
        """Index the hashes.

        Sorting them at once takes a fraction of the time that keeping them sorted would.
        """
        self._database.disk.wait(self._seal)

    def _seal(self) -> None:
        with _told():
            self._database.connection().execute("CREATE INDEX by_hash ON entries (hash)")

    def of_one_hash(self) -> Iterator[Batch]:
        """Yield rows that share a hash, and perhaps a key."""
        for (code,) in self._database.fetched("SELECT hash FROM entries GROUP BY hash HAVING count(*) > 1"):
            yield self.find({code})[1]

    def find(self, hashes: set[int]) -> tuple[list[int], Batch]:
        """Return the numbers, from 0, and the rows that have one of these hashes."""
        return self._database.disk.wait(self._find, hashes)

    def _find(self, hashes: set[int]) -> tuple[list[int], Batch]:
        numbers: list[int] = []
        rows: Batch = []
        # In their order: neighbours are on one page of the index.
        ordered = sorted(hashes)
        load = pickle.loads
        for start in range(0, len(ordered), MOST_VARIABLES):
            some = ordered[start : start + MOST_VARIABLES]
            query = f"SELECT number, entry FROM entries WHERE hash IN ({','.join('?' * len(some))})"
            for number, entry in self._database.connection().execute(query, some):
                numbers.append(number - 1)
                rows.append(load(entry))
        return numbers, rows

    def rows_without(self, seen: bytearray) -> Iterator[Batch]:
        """Yield the rows whose numbers are not marked, in order."""
        batch: Batch = []
        for number, entry in self._database.fetched("SELECT number, entry FROM entries ORDER BY number"):
            if not seen[number - 1]:
                batch.append(pickle.loads(entry))
                if len(batch) == _BATCH_ROWS:
                    yield batch
                    batch = []
        if batch:
            yield batch

    def close(self) -> None:
        self._database.close()

    def forget(self) -> None:
        """Count the file as closed; it closes with its last use."""
        self._database.forget()


@contextmanager
def _told() -> Iterator[None]:
    """Raise a DiskFullError when SQLite has no room for its file."""
    import sqlite3

    try:
        yield
    except sqlite3.OperationalError as error:
        raise DiskFullError(
            f"the rows of a table did not fit into the folder for temporary files: {error}; make room there, "
            "or name another by TMPDIR"
        ) from error


_LONGEST_SHOWN = 80


class StoredRows(msgspec.Struct, frozen=True):
    """The reading of rows of a table: the relation's attributes, other columns of the table, the row's id.

    `columns` is None while there is no such table. Attributes without a column are read as null.
    """

    table: str
    names: tuple[str, ...]
    columns: tuple[Column, ...] | None

    @classmethod
    async def of(cls, connection: Connection, table: str, schema: Schema | None) -> StoredRows:
        """Read the columns of a table for a relation.

        None stands for a relation of which nothing is known.
        """
        columns = await connection.columns(table)
        names = schema.names if schema is not None else tuple(column.name for column in columns or ())
        return cls(table, names, columns)

    @property
    def is_there(self) -> bool:
        return self.columns is not None

    @property
    def schema(self) -> Schema | None:
        """Return the attributes of the table."""
        if self.columns is None:
            return None
        return Schema(self.column_names, tuple(column.kind for column in self.columns))

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the attributes of the relation for which the table has no column."""
        return tuple(name for name in self.names if name not in self.column_names)

    @property
    def others(self) -> tuple[str, ...]:
        """Return the columns of the table that the relation does not have."""
        return tuple(name for name in self.column_names if name not in self.names)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Return the columns of the table, in its order."""
        return tuple(column.name for column in self.columns or ())

    def check(self, key: Sequence[str], evolve: bool) -> None:
        """Raise a SettingError when the table cannot be compared with the relation by this KEY."""
        if self.columns is None:
            return
        for name in key:
            if name in self.missing:
                raise SettingError(
                    f"the table {self.table!r} has no column {name!r}"
                    f"{suggestion(name, self.column_names)} (there are: {', '.join(self.column_names)})",
                    setting="key",
                )
        if self.missing and not evolve:
            raise SettingError(
                f"the table {self.table!r} has no column for {', '.join(map(repr, self.missing))}; "
                "the option EVOLVE adds columns"
            )

    # --- reading --------------------------------------------------------------------------------

    async def scan(self, connection: Connection) -> AsyncGenerator[Batch, None]:
        """Yield all rows."""
        if self.columns is None:
            return
        async with aclosing(connection.select(self._query(connection))) as parts:
            async for part in parts:
                if not isinstance(part, Schema):
                    yield part

    async def with_ids(self, connection: Connection, ids: Sequence[Value]) -> dict[Value, Row]:
        """Return the rows that have one of these ids, by id."""
        query = f"{self._query(connection)} WHERE {self._one_of(connection, len(ids))}"
        return {row[-1]: row for row in await connection.fetch(query, ids)}

    async def delete(self, connection: Connection, ids: Sequence[Value]) -> int:
        """Delete the rows that have one of these ids. Return how many there were."""
        found = self._one_of(connection, len(ids))
        return await connection.run(f"DELETE FROM {quote_name(self.table)} WHERE {found}", ids)

    def _one_of(self, connection: Connection, count: int) -> str:
        """Return the condition for rows with one of `count` ids."""
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
        """Return the dialect for this table."""
        try:
            return connection.dialect.beside((*self.names, *self.column_names))
        except ValueError as error:
            raise SettingError(f"the table {self.table!r} cannot be compared: {error}") from None

    @property
    def in_table_order(self) -> Callable[[Row], Row]:
        """Return a function that takes the table's own columns of a row that was read."""
        read = (*self.names, *self.others)
        return picker([read.index(name) for name in self.column_names])


def key_text(names: Sequence[str], values: Row) -> str:
    """Return `url = 'http://…', zip = 92612`, for people."""
    return ", ".join(f"{name} = {_shown(value)}" for name, value in zip(names, values, strict=True))


def _shown(value: Value) -> str:
    text = "null" if value is None else repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
