"""The plots of a finding, by Matplotlib: its curves, and every round of its variants.

Curves have their names beside them where there is room, else in a legend. Matplotlib has no such placement.
"""

from __future__ import annotations

import math
import textwrap
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from matplotlib.transforms import Bbox

from aioflow.benchmarks.harness.comparison import Figure, compared
from aioflow.benchmarks.harness.results import Curve, Finding, Origin, Plot, Samples
from aioflow.benchmarks.harness.statistics import LEAST_VALUES, median_of
from aioflow.benchmarks.harness.svg import LIGHT, new_figure, svg_of
from aioflow.benchmarks.harness.wording import number, quantity, unit_sign, variant

Points: TypeAlias = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT = 720, 390
_DOTS_HEIGHT, _ROW_HEIGHT = 98, 32
_MOST_ROWS = 24
_MOST_TICKS = 8
_MOST_DOTS = 400
# Marks would cover a line of more points.
_MARKED_POINTS = 24
_LABEL_LETTERS = 34
# Values that are further apart have a logarithmic axis.
_LOGARITHMIC_FROM = 25
_INK, _PAPER, _MUTED = LIGHT["ink"], LIGHT["paper"], LIGHT["muted"]
_COLOURS = [colour for name, colour in LIGHT.items() if name.startswith("series")]
_DASHES: tuple[Any, ...] = ("-", (0, (3.5, 1.5)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)), "-", (0, (3.5, 1.5)))
_MARKS, _MARK_SIZES = "os^D", (8, 7.5, 9, 7.5)
# How rounds, medians, intervals and limits look.
_MEDIAN: dict[str, Any] = {"linestyle": "", "clip_on": False}
_EACH = _MEDIAN | {"marker": "o", "markersize": 4.4, "markeredgewidth": 0, "alpha": 0.4}
_LIMIT = _MEDIAN | {"marker": "|", "markersize": 24, "markeredgewidth": 2}
_INTERVAL: dict[str, Any] = {"linewidth": 3, "solid_capstyle": "round", "clip_on": False}


@dataclass(frozen=True)
class Drawing:
    """An SVG with its title; the name is unique in a report."""

    name: str
    title: str
    svg: str


def drawings(finding: Finding, origin: Origin) -> Iterator[Drawing]:
    """Draw the part of a finding that has an origin; a variant has the same colour in all plots."""
    plots = [each for each in finding.plots if each.origin == origin and any(c.points for c in each.curves)]
    every = compared(finding.samples, origin, plots)
    names = [curve.name for plot in plots for curve in plot.curves]
    names += [variant(samples) for figure in every for samples in figure.samples]
    order = {name: place for place, name in enumerate(dict.fromkeys(names))}
    start = f"{finding.name}-{origin}"
    for count, plot in enumerate(plots, 1):
        yield Drawing(f"{start}-{count}", plot.title, line_plot(plot, order, f"{start}-{count}"))
    shown = [each for each in every if _is_worth_seeing(each)]
    for count, figure in enumerate(shown, len(plots) + 1):
        title = figure.name or "Every round"
        drawn = dot_plot(figure, order, f"{start}-{count}")
        yield Drawing(f"{start}-{count}", title[:1].upper() + title[1:], drawn)


def _is_worth_seeing(figure: Figure) -> bool:
    """Return whether there are variants to compare, or a limit."""
    several = len(figure.samples) > 1 or figure.samples[0].limit is not None
    return several and len(figure.samples) <= _MOST_ROWS


# --- curves -------------------------------------------------------------------------------------


def line_plot(plot: Plot, order: Mapping[str, int] | None = None, prefix: str = "plot") -> str:
    """Draw the curves of a plot, but for its title; `order` gives names the numbers of their colours."""
    order = order or {curve.name: place for place, curve in enumerate(plot.curves)}
    curves = [curve for curve in plot.curves if curve.points]
    points = [point for curve in curves for point in curve.points]
    with new_figure(_WIDTH, _HEIGHT) as canvas:
        axes = canvas.add_subplot()
        _set_scale(axes.xaxis, [x for x, _ in points], plot.logarithmic_x)
        _set_scale(axes.yaxis, [y for _, y in points], plot.logarithmic_y)
        axes.tick_params(axis="y", which="both", length=0)
        axes.grid(axis="y", clip_on=False)
        axes.grid(axis="y", which="minor", linewidth=0.5, alpha=0.5, clip_on=False)
        axes.set_title(plot.y, loc="left", pad=14)
        axes.set_xlabel(plot.x)
        lines = [_curve(axes, curve, order[curve.name], plot.steps) for curve in curves]
        canvas.draw_without_rendering()  # lays out, so that places are known
        if not (_name_ends(axes, lines) or _name_beside(axes, lines)):
            _name_in_legend(canvas, lines)
        return svg_of(canvas, plot.title, prefix)


def _curve(axes: Axes, curve: Curve, look: int, steps: bool) -> Line2D:
    """Draw one curve. The dashes of steps would hide them."""
    points = _clamped(axes, _stepped(curve.points) if steps else curve.points)
    marked = len(points) <= _MARKED_POINTS and not steps
    (line,) = axes.plot(
        *zip(*points, strict=True),
        label=curve.name,
        color=_COLOURS[look % len(_COLOURS)],
        linewidth=2,
        linestyle="-" if steps else _DASHES[look % len(_DASHES)],
        markevery=None if marked else [len(points) - 1],
        clip_on=False,
        gid="curve",
        **_mark(look),
    )
    return line


def _mark(look: int) -> dict[str, Any]:
    """Return the form of a series: series differ in more than their colours."""
    kind = look % len(_MARKS)
    return {"marker": _MARKS[kind], "markersize": _MARK_SIZES[kind], "markeredgecolor": _PAPER}


def _stepped(points: Points) -> Points:
    """Hold each value until the next point."""
    steps = list(points[:1])
    for (_, before), (x, y) in pairwise(points):
        steps += [(x, before), (x, y)]
    return steps


def _clamped(axes: Axes, points: Points) -> Points:
    """Move what has no place on a logarithmic axis to its beginning."""
    least_x, least_y = axes.get_xlim()[0], axes.get_ylim()[0]
    return [(max(x, least_x), max(y, least_y)) for x, y in points]


# --- names of curves ----------------------------------------------------------------------------


def _name_ends(axes: Axes, lines: Sequence[Line2D]) -> bool:
    """Write names to the right of the axes, where all curves end there and apart from each other."""
    gap, most_shift = 15, 14
    ends = [axes.transData.transform(_points(line)[-1]) for line in lines]
    if np.ptp([x for x, _ in ends]) > 1:
        return False
    heights: dict[int, float] = {}
    for place in sorted(range(len(ends)), key=lambda place: ends[place][1]):
        heights[place] = max(ends[place][1], max(heights.values(), default=-math.inf) + gap)
    shift = float(np.mean([heights[place] - ends[place][1] for place in heights]))
    offsets = [heights[place] - shift - end[1] for place, end in enumerate(ends)]
    if max(map(abs, offsets)) > most_shift:
        return False
    for line, offset in zip(lines, offsets, strict=True):
        _name(axes, line, _points(line)[-1], (11, offset), "left", "center")
    return True


def _name_beside(axes: Axes, lines: Sequence[Line2D]) -> bool:
    """Write names beside the curves, where they cover neither a curve nor each other."""
    placed: list[Annotation] = []
    area = Bbox.from_extents(axes.bbox.x0 + 2, axes.bbox.y0 + 2, axes.bbox.x1 + 4, axes.bbox.y1 + 10)
    for line in lines:
        taken = [each.get_window_extent() for each in placed]
        label = next(
            (each for each in _candidates(axes, line, lines) if _is_free(each, lines, taken, area)), None
        )
        if label is None:
            for each in placed:
                each.remove()
            return False
        placed.append(label)
    return True


def _is_free(label: Annotation, lines: Sequence[Line2D], taken: Sequence[Bbox], area: Bbox) -> bool:
    """Return whether a name covers nothing; one that does is taken away again."""
    box = label.get_window_extent().padded(3)
    inside = area.x0 <= box.x0 and box.x1 <= area.x1 and area.y0 <= box.y0 and box.y1 <= area.y1
    if inside and not any(_crosses(each, box) for each in lines) and not any(map(box.overlaps, taken)):
        return True
    label.remove()
    return False


def _candidates(axes: Axes, line: Line2D, lines: Sequence[Line2D]) -> Iterator[Annotation]:
    """Write a name at places beside its curve, from the end of the curve to its beginning."""
    others = [each for each in lines if each is not line]
    near, offsets = 9, (((7, 0), "left", "center"), ((-7, 7), "right", "bottom"), ((7, -7), "left", "top"))
    points = axes.transData.transform(_points(line))
    lengths = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(points, axis=0)).sum(axis=1))])
    for length in np.linspace(lengths[-1], 0, 40):
        x, y = (float(np.interp(length, lengths, points[:, axis])) for axis in (0, 1))
        if any(_crosses(each, Bbox.from_extents(x - near, y - near, x + near, y + near)) for each in others):
            continue
        place = axes.transData.inverted().transform((x, y))
        for offset, horizontal, vertical in offsets:
            yield _name(axes, line, place, offset, horizontal, vertical)


def _name_in_legend(canvas: Canvas, lines: Sequence[Line2D]) -> None:
    """Write names above the axes, each with a piece of its curve."""
    longest = max(len(str(line.get_label())) for line in lines)
    canvas.legend(handles=list(lines), loc="outside upper left", ncols=max(1, 82 // (longest + 8)))


def _name(axes: Axes, line: Line2D, place: Any, offset: tuple[float, float], ha: Any, va: Any) -> Annotation:
    return axes.annotate(
        str(line.get_label()),
        place,
        xytext=offset,
        textcoords="offset points",
        ha=ha,
        va=va,
        color=line.get_color(),
        fontweight="bold",
        annotation_clip=False,
        gid="name",
    )


def _points(line: Line2D) -> Any:
    return line.get_xydata()


def _crosses(line: Line2D, box: Bbox) -> bool:
    return line.get_transform().transform_path(line.get_path()).intersects_bbox(box, filled=False)


# --- rounds -------------------------------------------------------------------------------------


def dot_plot(figure: Figure, order: Mapping[str, int] | None = None, prefix: str = "dots") -> str:
    """Draw every round, the median, its interval and its limit: a row for each variant of a figure."""
    looks = order or {variant(samples): place for place, samples in enumerate(figure.samples)}
    rows = sorted(figure.samples, key=lambda each: looks[variant(each)])
    values = [value for each in rows for value in (*each.values, *_limit(each))]
    with new_figure(_WIDTH, _DOTS_HEIGHT + _ROW_HEIGHT * len(rows)) as canvas:
        axes = canvas.add_subplot()
        axes.spines.bottom.set_visible(False)
        _set_scale(axes.xaxis, values, min(values) > 0 and max(values) / min(values) >= _LOGARITHMIC_FROM)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_yticks(range(len(rows)), [_wrapped(variant(each)) for each in rows], color=_INK)
        axes.tick_params(length=0)
        axes.grid(axis="x", clip_on=False)
        unit = unit_sign(rows[0].unit)
        axes.set_xlabel(f"{figure.name} ({unit})" if figure.name else unit)
        for place, samples in enumerate(rows):
            _dots(axes, samples, place, looks[variant(samples)])
        canvas.legend(
            handles=_signs(rows), loc="outside upper left", ncols=4, labelcolor=_MUTED, handlelength=1.6
        )
        return svg_of(canvas, figure.name or "values", prefix)


def _dots(axes: Axes, samples: Samples, row: int, look: int) -> None:
    """Draw one variant. Its rounds lie a little above and below each other, so that equal ones are seen."""
    found, colour = median_of(samples.values), _COLOURS[look % len(_COLOURS)]
    every = samples.values[:: max(1, len(samples.values) // _MOST_DOTS)] if len(samples.values) > 1 else ()
    heights = [row + (count % 5 - 2) * 0.08 for count in range(len(every))]
    axes.plot(every, heights, color=colour, gid="each", **_EACH)
    if found.low is not None and found.high is not None:
        axes.plot([found.low, found.high], [row, row], color=colour, gid="interval", **_INTERVAL)
    for limit in _limit(samples):
        axes.plot([limit], [row], color=_INK, gid="limit", **_LIMIT)
    axes.plot([found.value], [row], color=colour, gid="median", zorder=4, **_MEDIAN, **_mark(look))
    axes.annotate(
        _value_text(samples),
        (1, row),
        xycoords=axes.get_yaxis_transform(),
        xytext=(14, 0),
        textcoords="offset points",
        va="center",
    )


def _signs(rows: Sequence[Samples]) -> list[Line2D]:
    """Return the signs that a legend explains."""
    signs = []
    if any(len(each.values) > 1 for each in rows):
        signs.append(Line2D([], [], color=_INK, label="each round", **_EACH))
    signs.append(Line2D([], [], color=_INK, label="median", **_MEDIAN, **_mark(0)))
    if any(len(each.values) >= LEAST_VALUES for each in rows):
        signs.append(Line2D([], [], color=_INK, label="95 % interval of the median", **_INTERVAL))
    if any(each.limit is not None for each in rows):
        bar = _LIMIT | {"markersize": 14}
        signs.append(Line2D([], [], color=_INK, label="limit: what no program could beat", **bar))
    return signs


def _limit(samples: Samples) -> tuple[float, ...]:
    return () if samples.limit is None else (samples.limit,)


def _value_text(samples: Samples) -> str:
    """Return `1.34 s = 1.03 × limit`."""
    middle = median_of(samples.values).value
    shown = quantity(middle, samples.unit)
    return shown if not samples.limit else f"{shown} = {number(middle / samples.limit)} × limit"


def _wrapped(name: str) -> str:
    """Return a name on one line, or on two when it is long."""
    return "\n".join(textwrap.wrap(name, _LABEL_LETTERS, max_lines=2, placeholder="…"))


# --- scales -------------------------------------------------------------------------------------


def _set_scale(axis: Axis, values: Sequence[float], logarithmic: bool) -> None:
    """Lay values out between round ticks: on a linear axis from 0 on."""
    ticks, minor = logarithmic_ticks(values) if logarithmic else (linear_ticks(values), [])
    name = axis.axis_name  # type: ignore[attr-defined]  # `x` or `y`
    axis.axes.set(**{f"{name}scale": "log" if logarithmic else "linear"})
    every = [*ticks, *minor]
    axis.axes.set(**{f"{name}lim": (min(every), max(every))})
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(FixedLocator(minor) if minor else NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda tick, _: tick_text(tick, [tick] if logarithmic else ticks)))
    axis.set_minor_formatter(NullFormatter())


def linear_ticks(values: Sequence[float]) -> list[float]:
    """Return round values that enclose all, from 0 on."""
    low, high = min(0.0, *values), max(0.0, *values)
    locator = MaxNLocator(nbins=_MOST_TICKS - 2, steps=[1, 2, 2.5, 5, 10])
    return [float(tick) for tick in locator.tick_values(low, high if high > low else low + 1)]


def logarithmic_ticks(values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return powers of two or ten, or 1, 2, 5, 10 …, and minor ticks, which together enclose all values."""
    every = sorted({value for value in values if value > 0}) or [1.0, 10.0]
    if 1 < len(every) <= _MOST_TICKS and all(value >= 1 and math.log2(value).is_integer() for value in every):
        return every, []
    low, high = (every[0] / 2, every[-1] * 2) if len(every) == 1 else (every[0], every[-1])
    ticks = [
        float(tick) for tick in LogLocator(subs=(1, 2, 5), numticks=100).tick_values(low / 10, high * 10)
    ]
    around = ticks[bisect_left(ticks, low * 1.0001) - 1 : bisect_left(ticks, high * 0.9999) + 1]
    if len(around) <= _MOST_TICKS:
        return around, []
    powers = [tick for tick in around if math.isclose(math.log10(tick) % 1, 0, abs_tol=1e-9)]
    major = powers[:: math.ceil(len(powers) / _MOST_TICKS)]
    return major, [tick for tick in around if tick not in major]


def tick_text(value: float, beside: Sequence[float]) -> str:
    """Return `0.5`, `1,000`, `20k`, `1M`: with as many places as the ticks beside it need."""
    size = abs(value)
    if size >= 10_000:
        unit, sign = (1e6, "M") if size >= 1e6 else (1e3, "k")
        return f"{value / unit:.6g}{sign}"
    if size >= 1000:
        return f"{value:,.0f}"
    places = [len(f"{each:.9f}".rstrip("0").partition(".")[2]) for each in beside]
    return f"{value:.{max(places)}f}"
