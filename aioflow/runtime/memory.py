"""The account of the memory that runs may use for rows, and the life of the structures that use it."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from threading import RLock
from types import TracebackType
from typing import Any, TypeVar
from weakref import WeakSet

from aioflow.relation import Document, Relation, Row, RowStore
from aioflow.runtime.disk import DiskThread

T = TypeVar("T")

LARGE_CHARACTERS = 1 << 16  # of a document; rows may share it
_COUNTED_DOCUMENTS = 8
_SAMPLED_ROWS = 4


class MemoryBudget:
    """An account of the bytes that rows may take before they go to disk.

    An engine has one, and each of its runs has one within it. The account of a run closes, with the run,
    every structure that was left open on it.
    """

    def __init__(self, limit_bytes: int, engine: MemoryBudget | None = None) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.spilled_rows = 0
        self.open_files = 0
        self.disk: DiskThread = DiskThread() if engine is None else engine.disk
        self._open: set[Spillable] = set()
        # Those that became part of a value end with it; these sets let them end earlier.
        self._in_values: WeakSet[Spillable] = WeakSet()
        self._handed_out: WeakSet[Spillable] = WeakSet()
        self._engine = engine
        # Many rows may share a large document: its bytes count once, with the first of them.
        self._counted: OrderedDict[int, Document] = OrderedDict()
        # The loop and the disk thread both reserve. Reentrant: a structure may be collected, and so release,
        # at any moment.
        self._lock: RLock = RLock() if engine is None else engine._lock

    def for_run(self) -> MemoryBudget:
        """Return an account within this one."""
        return MemoryBudget(self.limit_bytes, self)

    def reserve(self, size: int) -> bool:
        """Take `size` bytes from the account, if they are there; return whether they are."""
        common = self if self._engine is None else self._engine
        with self._lock:
            if common.used_bytes + size > common.limit_bytes:
                return False
            self._change("used_bytes", size)
            return True

    def size_of(self, rows: Sequence[Row]) -> int:
        """Return about how many bytes a batch adds to those counted before, from a sample of it."""
        documents: list[Document] = []
        size = batch_size(rows, documents)
        if not documents:
            return size
        different = {id(document): document for document in documents}
        sampled = min(len(rows), _SAMPLED_ROWS)
        # In a sample without a document twice, the rows have one each.
        times = len(rows) / sampled if len(different) == len(documents) > 1 else 1
        return size + int(times * sum(map(self._count, different.values())))

    def _count(self, document: Document) -> int:
        """Return the size of a document, or nothing if it was counted lately."""
        with self._lock:
            is_known = self._counted.pop(id(document), None) is not None
            self._counted[id(document)] = document
            if len(self._counted) > _COUNTED_DOCUMENTS:
                self._counted.popitem(last=False)
        return 0 if is_known else sys.getsizeof(document.text)

    def release(self, size: int) -> None:
        self._change("used_bytes", -size)

    def count_spilled(self, rows: int) -> None:
        self._change("spilled_rows", rows)

    def count_files(self, change: int) -> None:
        self._change("open_files", change)

    def _change(self, name: str, change: int) -> None:
        """Change a number of this account and of the one around it."""
        with self._lock:
            for account in (self,) if self._engine is None else (self, self._engine):
                setattr(account, name, getattr(account, name) + change)

    def enter(self, structure: Spillable) -> None:
        self._open.add(structure)

    def leave(self, structure: Spillable) -> None:
        self._open.discard(structure)
        self._in_values.discard(structure)

    def enter_value(self, structure: Spillable) -> None:
        """Close a structure that became part of a value with the run, unless the value is handed out."""
        self._open.discard(structure)
        self._in_values.add(structure)

    def hand_out(self, rows: Iterable[Row]) -> None:
        """Leave the structures in these rows to the receiver of the rows."""
        if not self._in_values:
            return
        pending = [rows]
        while pending:
            for relation in _relations_in(pending.pop()):
                store = relation.rows
                if isinstance(store, SpilledRows):
                    self._in_values.discard(store.structure)
                    self._handed_out.add(store.structure)
                    pending.append(store.rows_in_memory())
                else:
                    pending.append(relation.rows)

    def take_back(self) -> None:
        """Close the structures that were handed out after all: their rows have no receiver."""
        for structure in tuple(self._handed_out):
            structure.close()

    def close(self) -> None:
        """Close every structure that is still open, also those in values that were not handed out."""
        for structure in (*self._open, *self._in_values):
            structure.close()
        self._counted.clear()


class SpilledRows(RowStore):
    """The rows of a relation in a structure that may be on disk. Rows on disk embed no structure."""

    @property
    def structure(self) -> Spillable:
        raise NotImplementedError

    def rows_in_memory(self) -> Iterable[Row]:
        raise NotImplementedError


def _relations_in(rows: Iterable[Row]) -> Iterator[Relation]:
    return (value for row in rows for value in row if isinstance(value, Relation))


def row_size(row: Row, documents: list[Document] | None = None) -> int:
    """Return about how many bytes a row takes; large documents go to a list instead, if there is one."""
    return sys.getsizeof(row) + sum([_value_size(value, documents) for value in row])


def batch_size(rows: Sequence[Row], documents: list[Document] | None = None) -> int:
    """Return about how many bytes a batch takes, from a sample of it; for documents see `row_size`."""
    if len(rows) <= _SAMPLED_ROWS:
        return sum([row_size(row, documents) for row in rows])
    sample = rows[:: len(rows) // _SAMPLED_ROWS]
    return sum([row_size(row, documents) for row in sample]) * len(rows) // len(sample)


def _value_size(value: Any, documents: list[Document] | None) -> int:
    if isinstance(value, Relation):
        rows = value.rows
        return 64 + (batch_size(rows, documents) if isinstance(rows, list | tuple) else 256)
    if isinstance(value, list | tuple):  # results of a firing, which are held as they came
        return sys.getsizeof(value) + sum([_value_size(each, documents) for each in value])
    if isinstance(value, Document):
        if documents is not None and len(value.text) >= LARGE_CHARACTERS:
            documents.append(value)
            return 64
        return 64 + sys.getsizeof(value.text)
    return sys.getsizeof(value)


class Spillable:
    """A structure that has a part of a memory account and perhaps a file; the base of those that spill."""

    def __init__(self, memory: MemoryBudget) -> None:
        self._memory = memory
        self._reserved = 0
        self._closed = False
        memory.enter(self)

    @property
    def disk(self) -> DiskThread:
        return self._memory.disk

    @property
    def is_on_disk(self) -> bool:
        """Return whether part of it is on disk, so that its methods may read or write there."""
        raise NotImplementedError

    @property
    def is_closed(self) -> bool:
        return self._closed

    def size_of(self, rows: Sequence[Row]) -> int:
        return self._memory.size_of(rows)

    def reserve(self, size: int) -> bool:
        if not self._memory.reserve(size):
            return False
        self._reserved += size
        return True

    def release_all(self) -> None:
        self._memory.release(self._reserved)
        self._reserved = 0

    def close(self) -> None:
        """Give back memory and disk."""
        if not self._closed:
            self._give_back()
            self.close_files()

    def _give_back(self) -> None:
        self._closed = True
        self._memory.leave(self)
        self.release_all()

    def close_files(self) -> None:
        """Forget all rows, and have the disk thread close the file."""
        raise NotImplementedError

    def forget_files(self) -> None:
        """Leave the file to its own end, which comes when the disk thread does not use it any more."""
        raise NotImplementedError

    def __enter__(self: T) -> T:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # A structure that was handed out inside a value has no other end than being forgotten. No thread is
        # asked to do anything here: an object may be collected while that very thread is being asked.
        if not self._closed:
            self._give_back()
            self.forget_files()
