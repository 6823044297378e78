"""A relation compared with what a table remembers: what is new, what has changed, what is there no more.

The table is scanned once, in a snapshot, then tuples are compared as they come. What is to be written is
gathered in a `DiffWrite`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import aclosing
from datetime import datetime

from aioflow.errors import InputError
from aioflow.memory import Memory
from aioflow.relation import Batch, Row, Schema, identities, identity, picker
from aioflow.spill import KeyedRows, KeySet, RowBuffer
from aioflow.state.diff_write import DiffWrite
from aioflow.state.driver import Connection
from aioflow.state.errors import ConflictError
from aioflow.state.own_tables import latest_commit
from aioflow.state.remembered import Remembered, SameKeyError
from aioflow.state.stored_rows import StoredRows, key_text
from aioflow.state.suspects import Suspect, is_suspect, read_suspects, sampled
from aioflow.state.wish import CHANGES, OLD, Wish, changed_schema


async def open_difference(
    connection: Connection, wish: Wish, schema: Schema | None, where: str, memory: Memory
) -> Difference | None:
    """Read what a table remembers, to compare a relation with it; None when there is nothing at all.

    A schema of None stands for a relation of which nothing is known, since it has no tuples.
    """
    rows = await StoredRows.of(connection, wish.table, schema)
    rows.check(wish.key or (), wish.evolve)
    schema = schema or rows.schema
    if schema is None:
        return None
    marks = await read_suspects(connection, wish.table)
    difference = Difference(wish, schema, rows, where, memory, marks[0] if marks else None)
    try:
        difference.write.read_after = await latest_commit(connection)
        await difference.remember(connection)
    except BaseException:
        difference.close()
        raise
    return difference


class Difference:
    """The comparison of one relation with one table; what is to be written stands in `write`.

    `before` is the mark of an earlier run that was suspect.
    """

    def __init__(
        self, wish: Wish, schema: Schema, rows: StoredRows, where: str, memory: Memory, before: Suspect | None
    ) -> None:
        names = schema.names
        key = wish.key_of(names)
        self._wish = wish
        self._stored = rows
        self._before = before
        self._memory = memory
        self._names = names
        self._width = len(names)
        self._pick_key = picker([schema.position(name) for name in key])
        self._counted = [place for place, name in enumerate(names) if name not in (*key, *wish.ignore)]
        self._pick_old = picker([place for place, name in enumerate(names) if name not in key])
        self._arranged = picker(_places(changed_schema(schema, key), schema, key))
        self._remembered = Remembered(memory, self._keys)
        self._new_keys = KeySet(memory)
        self._again = RowBuffer(memory)
        self._known = 0  # how many rows of the table were seen in the relation
        self.write = DiffWrite(where, wish, rows, schema, memory)
        self.table_schema = rows.schema or schema

    def __enter__(self) -> Difference:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self.close()
        if kind is not None:
            # Also where ERRORS takes the failure: what is not whole is not written.
            self.write.close()

    def close(self) -> None:
        """Let go of all but what is to be written."""
        for structure in (self._remembered, self._new_keys, self._again):
            structure.close()

    # --- what the table remembers ---------------------------------------------------------------

    async def remember(self, connection: Connection) -> None:
        """Read the table, row by row."""
        try:
            async with aclosing(self._stored.scan(connection)) as batches:
                async for batch in batches:
                    self._remembered.append(batch)
        except SameKeyError as error:
            raise self._twice_in_table(error.row) from None

    @property
    def is_large(self) -> bool:
        """Whether `arrange` takes time, and belongs on another thread."""
        return self._remembered.is_on_disk

    def arrange(self) -> None:
        """Make what was read ready to be compared with."""
        try:
            self._remembered.seal()
        except SameKeyError as error:
            raise self._twice_in_table(error.row) from None

    def _twice_in_table(self, row: Row) -> ConflictError:
        return ConflictError(
            f"the table {self._wish.table!r} has several rows with {self._key_text(row)}; diff needs one row "
            "for each key: name another KEY, or remove the others"
        )

    # --- what comes -----------------------------------------------------------------------------

    def compare(self, batch: Batch) -> tuple[Batch, Batch]:
        """The tuples of a batch that are new, and those that have changed, with their old values."""
        keys = self._keys(batch)
        found = self._remembered.find(keys)
        seen = self._remembered.seen
        new_keys: list[Hashable] = []
        new: Batch = []
        rows: Batch = []
        old: Batch = []
        again: Batch = []
        for key, row, stored in zip(keys, batch, found, strict=True):
            if stored is None:
                new_keys.append(key)
                new.append(row)
            elif seen[stored[0]]:
                again.append(row)
            else:
                seen[stored[0]] = 1
                rows.append(row)
                old.append(stored[1])
        self._known += len(rows)
        added = self._add(new_keys, new, again)
        if again:
            self._again.append(again)
        return added, self._changed(rows, old)

    def _add(self, keys: Sequence[Hashable], rows: Batch, again: Batch) -> Batch:
        if not rows:
            return rows
        added = self._new_keys.add_new(keys, rows)
        if len(added) < len(rows):
            first = set(map(id, added))
            again += [row for row in rows if id(row) not in first]
        if added:
            self.write.insert(added)
        return added

    def _changed(self, rows: Batch, old: Batch) -> Batch:
        width = self._width
        changed: Batch = []
        written: Batch = []
        before = identities([row[:width] for row in old])
        for row, stored, now, then in zip(rows, old, identities(rows), before, strict=True):
            if now == then:
                continue
            written.append((*row, *stored))
            names = [self._names[at] for at in self._counted if now[at] != then[at]]
            if names:
                changed.append(self._arranged((*row, *self._pick_old(stored), ", ".join(names))))
        if written:
            self.write.update(written)
        return changed

    # --- the end --------------------------------------------------------------------------------

    @property
    def repeated(self) -> int:
        """How many tuples had the key of one before them."""
        return len(self._again)

    def check_repeated(self) -> None:
        """An InputError when a tuple differs from the first of its key; takes time where there are many."""
        if self._wish.duplicates == "first":
            return
        with KeyedRows(self._memory) as firsts:
            self._gather_firsts(firsts)
            for batch in self._again.batches():
                for row, first in zip(batch, self._firsts_of(batch, firsts), strict=True):
                    self._compare_repeated(row, first)

    def _gather_firsts(self, firsts: KeyedRows) -> None:
        """Those of the first tuples that are to be written, of keys that came again."""
        with KeySet(self._memory) as wanted:
            for batch in self._again.batches():
                keys = self._keys(batch)
                wanted.add_new(keys, keys)
            for batch in self.write.staged(self._width):
                keys = self._keys(batch)
                pairs = [(key, row) for key, row in zip(keys, batch, strict=True) if key in wanted]
                firsts.add_all([key for key, _ in pairs], [row for _, row in pairs])

    def _firsts_of(self, batch: Batch, firsts: KeyedRows) -> Iterator[Row]:
        keys = self._keys(batch)
        stored = self._remembered.find(keys)
        for written, found in zip(firsts.get_all(keys), stored, strict=True):
            # What was not to be written equals the table's.
            yield written[0] if written or found is None else found[1][: self._width]

    def _compare_repeated(self, row: Row, first: Row) -> None:
        now, then = (identity(tuple(each[at] for at in self._counted)) for each in (row, first))
        if now != then:
            raise InputError(
                f"two different tuples have {self._key_text(row)}: "
                f"{self._shown(first, row)}, then {self._shown(row, first)}; a KEY tells tuples apart: name "
                "more attributes, or keep the first of each by DUPLICATES: first"
            )

    def _shown(self, row: Row, other: Row) -> str:
        """The values in which a row differs from another."""
        places = [at for at in self._counted if identity((row[at],)) != identity((other[at],))]
        return key_text([self._names[at] for at in places], tuple(row[at] for at in places))

    @property
    def vanishing(self) -> int:
        """How many rows of the table are not in the relation."""
        return len(self._remembered) - self._known

    @property
    def total(self) -> int:
        """How many rows the table has."""
        return len(self._remembered)

    @property
    def is_suspect(self) -> bool:
        """Whether more vanishes than can be believed."""
        share = self._wish.guard
        return share is not None and is_suspect(self.vanishing, self.total, share)

    def judge(self, run_id: str, noticed: datetime) -> Suspect | None:
        """The mark that is to be left instead of deleting what vanishes; takes time where that is much."""
        before = self._before
        mark = Suspect(self._wish.table, run_id, noticed, self.vanishing, self.total)
        keys = (key for batch in self._remembered.unseen() for key in map(self._pick_key, batch))
        mark, again = sampled(mark, keys, before)
        return None if before is not None and before.settles(mark, again) else mark

    def vanished(self) -> Iterator[Batch]:
        """The rows that are there no more, as the table has them; they are to be deleted."""
        for batch in self._remembered.unseen():
            self.write.delete(batch)
            yield list(map(self._stored.in_table_order, batch))

    def finish(self, mark: Suspect | None) -> None:
        """Everything was compared; a mark is left on the table, or one from before taken off."""
        self.write.finish(self.total, mark=mark, unmarks=mark is None and self._before is not None)

    # --- keys -----------------------------------------------------------------------------------

    def _keys(self, batch: Batch) -> Sequence[Hashable]:
        """Of tuples, and of stored rows, which begin with the same attributes."""
        return identities(list(map(self._pick_key, batch)))

    def _key_text(self, row: Row) -> str:
        return key_text(self._wish.key_of(self._names), self._pick_key(row))


def _places(wanted: Schema, schema: Schema, key: Sequence[str]) -> list[int]:
    """Where the attributes of what has changed stand in a tuple with its old values and changes behind it.

    As everywhere, a result that is called like an attribute takes its place.
    """
    before = [f"{OLD}{name}" for name in schema.names if name not in key]
    place = {name: at for at, name in enumerate((*schema.names, *before, CHANGES))}
    return [place[name] for name in wanted.names]
