"""A relation compared with a table: the rows that are new, changed, or gone.

The table is scanned once, in a snapshot, then tuples are compared as they come. A `DiffWrite` gathers what is
to be written. At the end a `Judgement` decides what may be told and written.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import aclosing
from datetime import datetime
from itertools import chain, compress, repeat
from operator import not_

import msgspec

from aioflow.errors import InputError
from aioflow.relation import Batch, Row, Schema, identities, identity, is_empty, picker
from aioflow.runtime.disk import DiskThread
from aioflow.runtime.memory import MemoryBudget, Spillable
from aioflow.runtime.spill import KeyedRows, KeySet, RowBuffer, off_loop
from aioflow.state.diff.judgement import Absence, Judgement, RowCounts
from aioflow.state.diff.log import Sighting, changed_note
from aioflow.state.diff.settings import CHANGES, OLD, ChangeOrigin, DiffSpec, changed_schema
from aioflow.state.diff.snapshot import SameKeyError, StoredRows, TableSnapshot, key_text
from aioflow.state.diff.suspects import NEW, Suspect, fingerprint, read_held, read_suspect
from aioflow.state.diff.write import DiffWrite
from aioflow.state.driver import Connection
from aioflow.state.errors import ConflictError
from aioflow.state.system_tables import latest_commit
from aioflow.wholeness import Marks, Reason

_MANY_ROWS = 2_000


class _Missing(msgspec.Struct, frozen=True):
    """A row that is gone from the relation, with the fingerprint of its key."""

    row: Row
    key: str
    absence: Absence
    was_held: bool
    is_settled: bool


async def open_difference(
    connection: Connection,
    spec: DiffSpec,
    schema: Schema | None,
    where: str,
    memory: MemoryBudget,
    origin: ChangeOrigin,
) -> Difference | None:
    """Read a table to compare a relation with it. Return None when there is nothing at all.

    A schema of None stands for a relation without tuples, of which nothing is known.
    """
    rows = await StoredRows.of(connection, spec.table, schema)
    rows.check(spec.key or (), spec.evolve)
    schema = schema or rows.schema
    if schema is None:
        return None
    before = await read_suspect(connection, spec.table)
    difference = Difference(spec, schema, rows, where, memory, before, origin)
    try:
        difference.write.read_after = await latest_commit(connection)
        await difference.read_table(connection)
    except BaseException:
        difference.close()
        raise
    return difference


class Difference:
    """The comparison of one relation with one table. `write` holds what is to be written.

    `before` is what earlier runs held back. Call `compare` for each batch, `settle` at the end of the
    relation, then `judge`; afterwards `added`, `changed` and `removed` yield what may be told.
    """

    def __init__(
        self,
        spec: DiffSpec,
        schema: Schema,
        rows: StoredRows,
        where: str,
        memory: MemoryBudget,
        before: Suspect | None,
        origin: ChangeOrigin,
    ) -> None:
        names = schema.names
        key = spec.key_of(names)
        self._spec = spec
        self._stored = rows
        self._before = before
        self._memory = memory
        self._names = names
        self._width = len(names)
        self._key_places = [schema.position(name) for name in key]
        self._pick_key = picker(self._key_places)
        self._counted = [place for place, name in enumerate(names) if name not in (*key, *spec.ignore)]
        self._pick_old = picker([place for place, name in enumerate(names) if name not in key])
        self._arranged = picker(_places(changed_schema(schema, key), schema, key))
        self._snapshot = TableSnapshot(memory, self._keys)
        self._valued: set[int] = set()  # columns in which the table has values, and no tuple so far
        lost = before.columns if before is not None else ()
        self._lost = {place for place, name in enumerate(names) if name in lost}  # and no tuple has a value
        self._new_keys = KeySet(memory)
        self._held = KeyedRows(memory)
        self._preview = RowBuffer(memory)
        self._again = RowBuffer(memory)
        self._changes = RowBuffer(memory)
        self._silent = RowBuffer(memory)  # what is deleted without a word
        self._untold = KeySet(memory)  # keys of what is inserted without a word
        self._rows = 0  # how many tuples came
        self._known = 0  # how many rows of the table were seen in the relation
        self._tells_new = True
        self.write = DiffWrite(where, spec, rows, schema, memory, origin)
        self.table_schema = rows.schema or schema
        self._structures: tuple[Spillable, ...] = (
            *(self._snapshot, self._new_keys, self._held, self._untold),
            *(self._preview, self._again, self._changes, self._silent),
        )

    def __enter__(self) -> Difference:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self.close()
        if kind is not None:
            # Also where ERRORS takes the failure: what is not whole is not written.
            self.write.close()

    def close(self) -> None:
        """Release everything except `write`."""
        for structure in self._structures:
            structure.close()

    # --- the table ---------------------------------------------------------------

    async def read_table(self, connection: Connection) -> None:
        """Read the table, and the keys that earlier runs held back."""
        empty = set(range(self._width))
        try:
            async with aclosing(self._stored.scan(connection)) as batches:
                async for batch in batches:
                    await self._snapshot.add(batch)
                    empty -= _valued(batch, empty)
        except SameKeyError as error:
            raise self._twice_in_table(error.row) from None
        self._valued = set(range(self._width)) - empty
        if self._before is not None:
            async with aclosing(read_held(connection, self._spec.table)) as batches:
                async for batch in batches:
                    await off_loop(self._held, self._held.add_all, [row[0] for row in batch], batch)

    @property
    def disk(self) -> DiskThread:
        return self._memory.disk

    @property
    def is_on_disk(self) -> bool:
        """Return whether its methods may read or write on disk."""
        return self.write.is_on_disk or any(structure.is_on_disk for structure in self._structures)

    def arrange(self) -> None:
        """Prepare the rows that were read for the comparison."""
        try:
            self._snapshot.seal()
        except SameKeyError as error:
            raise self._twice_in_table(error.row) from None

    def _twice_in_table(self, row: Row) -> ConflictError:
        return ConflictError(
            f"the table {self._spec.table!r} has several rows with {self._key_text(row)}; diff needs one row "
            "for each key: name another KEY, or remove the others"
        )

    # --- what comes -----------------------------------------------------------------------------

    def compare(self, batch: Batch) -> None:
        """Compare tuples. They are only stored until each column that had values has one again."""
        self._rows += len(batch)
        if self._lost:
            self._lost -= _valued(batch, self._lost)
        if not self._valued:
            self._compare(batch, None)
            return
        self._preview.append(batch)
        self._valued -= _valued(batch, self._valued)
        if not self._valued:
            self._compare_preview(None)

    def settle(self, marks: Marks) -> Judgement:
        """Decide which columns went empty, and compare the tuples that were stored for that."""
        vanished = [self._names[place] for place in sorted(self._valued)] if self._rows else []
        still_empty = [self._names[place] for place in sorted(self._lost)]
        judgement = Judgement(self._spec, self._before, self.is_first, marks, vanished, still_empty)
        if not judgement.doubts:
            self._compare_preview(judgement)
            if judgement.filled and self._spec.key is None:
                self._fill([self._names.index(name) for name in judgement.filled if name in self._names])
        return judgement

    def _compare_preview(self, judgement: Judgement | None) -> None:
        if judgement is not None and judgement.vanished and self._spec.key is None:
            self._compare_without([self._names.index(name) for name in judgement.vanished])
            return
        for batch in self._preview.batches():
            self._compare(batch, judgement)
        self._preview.close()

    def _compare(self, batch: Batch, judgement: Judgement | None) -> None:
        """Stage the tuples that are new, and those that have changed, with their old values."""
        keys = self._keys(batch)
        found = self._snapshot.find(keys)
        seen = self._snapshot.seen
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
        self._add(new_keys, new, again)
        if again:
            self._again.append(again)
        self._change(rows, old, judgement)

    def _compare_without(self, vanished: Sequence[int]) -> None:
        """Compare tuples as a whole, except for columns that went empty."""
        rest = [place for place in self._key_places if place not in vanished]
        keys_of = picker(rest)

        def keys(batch: Batch) -> Sequence[Hashable]:
            return identities(list(map(keys_of, batch)))

        with KeySet(self._memory) as stored, KeySet(self._memory) as given:
            for batch in self._snapshot.unseen():
                stored.add_new(keys(batch), batch)
            for batch in self._preview.batches():
                fresh = given.add_new(keys(batch), batch)
                new = [row for key, row in zip(keys(fresh), fresh, strict=True) if key not in stored]
                if new:
                    self.write.insert(new)
            self._known += self._snapshot.see(lambda batch: [key in given for key in keys(batch)])

    def _fill(self, places: Sequence[int]) -> None:
        """Recognise rows whose empty columns have values again. Without a KEY they look like other rows."""
        pick = picker([place for place in self._key_places if place not in places])

        def keys(batch: Batch) -> Sequence[Hashable]:
            return identities(list(map(pick, batch)))

        with KeySet(self._memory) as empty, KeySet(self._memory) as filled:
            for batch in self._snapshot.unseen():
                rows = [row for row in batch if any(is_empty(row[place]) for place in places)]
                empty.add_new(keys(rows), rows)
            for batch in self.write.inserts():
                same = [row for key, row in zip(keys(batch), batch, strict=True) if key in empty]
                filled.add_new(keys(same), same)
                self._untold.add_new(self._keys(same), same)
            for batch in self._snapshot.unseen():
                same = [row for key, row in zip(keys(batch), batch, strict=True) if key in filled]
                self._silent.append([(*row, False, False) for row in same])
            self._known += self._snapshot.see(lambda batch: [key in filled for key in keys(batch)])

    def _add(self, keys: Sequence[Hashable], rows: Batch, again: Batch) -> None:
        if not rows:
            return
        added = self._new_keys.add_new(keys, rows)
        if len(added) < len(rows):
            first = set(map(id, added))
            again += [row for row in rows if id(row) not in first]
        if added:
            self.write.insert(added)

    def _change(self, rows: Batch, old: Batch, judgement: Judgement | None) -> None:
        width = self._width
        changed: Batch = []
        written: Batch = []
        if judgement is not None and judgement.vanished:
            rows = _with_old_values(rows, old, [self._names.index(name) for name in judgement.vanished])
        filled, nulled, started = self._silent_places(judgement)
        before = identities([row[:width] for row in old])
        for row, stored, now, then in zip(rows, old, identities(rows), before, strict=True):
            if now == then:
                continue
            differing = [at for at in self._counted if now[at] != then[at] and at not in started]
            names = [
                self._names[at]
                for at in differing
                if not (at in filled and is_empty(stored[at])) and not (at in nulled and is_empty(row[at]))
            ]
            logged = names or [self._names[at] for at in differing]
            written.append((*row, *stored, changed_note(logged, told=bool(names))))
            if names:
                changed.append(self._arranged((*row, *self._pick_old(stored), ", ".join(names))))
        if written:
            self.write.update(written)
        if changed:
            self._changes.append(changed)

    def _silent_places(self, judgement: Judgement | None) -> tuple[set[int], set[int], set[int]]:
        """Return the columns whose values appear silently, those whose values vanish so, and new columns.

        A column that the table gets only now has its baseline in this run.
        """
        before = self._before.columns if self._before is not None else ()
        nulls = judgement.silent_nulls if judgement is not None else ()
        filled, nulled, started = (
            {place for place, name in enumerate(self._names) if name in names}
            for names in (before, nulls, self._stored.missing)
        )
        return filled, nulled, started

    # --- the end --------------------------------------------------------------------------------

    @property
    def repeated(self) -> int:
        """Return how many tuples had the key of an earlier one."""
        return len(self._again)

    def check_repeated(self) -> None:
        """Raise an InputError when a tuple differs from the first of its key.

        It takes time when there are many.
        """
        if self._spec.duplicates == "first":
            return
        with KeyedRows(self._memory) as firsts:
            self._gather_firsts(firsts)
            for batch in self._again.batches():
                for row, first in zip(batch, self._firsts_of(batch, firsts), strict=True):
                    self._compare_repeated(row, first)

    def _gather_firsts(self, firsts: KeyedRows) -> None:
        """Gather the first tuples of keys that came again, as far as they are to be written."""
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
        stored = self._snapshot.find(keys)
        for written, found in zip(firsts.get_all(keys), stored, strict=True):
            # What was not to be written equals the table's.
            yield written[0] if written or found is None else found[1][: self._width]

    def _compare_repeated(self, row: Row, first: Row) -> None:
        if self._differing(row, first):
            raise InputError(
                f"two different tuples have {self._key_text(row)}: "
                f"{self._shown(first, row)}, then {self._shown(row, first)}; a KEY tells tuples apart: name "
                "more attributes, or keep the first of each by DUPLICATES: first"
            )

    def _differing(self, row: Row, other: Row) -> list[int]:
        """Return the columns in which two tuples of one key differ.

        Columns without any value do not count.
        """
        places = [at for at in self._counted if at not in self._valued]
        return [at for at in places if identity((row[at],)) != identity((other[at],))]

    def _shown(self, row: Row, other: Row) -> str:
        """Return the values in which a row differs from another."""
        places = self._differing(row, other)
        return key_text([self._names[at] for at in places], tuple(row[at] for at in places))

    @property
    def takes_time(self) -> bool:
        """Return whether the work at the end takes long enough for another thread."""
        return len(self._snapshot) + self._rows >= _MANY_ROWS

    @property
    def is_first(self) -> bool:
        """Return whether no run has stored anything yet."""
        is_known = self._before is not None and not self._before.incomplete
        return not self._stored.is_there and not is_known

    @property
    def found(self) -> RowCounts:
        return RowCounts(len(self._snapshot), self._rows, self._known, self.write.inserted)

    def judge(self, judgement: Judgement, run_id: str, now: datetime) -> Suspect | None:
        """Decide what is written and told, and return what is held back. It takes time when much vanishes."""
        found = self.found
        if judgement.doubts:
            doubtful = judgement.doubtful_suspect(found, run_id, now)
            self.write.hold_everything(doubtful)
            self._changes.close()
            return doubtful
        counts = judgement.counts(found)
        settled = sum(each.is_settled for each in chain.from_iterable(self._missing(judgement, now, counts)))
        reason = judgement.holds_gone(found, settled)
        holds_new = judgement.holds_new(found, settled)
        gone = self._hold_or_delete(judgement, now, counts, reason is not None)
        added = self._hold_new() if holds_new else 0
        awaits = self._keep_new_keys(judgement)
        reasons = self._reasons(reason, added)
        self._tells_new = judgement.tells_new
        suspect = judgement.suspect(found, gone, added, reasons, run_id, now, awaits=awaits)
        is_baseline = self.is_first and not judgement.tells_new
        sighting = Sighting(self.is_first, is_baseline, judgement.is_whole, not gone)
        self.write.finish(found.total, suspect, sighting, forgets=self._before is not None)
        return suspect

    def _missing(self, judgement: Judgement, now: datetime, counts: bool) -> Iterator[list[_Missing]]:
        """Yield the rows that are gone, with what is known of their absence."""
        for batch in self._snapshot.unseen():
            keys = [fingerprint(self._pick_key(row)) for row in batch]
            missing = []
            for row, key, held in zip(batch, keys, self._held.get_all(keys), strict=True):
                before = Absence(*held[0][1:]) if held else None
                absence = judgement.absence(before, now, counts)
                is_settled = judgement.is_settled(before, absence)
                missing.append(_Missing(row, key, absence, bool(held), is_settled))
            yield missing

    def _hold_or_delete(self, judgement: Judgement, now: datetime, counts: bool, holds: bool) -> int:
        """Stage the gone rows to be deleted or held. Return how many are held."""
        waits = self._waits(judgement)
        quiet = judgement.confirmation == "quiet"
        gone = 0
        for missing in self._missing(judgement, now, counts):
            kept = [each for each in missing if holds and not each.is_settled]
            held = [each for each in kept if each.was_held or not waits]
            gone += len(kept)
            self.write.hold([(self._spec.table, each.key, *_entry(each.absence)) for each in held])
            deleted = [each for each in missing if not holds or each.is_settled]
            self.write.delete(_noted([each for each in deleted if not (quiet and each.is_settled)], True))
            self._silent.append(_noted([each for each in deleted if quiet and each.is_settled], False))
        return gone

    def _waits(self, judgement: Judgement) -> bool:
        """Return whether a confirmation waits for a whole run.

        It covers the keys that were held before it.
        """
        return self._before is not None and bool(self._before.confirmed) and not judgement.confirmation

    def _hold_new(self) -> int:
        """Hold back the new rows. Return how many there are."""
        held = 0
        confirmed = self._before is not None and bool(self._before.confirmed)
        for batch in self.write.take_inserts():
            held += len(batch)
            if not confirmed:  # a confirmation is for the keys that were held before it
                keys = [fingerprint(self._pick_key(row)) for row in batch]
                self.write.hold([(self._spec.table, key, NEW, "") for key in keys])
        return held

    def _keep_new_keys(self, judgement: Judgement) -> bool:
        """Hold the keys that earlier runs held as new and this run has not seen.

        Return whether there are any.
        """
        keeps = False
        with KeySet(self._memory) as seen:
            for batch in self.write.inserts():
                keys = [fingerprint(self._pick_key(row)) for row in batch]
                seen.add_new(keys, keys)
            for key, entries in self._held.items():
                runs = entries[0][1]
                held = judgement.awaits(runs) if runs <= NEW and key not in seen else 0
                if held:
                    keeps = True
                    self.write.hold([(self._spec.table, key, held, "")])
        return keeps

    def _reasons(self, reason: Reason | None, added: int) -> list[Reason]:
        reasons = [] if reason is None else [reason]
        if added:
            rows = "1 other appeared" if added == 1 else f"{added:,} others appeared"
            reasons.append(Reason(f"{rows} at the same time, as if the key had been redesigned"))
        return reasons

    # --- what may be told -----------------------------------------------------------------------

    def added(self) -> Iterator[Batch]:
        """Yield the rows that are news."""
        if not self._tells_new:
            return
        for batch in self.write.inserts():
            told = list(compress(batch, self._are_told(batch))) if self._knows_some else batch
            if told:
                yield told

    @property
    def _knows_some(self) -> bool:
        """Return whether some rows that are new to the table may be no news."""
        return self._before is not None or bool(len(self._untold))

    def _are_told(self, batch: Batch) -> list[bool]:
        """Return for each new row whether it is news."""
        untold = self._untold.known(self._keys(batch)) if len(self._untold) else repeat(False)
        taken_over = self._taken_over(batch) if self._before is not None else repeat(False)
        return [not (one or other) for one, other, _ in zip(untold, taken_over, batch, strict=False)]

    def _taken_over(self, batch: Batch) -> list[bool]:
        """Return for each new row whether a person has said that it is an old one under another key."""
        quiet = self._before is not None and self._before.confirmed == "quiet"
        keys = [fingerprint(self._pick_key(row)) for row in batch]
        return [bool(held) and held[0][1] <= (NEW if quiet else NEW - 1) for held in self._held.get_all(keys)]

    def changed(self) -> Iterator[Batch]:
        """Yield the rows that have changed, with their old values."""
        yield from self._changes.batches()

    def removed(self) -> Iterator[Batch]:
        """Yield the rows that are gone, as the table had them."""
        for batch in self.write.deletes():
            yield list(map(self._stored.in_table_order, batch))

    def take_over_silently(self) -> None:
        """Stage the rows that are deleted and inserted without a message, after everything was told."""
        for batch in self._silent.batches():
            self.write.delete(batch)
        if not self._tells_new:
            self.write.quieten_inserts()
        elif self._knows_some:
            for batch in self.write.take_inserts():
                are_told = self._are_told(batch)
                self.write.insert(list(compress(batch, are_told)))
                self.write.insert_quietly(list(compress(batch, map(not_, are_told))))

    # --- keys -----------------------------------------------------------------------------------

    def _keys(self, batch: Batch) -> Sequence[Hashable]:
        """Return the keys of tuples, or of stored rows, which begin with the same attributes."""
        return identities(list(map(self._pick_key, batch)))

    def _key_text(self, row: Row) -> str:
        return key_text(self._spec.key_of(self._names), self._pick_key(row))


def _places(wanted: Schema, schema: Schema, key: Sequence[str]) -> list[int]:
    """Return the places of a changed tuple's attributes in the row of new values, old values and changes.

    As everywhere, a result that has the name of an attribute takes its place.
    """
    before = [f"{OLD}{name}" for name in schema.names if name not in key]
    place = {name: at for at, name in enumerate((*schema.names, *before, CHANGES))}
    return [place[name] for name in wanted.names]


def _noted(missing: Sequence[_Missing], told: bool) -> Batch:
    """Return rows that are gone, each followed by whether that is told, and whether it was held."""
    return [(*each.row, told, each.was_held) for each in missing]


def _entry(absence: Absence) -> tuple[int, str]:
    return absence.runs, absence.counted


def _valued(batch: Batch, places: set[int]) -> set[int]:
    """Return those of the columns in which some row has a value."""
    return {place for place in places if any(not is_empty(row[place]) for row in batch)}


def _with_old_values(rows: Batch, old: Batch, places: Sequence[int]) -> Batch:
    """Return the rows with the values of the table in those columns."""
    patched = []
    for row, stored in zip(rows, old, strict=True):
        values = list(row)
        for place in places:
            values[place] = stored[place]
        patched.append(tuple(values))
    return patched
