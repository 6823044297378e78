"""Streams of tuples between steps: a bounded queue for each reader.

A batch is whatever arrived while the reader was busy: the writer appends to an open list, the reader
takes the whole list, and an idle reader is woken by the first row. The limit at which the writer must
wait starts at one row and doubles whenever it is reached, up to the capacity.

No plan can deadlock for a full queue: while an operator waits for one of its inputs, the others
accept everything and hold it, on disk if need be. So some operator can always go on.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

from aioflow.errors import BEING_READ, CLOSED_EARLY, ClosedError, InputError
from aioflow.relation import UNTOLD, Batch, Record, Row, Schema
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.outlet import Outlet, Reordered, SchemaMismatchError, Target
from aioflow.runtime.room import Room
from aioflow.runtime.spill import RowBuffer, RowQueue
from aioflow.wholeness import WHOLE, Marks

_HELD_ROWS = 256


class Stream:
    """One input of a step: `async for row in stream`, or `stream.batches()` for lists of rows."""

    __slots__ = (
        "_held",
        "_latest",
        "_memory",
        "_nulls",
        "_offered",
        "_reader",
        "_rest",
        "_rows",
        "_written",
        "capacity",
        "closed",
        "dead",
        "discarding",
        "ended",
        "exhausted",
        "holding",
        "is_bystander",
        "limit",
        "listener",
        "marks",
        "on_mark",
        "producers",
        "received",
        "recorder",
        "room",
        "schema",
        "siblings",
        "sources",
        "waited",
    )

    # True if a step of a called plan may read this very stream instead of one of its own.
    can_be_adopted = True

    def __init__(self, capacity: int, memory: MemoryBudget) -> None:
        self.schema: Schema | None = None
        self.capacity = capacity
        self.limit = 1
        self.producers = 0
        self.received = 0  # rows that the reader has taken
        self.ended = False  # nothing more will be pushed
        self.exhausted = False  # and the reader knows
        self.marks = WHOLE  # why the relation is not whole; complete when it has ended
        self.on_mark: Callable[[], None] | None = None
        self.dead = True  # so far no producer has ended live
        self.closed = False  # the reader wants no more
        self.discarding = False  # the reader never will: its step ended dead
        self.is_bystander = False  # the results of the step that reads it are not read
        self.holding = True  # accept everything: the reader is not ready for this input
        self.listener: Callable[[], None] | None = None
        self.siblings: Sequence[Stream] = ()
        self.sources: list[Outlet] = []
        self.recorder: RowBuffer | None = None
        self.waited: Callable[[float], None] | None = None
        self._memory = memory
        self._rows: Batch = []
        self._latest: Row | None = None
        self._rest: Iterator[Row] | None = None  # of a batch that is being read row by row
        self._offered: Schema | None = None  # the open schema of a writer that ended without rows
        self._written: Schema | None = None  # that of the rows as they come, if the reader asked for more
        self._nulls: Row = ()  # the values that rows get in addition then
        self._held: RowQueue | None = None
        self._reader: Future[None] | None = None
        self.room = Room()

    # --- the reader's side ---

    def __aiter__(self) -> AsyncIterator[Row]:
        return _Rows(self)

    def batches(self) -> AsyncIterator[Batch]:
        """The rows in lists, which the reader must not change."""
        return _Batches(self)

    def records(self) -> AsyncIterator[Record]:
        """The rows as mappings."""
        return _Records(self)

    def position(self, name: str) -> int:
        """The column of an attribute; one that an open schema does not list is null in the rows to come."""
        known = self.known_schema()
        schema = (Schema(()) if known is None else known).listing(name)
        self.list_attributes(schema)
        return schema.position(name)

    @property
    def is_untold(self) -> bool:
        """Return whether it ended without a tuple, before all of its attributes were known."""
        is_empty = self.ended and not self.has_rows and not self.received
        return is_empty and (self.schema is None or self.schema.open)

    def known_schema(self) -> Schema | None:
        """The schema; an open one for a stream that ended without telling any, None while it may still."""
        if self.schema is None and self.ended:
            self.schema = UNTOLD
        return self.schema

    def list_attributes(self, schema: Schema | None) -> None:
        """Give rows the attributes that this schema lists in addition, as nulls."""
        if schema is None or self.schema is None or not schema.open or schema == self.schema:
            return
        self._written = self._written or self.schema
        self._nulls = (None,) * (len(schema) - len(self._written))
        self.schema = schema

    async def receive(self) -> Batch | None:
        """The next batch; None at the end of the stream."""
        self._check_readable()
        if self._memory.disk.room.is_full:
            await self._memory.disk.room.wait()
        while (batch := self.take()) is None:
            if self.ended and not self.has_rows:
                return None
            await self._arrival((self,))
            self._check_readable()
        return batch

    def _check_readable(self) -> None:
        """Refuse a second reader, and a reader of a closed stream, which would seem to have ended."""
        if self.closed and not self.exhausted:
            raise ClosedError(CLOSED_EARLY)
        if self._reader is not None and not self._reader.cancelled():
            raise InputError(BEING_READ)

    def take(self) -> Batch | None:
        """Return the rows that are there without waiting; rows on disk come later, and wake the reader."""
        if self.holding:
            self.stop_holding()
        if self._rest is not None:
            batch, self._rest = list(self._rest), None
            if batch:
                return batch
        rows = self._take_rows()
        if rows is None:
            return None
        self.received += len(rows)
        if self._nulls:
            rows = [row + self._nulls for row in rows]
        self._latest = rows[-1]
        if self.recorder is not None:
            self.recorder.append(rows)
        return rows

    @property
    def sample(self) -> Record | None:
        """The latest row that the reader has taken, for people who watch; None before the first."""
        if self._latest is None or self.schema is None:
            return None
        return Record(self.schema, self._latest)

    def _take_rows(self) -> Batch | None:
        if self._held is not None and self._held.length:
            if not self._held.is_ready:
                self._held.fetch(self._wake_reader)
                return None
            batch = self._held.popleft()
        elif self._rows:
            batch, self._rows = self._rows, []
        else:
            self.exhausted = self.ended
            return None
        if self.room.is_full:
            self._make_room()
        return batch

    async def _arrival(self, streams: Sequence[Stream]) -> None:
        """Wait until one of these streams has rows or ends."""
        for sibling in self.siblings:
            if sibling not in streams:
                sibling.hold()
        loop = asyncio.get_running_loop()
        arrival: Future[None] = loop.create_future()
        for stream in streams:
            stream._reader = arrival
        started = loop.time() if self.waited is not None else 0.0
        try:
            await arrival
        finally:
            for stream in streams:
                if stream._reader is arrival:
                    stream._reader = None
            if self.waited is not None:
                self.waited(loop.time() - started)

    def hold(self) -> None:
        """Accept everything that comes, without making the writer wait."""
        if not self.holding:
            self.holding = True
            self.room.free()

    def stop_holding(self) -> None:
        """Make writers wait again when the limit is reached: the reader is ready for this input."""
        self.holding = False
        self.room.is_full = self.waiting_rows >= self.limit

    def close(self) -> None:
        """Say that the reader wants no more. A writer without readers is stopped."""
        if self.closed:
            return
        self.closed = True
        self.release()
        self.room.free()
        self._wake_reader()
        for source in tuple(self.sources):
            source.drop(self)
        self.sources.clear()

    def discard(self) -> None:
        """Swallow whatever comes. Unlike `close` it does not stop the writer."""
        self.discarding = True
        self.release()
        self.room.free()

    def release(self) -> None:
        """Forget the rows that were not read."""
        self._rows = []
        self._latest = None
        if self._held is not None:
            self._held.close()
            self._held = None

    @property
    def was_read_out(self) -> bool:
        """Return whether the reader has seen all of it; of an empty stream, once that has ended."""
        return self.exhausted or (self.ended and not (self.closed or self.received or self.has_rows))

    # --- the writer's side ---

    def attach(self, outlet: Outlet) -> None:
        self.producers += 1
        self.sources.append(outlet)

    def accept(self, outlet: Outlet, schema: Schema) -> Target:
        if self.schema is None:
            self.schema = schema
            self._notify()
            return self
        expected = self._written or self.schema
        if expected is schema or expected.names == schema.names:
            return self
        known, found = set(expected.names), set(schema.names)
        if not (known >= found if schema.open else known == found):
            raise SchemaMismatchError(expected, schema)
        return Reordered(self, schema, expected)

    def push(self, rows: Sequence[Row], full: list[Room]) -> None:
        if self.closed or self.discarding:
            return
        self._rows.extend(rows)
        if self._reader is not None:
            self._wake_reader()
        elif self.listener is not None:
            self._notify()
        if self.holding:
            if len(self._rows) >= _HELD_ROWS:
                self._put_aside(full)
        elif len(self._rows) >= self.limit:
            self.room.is_full = True
            full.append(self.room)
            if len(self._rows) >= 2 * max(self.capacity, _HELD_ROWS):
                self._put_aside(full)  # writers that cannot wait (ERRORS, held rows) must not fill the memory

    @property
    def reads(self) -> bool:
        return not self.closed

    def serves(self, reader: object) -> bool:
        return reader is self

    def mark(self, marks: Marks) -> None:
        self.marks = self.marks.united(marks)
        if self.on_mark is not None:
            self.on_mark()

    def end(self, outlet: Outlet, dead: bool) -> None:
        if outlet in self.sources:
            self.sources.remove(outlet)
        self.producers -= 1
        if not dead:
            self.dead = False
        if outlet.schema is not None and outlet.schema.open and not outlet.sent:
            self._offered = outlet.schema if self._offered is None else self._offered.add(outlet.schema)
        if self.producers == 0:
            self.finish()

    def finish(self) -> None:
        self.ended = True
        if self.schema is None:
            self.schema = self._offered
        self._wake_reader()
        self._notify()

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    @property
    def is_awaited(self) -> bool:
        """Return whether its reader waits for rows, of which there are none."""
        return self._reader is not None and not self._reader.done() and not self.has_rows

    @property
    def has_rows(self) -> bool:
        return bool(self._rows) or (self._held is not None and self._held.length > 0)

    @property
    def has_rows_on_disk(self) -> bool:
        return self._held is not None and self._held.has_rows_on_disk

    @property
    def waiting_rows(self) -> int:
        """Return the number of rows that wait for the reader."""
        return len(self._rows) + (self._held.length if self._held is not None else 0)

    def _put_aside(self, full: list[Room]) -> None:
        if self._held is None:
            self._held = RowQueue(self._memory)
        self._held.append(self._rows)
        self._rows = []
        if self._memory.disk.room.is_full:
            full.append(self._memory.disk.room)

    def _notify(self) -> None:
        if self.listener is not None:
            self.listener()

    def _make_room(self) -> None:
        """Rows were taken: let writers go on that waited, who may write more the next time."""
        if self.room.is_awaited and self.limit < self.capacity:
            self.limit = min(2 * self.limit, self.capacity)
        if self.waiting_rows < self.limit:
            self.room.free()


# Iterators are classes: an async generator that is left early would be closed by a task of its own.


class _Batches:
    __slots__ = ("_stream",)

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def __aiter__(self) -> _Batches:
        return self

    async def __anext__(self) -> Batch:
        batch = await self._stream.receive()
        if batch is None:
            raise StopAsyncIteration
        return batch


class _Rows:
    __slots__ = ("_stream",)

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def __aiter__(self) -> _Rows:
        return self

    async def __anext__(self) -> Row:
        stream = self._stream
        if stream._rest is not None:
            for row in stream._rest:
                return row
            stream._rest = None
        batch = await stream.receive()
        if batch is None:
            raise StopAsyncIteration
        # Kept by the stream: a reader that leaves the loop and reads on misses nothing.
        stream._rest = iter(batch)
        return next(stream._rest)


class _Records:
    __slots__ = ("_rows", "_stream")

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._rows = _Rows(stream)

    def __aiter__(self) -> _Records:
        return self

    async def __anext__(self) -> Record:
        row = await self._rows.__anext__()
        assert self._stream.schema is not None
        return Record(self._stream.schema, row)


def interleave(*streams: Stream) -> AsyncIterator[tuple[Stream, Batch]]:
    """Batches from any of the streams as they come, until all have ended.

    An empty batch tells that its stream has ended.
    """
    return _Interleaved(streams)


class _Interleaved:
    __slots__ = ("_active", "_next")

    def __init__(self, streams: Sequence[Stream]) -> None:
        self._active = list(streams)
        self._next = -1

    def __aiter__(self) -> _Interleaved:
        return self

    async def __anext__(self) -> tuple[Stream, Batch]:
        if self._active and self._active[0]._memory.disk.room.is_full:
            await self._active[0]._memory.disk.room.wait()
        while self._active:
            # Each turn starts after the input served last, so that a busy one starves no other.
            for _ in range(len(self._active)):
                self._next = (self._next + 1) % len(self._active)
                stream = self._active[self._next]
                stream._check_readable()
                batch = stream.take()
                if batch is not None:
                    return stream, batch
                if stream.ended and not stream.has_rows:
                    self._active.remove(stream)
                    return stream, []
            await self._active[0]._arrival(self._active)
        raise StopAsyncIteration
