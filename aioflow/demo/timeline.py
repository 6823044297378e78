"""What happened in a run of the demonstration: which request was under way when, and when houses arrived.

The modes in which the demonstration runs, and how fast each of them can be at best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args
from urllib.parse import parse_qs, urlsplit

from aioflow.runtime.events import Event, FiringEnded, FiringStarted
from aioflow.runtime.session import Mode

WORKERS = 15
PAGES = 12
HOUSES_PER_PAGE = 6
HOUSES = PAGES * HOUSES_PER_PAGE


@dataclass(frozen=True)
class DemoMode:
    """A mode with its physical limits, in seconds to the first and to the last tuple."""

    name: Mode
    meaning: str
    workers: int
    first_limit: float
    last_limit: float


def demo_modes(latency_seconds: float) -> tuple[DemoMode, ...]:
    """From the slowest to the fastest, where each request takes so long."""
    # A page is known only from the page before it, so the pages alone take so many requests in a row.
    pages = PAGES * latency_seconds
    one_by_one = pages + HOUSES * latency_seconds
    pages_then_houses = pages + math.ceil(HOUSES / WORKERS) * latency_seconds
    return (
        DemoMode("D-", "one request at a time", 1, one_by_one, one_by_one),
        DemoMode(
            "D+S-",
            "in parallel, each step on its whole input",
            WORKERS,
            pages_then_houses,
            pages_then_houses,
        ),
        DemoMode(
            "D+S+",
            "in parallel, streaming: a house is fetched as soon as its page is there",
            WORKERS,
            2 * latency_seconds,
            pages + latency_seconds,
        ),
    )


Kind: TypeAlias = Literal["search page", "next page", "house"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_MOMENT = 1e-6


@dataclass(frozen=True)
class RequestSpan:
    """A request, in seconds after the run began."""

    kind: Kind
    path: str
    start: float
    end: float


@dataclass(frozen=True)
class ModeOutcome:
    """A run in one mode: its requests, and when each house came out."""

    mode: DemoMode
    requests: tuple[RequestSpan, ...]
    arrivals: tuple[float, ...]

    @property
    def first_seconds(self) -> float:
        return self.arrivals[0]

    @property
    def last_seconds(self) -> float:
        return self.arrivals[-1]


@dataclass
class Timeline:
    """Collects the requests of a run from the engine's events; `started` is the loop's time when it began."""

    started: float = 0.0
    requests: list[RequestSpan] = field(default_factory=list)
    _under_way: dict[int, FiringStarted] = field(default_factory=dict)

    def __call__(self, event: Event) -> None:
        if isinstance(event, FiringStarted) and event.label:
            self._under_way[event.firing] = event
        elif isinstance(event, FiringEnded) and event.firing in self._under_way:
            begun = self._under_way.pop(event.firing)
            kind, path = kind_of(begun.label)
            self.requests.append(
                RequestSpan(kind, path, begun.time - self.started, event.time - self.started)
            )

    @property
    def under_way(self) -> int:
        return len(self._under_way)

    def count(self, kind: Kind) -> int:
        """How many requests of a kind have been answered."""
        return sum(request.kind == kind for request in self.requests)


def kind_of(url: str) -> tuple[Kind, str]:
    """What a request is for, and the path it asks."""
    parts = urlsplit(url)
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    if parts.path != "/search":
        return "house", path
    return ("next page" if "page" in parse_qs(parts.query) else "search page"), path


def lanes_of(requests: Sequence[RequestSpan], workers: int) -> list[int]:
    """A lane for each request, so that none overlap: pages on the first, houses on those below it."""
    lanes = [0] * len(requests)
    free_at = [0.0] * workers
    for number in sorted(range(len(requests)), key=lambda each: requests[each].start):
        request = requests[number]
        wanted = [*range(1, workers), 0] if request.kind == "house" else range(workers)
        # A worker may be told to begin in the same moment in which another ends.
        lane = next((lane for lane in wanted if free_at[lane] <= request.start + _MOMENT), None)
        if lane is None:
            lane = min(range(workers), key=free_at.__getitem__)
        free_at[lane] = request.end
        lanes[number] = lane
    return lanes
