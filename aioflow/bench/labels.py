"""Finds places for the names of curves beside them, where they cover neither a curve nor each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import Literal, TypeAlias

from aioflow.bench.svg import text_width

Point: TypeAlias = tuple[float, float]
Segment: TypeAlias = tuple[Point, Point]

_HEIGHT = 13
_GAP = 7
_PADDING = 3
_PLACES_A_CURVE = 40
_NEAR = 9
_COARSE = 3
_ENOUGH = 40  # places to choose from
_MOST_CURVES = 10


@dataclass(frozen=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def contains(self, other: Box) -> bool:
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.top <= other.top
            and other.bottom <= self.bottom
        )

    def is_crossed(self, one: Point, other: Point) -> bool:
        """Whether a line between two points goes through (Liang and Barsky)."""
        if max(one[0], other[0]) < self.left or min(one[0], other[0]) > self.right:
            return False  # nearly always
        (x, y), dx, dy = one, other[0] - one[0], other[1] - one[1]
        enter, leave = 0.0, 1.0
        sides = ((-dx, x - self.left), (dx, self.right - x), (-dy, y - self.top), (dy, self.bottom - y))
        for towards, distance in sides:
            if towards == 0:
                if distance < 0:
                    return False
                continue
            at = distance / towards
            enter, leave = (max(enter, at), leave) if towards < 0 else (enter, min(leave, at))
        return enter <= leave


@dataclass(frozen=True)
class Label:
    """A text at a place, from there to the right or to the left."""

    text: str
    x: float
    y: float
    anchor: Literal["start", "end", "middle"]

    @property
    def box(self) -> Box:
        width = text_width(self.text) * 1.06  # they are bold
        left = self.x - {"start": 0.0, "middle": width / 2, "end": width}[self.anchor]
        return Box(
            left - _PADDING, self.y - _HEIGHT + 2 - _PADDING, left + width + _PADDING, self.y + 2 + _PADDING
        )


def place_labels(texts: Sequence[str], curves: Sequence[Sequence[Point]], area: Box) -> list[Label] | None:
    """A label for each curve; None when one of them has no place."""
    if len(curves) > _MOST_CURVES:
        return None
    segments = [list(pairwise(thinned(curve, _COARSE))) for curve in curves]
    free = [
        list(islice(_free(text, curves[number], number, segments, area), _ENOUGH))
        for number, text in enumerate(texts)
    ]
    placed: dict[int, Label] = {}
    # Who has the least choice chooses first.
    for number in sorted(range(len(free)), key=lambda number: len(free[number])):
        taken = [label.box for label in placed.values()]
        left = [each for each in free[number] if not any(each.box.overlaps(box) for box in taken)]
        if not left:
            return None
        placed[number] = left[0]
    return [placed[number] for number in range(len(texts))]


def _free(
    text: str, curve: Sequence[Point], number: int, segments: Sequence[Sequence[Segment]], area: Box
) -> Iterator[Label]:
    """The places of a label that cover nothing and are nearer to its own curve than to another."""
    others = [each for place, every in enumerate(segments) if place != number for each in every]
    width, height = Label(text, 0, 0, "start").box.right + _GAP, 2.0 * _HEIGHT + _GAP
    for x, y in _along(curve):
        if _is_near((x, y), others):
            continue
        around = Box(x - width, y - height, x + width, y + height)
        near = [each for each in chain(segments[number], others) if around.is_crossed(*each)]
        for label in _candidates(text, x, y):
            box = label.box
            if area.contains(box) and not any(box.is_crossed(*segment) for segment in near):
                yield label


def _is_near(point: Point, segments: Sequence[Segment]) -> bool:
    x, y = point
    around = Box(x - _NEAR, y - _NEAR, x + _NEAR, y + _NEAR)
    return any(around.is_crossed(*segment) for segment in segments)


def thinned(points: Sequence[Point], distance: float) -> list[Point]:
    """The points without those that are so near to the one before that nobody could tell."""
    kept = list(points[:1])
    for x, y in points[1:]:
        if abs(x - kept[-1][0]) >= distance or abs(y - kept[-1][1]) >= distance:
            kept.append((x, y))
    return kept if not points or kept[-1] == points[-1] else [*kept, points[-1]]


def _candidates(text: str, x: float, y: float) -> Iterator[Label]:
    """Places beside a point of a curve, the best first."""
    yield Label(text, x + _GAP, y + 4, "start")
    yield Label(text, x + _GAP, y + _HEIGHT, "start")
    yield Label(text, x - _GAP, y - _GAP, "end")
    yield Label(text, x - _GAP, y + 4, "end")
    yield Label(text, x, y - _GAP - 2, "middle")
    yield Label(text, x, y + _HEIGHT + 4, "middle")
    yield Label(text, x + _GAP, y - _GAP, "start")
    yield Label(text, x - _GAP, y + _HEIGHT, "end")


def _along(curve: Sequence[Point]) -> Iterator[Point]:
    """Points along a curve, from its end to its beginning, about equally far from each other."""
    lengths = [abs(other[0] - one[0]) + abs(other[1] - one[1]) for one, other in pairwise(curve)]
    step = sum(lengths) / _PLACES_A_CURVE
    yield curve[-1]
    walked = due = 0.0
    for number in range(len(lengths) - 1, -1, -1):
        (x, y), (before_x, before_y), length = curve[number + 1], curve[number], lengths[number]
        while length and due + step <= walked + length:
            due += step
            share = (due - walked) / length
            yield x + (before_x - x) * share, y + (before_y - y) * share
        walked += length
