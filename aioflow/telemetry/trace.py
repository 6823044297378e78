"""A run as a trace for chrome://tracing and ui.perfetto.dev.

Plans are shown as processes and statements as their threads. A firing is a slice, named by the
iteration that it belongs to, so that each level of a recursion has a colour of its own. Slices of
one thread may nest but not overlap, so statements with several firings at once have several threads.
"""

from __future__ import annotations

import heapq
import json
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO, TypeAlias

from aioflow.config.masking import masked
from aioflow.runtime.events import (
    CallEnded,
    CallStarted,
    Event,
    FiringEnded,
    FiringStarted,
    MessagesDelivered,
    RunCommitted,
    RunStarted,
    StepEnded,
    StepEvent,
    StepStarted,
    TupleFailed,
    Warned,
)

# What takes up threads: a statement's steps, its firings, or a plan's calls.
Track: TypeAlias = tuple[str, int | None, str, str]


@dataclass
class _Lanes:
    """The threads of one track: an open slice has one for itself, the lowest that is free."""

    threads: list[int] = field(default_factory=list)
    free: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class _Open:
    track: Track
    lane: int
    event: Event
    name: str
    details: dict[str, Any]


class Trace:
    """Subscribes to the events of an engine (`trace.record`) and writes them to a file as they come.

    Past `characters_at_most` events are left out, and the trace says so.
    """

    def __init__(self, file: TextIO, characters_at_most: int | None = None) -> None:
        self._file = file
        self._file.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
        self._first = True
        self._characters_left = math.inf if characters_at_most is None else characters_at_most
        self._left_out = 0
        self._start: float | None = None
        self._latest = 0.0
        self._processes: dict[str, int] = {}
        self._threads = 0
        self._lanes: dict[Track, _Lanes] = defaultdict(_Lanes)
        self._open: dict[tuple[object, ...], _Open] = {}
        self._firing = 0

    def record(self, event: Event) -> None:
        if self._start is None:
            self._start = event.time
        self._latest = event.time
        for entry in self._entries(event):
            self._write(entry)

    def close(self) -> None:
        """Write slices that are still open as ending now, and the end of the text."""
        for key in list(self._open):
            self._write(self._slice(key, self._latest, {"unfinished": True}))
        if self._left_out:
            self._characters_left = math.inf
            name = f"{self._left_out:,} further entries are left out"
            self._write({"ph": "i", "name": name, "s": "g", "pid": 0, "tid": 0, "ts": self._latest})
        self._file.write("\n]}\n")

    # --- events ---------------------------------------------------------------------------------

    def _entries(self, event: Event) -> Iterator[dict[str, Any]]:
        if isinstance(event, FiringStarted):
            details: dict[str, Any] = {
                "iteration": event.iteration,
                "waited_ms": round(event.waited_seconds * 1000, 3),
            }
            yield from self._begin(event, "firing", (event.firing,), details)
            yield from self._count(event.time, +1)
        elif isinstance(event, FiringEnded):
            details = {"error": event.error} if event.error else {}
            yield from self._end(event, "firing", (event.firing,), details)
            yield from self._count(event.time, -1)
        elif isinstance(event, StepStarted):
            yield from self._begin(event, "step", (), {"iteration": event.iteration})
        elif isinstance(event, StepEnded):
            details = {"rows_in": event.rows_in, "rows_out": event.rows_out, "dead": event.dead}
            yield from self._end(event, "step", (), details)
        elif isinstance(event, CallStarted):
            details = {"iteration": event.iteration, "parent": event.parent}
            track = (event.plan, None, "", "call")
            yield from self._begin_slice(
                track, ("call", event.iteration), event, f"{event.plan} #{event.iteration}", details
            )
        elif isinstance(event, CallEnded):
            yield from self._end_slice(("call", event.iteration), event, {})
        elif isinstance(event, TupleFailed):
            yield self._instant(event, f"failed: {event.error}", self._thread_of_failure(event), "t")
        elif (text := _text_of_run(event)) is not None:
            yield self._instant(event, text, (0, 0), "g")

    def _begin(
        self, event: StepEvent, what: str, number: tuple[int, ...], details: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        track = (event.plan, event.line, event.operator, what)
        key = (*track, event.iteration, *number)
        yield from self._begin_slice(track, key, event, f"{event.operator} #{event.iteration}", details)

    def _end(
        self, event: StepEvent, what: str, number: tuple[int, ...], details: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        key = (event.plan, event.line, event.operator, what, event.iteration, *number)
        return self._end_slice(key, event, details)

    # --- slices ---------------------------------------------------------------------------------

    def _begin_slice(
        self, track: Track, key: tuple[object, ...], event: Event, name: str, details: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        lanes = self._lanes[track]
        if lanes.free:
            lane = heapq.heappop(lanes.free)
        else:
            lane = len(lanes.threads)
            yield from self._new_thread(track, lanes)
        self._open[key] = _Open(track, lane, event, name, details)

    def _end_slice(
        self, key: tuple[object, ...], event: Event, details: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        if key in self._open:
            yield self._slice(key, event.time, details)

    def _slice(self, key: tuple[object, ...], end: float, details: dict[str, Any]) -> dict[str, Any]:
        opened = self._open.pop(key)
        lanes = self._lanes[opened.track]
        heapq.heappush(lanes.free, opened.lane)
        start = self._microseconds(opened.event.time)
        return {
            "ph": "X",
            "name": opened.name,
            "cat": opened.track[3],
            "pid": self._processes[opened.track[0]],
            "tid": lanes.threads[opened.lane],
            "ts": start,
            "dur": round(self._microseconds(end) - start, 3),
            "args": opened.details | details,
        }

    def _new_thread(self, track: Track, lanes: _Lanes) -> Iterator[dict[str, Any]]:
        plan, line, operator, what = track
        if plan not in self._processes:
            self._processes[plan] = len(self._processes) + 1
            yield self._metadata("process_name", self._processes[plan], 0, {"name": f"plan {plan}"})
        self._threads += 1
        lanes.threads.append(self._threads)
        title = "calls" if what == "call" else f"{line or '?'} {operator}"
        if what == "firing":
            title += f" · firing {len(lanes.threads)}"
        process = self._processes[plan]
        yield self._metadata("thread_name", process, self._threads, {"name": title})
        # Statements in the order of the text, each with its steps above its firings.
        order = ((line or 0) * 2 + (what == "firing")) * 1000 + len(lanes.threads)
        yield self._metadata("thread_sort_index", process, self._threads, {"sort_index": order})

    # --- single entries -------------------------------------------------------------------------

    def _count(self, time: float, change: int) -> Iterator[dict[str, Any]]:
        self._firing += change
        stamp = self._microseconds(time)
        yield {"ph": "C", "name": "firings", "pid": 0, "ts": stamp, "args": {"under way": self._firing}}

    def _instant(self, event: Event, name: str, place: tuple[int, int], scope: str) -> dict[str, Any]:
        process, thread = place
        stamp = self._microseconds(event.time)
        return {"ph": "i", "name": name, "s": scope, "pid": process, "tid": thread, "ts": stamp}

    def _thread_of_failure(self, event: StepEvent) -> tuple[int, int]:
        for what in ("firing", "step"):
            lanes = self._lanes.get((event.plan, event.line, event.operator, what))
            if lanes is not None:
                return self._processes[event.plan], lanes.threads[0]
        return 0, 0

    def _metadata(self, name: str, process: int, thread: int, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"ph": "M", "name": name, "pid": process, "tid": thread, "args": arguments}

    def _microseconds(self, time: float) -> float:
        return round((time - (self._start or 0.0)) * 1e6, 3)

    def _write(self, entry: dict[str, Any]) -> None:
        text = ("" if self._first else ",\n") + json.dumps(masked(entry), ensure_ascii=False)
        self._characters_left -= len(text)
        if self._characters_left < 0:
            self._left_out += 1
            return
        self._file.write(text)
        self._first = False


def _text_of_run(event: Event) -> str | None:
    """Return the words for an event of the run as a whole; None for others."""
    match event:
        case Warned():
            return event.message
        case RunStarted():
            return f"run {event.run_id}: {event.plan}"
        case RunCommitted():
            return f"commit {event.number}"
        case MessagesDelivered():
            return f"messages: {event.sent:,} sent, {event.failed:,} given up, {event.waiting:,} waiting"
    return None
