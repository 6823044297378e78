"""Finds places for the names of curves beside them, where they cover neither a curve nor each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from aioflow.bench.svg import text_width

Point: TypeAlias = tuple[float, float]

_HEIGHT = 13
_GAP = 7
_PADDING = 3
_PLACES_A_CURVE = 40


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
    segments = [segment for curve in curves for segment in pairwise(curve)]
    free: dict[int, list[Label]] = {}
    for number, (text, curve) in enumerate(zip(texts, curves, strict=True)):
        free[number] = [
            label
            for label in _candidates(text, curve)
            if area.contains(label.box) and not any(label.box.is_crossed(*segment) for segment in segments)
        ]
    placed: dict[int, Label] = {}
    # Who has the least choice chooses first.
    for number in sorted(free, key=lambda number: len(free[number])):
        taken = [label.box for label in placed.values()]
        left = [each for each in free[number] if not any(each.box.overlaps(box) for box in taken)]
        if not left:
            return None
        placed[number] = left[0]
    return [placed[number] for number in range(len(texts))]


def _candidates(text: str, curve: Sequence[Point]) -> Iterator[Label]:
    """Places beside a curve, the best first: at its end, then along it from there."""
    for number, (x, y) in enumerate(_along(curve)):
        if number == 0:
            yield Label(text, x + _GAP, y + 4, "start")
        yield Label(text, x + _GAP, y + _HEIGHT, "start")
        yield Label(text, x - _GAP, y - _GAP, "end")
        yield Label(text, x + _GAP, y + 4, "start")
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
