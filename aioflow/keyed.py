"""Rows and keys that are found again by key: in memory up to the limit, then in a private SQLite database."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Hashable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, TypeVar

from aioflow.memory import Memory, Spillable, batch_size, row_size
from aioflow.relation import Row

T = TypeVar("T")

_MOST_VARIABLES = 256  # of one SQL statement
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
        # An index of its own stays small: what was never added is told by it alone.
        self.connection.execute("CREATE TABLE entries (hash INTEGER, entry BLOB)")
        self.connection.execute("CREATE INDEX by_hash ON entries (hash)")

    def add(self, entries: Sequence[tuple[int, Any]]) -> None:
        """Add entries, each with its hash."""
        # In order of their hashes: neighbours go to one page of the index.
        rows = ((code, pickle.dumps(entry, 5)) for code, entry in sorted(entries, key=itemgetter(0)))
        self.connection.executemany("INSERT INTO entries VALUES (?, ?)", rows)
        self._memory.count_spilled(len(entries))

    def find(self, codes: Iterable[int]) -> dict[int, list[Any]]:
        """The entries with one of these hashes, by hash and in the order of their arrival."""
        found: dict[int, list[Any]] = {}
        different = sorted(set(codes))
        for start in range(0, len(different), _MOST_VARIABLES):
            some = different[start : start + _MOST_VARIABLES]
            places = ",".join("?" * len(some))
            query = f"SELECT hash, entry FROM entries WHERE hash IN ({places}) ORDER BY rowid"
            for code, entry in self.connection.execute(query, some):
                found.setdefault(code, []).append(pickle.loads(entry))
        return found

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """All entries with their hashes, in the order of those."""
        for code, entry in self.connection.execute("SELECT hash, entry FROM entries ORDER BY hash, rowid"):
            yield code, pickle.loads(entry)

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
        if self._disk is None:
            return False
        code = hash(key)
        return key in self._disk.find([code]).get(code, ())

    def add(self, key: Hashable) -> bool:
        """Add a key; whether it is new."""
        return bool(self.add_new((key,), (key,)))

    def add_new(self, keys: Sequence[Hashable], rows: Sequence[T]) -> list[T]:
        """Add keys; return the rows (one for each key) whose key is new."""
        if self._disk is not None:
            return self._add_on_disk(self._disk, keys, rows)
        fresh = self._add_in_memory(keys, rows)
        if fresh and not self.reserve(_key_size(keys[-1]) * len(fresh)):
            self._disk = _DiskTable(self._memory)
        return fresh

    def _add_in_memory(self, keys: Sequence[Hashable], rows: Sequence[T]) -> list[T]:
        seen = self._seen
        add = seen.add  # it returns None
        if keys is rows:
            return [row for row in rows if not (row in seen or add(row))]
        return [row for key, row in zip(keys, rows, strict=True) if not (key in seen or add(key))]

    def _add_on_disk(self, disk: _DiskTable, keys: Sequence[Hashable], rows: Sequence[T]) -> list[T]:
        seen = self._seen
        others = [(hash(key), key, row) for key, row in zip(keys, rows, strict=True) if key not in seen]
        stored = disk.find(code for code, _, _ in others)
        fresh, entries = [], []
        for code, key, row in others:
            known = stored.setdefault(code, [])
            if key not in known:
                known.append(key)
                fresh.append(row)
                entries.append((code, key))
        disk.add(entries)
        self._length_on_disk += len(fresh)
        return fresh

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
        self._disk.add([(hash(key), (key, row)) for key, row in zip(keys, rows, strict=True)])

    def get(self, key: Hashable) -> Sequence[Row]:
        """The rows of a key, in the order in which they came."""
        return self.get_all((key,))[0]

    def get_all(self, keys: Sequence[Hashable]) -> list[Sequence[Row]]:
        """The rows of each key."""
        get = self._rows.get
        if self._disk is None:
            return [get(key, ()) for key in keys]
        codes = list(map(hash, keys))
        stored = self._disk.find(codes)
        return [
            [*get(key, ()), *(row for known, row in stored.get(code, ()) if known == key)]
            for key, code in zip(keys, codes, strict=True)
        ]

    def items(self) -> Iterator[tuple[Hashable, list[Row]]]:
        """Each key with its rows."""
        if self._disk is None:
            yield from self._rows.items()
            return
        for key in self._rows:
            yield key, list(self.get(key))
        yield from self._stored_items(self._disk)

    def _stored_items(self, disk: _DiskTable) -> Iterator[tuple[Hashable, list[Row]]]:
        code: int | None = None
        group: dict[Hashable, list[Row]] = {}
        for stored_code, (key, row) in disk:
            if stored_code != code:
                yield from group.items()
                code, group = stored_code, {}
            if key not in self._rows:
                group.setdefault(key, []).append(row)
        yield from group.items()

    def close_files(self) -> None:
        self._rows = {}
        if self._disk is not None:
            self._disk.close()
            self._disk = None
