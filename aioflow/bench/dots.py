"""Dot plots as SVG: every round of every variant, its median with its interval, and its limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aioflow.bench.pairs import Figure
from aioflow.bench.results import Samples
from aioflow.bench.scales import Scale, linear, logarithmic, tick_text
from aioflow.bench.statistics import LEAST_VALUES, median_of
from aioflow.bench.svg import SERIES, drawing, element, line, mark, text, text_width
from aioflow.bench.wording import number, quantity, unit_sign, variant

WIDTH = 720
_ROW, _TOP, _BOTTOM = 32, 34, 48
_MOST_LABEL = 230
# Values that are further apart than this are laid out on a logarithmic axis.
_LOGARITHMIC_FROM = 25
_MOST_DOTS = 400


def dot_plot(figure: Figure, order: Mapping[str, int] | None = None) -> str:
    """One row for each variant of a figure; `order` gives names the numbers of their rows and colours."""
    numbers = order or {variant(samples): place for place, samples in enumerate(figure.samples)}
    figure = Figure(figure.name, tuple(sorted(figure.samples, key=lambda each: numbers[variant(each)])))
    rows = [_wrapped(variant(samples)) for samples in figure.samples]
    left = min(_MOST_LABEL, max(text_width(part) for row in rows for part in row)) + 16
    values = [_value(samples) for samples in figure.samples]
    right = max(map(text_width, values)) + 16
    bottom = _TOP + _ROW * len(rows)
    scale = _scale(figure.samples, left, WIDTH - right)
    unit = unit_sign(figure.samples[0].unit)
    name = f"{figure.name} ({unit})" if figure.name else unit
    parts = [*_axis(scale, _TOP, bottom, name), *_legend(figure.samples)]
    for place, (samples, row, value) in enumerate(zip(figure.samples, rows, values, strict=True)):
        y = _TOP + _ROW * (place + 0.5)
        for number_of_part, part in enumerate(row):
            shift = (number_of_part - (len(row) - 1) / 2) * 14
            parts.append(text(left - 12, y + 4 + shift, part, "end"))
        parts += _row(samples, scale, y, numbers[variant(samples)])
        parts.append(text(WIDTH - right + 14, y + 4, value))
    return drawing(WIDTH, bottom + _BOTTOM, figure.name or "values", *parts)


def _scale(samples: Sequence[Samples], start: float, end: float) -> Scale:
    every = [value for each in samples for value in (*each.values, *_limit(each))]
    low, high = min(every), max(every)
    if low > 0 and high / low >= _LOGARITHMIC_FROM:
        return logarithmic(every, start, end)
    return linear(every, start, end)


def _limit(samples: Samples) -> tuple[float, ...]:
    return () if samples.limit is None else (samples.limit,)


def _row(samples: Samples, scale: Scale, y: float, look: int) -> list[str]:
    series, found = look % SERIES + 1, median_of(samples.values)
    step = max(1, len(samples.values) // _MOST_DOTS)
    every = samples.values[::step] if len(samples.values) > 1 else ()
    parts = [
        # A little above and below each other, so that equal ones can be counted.
        element("circle", css=f"each f{series}", cx=scale(value), cy=y + (count % 5 - 2) * 2.6, r=2.2)
        for count, value in enumerate(every)
    ]
    if found.low is not None and found.high is not None:
        parts.append(line(scale(found.low), y, scale(found.high), y, f"interval s{series}"))
    if samples.limit is not None:
        parts.append(line(scale(samples.limit), y - 12, scale(samples.limit), y + 12, "limit"))
    parts.append(mark(look, scale(found.value), y, f"mark f{series}", size=5))
    return parts


def _axis(scale: Scale, top: float, bottom: float, name: str) -> list[str]:
    parts = []
    for tick in scale.ticks:
        parts.append(line(scale(tick), top, scale(tick), bottom, "grid"))
        parts.append(text(scale(tick), bottom + 17, tick_text(tick, scale), "muted middle"))
    parts.append(text((scale.start + scale.end) / 2, bottom + 37, name, "heading middle"))
    return parts


def _legend(samples: Sequence[Samples]) -> list[str]:
    """What the signs mean, above the rows."""
    ink, y = "var(--ink)", 14.0
    signs = [("median", 10, element("circle", css="mark", cx=5, cy=y - 4, r=5, fill=ink))]
    if any(len(each.values) > 1 for each in samples):
        signs.insert(0, ("each round", 8, element("circle", css="each", cx=4, cy=y - 4, r=2.2, fill=ink)))
    if any(len(each.values) >= LEAST_VALUES for each in samples):
        interval = element("line", css="interval", x1=2, y1=y - 4, x2=22, y2=y - 4, stroke=ink)
        signs.append(("95 % interval of the median", 24, interval))
    if any(each.limit is not None for each in samples):
        signs.append(("limit: what no program could beat", 4, line(2, y - 12, 2, y + 3, "limit")))
    parts, x = [], 4.0
    for meaning, width, sign in signs:
        parts.append(
            element("g", sign, text(width + 6, y, meaning, "muted"), transform=f"translate({x:.0f} 0)")
        )
        x += width + 6 + text_width(meaning) + 20
    return parts


def _value(samples: Samples) -> str:
    """`1.34 s, 1.03 × limit`."""
    middle = median_of(samples.values).value
    shown = quantity(middle, samples.unit)
    return shown if not samples.limit else f"{shown} = {number(middle / samples.limit)} × limit"


def _wrapped(name: str) -> list[str]:
    """A name on one line, or on two when it is long."""
    if text_width(name) <= _MOST_LABEL:
        return [name]
    words, first = name.split(), ""
    while words and text_width(f"{first} {words[0]}") <= _MOST_LABEL:
        first = f"{first} {words.pop(0)}".strip()
    rest = " ".join(words)
    while text_width(rest) > _MOST_LABEL:
        rest = rest[:-2] + "…"
    return [first, rest] if first else [rest]
