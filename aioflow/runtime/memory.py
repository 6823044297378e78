"""The account of what a run may keep in memory, and the life of whatever keeps rows on it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, TypeVar
from weakref import WeakSet

from aioflow.relation import Document, Relation, Row, RowStore

T = TypeVar("T")


class MemoryBudget:
    """An account of the bytes that rows may take before they go to disk: one for an engine, with one
    for each of its runs, which closes with the run whatever was left open on it.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.spilled_rows = 0
        self.open_files = 0
        self._open: set[Spillable] = set()
        # Those that became part of a value end with it; these sets let them end earlier.
        self._in_values: WeakSet[Spillable] = WeakSet()
        self._handed_out: WeakSet[Spillable] = WeakSet()
        self._engine: MemoryBudget | None = None

    def for_run(self) -> MemoryBudget:
        """An account within this one."""
        account = MemoryBudget(self.limit_bytes)
        account._engine = self
        return account

    def reserve(self, size: int) -> bool:
        """Take `size` bytes from the account, if they are there."""
        if self._engine is not None:
            granted = self._engine.reserve(size)
        else:
            granted = self.used_bytes + size <= self.limit_bytes
        if granted:
            self.used_bytes += size
        return granted

    def release(self, size: int) -> None:
        self.used_bytes -= size
        if self._engine is not None:
            self._engine.release(size)

    def count_spilled(self, rows: int) -> None:
        self.spilled_rows += rows
        if self._engine is not None:
            self._engine.count_spilled(rows)

    def count_files(self, change: int) -> None:
        self.open_files += change
        if self._engine is not None:
            self._engine.count_files(change)

    def enter(self, structure: Spillable) -> None:
        self._open.add(structure)

    def leave(self, structure: Spillable) -> None:
        self._open.discard(structure)
        self._in_values.discard(structure)

    def enter_value(self, structure: Spillable) -> None:
        """A structure became part of a value: it is closed with the run, unless somebody gets the value."""
        self._open.discard(structure)
        self._in_values.add(structure)

    def hand_out(self, rows: Iterable[Row]) -> None:
        """Leave the structures in these rows to whoever gets the rows."""
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
        """Close what was handed out after all: nobody gets the rows."""
        for structure in tuple(self._handed_out):
            structure.close()

    def close(self) -> None:
        """Close every structure that is still open, those in values that nobody got included."""
        for structure in (*self._open, *self._in_values):
            structure.close()


class SpilledRows(RowStore):
    """The rows of a relation in a structure that may be on disk. What is on disk embeds no structure."""

    @property
    def structure(self) -> Spillable:
        raise NotImplementedError

    def rows_in_memory(self) -> Iterable[Row]:
        raise NotImplementedError


def _relations_in(rows: Iterable[Row]) -> Iterator[Relation]:
    return (value for row in rows for value in row if isinstance(value, Relation))


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
    if isinstance(value, list | tuple):  # results of a firing, which are held as they came
        return sys.getsizeof(value) + sum(map(_value_size, value))
    if isinstance(value, Document):
        return 64 + sys.getsizeof(value.text)
    return sys.getsizeof(value)


class Spillable:
    """The life of a structure that holds part of a Memory account and perhaps a file."""

    def __init__(self, memory: MemoryBudget) -> None:
        self._memory = memory
        self._reserved = 0
        self._closed = False
        memory.enter(self)

    @property
    def is_closed(self) -> bool:
        return self._closed

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
            self._closed = True
            self._memory.leave(self)
            self.release_all()
            self.close_files()

    def close_files(self) -> None:
        raise NotImplementedError

    def __enter__(self: T) -> T:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # A structure that was handed out inside a value has no other end than being forgotten.
        self.close()
