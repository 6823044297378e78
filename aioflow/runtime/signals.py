"""Signals between the statements of one call, and the counters of steps that have not ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from aioflow.relation import Row, Schema
from aioflow.runtime.outlet import Outlet, Target
from aioflow.runtime.room import Room
from aioflow.wholeness import WHOLE, Marks


class Signal:
    """An event that statements wait for: it is sent once, or can no longer come.

    `marks` are reasons why it might have come if nothing had been missing.
    """

    __slots__ = ("_waiting", "marks", "state")

    def __init__(self) -> None:
        self.marks = WHOLE
        self.state: Literal["pending", "sent", "never"] = "pending"
        self._waiting: list[Callable[[], None]] = []

    def when_decided(self, callback: Callable[[], None]) -> None:
        self._waiting.append(callback)

    def send(self) -> None:
        self._decide("sent")

    def give_up(self, marks: Marks = WHOLE) -> None:
        """Give up the signal, which can no longer come, unless it has come."""
        if self.state == "pending":
            self.marks = marks
        self._decide("never")

    def _decide(self, state: Literal["sent", "never"]) -> None:
        if self.state == "pending":
            self.state = state
            for callback in self._waiting:
                callback()
            self._waiting.clear()


class Watch:
    """Reads a variable only for its first row, for a WAIT on data."""

    only_watches = True
    __slots__ = ("_marks", "_producers", "_signal", "_sources")

    def __init__(self, signal: Signal) -> None:
        self._signal = signal
        self._marks = WHOLE
        self._producers = 0
        self._sources: list[Outlet] = []

    def attach(self, outlet: Outlet) -> None:
        self._producers += 1
        self._sources.append(outlet)

    def accept(self, outlet: Outlet, schema: Schema) -> Target:
        return self

    def push(self, rows: Sequence[Row], full: list[Room]) -> None:
        self._signal.send()
        for source in self._sources:  # it has all it needs
            source.drop(self)
        self._sources = []

    @property
    def reads(self) -> bool:
        return self._signal.state == "pending"

    def serves(self, reader: object) -> bool:
        return reader is self

    def mark(self, marks: Marks) -> None:
        self._marks = self._marks.united(marks)

    def end(self, outlet: Outlet, dead: bool) -> None:
        self._producers -= 1
        if not self._producers:
            self._signal.give_up(self._marks)


class Completion:
    """Counts the steps of a call, and of the tail calls that took its place, that have not ended."""

    __slots__ = ("_count", "_on_end")

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._count = 0
        self._on_end = on_end

    def enter(self) -> None:
        self._count += 1

    def leave(self) -> None:
        self._count -= 1
        if not self._count:
            self._on_end()


class EndWatch:
    """Keeps a call from counting as ended while an input that is also an output still flows."""

    only_watches = True
    __slots__ = ("_completion", "_producers")

    def __init__(self, completion: Completion) -> None:
        self._completion = completion
        self._producers = 0
        completion.enter()

    @property
    def reads(self) -> bool:
        return False

    def attach(self, outlet: Outlet) -> None:
        self._producers += 1

    def accept(self, outlet: Outlet, schema: Schema) -> Target:
        return self

    def push(self, rows: Sequence[Row], full: list[Room]) -> None:
        return

    def serves(self, reader: object) -> bool:
        return False

    def mark(self, marks: Marks) -> None:
        return

    def end(self, outlet: Outlet, dead: bool) -> None:
        self._producers -= 1
        if not self._producers:
            self._completion.leave()
