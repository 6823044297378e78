"""Plots of curves as SVG: lines and steps over linear or logarithmic axes, with names beside the curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aioflow.bench.labels import Box, Label, Point, place_labels, thinned
from aioflow.bench.results import Plot
from aioflow.bench.scales import Scale, linear, logarithmic, tick_text
from aioflow.bench.svg import DASHES, SERIES, drawing, element, line, mark, text, text_width

WIDTH, HEIGHT = 720, 390
_TOP, _BOTTOM, _RIGHT = 40, 50, 24
_LEGEND_ROW = 18
# With more points than these, marks would cover the line.
_MARKED_POINTS = 24
_LABEL_GAP = 15
_MOST_SHIFT = 14
_INVISIBLE = 0.4


def line_plot(plot: Plot, order: Mapping[str, int] | None = None) -> str:
    """The plot as SVG, but for its title; `order` gives names the numbers of their colours."""
    order = order or {curve.name: number for number, curve in enumerate(plot.curves)}
    names = [curve.name for curve in plot.curves]
    for ends_named in (True, False):
        chart = _Chart(plot, order, right=_end_margin(names) if ends_named else _RIGHT)
        labels = chart.end_labels() if ends_named else chart.inner_labels()
        if labels is not None:
            return chart.draw(labels)
    rows = _legend_rows(names)
    return _Chart(plot, order, right=_RIGHT, top=_TOP + len(rows) * _LEGEND_ROW).draw(None)


def _end_margin(names: Sequence[str]) -> float:
    return max(map(text_width, names), default=0) * 1.06 + 20


class _Chart:
    """A plot laid out: where everything is."""

    def __init__(self, plot: Plot, order: Mapping[str, int], *, right: float, top: float = _TOP) -> None:
        self._plot = plot
        self._looks = [order[curve.name] for curve in plot.curves]
        points = [point for curve in plot.curves for point in curve.points]
        rising = logarithmic if plot.logarithmic_y else linear
        self.y: Scale = rising([y for _, y in points], HEIGHT - _BOTTOM, top)
        left = max(text_width(tick_text(tick, self.y)) for tick in self.y.ticks) + 18
        along = logarithmic if plot.logarithmic_x else linear
        self.x: Scale = along([x for x, _ in points], left, WIDTH - right)
        self.area = Box(left, top, WIDTH - right, HEIGHT - _BOTTOM)
        self.curves = [self._laid_out(curve.points) for curve in plot.curves]

    def _laid_out(self, points: Sequence[Point]) -> list[Point]:
        placed = thinned([(self.x(x), self.y(y)) for x, y in points], _INVISIBLE)
        if not self._plot.steps:
            return placed
        steps = placed[:1]
        for x, y in placed[1:]:
            steps += [(x, steps[-1][1]), (x, y)]
        return steps

    # --- names ----------------------------------------------------------------------------------

    def end_labels(self) -> list[Label] | None:
        """Names at the right edge, when the curves end there and apart from each other."""
        if any(not curve for curve in self.curves):
            return None
        ends = [curve[-1] for curve in self.curves]
        if max(x for x, _ in ends) - min(x for x, _ in ends) > 1:
            return None
        order = sorted(range(len(ends)), key=lambda number: ends[number][1])
        heights: dict[int, float] = {}
        lowest = float("-inf")
        for number in order:
            heights[number] = lowest = max(ends[number][1], lowest + _LABEL_GAP)
        shift = sum(heights[number] - ends[number][1] for number in order) / max(1, len(order))
        if any(abs(heights[number] - shift - ends[number][1]) > _MOST_SHIFT for number in order):
            return None
        return [
            Label(curve.name, ends[number][0] + 11, heights[number] - shift + 4, "start")
            for number, curve in enumerate(self._plot.curves)
        ]

    def inner_labels(self) -> list[Label] | None:
        """Names beside the curves."""
        if any(not curve for curve in self.curves):
            return None
        inside = Box(self.area.left + 2, self.area.top - 4, WIDTH, self.area.bottom - 2)
        return place_labels([curve.name for curve in self._plot.curves], self.curves, inside)

    # --- drawing --------------------------------------------------------------------------------

    def draw(self, labels: Sequence[Label] | None) -> str:
        named = (
            self._legend()
            if labels is None
            else [
                text(
                    each.x,
                    each.y,
                    each.text,
                    f"label halo f{_series(self._looks[number])}",
                    text_anchor=each.anchor,
                )
                for number, each in enumerate(labels)
            ]
        )
        curves = [part for number, curve in enumerate(self.curves) for part in self._curve(number, curve)]
        return drawing(WIDTH, HEIGHT, self._plot.title, *self._axes(), *curves, *named)

    def _curve(self, number: int, points: Sequence[Point]) -> list[str]:
        if not points:
            return []
        look = self._looks[number]
        path = "M" + " L".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts = [element("path", css=f"curve s{_series(look)}", d=path, **self._dashes(look))]
        few = len(points) <= _MARKED_POINTS and not self._plot.steps
        for x, y in points if few else points[-1:]:
            parts.append(mark(look, x, y, f"mark f{_series(look)}"))
        return parts

    def _dashes(self, look: int) -> dict[str, str]:
        """Curves differ in more than colours; steps would lose theirs between dashes."""
        dash = DASHES[look % len(DASHES)]
        return {"stroke_dasharray": dash} if dash and not self._plot.steps else {}

    def _axes(self) -> list[str]:
        area, parts = self.area, []
        for tick in self.y.ticks:
            place = self.y(tick)
            parts.append(line(area.left, place, area.right, place, "grid"))
            parts.append(text(area.left - 8, place + 4, tick_text(tick, self.y), "muted end"))
        parts += [
            line(area.left, self.y(tick), area.right, self.y(tick), "grid minor") for tick in self.y.minor
        ]
        for tick in self.x.minor:
            parts.append(line(self.x(tick), area.bottom, self.x(tick), area.bottom + 3, "axis"))
        for tick in self.x.ticks:
            place = self.x(tick)
            parts.append(line(place, area.bottom, place, area.bottom + 6, "axis"))
            parts.append(text(place, area.bottom + 19, tick_text(tick, self.x), "muted middle"))
        parts.append(line(area.left, area.bottom, area.right, area.bottom, "axis"))
        # Both names are written level: the one of the upright axis above it.
        parts.append(text(0, 14, self._plot.y, "heading"))
        parts.append(text((area.left + area.right) / 2, HEIGHT - 10, self._plot.x, "heading middle"))
        return parts

    def _legend(self) -> list[str]:
        """Names above the axes, each with a piece of its curve."""
        parts, names = [], [curve.name for curve in self._plot.curves]
        for row, members in enumerate(_legend_rows(names)):
            x, y = self.area.left, 32.0 + row * _LEGEND_ROW
            for number in members:
                look = self._looks[number]
                path = f"M{x:.1f},{y:.1f} h24"
                parts.append(element("path", css=f"curve s{_series(look)}", d=path, **self._dashes(look)))
                parts.append(mark(look, x + 12, y, f"mark f{_series(look)}"))
                parts.append(text(x + 30, y + 4, names[number]))
                x += 30 + text_width(names[number]) + 22
        return parts


def _legend_rows(names: Sequence[str]) -> list[list[int]]:
    rows: list[list[int]] = [[]]
    x = 0.0
    for number, name in enumerate(names):
        width = 52 + text_width(name)
        if rows[-1] and x + width > WIDTH - 80:
            rows.append([])
            x = 0.0
        rows[-1].append(number)
        x += width
    return rows


def _series(number: int) -> int:
    return number % SERIES + 1
