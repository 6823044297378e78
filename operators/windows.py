"""window, which cuts a stream that may never end into pieces, each an embedded relation."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import floor, inf

from aioflow import Context, Row, Schema, SettingError, Stream, operator
from aioflow.authoring.operator import Settings
from aioflow.operators.settings import Positive, PositiveCount
from aioflow.relation import Batch
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.spill import RowBuffer

_SCHEMA = Schema.of(window="relation", start="date", end="date")


@dataclass
class _Window:
    """The rows of one piece. `start` is the number of the row, or the time, at which it begins."""

    start: float
    opened: float
    rows: RowBuffer
    ended: float | None = None  # None for now


class _CountWindows:
    """Windows of a number of rows, one beginning every `slide` rows."""

    deadline: float | None = None

    def __init__(self, size: int, slide: int, memory: MemoryBudget) -> None:
        self._size = size
        self._slide = slide
        self._memory = memory
        self._seen = 0
        self._covered = 0
        self.open: deque[_Window] = deque()

    def offer(self, batch: Batch, now: float) -> Iterator[_Window]:
        """Add rows; yield the windows that they fill."""
        place = 0
        while place < len(batch):
            if self._seen % self._slide == 0:
                self.open.append(_Window(self._seen, now, RowBuffer(self._memory)))
            next_start = self._seen - self._seen % self._slide + self._slide
            next_end = self.open[0].start + self._size if self.open else inf
            piece = batch[place : place + int(min(next_start, next_end)) - self._seen]
            for window in self.open:
                window.rows.append(piece)
            place += len(piece)
            self._seen += len(piece)
            if self._seen == next_end:
                self._covered = self._seen
                yield self.open.popleft()

    def due(self, now: float) -> Iterator[_Window]:
        """Yield the windows that have ended by time, which are none."""
        return iter(())

    def last(self) -> Iterator[_Window]:
        """Yield, at the end of the input, the window with rows that no other window has held."""
        # The oldest open window holds all rows of the younger ones.
        if self.open and self._covered < self._seen:
            yield self.open.popleft()


class _TimeWindows:
    """Windows of a number of seconds, one beginning every `slide` seconds, the first with the first row."""

    def __init__(self, seconds: float, slide: float, memory: MemoryBudget) -> None:
        self._seconds = seconds
        self._slide = slide
        self._memory = memory
        self._origin: float | None = None
        self._newest = -inf  # the arrival of the newest row
        self._covered = -inf  # the end of the last window that was yielded
        self._next = 0  # the first window that may still be opened
        self.open: deque[_Window] = deque()

    @property
    def deadline(self) -> float | None:
        """The time at which the next window ends."""
        return self.open[0].start + self._seconds if self.open else None

    def offer(self, batch: Batch, now: float) -> Iterator[_Window]:
        """Add rows that arrived now; yield the windows that ended before."""
        yield from self.due(now)
        if self._origin is None:
            self._origin = now
        self._newest = now
        elapsed = now - self._origin
        # A row opens a window. Windows without rows are skipped.
        first = max(self._next, floor((elapsed - self._seconds) / self._slide) + 1)
        for number in range(first, floor(elapsed / self._slide) + 1):
            start = self._origin + number * self._slide
            self.open.append(_Window(start, start, RowBuffer(self._memory)))
            self._next = number + 1
        for window in self.open:
            window.rows.append(batch)

    def due(self, now: float) -> Iterator[_Window]:
        """Yield the windows that have ended by now."""
        while self.open and self.open[0].start + self._seconds <= now:
            window = self.open.popleft()
            window.ended = self._covered = window.start + self._seconds
            yield window

    def last(self) -> Iterator[_Window]:
        """Yield, at the end of the input, the window with rows that no other window has held."""
        if self.open and self._newest >= self._covered:
            yield self.open.popleft()


def _window_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema:
    if (settings["count"] is None) == (settings["seconds"] is None):
        raise SettingError("window needs either a count of tuples or SECONDS", setting="count")
    if settings["count"] is not None and settings["slide"] is not None and settings["slide"] % 1:
        raise SettingError("must be a whole number of tuples, as the count is", setting="slide")
    return _SCHEMA


@operator(schema=_window_schema, depends_on_arrival=True, needs_whole=(0,))
async def window(
    rel: Stream,
    *,
    count: PositiveCount | None = None,
    seconds: Positive | None = None,
    slide: Positive | None = None,
    context: Context,
) -> AsyncGenerator[Row, None]:
    """Cut a stream into pieces: one tuple for each, with the tuples of the piece packed in `window`.

    A piece has a certain number of tuples, or those that arrived within some seconds. `start` and `end` are
    the times at which it began and ended. A piece by time leaves when its time is over, unless it is empty.
    At the end of the input the last piece leaves even if it is not full, provided that it holds a tuple that
    no piece before it held.

    Arguments:
        rel: the tuples.
        count: the number of tuples in a piece.
        seconds: the length of a piece; the first begins with the first tuple.
        slide: the number of tuples, or seconds, after which the next piece begins; by default the end of a
            piece. Pieces overlap if it is smaller, and tuples between them are left out if it is larger.

    Examples:
        window (prices, 10 : tens)
        window (clicks : minutes) {SECONDS: 60; SLIDE: 10}
    """
    windows = _windows(count, seconds, slide, context.memory)
    packing = _Packing(rel, context)
    try:
        while (batch := await _receive(rel, windows.deadline)) is not None:
            now = context.clock()
            if not batch:
                now = max(now, windows.deadline or now)  # timers may fire a little early
            for piece in windows.offer(batch, now) if batch else windows.due(now):
                yield packing.row(piece)
        for piece in windows.last():
            yield packing.row(piece)
    finally:
        for piece in windows.open:
            piece.rows.close()


def _windows(
    count: int | None, seconds: float | None, slide: float | None, memory: MemoryBudget
) -> _CountWindows | _TimeWindows:
    if seconds is not None:
        return _TimeWindows(seconds, slide or seconds, memory)
    size = count or 1
    return _CountWindows(size, int(slide or size), memory)


class _Packing:
    """Makes tuples of windows; their times by the clock become dates."""

    def __init__(self, rel: Stream, context: Context) -> None:
        self._rel = rel
        self._context = context
        self._zero = datetime.now(UTC) - timedelta(seconds=context.clock())

    def row(self, window: _Window) -> Row:
        ended = self._context.clock() if window.ended is None else window.ended
        relation = window.rows.relation(self._rel.schema or Schema(()))
        return (relation, *(self._zero + timedelta(seconds=moment) for moment in (window.opened, ended)))


async def _receive(rel: Stream, deadline: float | None) -> Batch | None:
    """Return the next batch, an empty one at the deadline, or None at the end of the stream."""
    try:
        async with asyncio.timeout_at(deadline):
            return await rel.receive()
    except TimeoutError:
        return []
