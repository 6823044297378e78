"""What an operator must remember: in memory up to a limit, then on disk.

Files are anonymous (unlinked as soon as they are made), so that even a killed process leaves none
behind; that is also why pickles are safe in them: nobody else can ever write there.

Rows and keys that are found again by key: in memory up to the limit, then in a private SQLite database.
"""

from __future__ import annotations

import heapq
import pickle
import struct
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from typing import Any, BinaryIO, TypeVar, cast

from aioflow.errors import ClosedError
from aioflow.relation import Batch, Relation, Row, Schema
from aioflow.runtime.memory import MemoryBudget, Spillable, SpilledRows, batch_size, row_size

T = TypeVar("T")

_MOST_VARIABLES = 256  # of one SQL statement
_KEY_OVERHEAD_BYTES = 120  # a slot in a set or dict, and the tuple around a key


class _DiskTable:
    """Pickled entries by hash in a private temporary SQLite database."""

    def __init__(self, memory: MemoryBudget) -> None:
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

    def __init__(self, memory: MemoryBudget) -> None:
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

    def __init__(self, memory: MemoryBudget) -> None:
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


__all__ = ["KeySet", "KeyedRows", "MemoryBudget", "RowBuffer", "RowQueue", "SortedRows", "batch_size"]

_CHUNK_ROWS = 1024
_LENGTH = struct.Struct("<Q")


class SpillFile:
    """Batches one after the other in an anonymous file."""

    def __init__(self, memory: MemoryBudget) -> None:
        self._memory = memory
        self._file = cast(BinaryIO, tempfile.TemporaryFile(prefix="aioflow-"))  # noqa: SIM115  # closed in close
        memory.count_files(1)
        self.end = 0

    def append(self, rows: Sequence[Row]) -> int:
        """Write a batch; return the offset at which it stands."""
        data = pickle.dumps(rows, protocol=5)
        offset = self.end
        self._file.seek(offset)
        self._file.write(_LENGTH.pack(len(data)))
        self._file.write(data)
        self.end = offset + _LENGTH.size + len(data)
        self._memory.count_spilled(len(rows))
        return offset

    def read(self, offset: int) -> tuple[Batch, int]:
        """The batch at an offset and the offset of the next one."""
        self._file.seek(offset)
        (length,) = _LENGTH.unpack(self._file.read(_LENGTH.size))
        return pickle.loads(self._file.read(length)), offset + _LENGTH.size + length

    def batches(self, start: int = 0, end: int | None = None) -> Iterator[Batch]:
        offset = start
        while offset < (self.end if end is None else end):
            batch, offset = self.read(offset)
            yield batch

    def clear(self) -> None:
        self._file.truncate(0)
        self.end = 0

    def close(self) -> None:
        self._memory.count_files(-1)
        with suppress(OSError):  # what it could not flush nobody reads
            self._file.close()


class RowBuffer(Spillable):
    """Rows in the order in which they came; can be walked again and again."""

    def __init__(self, memory: MemoryBudget) -> None:
        super().__init__(memory)
        self._kept: list[Batch] = []
        self._tail: Batch = []
        self._file: SpillFile | None = None
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, batch: Sequence[Row]) -> None:
        """Add rows at the end."""
        self._length += len(batch)
        if self._file is None and self.reserve(batch_size(batch)):
            self._kept.append(list(batch))
            return
        if self._file is None:
            self._file = SpillFile(self._memory)
        self._tail.extend(batch)
        if len(self._tail) >= _CHUNK_ROWS or batch_size(self._tail) > 256 * 1024:
            self._file.append(self._tail)
            self._tail = []

    def batches(self) -> Iterator[Batch]:
        """All rows, batch by batch."""
        yield from self._kept
        if self._file is not None:
            yield from self._file.batches()
            if self._tail:
                yield self._tail

    def relation(self, schema: Schema, *, is_list: bool = False) -> Relation:
        """The rows as a value. The buffer is closed with the run, unless the value is among its results."""
        if self._file is None:
            rows = list(chain.from_iterable(self._kept))
            self.close()
            return Relation(schema, rows, is_list=is_list)
        self._memory.enter_value(self)
        return Relation(schema, _StoredRows(self), is_list=is_list)

    def rows_in_memory(self) -> Iterator[Row]:
        """The rows that are not on disk: only they can embed what is itself on disk."""
        return chain(chain.from_iterable(self._kept), self._tail)

    def close_files(self) -> None:
        self._kept, self._tail = [], []
        if self._file is not None:
            self._file.close()
            self._file = None


class _StoredRows(SpilledRows):
    """The rows of a buffer, for a Relation."""

    def __init__(self, buffer: RowBuffer) -> None:
        self._buffer = buffer

    @property
    def structure(self) -> RowBuffer:
        return self._buffer

    def rows_in_memory(self) -> Iterator[Row]:
        return self._buffer.rows_in_memory()

    def __len__(self) -> int:
        return len(self._buffer)

    def __iter__(self) -> Iterator[Row]:
        return chain.from_iterable(self._batches())

    def _batches(self) -> Iterator[Batch]:
        self._check_open()
        for batch in self._buffer.batches():
            yield batch
            self._check_open()

    def _check_open(self) -> None:
        """Let nobody take for empty, or for all, what was closed."""
        if self._buffer.is_closed:
            raise ClosedError("the rows of this relation were released when its run ended")


class RowQueue(Spillable):
    """Rows that are held until somebody may use them: first in, first out, each read once."""

    def __init__(self, memory: MemoryBudget) -> None:
        super().__init__(memory)
        self._head: deque[tuple[Batch, int]] = deque()
        self._file: SpillFile | None = None
        self._read_at = 0
        self.length = 0

    def append(self, batch: Batch) -> None:
        """Add a batch, which becomes the queue's own."""
        self.length += len(batch)
        size = batch_size(batch)
        if (self._file is None or self._read_at == self._file.end) and self.reserve(size):
            self._head.append((batch, size))
            return
        if self._file is None:
            self._file = SpillFile(self._memory)
        self._file.append(batch)

    def popleft(self) -> Batch:
        """The oldest batch."""
        if self._head:
            batch, size = self._head.popleft()
            self._reserved -= size
            self._memory.release(size)
        else:
            assert self._file is not None
            batch, self._read_at = self._file.read(self._read_at)
            if self._read_at == self._file.end:
                self._file.clear()
                self._read_at = 0
        self.length -= len(batch)
        return batch

    def close_files(self) -> None:
        self._head.clear()
        self.length = 0
        if self._file is not None:
            self._file.close()
            self._file = None


class SortedRows(Spillable):
    """An external merge sort: runs that fit in memory are sorted and written, then merged. Stable."""

    def __init__(self, memory: MemoryBudget, key: Callable[[Row], Any]) -> None:
        super().__init__(memory)
        self._key = key
        self._run: Batch = []
        self._file: SpillFile | None = None
        self._runs: list[tuple[int, int]] = []

    def append(self, batch: Sequence[Row]) -> None:
        # A run of a certain length is kept whatever the account says: runs of a few rows would be
        # merged by thousands.
        if not self.reserve(batch_size(batch)) and len(self._run) >= _CHUNK_ROWS:
            self._write_run()
        self._run.extend(batch)

    def batches(self) -> Iterator[Batch]:
        """All rows in order."""
        self._run.sort(key=self._key)
        if self._file is None:
            for start in range(0, len(self._run), 256):
                yield self._run[start : start + 256]
            return
        runs = [chain.from_iterable(self._file.batches(start, end)) for start, end in self._runs]
        merged = heapq.merge(*runs, self._run, key=self._key)
        batch: Batch = []
        for row in merged:
            batch.append(row)
            if len(batch) == 256:
                yield batch
                batch = []
        if batch:
            yield batch

    def _write_run(self) -> None:
        if self._file is None:
            self._file = SpillFile(self._memory)
        self._run.sort(key=self._key)
        start = self._file.end
        for first in range(0, len(self._run), 256):
            self._file.append(self._run[first : first + 256])
        self._runs.append((start, self._file.end))
        self._run = []
        self.release_all()

    def close_files(self) -> None:
        self._run = []
        if self._file is not None:
            self._file.close()
            self._file = None
