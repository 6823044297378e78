"""What an operator must remember: in memory up to a limit, then on disk.

Files are anonymous (unlinked as soon as they are made), so that even a killed process leaves none
behind; that is also why pickles are safe in them: nobody else can ever write there.
"""

from __future__ import annotations

import heapq
import pickle
import struct
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from types import TracebackType
from typing import Any, BinaryIO, TypeVar, cast

from aioflow.relation import Batch, Relation, Row, RowStore, Schema

T = TypeVar("T")

_CHUNK_ROWS = 1024
_KEY_OVERHEAD_BYTES = 120  # a slot in a set or dict, and the tuple around a key
_LENGTH = struct.Struct("<Q")


class Memory:
    """An account of the bytes that rows may take before they go to disk, shared by a whole run."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.spilled_rows = 0
        self.open_files = 0

    def reserve(self, size: int) -> bool:
        """Take `size` bytes from the account, if they are there."""
        if self.used_bytes + size > self.limit_bytes:
            return False
        self.used_bytes += size
        return True

    def release(self, size: int) -> None:
        self.used_bytes -= size


def row_size(row: Row) -> int:
    """About how many bytes a row takes."""
    return sys.getsizeof(row) + sum(map(_value_size, row))


def batch_size(rows: Sequence[Row]) -> int:
    """About how many bytes a batch takes, from a sample of it."""
    if len(rows) <= 4:
        return sum(map(row_size, rows))
    sample = rows[:: len(rows) // 4]
    return sum(map(row_size, sample)) * len(rows) // len(sample)


def _value_size(value: Any) -> int:
    if isinstance(value, Relation):
        rows = value.rows
        return 64 + (batch_size(rows) if isinstance(rows, list | tuple) else 256)
    if isinstance(value, str | int | float | None):
        return sys.getsizeof(value)
    return 64 + sys.getsizeof(getattr(value, "text", ""))


class _Spillable:
    """The life of a structure that holds part of a Memory account and perhaps a file."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._reserved = 0
        self._closed = False

    def _reserve(self, size: int) -> bool:
        if not self._memory.reserve(size):
            return False
        self._reserved += size
        return True

    def _release_all(self) -> None:
        self._memory.release(self._reserved)
        self._reserved = 0

    def close(self) -> None:
        """Give back memory and disk."""
        if not self._closed:
            self._closed = True
            self._release_all()
            self._close_files()

    def _close_files(self) -> None:
        raise NotImplementedError

    def __enter__(self: T) -> T:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # A structure that was handed on inside a value has no other end than being forgotten.
        self.close()


class _SpillFile:
    """Batches one after the other in an anonymous file."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._file = cast(BinaryIO, tempfile.TemporaryFile(prefix="aioflow-"))
        memory.open_files += 1
        self.end = 0

    def append(self, rows: Sequence[Row]) -> int:
        """Write a batch; return the offset at which it stands."""
        data = pickle.dumps(rows, protocol=5)
        offset = self.end
        self._file.seek(offset)
        self._file.write(_LENGTH.pack(len(data)))
        self._file.write(data)
        self.end = offset + _LENGTH.size + len(data)
        self._memory.spilled_rows += len(rows)
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
        self._file.close()
        self._memory.open_files -= 1


class RowBuffer(_Spillable):
    """Rows in the order in which they came; can be walked again and again."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._kept: list[Batch] = []
        self._tail: Batch = []
        self._file: _SpillFile | None = None
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, batch: Sequence[Row]) -> None:
        """Add rows at the end."""
        self._length += len(batch)
        if self._file is None and self._reserve(batch_size(batch)):
            self._kept.append(list(batch))
            return
        if self._file is None:
            self._file = _SpillFile(self._memory)
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

    def relation(self, schema: Schema) -> Relation:
        """The rows as a value; the buffer lives as long as the value does."""
        if self._file is None:
            rows = list(chain.from_iterable(self._kept))
            self.close()
            return Relation(schema, rows)
        return Relation(schema, _StoredRows(self))

    def _close_files(self) -> None:
        self._kept, self._tail = [], []
        if self._file is not None:
            self._file.close()
            self._file = None


class _StoredRows(RowStore):
    """The rows of a buffer, for a Relation."""

    def __init__(self, buffer: RowBuffer) -> None:
        self._buffer = buffer

    def __len__(self) -> int:
        return len(self._buffer)

    def __iter__(self) -> Iterator[Row]:
        return chain.from_iterable(self._buffer.batches())


class RowQueue(_Spillable):
    """Rows that are held until somebody may use them: first in, first out, each read once."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._head: deque[tuple[Batch, int]] = deque()
        self._file: _SpillFile | None = None
        self._read_at = 0
        self.length = 0

    def append(self, batch: Batch) -> None:
        """Add a batch, which becomes the queue's own."""
        self.length += len(batch)
        size = batch_size(batch)
        if (self._file is None or self._read_at == self._file.end) and self._reserve(size):
            self._head.append((batch, size))
            return
        if self._file is None:
            self._file = _SpillFile(self._memory)
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

    def _close_files(self) -> None:
        self._head.clear()
        self.length = 0
        if self._file is not None:
            self._file.close()
            self._file = None


class _DiskTable:
    """Pickled entries by hash in a private temporary SQLite database."""

    def __init__(self, memory: Memory) -> None:
        import sqlite3  # only runs that spill pay for it

        self._memory = memory
        # The empty name makes SQLite use an anonymous file, written only as its cache overflows.
        self.connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        memory.open_files += 1
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -2048", "locking_mode = EXCLUSIVE"):
            self.connection.execute(f"PRAGMA {pragma}")
        self.connection.execute("BEGIN")
        self.execute = self.connection.execute
        self.executemany = self.connection.executemany

    def close(self) -> None:
        self.connection.close()
        self._memory.open_files -= 1


class KeySet(_Spillable):
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

    def add_new(self, keys: Iterable[Hashable], rows: Iterable[T]) -> list[T]:
        """Add keys; return the rows (one for each key) whose key is new."""
        if self._disk is not None:
            return [row for key, row in zip(keys, rows, strict=True) if self._add_slowly(key)]
        seen = self._seen
        add = seen.add
        fresh: list[T] = []
        latest: Hashable = None
        for key, row in zip(keys, rows, strict=True):
            if key not in seen:
                add(key)
                fresh.append(row)
                latest = key
        if fresh:
            size = _key_size(latest)
            if not self._reserve(size * len(fresh)):
                self._disk = _DiskTable(self._memory)
                self._disk.execute("CREATE TABLE keys (hash INTEGER PRIMARY KEY, keys BLOB)")
        return fresh

    def _add_slowly(self, key: Hashable) -> bool:
        if key in self._seen:
            return False
        assert self._disk is not None
        code = hash(key)
        added = self._disk.execute("INSERT OR IGNORE INTO keys VALUES (?, ?)", (code, pickle.dumps((key,), 5)))
        if added.rowcount == 0:
            stored = self._stored_keys(code)
            if key in stored:
                return False
            self._disk.execute("UPDATE keys SET keys = ? WHERE hash = ?", (pickle.dumps((*stored, key), 5), code))
        self._length_on_disk += 1
        self._memory.spilled_rows += 1
        return True

    def _stored_keys(self, code: int) -> tuple[Hashable, ...]:
        assert self._disk is not None
        found = self._disk.execute("SELECT keys FROM keys WHERE hash = ?", (code,)).fetchone()
        return pickle.loads(found[0]) if found else ()

    def _close_files(self) -> None:
        self._seen = set()
        if self._disk is not None:
            self._disk.close()
            self._disk = None


def _key_size(key: Hashable) -> int:
    return _KEY_OVERHEAD_BYTES + (row_size(key) if isinstance(key, tuple) else sys.getsizeof(key))


class KeyedRows(_Spillable):
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
        if self._disk is None and self._reserve(batch_size(rows) + _KEY_OVERHEAD_BYTES * len(rows)):
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
        self._memory.spilled_rows += len(rows)

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
        code, group = None, {}
        for stored_code, entry in self._disk.execute("SELECT hash, entry FROM rows ORDER BY hash, rowid"):
            if stored_code != code:
                yield from group.items()
                code, group = stored_code, cast("dict[Hashable, list[Row]]", {})
            key, row = pickle.loads(entry)
            if key not in self._rows:
                group.setdefault(key, []).append(row)
        yield from group.items()

    def _close_files(self) -> None:
        self._rows = {}
        if self._disk is not None:
            self._disk.close()
            self._disk = None


class SortedRows(_Spillable):
    """An external merge sort: runs that fit in memory are sorted and written, then merged. Stable."""

    def __init__(self, memory: Memory, key: Callable[[Row], Any]) -> None:
        super().__init__(memory)
        self._key = key
        self._run: Batch = []
        self._file: _SpillFile | None = None
        self._runs: list[tuple[int, int]] = []

    def append(self, batch: Sequence[Row]) -> None:
        # A run of a certain length is kept whatever the account says: runs of a few rows would be
        # merged by thousands.
        if not self._reserve(batch_size(batch)) and len(self._run) >= _CHUNK_ROWS:
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
            self._file = _SpillFile(self._memory)
        self._run.sort(key=self._key)
        start = self._file.end
        for first in range(0, len(self._run), 256):
            self._file.append(self._run[first : first + 256])
        self._runs.append((start, self._file.end))
        self._run = []
        self._release_all()

    def _close_files(self) -> None:
        self._run = []
        if self._file is not None:
            self._file.close()
            self._file = None
