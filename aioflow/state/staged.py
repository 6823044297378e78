"""Writes that wait for the transaction of their run: the protocol `Write`, and the rows that it stages.

Rows wait in memory up to the engine's limit, then on disk.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import NoneType
from typing import Protocol

from aioflow.relation import Batch, Schema
from aioflow.runtime.disk import DiskThread
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.spill import OwnedItems, RowBuffer
from aioflow.state.driver import ColumnNeed, Connection
from aioflow.state.errors import DiskFullError
from aioflow.values.json import KNOWN, LARGEST_INTEGER, SMALLEST_INTEGER, base_class, ends


class StagedRows:
    """The rows of one statement, and what columns need to hold them.

    Rows may be added while others are being written, perhaps on another thread.
    """

    def __init__(self, schema: Schema, memory: MemoryBudget) -> None:
        self.schema = schema
        self.needs: list[ColumnNeed] = []  # of the rows that are sealed, and of those before
        self._needs_of_all = list(map(ColumnNeed, schema.names, schema.types))
        self._memory = memory
        self._growing = RowBuffer(memory)
        self._sealed: list[RowBuffer] = []

    def add(self, batch: Batch) -> None:
        observe(self._needs_of_all, self.schema, batch)
        with _disk_full_told():
            self._growing.append(batch)

    async def settle(self) -> None:
        """Wait until the rows that were added are written. Raise a DiskFullError if the disk is full."""
        with _disk_full_told():
            await self._growing.settle()

    def __len__(self) -> int:
        return len(self._growing) + sum(map(len, self._sealed))

    def seal(self) -> None:
        """Separate the rows that are there from those that come later."""
        if len(self._growing):
            self._sealed.append(self._growing)
            self._growing = RowBuffer(self._memory)
        self.needs = [need.copy() for need in self._needs_of_all]

    @property
    def sealed(self) -> Sequence[RowBuffer]:
        """Return the rows of all `seal` calls that are not forgotten."""
        return self._sealed

    def forget(self) -> None:
        """Release the sealed rows."""
        for buffer in self._sealed:
            buffer.close()
        self._sealed = []

    def close(self) -> None:
        self.forget()
        self._growing.close()
        self._growing = RowBuffer(self._memory)
        self._growing.close()


class _Buffers:
    """Several buffers, of which some may be on disk."""

    def __init__(self, buffers: Sequence[RowBuffer]) -> None:
        self._buffers = buffers

    @property
    def is_on_disk(self) -> bool:
        return any(buffer.is_on_disk for buffer in self._buffers)

    @property
    def disk(self) -> DiskThread:
        return self._buffers[0].disk


def batches_of(buffers: Sequence[RowBuffer]) -> OwnedItems[Batch]:
    """Return the rows of buffers, batch by batch. The buffers can be walked again."""
    return OwnedItems(_Buffers(buffers), _batches(buffers))


def _batches(buffers: Iterable[RowBuffer]) -> Iterator[Batch]:
    with _disk_full_told():  # rows are written while others come: a failure may be found out here
        for buffer in buffers:
            yield from buffer.batches()


@contextmanager
def _disk_full_told() -> Iterator[None]:
    """Raise a DiskFullError where the disk has no room for staged rows."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise DiskFullError(
            f"no room is left in {tempfile.gettempdir()}, where rows wait for the end of the run"
        ) from error


class Write(Protocol):
    """The writes of one statement in one call of its plan."""

    @property
    def where(self) -> str:
        """Return the name of the statement, for messages."""
        ...

    @property
    def whole(self) -> bool:
        """Return whether it has a meaning only after the statement has ended, as a whole table has."""
        ...

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is staged or left to apply. A run without writes takes no lock."""
        ...

    def seal(self) -> None:
        """Mark what is staged now as the part that `apply` writes. Later rows are for another time."""
        ...

    async def apply(self, connection: Connection) -> None:
        """Write everything that is sealed and not forgotten.

        It is called again when a transaction was lost.
        """
        ...

    def forget(self) -> None:
        """Release what was applied: it will never be applied again."""
        ...

    def close(self) -> None:
        """Release everything, applied or not."""
        ...


def observe(needs: list[ColumnNeed], schema: Schema, batch: Batch) -> None:
    """Add the needs of a batch's values to those of their columns, one for each attribute, in order.

    An empty list is filled first.
    """
    if not needs:
        needs.extend(map(ColumnNeed, schema.names, schema.types))
    for need, column in zip(needs, zip(*batch, strict=True), strict=False):
        classes = set(map(type, column))
        if int in classes:
            least, most = ends(column, classes)
            need.largest = max(need.largest or 0, -least, most)
            need.is_wide = need.is_wide or least < SMALLEST_INTEGER or most > LARGEST_INTEGER
        if datetime in classes:
            need.zoned |= {value.tzinfo is not None for value in column if isinstance(value, datetime)}
        if not classes <= KNOWN:
            classes = {kind if kind in KNOWN else base_class(kind) for kind in classes}
        classes.discard(NoneType)
        need.classes |= classes
