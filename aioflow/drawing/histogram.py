"""Histograms of times, for a terminal and as SVG, with the moments at which something is done marked.

Times of web sources span decades, so that bars get wider with time; those of an even source are equally wide.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10
from xml.sax.saxutils import escape

from aioflow.drawing.svg import text_width

_DECADE = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_WIDE = 8.0  # longest / shortest time from which bars get wider with time
_FEW = 14
_EIGHTHS = " ▏▎▍▌▋▊▉█"

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 720.0, 260.0, 14.0, 34.0, 52.0
_STYLE = """
    text { font: 11px "Helvetica Neue", Helvetica, Arial, "Liberation Sans", sans-serif; fill: #444; }
    .title { font-size: 13px; font-weight: bold; fill: #1a1a1a; }
    .bar { fill: #135382; }
    .count, .edge { text-anchor: middle; }
    .axis { stroke: #999; }
    .mark { stroke: #b85b0e; stroke-width: 1.5; stroke-dasharray: 5 3; }
    .mark-name { fill: #b85b0e; }
    @media (prefers-color-scheme: dark) {
      svg { background: #15171a; } text { fill: #a3aab4; } .title { fill: #e8eaed; }
      .bar { fill: #55a4f7; } .mark { stroke: #d8925f; } .mark-name { fill: #d8925f; }
    }
"""


@dataclass(frozen=True)
class Mark:
    """A moment with a name, such as that after which a request is sent again."""

    seconds: float
    name: str


@dataclass(frozen=True)
class Histogram:
    """Counts of times between edges, the upper edge included."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    marks: tuple[Mark, ...] = ()


def histogram(seconds: Sequence[float], marks: Sequence[Mark] = ()) -> Histogram:
    """Return the histogram of times; there must be at least one."""
    times = sorted(seconds)
    edges = _edges(times[0], times[-1])
    places = [bisect_right(times, edge) for edge in edges]
    counts = [high - low for low, high in pairwise(places)]
    counts[0] += places[0]  # times at the very first edge
    return Histogram(tuple(edges), tuple(counts), tuple(sorted(marks, key=lambda mark: mark.seconds)))


def _edges(shortest: float, longest: float) -> list[float]:
    low = max(shortest, 1e-4)
    if longest >= _WIDE * low:
        decades = range(floor(log10(low)), ceil(log10(longest)) + 1)
        every = [round(step * 10.0**decade, 12) for decade in decades for step in _DECADE]
        return every[max(bisect_right(every, low) - 1, 0) : bisect_left(every, longest) + 1]
    span = max(longest - shortest, longest * 0.05, 1e-4)
    decade = 10.0 ** floor(log10(span / _FEW))
    step = next(step * decade for step in _STEPS if span / (step * decade) <= _FEW)
    first, last = floor(shortest / step), ceil(longest / step)
    return [round(number * step, 12) for number in range(first, max(last, first + 1) + 1)]


def histogram_text(drawn: Histogram, width: int = 72) -> str:
    """Return a histogram as lines of text: a bar each, and a line for each mark between them."""
    names = [_seconds(edge) for edge in drawn.edges]
    widest, most = max(map(len, names)), max(drawn.counts)
    digits = len(f"{most:,}")
    room = max(width - 2 * widest - digits - 12, 10)
    left, lines = list(drawn.marks), []
    for (low, high), (name, end), count in zip(
        pairwise(drawn.edges), pairwise(names), drawn.counts, strict=True
    ):
        while left and left[0].seconds <= low:
            lines.append(_mark_line(left.pop(0), width))
        lines.append(
            f"  {name:>{widest}} to {end:>{widest}} s  {count:>{digits},} {_bar(count / most, room)}".rstrip()
        )
        while left and left[0].seconds <= high:
            lines.append(_mark_line(left.pop(0), width))
    return "\n".join([*lines, *(_mark_line(mark, width) for mark in left)])


def _mark_line(mark: Mark, width: int) -> str:
    return f"  ── {_seconds(mark.seconds)} s: {mark.name} ".ljust(width, "─")


def _bar(share: float, width: int) -> str:
    eighths = round(share * width * 8)
    if share and not eighths:
        eighths = 1
    full, rest = divmod(eighths, 8)
    return "█" * full + _EIGHTHS[rest].strip()


def _seconds(seconds: float) -> str:
    return f"{seconds:.3g}" if seconds < 1000 else f"{seconds:.0f}"


def histogram_svg(drawn: Histogram, title: str) -> str:
    """Return a histogram as a page of SVG."""
    bars, most = len(drawn.counts), max(drawn.counts)
    step = (_WIDTH - 2 * _LEFT) / bars
    base, room = _HEIGHT - _BOTTOM, _HEIGHT - _BOTTOM - _TOP - 14
    body = [f'<text class="title" x="{_LEFT}" y="20">{escape(title)}</text>']
    for place, count in enumerate(drawn.counts):
        x, height = _LEFT + place * step, count / most * room
        body.append(
            f'<rect class="bar" x="{x + 1:.1f}" y="{base - height:.1f}" width="{step - 2:.1f}" '
            f'height="{height:.1f}"/>'
        )
        if count:
            body.append(
                f'<text class="count" x="{x + step / 2:.1f}" y="{base - height - 4:.1f}">{count:,}</text>'
            )
    body.append(f'<path class="axis" d="M{_LEFT} {base}H{_WIDTH - _LEFT}"/>')
    body += _edge_names(drawn, step, base)
    for number, mark in enumerate(drawn.marks):
        body += _drawn_mark(mark, _LEFT + _place(drawn.edges, mark.seconds) * step, number, base)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" width="{_WIDTH:g}" '
        f'height="{_HEIGHT:g}"><style>{_STYLE}</style>\n' + "\n".join(body) + "\n</svg>\n"
    )


def _edge_names(drawn: Histogram, step: float, base: float) -> list[str]:
    """Return the names of edges; where they have no room, every second or third one."""
    widest = max(text_width(_seconds(edge), 11.0) for edge in drawn.edges) + 6
    every = max(1, ceil(widest / step))
    names = [
        f'<text class="edge" x="{_LEFT + place * step:.1f}" y="{base + 15:.0f}">{_seconds(edge)}</text>'
        for place, edge in enumerate(drawn.edges)
        if place % every == 0
    ]
    return [*names, f'<text class="edge" x="{_WIDTH / 2:.0f}" y="{base + 29:.0f}">seconds</text>']


def _drawn_mark(mark: Mark, x: float, number: int, base: float) -> list[str]:
    y = 36.0 + 13.0 * number
    name = f"{_seconds(mark.seconds)} s: {mark.name}"
    # Names on the right half stand to the left of their line.
    anchor, at = ("end", x - 5) if x > _WIDTH / 2 else ("start", x + 5)
    return [
        f'<path class="mark" d="M{x:.1f} {y - 9:.0f}V{base}"/>',
        f'<text class="mark-name" x="{at:.1f}" y="{y:.0f}" text-anchor="{anchor}">{escape(name)}</text>',
    ]


def _place(edges: Sequence[float], seconds: float) -> float:
    """Return the place of a time among the bars: 1.5 is in the middle of the second one."""
    if seconds <= edges[0]:
        return 0.0
    if seconds >= edges[-1]:
        return len(edges) - 1.0
    right = bisect_left(edges, seconds)
    low, high = edges[right - 1], edges[right]
    return right - 1 + (seconds - low) / (high - low)
