"""Rows that wait for the transaction of their run: in memory up to the engine's limit, then on disk."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from aioflow.memory import Memory
from aioflow.relation import Batch, Schema
from aioflow.spill import RowBuffer
from aioflow.state.driver import ColumnNeed
from aioflow.state.errors import DiskFullError
from aioflow.state.values import observe


class StagedRows:
    """The rows of one statement, and what columns need to hold them.

    While some are being written, on another thread perhaps, others may be added.
    """

    def __init__(self, schema: Schema, memory: Memory) -> None:
        self.schema = schema
        self.needs: list[ColumnNeed] = []  # of the rows that are sealed, and of those before
        self._needs_of_all = list(map(ColumnNeed, schema.names, schema.types))
        self._memory = memory
        self._growing = RowBuffer(memory)
        self._sealed: list[RowBuffer] = []

    def add(self, batch: Batch) -> None:
        observe(self._needs_of_all, self.schema, batch)
        try:
            self._growing.append(batch)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise DiskFullError(
                f"no room is left in {tempfile.gettempdir()}, where rows wait for the end of the run"
            ) from error

    def __len__(self) -> int:
        return len(self._growing) + sum(map(len, self._sealed))

    def seal(self) -> None:
        """Keep what comes later apart from what is there."""
        if len(self._growing):
            self._sealed.append(self._growing)
            self._growing = RowBuffer(self._memory)
        self.needs = [need.copy() for need in self._needs_of_all]

    @property
    def sealed(self) -> Sequence[RowBuffer]:
        """All rows that were there then, apart from those that are forgotten."""
        return self._sealed

    def forget(self) -> None:
        """Let go of what was sealed."""
        for buffer in self._sealed:
            buffer.close()
        self._sealed = []

    def close(self) -> None:
        self.forget()
        self._growing.close()
        self._growing = RowBuffer(self._memory)
        self._growing.close()


def batches_of(buffers: Iterable[RowBuffer]) -> Iterator[Batch]:
    """The rows of buffers, batch by batch; they can be walked again and again."""
    return chain.from_iterable(buffer.batches() for buffer in buffers)
