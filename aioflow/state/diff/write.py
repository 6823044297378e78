"""The writes of a comparison: rows that are new, changed or gone, their log, and what is held back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from itertools import chain

from aioflow.relation import Batch, Row, Schema, identities, picker
from aioflow.runtime.disk import DiskThread
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.spill import KeySet, OwnedItems, RowBuffer, off_loop, walk
from aioflow.state.diff.log import (
    ChangeEncoder,
    LoggedTable,
    Sighting,
    TableTimes,
    forget_old,
    track_table,
    write_changes,
)
from aioflow.state.diff.settings import ChangeOrigin, DiffSpec
from aioflow.state.diff.snapshot import StoredRows, key_text
from aioflow.state.diff.suspects import HELD_COLUMNS, Suspect, forget_held, forget_suspect, write_suspect
from aioflow.state.driver import ColumnNeed, Connection, quote_name
from aioflow.state.errors import ConflictError
from aioflow.state.staged import observe
from aioflow.state.system_tables import HELD, latest_commit
from aioflow.state.tables import ensure_key, fit_table
from aioflow.state.upsert import comparable

_CHUNK_ROWS = 256
_STAGED = "aioflow_changed"


class DiffWrite:
    """A `Write` that counts only after `finish`, since a part of a comparison means nothing."""

    whole = True

    def __init__(
        self,
        where: str,
        spec: DiffSpec,
        rows: StoredRows,
        schema: Schema,
        memory: MemoryBudget,
        origin: ChangeOrigin,
    ) -> None:
        key = spec.key_of(schema.names)
        self.where = where
        self._rows = rows
        self._table = rows.table
        self._schema = schema
        self._key = key
        self._key_places = [schema.position(name) for name in key]
        self._unique = spec.key is not None
        self._evolve = spec.evolve
        self._pick_key = picker(self._key_places)
        self._settable = [name for name in schema.names if name not in key]
        self._memory = memory
        self._origin = origin
        self._needs: list[ColumnNeed] = []
        self._inserts = RowBuffer(memory)
        self._quiet_inserts = RowBuffer(memory)  # which are not told
        self._updates = RowBuffer(memory)  # each row: the new values, the row as it was read, a note
        self._logged_updates = 0
        self._deletes = RowBuffer(memory)  # as they were read, then whether each is told and was held
        self._held = RowBuffer(memory)  # keys of rows that are neither stored nor deleted
        self._held_keys = KeySet(memory)
        self.read_after: str | None = None  # the latest commit of aioflow's before the table was read
        self._total = 0
        self._sighting = Sighting()
        self._suspect: Suspect | None = None
        self._keeps_held = False
        self._forgets = False
        self._finished = False

    @property
    def is_on_disk(self) -> bool:
        """Return whether rows that are staged, or keys of those held back, are on disk."""
        return any(structure.is_on_disk for structure in (*self._buffers, self._held_keys))

    @property
    def disk(self) -> DiskThread:
        return self._memory.disk

    @property
    def _buffers(self) -> tuple[RowBuffer, ...]:
        return self._inserts, self._quiet_inserts, self._updates, self._deletes, self._held

    # --- staging --------------------------------------------------------------------------------

    def insert(self, rows: Batch) -> None:
        if not rows:
            return
        observe(self._needs, self._schema, rows)
        self._inserts.append(rows)

    def update(self, rows: Batch) -> None:
        """Stage rows of new values, each followed by the row that was read, and by a `changed_note`."""
        observe(self._needs, self._schema, [row[: len(self._schema)] for row in rows])
        self._logged_updates += sum(1 for row in rows if row[-1])
        self._updates.append(rows)

    def delete(self, rows: Batch) -> None:
        """Stage the deletion of rows that were read, each followed by whether it is told and was held."""
        if rows:
            self._deletes.append(rows)

    def insert_quietly(self, rows: Batch) -> None:
        """Stage rows that are inserted without a message."""
        if rows:
            observe(self._needs, self._schema, rows)
            self._quiet_inserts.append(rows)

    def quieten_inserts(self) -> None:
        """Have all rows inserted without a message."""
        self._inserts, self._quiet_inserts = self._quiet_inserts, self._inserts

    def hold(self, keys: Batch) -> None:
        """Hold back rows by their keys, as the system table has them. Each counts once."""
        new = self._held_keys.add_new([row[1] for row in keys], keys)
        if new:
            self._held.append(new)

    @property
    def inserted(self) -> int:
        """Return how many rows are to be inserted."""
        return len(self._inserts)

    def inserts(self) -> Iterator[Batch]:
        """Yield the rows that are to be inserted."""
        yield from self._inserts.batches()

    def take_inserts(self) -> Iterator[Batch]:
        """Yield the rows that were to be inserted, and drop them."""
        inserts, self._inserts = self._inserts, RowBuffer(self._memory)
        with inserts:
            yield from inserts.batches()

    def deletes(self) -> Iterator[Batch]:
        """Yield the rows that are to be deleted, as they were read."""
        yield from self._deletes.batches()

    def staged(self, width: int) -> Iterator[Batch]:
        """Yield the tuples that are to be written."""
        yield from self._inserts.batches()
        for batch in self._updates.batches():
            yield [row[:width] for row in batch]

    def finish(self, total: int, suspect: Suspect | None, sighting: Sighting, *, forgets: bool) -> None:
        """End the comparison. The table had `total` rows; `suspect` is noted, or an older one forgotten."""
        self._total, self._suspect, self._sighting, self._forgets = total, suspect, sighting, forgets
        self._finished = True

    def hold_everything(self, suspect: Suspect) -> None:
        """End a comparison of which nothing is believed: only that is noted."""
        self.close()
        self._suspect, self._keeps_held, self._needs = suspect, True, []
        self._inserts, self._quiet_inserts = RowBuffer(self._memory), RowBuffer(self._memory)
        self._updates, self._deletes = RowBuffer(self._memory), RowBuffer(self._memory)
        self._logged_updates = 0
        self._finished = True

    # --- as a Write -----------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        staged = self._insert_count + len(self._updates) + len(self._deletes)
        # A whole run notes that it has seen the rows, also where none has changed.
        return not self._finished or not (staged or self._suspect or self._forgets or self._sighting.is_whole)

    def seal(self) -> None:
        """Do nothing: it counts as a whole."""

    async def apply(self, connection: Connection) -> None:
        await self._check_inserts(connection)
        await self._apply_deletes(connection)
        async for batch in walk(self._updates, _chunks(self._updates)):
            await self._check_unchanged(connection, [row[len(self._schema) : -1] for row in batch])
        # Ids of rows hold no longer than this: a column that becomes wider may have all rows written anew.
        moved = await self._fit_table(connection)
        await self._apply_updates(connection, by_key=moved)
        if self._insert_count:
            inserted = OwnedItems(self, self._inserted(connection))
            await connection.load(self._table, self._schema.names, inserted)
        await self._note_suspect(connection)
        if not self._keeps_held:
            await self._log(connection)

    async def _log(self, connection: Connection) -> None:
        """Log the changes, and note that the run has seen the table."""
        times = await track_table(connection, self._table, self._key, self._origin, self._sighting)
        added = 0 if self._sighting.is_baseline else self._insert_count
        count = len(self._deletes) + self._logged_updates + added
        if count:
            table = LoggedTable(self._table, self._schema.names, self._rows.column_names)
            changes = OwnedItems(self, self._changes(times))
            await write_changes(connection, table, self._origin, count, changes)
        await forget_old(connection, self._origin)

    def _changes(self, times: TableTimes) -> Iterator[Batch]:
        """Yield the changes for the log: rows that are gone, changed and new."""
        encoder = ChangeEncoder(self._pick_key, self._rows.in_table_order)
        for batch in self._deletes.batches():
            yield encoder.removed(batch, times)
        for batch in self._updates.batches():
            yield encoder.changed(batch, len(self._schema))
        if self._sighting.is_baseline:
            return
        for batch in self._quiet_inserts.batches():
            yield encoder.added(batch, told=False)
        for batch in self._inserts.batches():
            yield encoder.added(batch, told=True)

    @property
    def _insert_count(self) -> int:
        return len(self._inserts) + len(self._quiet_inserts)

    def _all_inserts(self) -> Iterator[Batch]:
        return chain(self._inserts.batches(), self._quiet_inserts.batches())

    async def _note_suspect(self, connection: Connection) -> None:
        if self._suspect is None:
            if self._forgets:
                await forget_suspect(connection, self._table)
            return
        await write_suspect(connection, self._suspect)
        if not self._keeps_held:
            await forget_held(connection, self._table)
            await connection.load(HELD, HELD_COLUMNS, OwnedItems(self._held, self._held.batches()))

    def forget(self) -> None:
        self.close()

    def close(self) -> None:
        self._finished = False
        for buffer in (*self._buffers, self._held_keys):
            buffer.close()

    # --- the table ------------------------------------------------------------------------------

    async def _fit_table(self, connection: Connection) -> bool:
        """Make or fit the table. Return whether the types of its columns have changed."""
        if not self._needs:
            return False
        before = await connection.columns(self._table)
        await fit_table(connection, self._table, self._needs, evolve=self._evolve)
        if before is None and self._unique:
            with suppress(ConflictError):  # not every database can index every kind of value
                async with connection.savepoint():
                    await ensure_key(connection, self._table, self._key, self._needs)
        after = {column.name: column.declared for column in await connection.columns(self._table) or ()}
        return any(after.get(column.name) != column.declared for column in before or ())

    async def _check_inserts(self, connection: Connection) -> None:
        """Raise a ConflictError if a new row was added meanwhile, or the table made or removed."""
        is_there = await connection.columns(self._table) is not None
        if is_there != self._rows.is_there:
            raise ConflictError(
                f"the table {self._table!r} was {'made' if is_there else 'removed'} by another run or "
                "statement since this one looked for it; run again"
            )
        if not self._insert_count or not is_there:
            return
        ((count,),) = await connection.fetch(f"SELECT count(*) FROM {quote_name(self._table)}")
        if count == self._total and await latest_commit(connection) == self.read_after:
            return
        with KeySet(self._memory) as new:
            async for batch in walk(self, self._all_inserts()):
                keys = identities(list(map(self._pick_key, batch)))
                await off_loop(new, new.add_new, keys, keys)
            async with aclosing(self._rows.scan(connection)) as batches:
                async for batch in batches:
                    keys = identities(list(map(self._pick_key, batch)))
                    for row, is_known in zip(batch, await off_loop(new, new.known, keys), strict=True):
                        if is_known:
                            raise self._conflict(row, "added")

    def _inserted(self, connection: Connection) -> Iterator[Batch]:
        """Yield the new rows, with keys in a form in which the database sees equal ones as equal."""
        places, mixed = self._key_places, connection.dialect.mixes_dates
        for batch in self._all_inserts():
            yield [comparable(row, places, mixes_dates=mixed) for row in batch]

    async def _apply_deletes(self, connection: Connection) -> None:
        async for batch in walk(self._deletes, _chunks(self._deletes)):
            read = [row[:-2] for row in batch]
            await self._check_unchanged(connection, read)
            deleted = await self._rows.delete(connection, [row[-1] for row in read])
            self._check_count(deleted, len(batch))

    async def _apply_updates(self, connection: Connection, *, by_key: bool) -> None:
        """Load new values into a temporary table, in the form of the table's, and move them at once."""
        if not len(self._updates):
            return
        width, place = len(self._schema), self._schema.position
        keys = self._key if by_key else ()
        names = [*self._settable, *keys]
        row = _unused_name("row", names)
        declared = await self._make_staged(connection, names, row)
        # Keys as they were read: they stand in the table so, and not as others that equal them.
        values = picker([*map(place, self._settable), *(width + place(name) for name in keys), -2])
        batches = (list(map(values, batch)) for batch in self._updates.batches())
        await connection.load(_STAGED, (*names, row), OwnedItems(self._updates, batches))
        sets = ", ".join(f"{quote_name(name)} = new.{quote_name(name)}" for name in self._settable)
        dialect = self._rows.dialect(connection)
        own_id = f"old.{dialect.row_id} = {dialect.row_id_value.format(f'new.{quote_name(row)}')}"
        changed = 0
        for same in _same_key(keys, declared) if by_key else (own_id,):
            changed += await connection.run(
                f"UPDATE {quote_name(self._table)} AS old SET {sets} FROM {_STAGED} AS new WHERE {same}"
            )
        self._check_count(changed, len(self._updates))
        await connection.run(f"DROP TABLE {_STAGED}")

    async def _make_staged(self, connection: Connection, names: Sequence[str], row: str) -> Mapping[str, str]:
        """Make the temporary table of new values. Return the declared types of its columns."""
        found = await connection.columns(self._table) or ()
        declared = {column.name: column.declared for column in found}
        columns = [f"{quote_name(name)} {declared[name]}" for name in names]
        columns.append(f"{quote_name(row)} {connection.dialect.row_id_type}")
        await connection.run(f"CREATE TEMPORARY TABLE {_STAGED} ({', '.join(columns)})")
        return declared

    async def _check_unchanged(self, connection: Connection, read: Batch) -> None:
        """Raise a ConflictError unless the rows are as they were when they were read."""
        now = await self._rows.with_ids(connection, [row[-1] for row in read])
        found = [now.get(row[-1], ()) for row in read]
        for row, then, is_now in zip(read, identities(read), identities(found), strict=True):
            if then != is_now:
                raise self._conflict(row, "changed or removed")

    def _check_count(self, changed: int, expected: int) -> None:
        if changed != expected:
            raise ConflictError(
                f"{expected - changed} rows of the table {self._table!r} were changed by another program "
                "just now; run again"
            )

    def _conflict(self, row: Row, what: str) -> ConflictError:
        return ConflictError(
            f"the row of the table {self._table!r} with {key_text(self._key, self._pick_key(row))} was "
            f"{what} by another run or statement since this one read it; run again"
        )


class EmptyBaseline:
    """A `Write` for a table that does not exist yet: its baseline is known, and has no rows."""

    whole = True
    is_empty = False

    def __init__(self, where: str, spec: DiffSpec, origin: ChangeOrigin) -> None:
        self.where = where
        self._spec = spec
        self._origin = origin

    def seal(self) -> None:
        """It is all there."""

    async def apply(self, connection: Connection) -> None:
        table, origin = self._spec.table, self._origin
        await write_suspect(connection, Suspect(table, origin.run_id, origin.noticed, origin.noticed))
        sighting = Sighting(is_whole=True, misses_none=True)
        await track_table(connection, table, self._spec.key or (), origin, sighting)

    def forget(self) -> None:
        """It holds nothing."""

    def close(self) -> None:
        """It holds nothing."""


def _chunks(buffer: RowBuffer) -> Iterator[Batch]:
    """Yield rows in lists short enough for one statement."""
    for batch in buffer.batches():
        for start in range(0, len(batch), _CHUNK_ROWS):
            yield batch[start : start + _CHUNK_ROWS]


def _same_key(key: Sequence[str], declared: Mapping[str, str]) -> tuple[str, str]:
    """Return conditions that find rows by key: those without nulls, which can be hashed, and the others."""
    pairs = []
    for name in key:
        # There is no equality of JSON.
        form = "CAST({}.{} AS text)" if declared[name].lower() == "json" else "{}.{}"
        pairs.append((form.format("old", quote_name(name)), form.format("new", quote_name(name))))
    whole = " AND ".join(f"{old} = {new}" for old, new in pairs)
    some_null = " OR ".join(f"{new} IS NULL" for _, new in pairs)
    each = " AND ".join(f"({old} = {new} OR ({old} IS NULL AND {new} IS NULL))" for old, new in pairs)
    return whole, f"({some_null}) AND {each}"


def _unused_name(name: str, names: Sequence[str]) -> str:
    while name in names:
        name += "_"
    return name
