"""Rows and keys that an operator must remember: in memory up to a limit, then on disk.

Rows in order go to a file; rows and keys that are looked up go to a private SQLite database.

All disk work is done by the disk thread of the engine. Methods that write rows in order hand them over and
return. Methods that look up or read wait for the answer: an operator calls them by `off_loop` and `walk`,
which call them in that thread once the structure is on disk.
"""

from __future__ import annotations

import asyncio
import heapq
import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar

from aioflow.errors import ClosedError
from aioflow.relation import Batch, Relation, Row, Schema
from aioflow.runtime.disk import DiskPause, OwnedItems, off_loop, pauses_for_room, walk, with_pauses
from aioflow.runtime.memory import MemoryBudget, Spillable, SpilledRows, batch_size, row_size
from aioflow.runtime.temporary_files import MOST_VARIABLES, DiskTable, SpillFile

__all__ = [
    "DiskPause",
    "KeySet",
    "KeyedRows",
    "MemoryBudget",
    "OwnedItems",
    "RowBuffer",
    "RowQueue",
    "SortedRows",
    "batch_size",
    "off_loop",
    "pauses_for_room",
    "stored_batches",
    "walk",
    "with_pauses",
]

T = TypeVar("T")
Group = tuple[Hashable, list[Row]]

_KEY_OVERHEAD_BYTES = 120  # a slot in a set or dict, and the tuple around a key
_CHUNK_ROWS = 1024
_PIECE_ROWS = 256  # of a sorted run, of which one piece is in memory while runs are merged
_FETCHED_BATCHES = 4  # read from a queue's file at once


class _KeyedStructure(Spillable):
    """A structure whose overflow is in a table on disk."""

    def __init__(self, memory: MemoryBudget) -> None:
        super().__init__(memory)
        self._disk: DiskTable | None = None

    @property
    def is_on_disk(self) -> bool:
        return self._disk is not None

    def close_files(self) -> None:
        if self._disk is not None:
            self._disk.close()
            self._disk = None

    def forget_files(self) -> None:
        if self._disk is not None:
            self._disk.forget()


class KeySet(_KeyedStructure):
    """A set of keys that were seen."""

    def __init__(self, memory: MemoryBudget) -> None:
        super().__init__(memory)
        self._seen: set[Hashable] = set()
        self._length_on_disk = 0

    def __len__(self) -> int:
        return len(self._seen) + self._length_on_disk

    def __contains__(self, key: Hashable) -> bool:
        return key in self._seen or (self._disk is not None and self.known((key,))[0])

    def known(self, keys: Sequence[Hashable]) -> list[bool]:
        """Return for each key whether it was seen."""
        seen = self._seen
        if self._disk is None:
            return [key in seen for key in keys]
        stored = self._disk.find(hash(key) for key in keys if key not in seen)
        return [key in seen or key in stored.get(hash(key), ()) for key in keys]

    def add(self, key: Hashable) -> bool:
        """Add a key; return whether it is new."""
        return bool(self.add_new((key,), (key,)))

    def add_new(self, keys: Sequence[Hashable], rows: Sequence[T]) -> list[T]:
        """Add keys; return the rows (one for each key) whose key is new."""
        if self._disk is not None:
            return self._add_on_disk(self._disk, keys, rows)
        fresh = self._add_in_memory(keys, rows)
        if fresh and not self.reserve(_key_size(keys[-1]) * len(fresh)):
            self._disk = DiskTable(self._memory)
        return fresh

    def _add_in_memory(self, keys: Sequence[Hashable], rows: Sequence[T]) -> list[T]:
        seen = self._seen
        add = seen.add  # it returns None
        if keys is rows:
            return [row for row in rows if not (row in seen or add(row))]
        return [row for key, row in zip(keys, rows, strict=True) if not (key in seen or add(key))]

    def _add_on_disk(self, disk: DiskTable, keys: Sequence[Hashable], rows: Sequence[T]) -> list[T]:
        seen = self._seen
        others = [(hash(key), key, row) for key, row in zip(keys, rows, strict=True) if key not in seen]
        stored = disk.find([code for code, _, _ in others])
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
        super().close_files()


def _key_size(key: Hashable) -> int:
    return _KEY_OVERHEAD_BYTES + (row_size(key) if isinstance(key, tuple) else sys.getsizeof(key))


class KeyedRows(_KeyedStructure):
    """Rows by key: many for each."""

    def __init__(self, memory: MemoryBudget) -> None:
        super().__init__(memory)
        self._rows: dict[Hashable, list[Row]] = {}

    def add(self, key: Hashable, row: Row) -> None:
        self.add_all((key,), (row,))

    def add_all(self, keys: Sequence[Hashable], rows: Sequence[Row]) -> None:
        """Add rows, one for each key."""
        if not rows:
            return
        if self._disk is not None:
            self._disk.add([(hash(key), (key, row)) for key, row in zip(keys, rows, strict=True)])
            return
        if not self.reserve(self.size_of(rows) + _KEY_OVERHEAD_BYTES * len(rows)):
            self._disk = DiskTable(self._memory)  # for the rows to come
        table = self._rows
        for key, row in zip(keys, rows, strict=True):
            if key in table:
                table[key].append(row)
            else:
                table[key] = [row]

    def get(self, key: Hashable) -> Sequence[Row]:
        """Return the rows of a key, in the order in which they came."""
        return self.get_all((key,))[0]

    def get_all(self, keys: Sequence[Hashable]) -> list[Sequence[Row]]:
        """Return the rows of each key."""
        get = self._rows.get
        if self._disk is None:
            return [get(key, ()) for key in keys]
        codes = list(map(hash, keys))
        stored = self._disk.find(codes)
        return [
            [*get(key, ()), *(row for known, row in stored.get(code, ()) if known == key)]
            for key, code in zip(keys, codes, strict=True)
        ]

    def items(self) -> Iterator[Group]:
        """Give each key with its rows."""
        if self._disk is None:
            yield from self._rows.items()
            return
        kept = iter(self._rows)
        while keys := list(islice(kept, MOST_VARIABLES)):
            yield from ((key, list(rows)) for key, rows in zip(keys, self.get_all(keys), strict=True))
        yield from self._stored_items(self._disk)

    def groups(self) -> Iterator[list[Group]]:
        """Give keys with their rows, about a thousand rows at a time."""
        groups: list[Group] = []
        length = 0
        for group in self.items():
            groups.append(group)
            length += len(group[1])
            if length >= _CHUNK_ROWS:
                yield groups
                groups, length = [], 0
        if groups:
            yield groups

    def _stored_items(self, disk: DiskTable) -> Iterator[Group]:
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
        super().close_files()


class _FiledStructure(Spillable):
    """A structure whose overflow is in a file."""

    def __init__(self, memory: MemoryBudget) -> None:
        super().__init__(memory)
        self._file: SpillFile | None = None

    @property
    def is_on_disk(self) -> bool:
        return self._file is not None

    def close_files(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def forget_files(self) -> None:
        if self._file is not None:
            self._file.forget()


class RowBuffer(_FiledStructure):
    """Rows in the order in which they came; can be walked again and again."""

    def __init__(self, memory: MemoryBudget) -> None:
        super().__init__(memory)
        self._kept: list[Batch] = []
        self._tail: Batch = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, batch: Sequence[Row]) -> None:
        """Add rows at the end."""
        self._length += len(batch)
        if self._file is None and self.reserve(self.size_of(batch)):
            self._kept.append(list(batch))
            return
        if self._file is None:
            self._file = SpillFile(self._memory)
        self._tail.extend(batch)
        if len(self._tail) >= _CHUNK_ROWS or self.size_of(self._tail) > 256 * 1024:
            self._file.append(self._tail)
            self._tail = []

    async def settle(self) -> None:
        """Wait until the rows that were handed to the disk thread are written; raise the failure of one."""
        if self._file is not None:
            await self._file.settle()

    def batches(self) -> Iterator[Batch]:
        """Give all rows, batch by batch."""
        yield from self._kept
        if self._file is not None:
            yield from self._file.batches()
            if self._tail:
                yield self._tail

    def relation(self, schema: Schema, *, is_list: bool = False) -> Relation:
        """Return the rows as a value. The buffer closes with the run, unless the value is a result of it."""
        if self._file is None:
            rows = list(chain.from_iterable(self._kept))
            self.close()
            return Relation(schema, rows, is_list=is_list)
        self._memory.enter_value(self)
        return Relation(schema, _StoredRows(self), is_list=is_list)

    def rows_in_memory(self) -> Iterator[Row]:
        """Give the rows that are not on disk yet: only they can embed structures that are on disk."""
        unwritten = () if self._file is None else self._file.unwritten
        return chain(chain.from_iterable(self._kept), chain.from_iterable(unwritten), self._tail)

    def close_files(self) -> None:
        self._kept, self._tail = [], []
        super().close_files()


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
        return chain.from_iterable(self.batches())

    def batches(self) -> Iterator[Batch]:
        """Give the rows as they are on disk."""
        self._check_open()
        for batch in self._buffer.batches():
            yield batch
            self._check_open()

    def _check_open(self) -> None:
        """Refuse to read a closed buffer: it would look empty, or end early."""
        if self._buffer.is_closed:
            raise ClosedError("the rows of this relation were released when its run ended")


def stored_batches(relation: Relation) -> OwnedItems[Batch] | None:
    """Return the rows of a relation that is on disk, to be walked off the loop; None if it is in memory."""
    rows = relation.rows
    return OwnedItems(rows.structure, rows.batches()) if isinstance(rows, _StoredRows) else None


class RowQueue(_FiledStructure):
    """Rows that wait for their reader: first in, first out, each read once.

    A reader that must not wait for the disk looks at `is_ready`, and has the next batches read by `fetch`.
    """

    def __init__(self, memory: MemoryBudget) -> None:
        super().__init__(memory)
        self._head: deque[tuple[Batch, int]] = deque()
        self._read = 0  # batches of the file
        self._fetching: asyncio.Future[list[Batch]] | None = None
        self._failure: BaseException | None = None
        self.length = 0

    def append(self, batch: Batch) -> None:
        """Add a batch, which becomes the queue's own."""
        self.length += len(batch)
        size = self.size_of(batch)
        if (self._file is None or self._read == self._file.count) and self.reserve(size):
            self._head.append((batch, size))
            return
        if self._file is None:
            self._file = SpillFile(self._memory)
        self._file.append(batch)

    @property
    def is_ready(self) -> bool:
        """Return whether the oldest batch is in memory."""
        return bool(self._head) or self._failure is not None

    @property
    def has_rows_on_disk(self) -> bool:
        return self._file is not None and self._read < self._file.count

    def fetch(self, then: Callable[[], None]) -> None:
        """Have the oldest batches read by the disk thread, and `then` called when they are in memory."""
        if self._fetching is None and self._file is not None:
            end = min(self._read + _FETCHED_BATCHES, self._file.count)
            self._fetching = self.disk.start(list, map(self._file.read_here, range(self._read, end)))
            self._fetching.add_done_callback(partial(self._fetched, then))

    async def ready(self) -> None:
        """Wait until the oldest batch is in memory, or the queue closed."""
        if not self.is_ready:
            self.fetch(_nothing)
            if self._fetching is not None:
                await asyncio.wait((self._fetching,))

    def _fetched(self, then: Callable[[], None], read: asyncio.Future[list[Batch]]) -> None:
        error = None if read.cancelled() else read.exception()
        if self._fetching is not read:  # the queue was closed, or its reader waited for the disk
            return
        self._fetching = None
        if error is not None:
            self._failure = error
        elif not read.cancelled():
            self._head.extend((batch, 0) for batch in read.result())
            self._note_read(len(read.result()))
        then()

    def _note_read(self, batches: int) -> None:
        assert self._file is not None
        self._read += batches
        if self._read == self._file.count:
            self._file.clear()
            self._read = 0

    def popleft(self) -> Batch:
        """Return the oldest batch; where it is not in memory, wait for the disk."""
        if self._failure is not None:
            raise self._failure
        if self._head:
            batch, size = self._head.popleft()
            self._reserved -= size
            self._memory.release(size)
        else:
            assert self._file is not None
            self._fetching = None  # the batch is not to come twice
            batch = self._file.read(self._read)
            self._note_read(1)
        self.length -= len(batch)
        return batch

    def close_files(self) -> None:
        self._head.clear()
        self.length = 0
        self._fetching = None
        super().close_files()


def _nothing() -> None:
    """Do nothing: the caller waits in another way."""


class SortedRows(_FiledStructure):
    """An external merge sort: runs that fit in memory are sorted and written, then merged. Stable."""

    def __init__(self, memory: MemoryBudget, key: Callable[[Row], Any]) -> None:
        super().__init__(memory)
        self._key = key
        self._run: Batch = []
        self._runs: list[tuple[int, int]] = []
        self._is_short = False  # of memory

    @property
    def is_full(self) -> bool:
        """Return whether the run in memory should be written before more rows come."""
        # A run of a certain length is kept whatever the account says: runs of a few rows would be
        # merged by thousands.
        return self._is_short and len(self._run) >= _CHUNK_ROWS

    def append(self, batch: Sequence[Row]) -> None:
        if self.is_full:
            self.disk.wait(self.write_run)
        self._run.extend(batch)
        self._is_short = not self.reserve(self.size_of(batch))

    def batches(self) -> Iterator[Batch]:
        """Give all rows in order."""
        self._run.sort(key=self._key)
        if self._file is None:
            for start in range(0, len(self._run), _PIECE_ROWS):
                yield self._run[start : start + _PIECE_ROWS]
            return
        runs = [chain.from_iterable(self._file.batches(start, end)) for start, end in self._runs]
        merged = heapq.merge(*runs, self._run, key=self._key)
        while batch := list(islice(merged, _CHUNK_ROWS)):
            yield batch

    def write_run(self) -> None:
        """Sort the rows in memory and write them; only in the disk thread."""
        if self._file is None:
            self._file = SpillFile(self._memory)
        self._run.sort(key=self._key)
        start = self._file.count
        for first in range(0, len(self._run), _PIECE_ROWS):
            self._file.append(self._run[first : first + _PIECE_ROWS])
        self._runs.append((start, self._file.count))
        self._run = []
        self._is_short = False
        self.release_all()

    def close_files(self) -> None:
        self._run = []
        super().close_files()
