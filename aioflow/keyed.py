"""Rows and keys that are found again by key: in memory up to the limit, then in a private SQLite database."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from aioflow.memory import Memory, Spillable, batch_size, row_size
from aioflow.relation import Row

T = TypeVar("T")

_KEY_OVERHEAD_BYTES = 120  # a slot in a set or dict, and the tuple around a key


class _DiskTable:
    """Pickled entries by hash in a private temporary SQLite database."""

    def __init__(self, memory: Memory) -> None:
        import sqlite3  # only runs that spill pay for it

        self._memory = memory
        # The empty name makes SQLite use an anonymous file, written only as its cache overflows.
        self.connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        memory.count_files(1)
        for pragma in (
            "journal_mode = OFF",
            "synchronous = OFF",
            "cache_size = -2048",
            "locking_mode = EXCLUSIVE",
        ):
            self.connection.execute(f"PRAGMA {pragma}")
        self.connection.execute("BEGIN")
        self.execute = self.connection.execute
        self.executemany = self.connection.executemany

    def close(self) -> None:
        self.connection.close()
        self._memory.count_files(-1)


class KeySet(Spillable):
    """A set of keys that were seen."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._seen: set[Hashable] = set()
        self._disk: _DiskTable | None = None
        self._length_on_disk = 0

    def __len__(self) -> int:
        return len(self._seen) + self._length_on_disk

    def __contains__(self, key: Hashable) -> bool:
        if key in self._seen:
            return True
        return self._disk is not None and key in self._stored_keys(hash(key))

    def add(self, key: Hashable) -> bool:
        """Add a key; whether it is new."""
        return bool(self.add_new((key,), (key,)))

    def add_new(self, keys: Sequence[Hashable], rows: Sequence[T]) -> list[T]:
        """Add keys; return the rows (one for each key) whose key is new."""
        if self._disk is not None:
            return [row for key, row in zip(keys, rows, strict=True) if self._add_slowly(key)]
        fresh = self._add_in_memory(keys, rows)
        if fresh and not self.reserve(_key_size(keys[-1]) * len(fresh)):
            self._disk = _DiskTable(self._memory)
            self._disk.execute("CREATE TABLE keys (hash INTEGER PRIMARY KEY, keys BLOB)")
        return fresh

    def _add_in_memory(self, keys: Sequence[Hashable], rows: Sequence[T]) -> list[T]:
        seen = self._seen
        candidates = set(keys)
        if len(candidates) < len(keys):  # some stand twice in this batch: only the first of each is new
            add = seen.add
            return [row for key, row in zip(keys, rows, strict=True) if not (key in seen or add(key))]
        # Sets know the hashes of their members: what follows computes none again.
        if seen.isdisjoint(candidates):
            seen |= candidates
            return list(rows)
        candidates -= seen
        seen |= candidates
        return [row for key, row in zip(keys, rows, strict=True) if key in candidates]

    def _add_slowly(self, key: Hashable) -> bool:
        if key in self._seen:
            return False
        assert self._disk is not None
        code = hash(key)
        added = self._disk.execute(
            "INSERT OR IGNORE INTO keys VALUES (?, ?)", (code, pickle.dumps((key,), 5))
        )
        if added.rowcount == 0:
            stored = self._stored_keys(code)
            if key in stored:
                return False
            self._disk.execute(
                "UPDATE keys SET keys = ? WHERE hash = ?", (pickle.dumps((*stored, key), 5), code)
            )
        self._length_on_disk += 1
        self._memory.count_spilled(1)
        return True

    def _stored_keys(self, code: int) -> tuple[Hashable, ...]:
        assert self._disk is not None
        found = self._disk.execute("SELECT keys FROM keys WHERE hash = ?", (code,)).fetchone()
        return pickle.loads(found[0]) if found else ()

    def close_files(self) -> None:
        self._seen = set()
        if self._disk is not None:
            self._disk.close()
            self._disk = None


def _key_size(key: Hashable) -> int:
    return _KEY_OVERHEAD_BYTES + (row_size(key) if isinstance(key, tuple) else sys.getsizeof(key))


class KeyedRows(Spillable):
    """Rows by key: many for each."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._rows: dict[Hashable, list[Row]] = {}
        self._disk: _DiskTable | None = None

    def add(self, key: Hashable, row: Row) -> None:
        self.add_all((key,), (row,))

    def add_all(self, keys: Sequence[Hashable], rows: Sequence[Row]) -> None:
        """Add rows, one for each key."""
        if not rows:
            return
        if self._disk is None and self.reserve(batch_size(rows) + _KEY_OVERHEAD_BYTES * len(rows)):
            table = self._rows
            for key, row in zip(keys, rows, strict=True):
                if key in table:
                    table[key].append(row)
                else:
                    table[key] = [row]
            return
        if self._disk is None:
            self._disk = _DiskTable(self._memory)
            self._disk.execute("CREATE TABLE rows (hash INTEGER, entry BLOB)")
            self._disk.execute("CREATE INDEX by_hash ON rows (hash)")
        entries = ((hash(key), pickle.dumps((key, row), 5)) for key, row in zip(keys, rows, strict=True))
        self._disk.executemany("INSERT INTO rows VALUES (?, ?)", entries)
        self._memory.count_spilled(len(rows))

    def get(self, key: Hashable) -> Sequence[Row]:
        """The rows of a key, in the order in which they came."""
        kept = self._rows.get(key, ())
        if self._disk is None:
            return kept
        return [*kept, *self._stored(key)]

    def get_all(self, keys: Iterable[Hashable]) -> list[Sequence[Row]]:
        """The rows of each key."""
        if self._disk is None:
            get = self._rows.get
            return [get(key, ()) for key in keys]
        return [self.get(key) for key in keys]

    def items(self) -> Iterator[tuple[Hashable, list[Row]]]:
        """Each key with its rows."""
        for key, kept in self._rows.items():
            yield key, kept if self._disk is None else [*kept, *self._stored(key)]
        if self._disk is not None:
            yield from self._stored_items()

    def _stored(self, key: Hashable) -> list[Row]:
        assert self._disk is not None
        found = self._disk.execute("SELECT entry FROM rows WHERE hash = ? ORDER BY rowid", (hash(key),))
        entries = [pickle.loads(entry) for (entry,) in found]
        return [row for stored, row in entries if stored == key]

    def _stored_items(self) -> Iterator[tuple[Hashable, list[Row]]]:
        assert self._disk is not None
        code: int | None = None
        group: dict[Hashable, list[Row]] = {}
        for stored_code, entry in self._disk.execute("SELECT hash, entry FROM rows ORDER BY hash, rowid"):
            if stored_code != code:
                yield from group.items()
                code, group = stored_code, {}
            key, row = pickle.loads(entry)
            if key not in self._rows:
                group.setdefault(key, []).append(row)
        yield from group.items()

    def close_files(self) -> None:
        self._rows = {}
        if self._disk is not None:
            self._disk.close()
            self._disk = None
