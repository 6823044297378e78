"""The account of what a run may keep in memory, and the life of whatever keeps rows on it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any, TypeVar

from aioflow.relation import Relation, Row

T = TypeVar("T")


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


class Spillable:
    """The life of a structure that holds part of a Memory account and perhaps a file."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._reserved = 0
        self._closed = False

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
        # A structure that was handed on inside a value has no other end than being forgotten.
        self.close()
