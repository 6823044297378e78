"""Runs of the demonstration, and their picture: every request by worker, on one axis of time, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

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
        """Return how many requests of a kind have been answered."""
        return sum(request.kind == kind for request in self.requests)


def kind_of(url: str) -> tuple[Kind, str]:
    """Return the purpose of a request, and its path."""
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


_WIDTH = 960.0
_LEFT, _RIGHT = 36.0, 30.0
_TOP = 92.0
_LANE = 8.0
_ONLY_LANE = 18.0
_HEADING = 30.0
_RUG = 16.0
_GAP = 26.0
_AXIS = 44.0

_STYLE = """
  text { font: 13px "Helvetica Neue", Helvetica, Arial, "Liberation Sans", sans-serif; fill: #24292f;
    stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round; paint-order: stroke; }
  .paper { fill: #ffffff; }
  .title { font-size: 20px; font-weight: 600; }
  .mode { font-size: 16px; font-weight: 700; }
  .soft { fill: #57606a; }
  .figure { font-size: 30px; font-weight: 700; }
  .lanes { fill: #f3f4f6; }
  .grid { stroke: #d0d7de; stroke-width: 1; }
  .limit { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 4 3; }
  .limit-text { fill: #cf222e; }
  .search { fill: #8250df; }
  .next { fill: #e36209; }
  .house { fill: #2f81b7; }
  .arrival { stroke: #1a7f37; stroke-width: 1.6; opacity: .75; }
  .arrival-text { fill: #1a7f37; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; stroke: #0d1117; }
    .paper { fill: #0d1117; }
    .soft { fill: #9198a1; }
    .lanes { fill: #161b22; }
    .grid { stroke: #30363d; }
    .limit { stroke: #ff7b72; }
    .limit-text { fill: #ff7b72; }
    .search { fill: #a371f7; }
    .next { fill: #f0883e; }
    .house { fill: #58a6d6; }
    .arrival { stroke: #3fb950; }
    .arrival-text { fill: #3fb950; }
  }
"""
_CLASSES: dict[Kind, str] = {"search page": "search", "next page": "next", "house": "house"}


def run_picture(outcomes: Sequence[ModeOutcome], latency_seconds: float) -> str:
    """All runs, one below the other; every request has its path as a tooltip."""
    longest = max(max(outcome.last_seconds, outcome.mode.last_limit) for outcome in outcomes)
    scale = _Scale(longest)
    body: list[str] = []
    y = _TOP
    for outcome in outcomes:
        body += _panel(outcome, outcomes[0], scale, y)
        y += _HEADING + _lanes_height(outcome) + _RUG + _GAP
    height = y - _GAP + _AXIS
    grid = _grid(scale, _TOP - 6, height - _AXIS + 6)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH:.0f}" height="{height:.0f}"'
            f' viewBox="0 0 {_WIDTH:.0f} {height:.0f}" role="img">',
            "<title>Which request was under way when, in three modes of execution</title>",
            f"<desc>{_description(outcomes)}</desc>",
            f"<style>{_STYLE}</style>",
            f'<rect class="paper" width="{_WIDTH:.0f}" height="{height:.0f}" rx="8"/>',
            *_head(latency_seconds),
            *grid,
            *body,
            "</svg>\n",
        ]
    )


class _Scale:
    """Seconds to places on the page."""

    def __init__(self, longest_seconds: float) -> None:
        self.longest = longest_seconds
        self._factor = (_WIDTH - _LEFT - _RIGHT) / longest_seconds

    def x(self, seconds: float) -> float:
        return _LEFT + seconds * self._factor

    def ticks(self) -> list[float]:
        """Round numbers of seconds, about eight of them."""
        rough = self.longest / 8
        power = 10 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.7)
        return [step * number for number in range(int(self.longest / step) + 1)]


def _description(outcomes: Sequence[ModeOutcome]) -> str:
    return "; ".join(
        f"{outcome.mode.name}: first house after {outcome.first_seconds:.2f} s, last after"
        f" {outcome.last_seconds:.2f} s"
        for outcome in outcomes
    )


def _head(latency_seconds: float) -> Iterator[str]:
    title = f"{HOUSES} houses behind {PAGES} result pages, {latency_seconds * 1000:.0f} ms a request"
    yield f'<text class="title" x="{_LEFT}" y="38">{title}</text>'
    x = _LEFT
    for kind, width in zip(KINDS, (108, 96, 74), strict=True):
        yield f'<rect class="{_CLASSES[kind]}" x="{x}" y="54" width="12" height="12" rx="2"/>'
        yield f'<text class="soft" x="{x + 18}" y="65">{kind}</text>'
        x += width
    yield f'<path class="arrival" d="M{x + 2} 53v14m5-14v14m5-14v14"/>'
    yield f'<text class="soft" x="{x + 20}" y="65">a house comes out</text>'
    x += 148
    yield f'<path class="limit" d="M{x} 51v18"/>'
    yield f'<text class="soft" x="{x + 9}" y="65">no sooner, whatever the program</text>'


def _grid(scale: _Scale, top: float, bottom: float) -> Iterator[str]:
    for seconds in scale.ticks():
        x, label = scale.x(seconds), f"{seconds:g} s"
        yield f'<path class="grid" d="M{x:.1f} {top:.1f}V{bottom:.1f}"/>'
        yield f'<text class="soft" x="{x:.1f}" y="{bottom + 20:.1f}" text-anchor="middle">{label}</text>'


# --- one run ------------------------------------------------------------------------------------


def _lane_height(outcome: ModeOutcome) -> float:
    return _ONLY_LANE if outcome.mode.workers == 1 else _LANE


def _lanes_height(outcome: ModeOutcome) -> float:
    return outcome.mode.workers * _lane_height(outcome)


def _panel(outcome: ModeOutcome, slowest: ModeOutcome, scale: _Scale, top: float) -> Iterator[str]:
    mode = outcome.mode
    y = top + _HEADING
    height = _lanes_height(outcome)
    yield (
        f'<text x="{_LEFT}" y="{top + 18:.1f}"><tspan class="mode">{mode.name}</tspan>'
        f'<tspan class="soft" dx="10">{escape(mode.meaning)}</tspan></text>'
    )
    width = scale.x(max(outcome.last_seconds, mode.last_limit)) - _LEFT
    yield f'<rect class="lanes" x="{_LEFT}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
    yield from _bars(outcome, scale, y)
    yield from _arrivals(outcome, scale, y + height + 4)
    limit = scale.x(mode.last_limit)
    yield f'<path class="limit" d="M{limit:.1f} {y - 5:.1f}V{y + height + _RUG:.1f}"/>'
    if outcome is slowest:
        yield from _figures_above(outcome, y - 12)
    else:
        factor = slowest.last_seconds / outcome.last_seconds
        yield from _figures_beside(outcome, factor, _LEFT + width + 28, y + height / 2)


def _bars(outcome: ModeOutcome, scale: _Scale, top: float) -> Iterator[str]:
    height = _lane_height(outcome)
    for request, lane in zip(outcome.requests, lanes_of(outcome.requests, outcome.mode.workers), strict=True):
        x, y = scale.x(request.start), top + lane * height + 0.5
        width = max(1.0, scale.x(request.end) - x - 0.8)
        yield (
            f'<rect class="{_CLASSES[request.kind]}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}"'
            f' height="{height - 1:.0f}" rx="1.5"><title>{escape(request.path)}</title></rect>'
        )


def _arrivals(outcome: ModeOutcome, scale: _Scale, top: float) -> Iterator[str]:
    marks = "".join(f"M{scale.x(arrival):.1f} {top:.1f}v10" for arrival in outcome.arrivals)
    yield f'<path class="arrival" d="{marks}"/>'


def _figures_above(outcome: ModeOutcome, y: float) -> Iterator[str]:
    last, best, first = _figures(outcome)
    yield (
        f'<text x="{_WIDTH - _RIGHT}" y="{y:.1f}" text-anchor="end">'
        f'<tspan class="arrival-text">{first}</tspan><tspan class="limit-text" dx="14">{best}</tspan>'
        f'<tspan class="figure" dx="14">{last}</tspan></text>'
    )


def _figures_beside(outcome: ModeOutcome, factor: float, x: float, y: float) -> Iterator[str]:
    last, best, first = _figures(outcome)
    yield (
        f'<text x="{x:.1f}" y="{y - 6:.1f}"><tspan class="figure">{last}</tspan>'
        f'<tspan class="soft" dx="10">{factor:.1f} times as fast as one request at a time</tspan></text>'
    )
    yield f'<text class="limit-text" x="{x:.1f}" y="{y + 17:.1f}">{best}</text>'
    yield f'<text class="arrival-text" x="{x:.1f}" y="{y + 37:.1f}">{first}</text>'


def _figures(outcome: ModeOutcome) -> tuple[str, str, str]:
    return (
        f"{outcome.last_seconds:.2f} s",
        f"the limit is {outcome.mode.last_limit:.2f} s",
        f"first house after {outcome.first_seconds:.2f} s",
    )
