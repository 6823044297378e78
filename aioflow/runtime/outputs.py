"""The results of a run: one bounded queue for all outputs, which the caller of the run reads."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections import deque
from collections.abc import Sequence

from aioflow.relation import Batch, Row, Schema
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.outlet import Outlet, Reordered, Target
from aioflow.runtime.room import Room
from aioflow.runtime.spill import RowBuffer, walk
from aioflow.wholeness import WHOLE, Marks


class OutputQueue:
    """Batches of all outputs in the order of their arrival; reading one output never blocks another."""

    def __init__(self, capacity_rows: int) -> None:
        self.capacity_rows = capacity_rows
        self.rows = 0
        self.first_arrival: float | None = None
        self.last_arrival: float | None = None
        self.total_rows = 0
        self._batches: deque[tuple[Port, Batch | _KeptRows]] = deque()
        self._reader: Future[None] | None = None
        self.room = Room()
        self.was_cut = False  # rows were dropped, or more could have come
        self.was_read_out = False  # the reader has come to the end of all rows
        self._done = False
        self._discards = False

    def put(self, port: Port, rows: Sequence[Row]) -> None:
        """Deliver rows."""
        if self._discards:
            return
        self._count(port, len(rows))
        latest = self._batches[-1] if self._batches else None
        if latest is not None and latest[0] is port and isinstance(latest[1], list):
            latest[1].extend(rows)
        else:
            self._batches.append((port, list(rows)))
        self._wake()

    def put_kept(self, port: Port, kept: RowBuffer) -> None:
        """Deliver the rows of a buffer. Those on disk are read when they are taken."""
        if self._discards:
            kept.close()
            return
        if not kept.is_on_disk:
            for batch in kept.batches():
                self.put(port, batch)
            kept.close()
            return
        self._count(port, len(kept))
        self._batches.append((port, _KeptRows(kept)))
        self._wake()

    def _count(self, port: Port, rows: int) -> None:
        self.last_arrival = asyncio.get_running_loop().time()
        if self.first_arrival is None:
            self.first_arrival = self.last_arrival
        self.rows += rows
        self.total_rows += rows
        port.rows += rows
        self.room.is_full = self.rows >= self.capacity_rows

    async def take(self) -> tuple[Port, Batch] | None:
        """Return the next batch; None when the run has ended or failed."""
        while True:
            while not self._batches:
                if self._done:
                    self.was_read_out = not self._discards
                    return None
                await self._arrival()
            port, first = self._batches[0]
            batch = await first.next_batch() if isinstance(first, _KeptRows) else first
            if not self._batches or self._batches[0][1] is not first:
                continue  # the rows were dropped while they were read
            if batch is first or batch is None:
                self._batches.popleft()
            if batch is not None:
                self.rows -= len(batch)
                if self.rows < self.capacity_rows:
                    self.room.free()
                return port, batch

    async def _arrival(self) -> None:
        self._reader = asyncio.get_running_loop().create_future()
        try:
            await self._reader
        finally:
            self._reader = None

    def close(self, *, discard: bool = False) -> None:
        """End the queue; with `discard`, for a run that is broken off, also drop rows that were not read."""
        if discard:
            self.was_cut |= bool(self._batches) or not self._done
            self._discards = True
            self._batches.clear()
        self._done = True
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


class _KeptRows:
    """The rows of a buffer on disk, on their way to the reader of the results."""

    def __init__(self, kept: RowBuffer) -> None:
        self._kept = kept
        self._batches = walk(kept, kept.batches())

    async def next_batch(self) -> Batch | None:
        """Return the next rows, or None after the last ones."""
        async for batch in self._batches:
            return batch
        self._kept.close()
        return None


class Port:
    """An output of the run as its steps see it. Without streaming it passes rows on when it has ended."""

    def __init__(self, name: str, queue: OutputQueue, streaming: bool, memory: MemoryBudget) -> None:
        self.name = name
        self.schema: Schema | None = None
        self.marks = WHOLE
        self.rows = 0  # delivered rows
        self._producers = 0
        self._queue = queue
        self._kept = None if streaming else RowBuffer(memory)

    def attach(self, outlet: Outlet) -> None:
        self._producers += 1

    def accept(self, outlet: Outlet, schema: Schema) -> Target:
        if self.schema is None:
            self.schema = schema.closed()  # no reader can ask for more attributes
        return self if self.schema.names == schema.names else Reordered(self, schema, self.schema)

    def push(self, rows: Sequence[Row], full: list[Room]) -> None:
        if self._kept is not None:
            self._kept.append(rows)
            return
        self._queue.put(self, rows)
        if self._queue.room.is_full:
            full.append(self._queue.room)

    @property
    def reads(self) -> bool:
        return True

    def serves(self, reader: object) -> bool:
        return reader is self

    def mark(self, marks: Marks) -> None:
        self.marks = self.marks.united(marks)

    def end(self, outlet: Outlet, dead: bool) -> None:
        self._producers -= 1
        if not self._producers and self._kept is not None:
            self._queue.put_kept(self, self._kept)
