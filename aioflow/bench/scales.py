"""Scales of plots: from values to places, and ticks at round values, linear and logarithmic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True)
class Scale:
    """Values between `low` and `high`, laid out between two places."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    logarithmic: bool = False
    minor: tuple[float, ...] = ()  # between the ticks, where those are powers of ten

    def __call__(self, value: float) -> float:
        low, high = self._along(self.low), self._along(self.high)
        share = (self._along(value) - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def _along(self, value: float) -> float:
        return math.log10(max(value, self.low)) if self.logarithmic else value


def linear(
    values: Iterable[float], start: float, end: float, *, from_zero: bool = True, most: int = 7
) -> Scale:
    """A linear scale around values, to the next ticks; from 0, where that does not hide everything."""
    every = list(values) or [0.0, 1.0]
    low, high = min(every), max(every)
    if from_zero and low > 0:
        low = 0.0
    if high == low:
        high = low + (abs(low) or 1.0)
    step = _round_step((high - low) / max(1, most - 1))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(_clean(number * step, step) for number in range(first, last + 1))
    return Scale(ticks[0], ticks[-1], start, end, ticks)


def logarithmic(values: Iterable[float], start: float, end: float, *, most: int = 8) -> Scale:
    """A logarithmic scale around values that are more than 0, with ticks at powers of two or ten."""
    every = sorted({value for value in values if value > 0}) or [1.0, 10.0]
    low, high = every[0], every[-1]
    if low == high:
        low, high = low / 2, high * 2
    ticks = _powers_of_two(every, most)
    if ticks:
        return Scale(ticks[0], ticks[-1], start, end, tuple(ticks), logarithmic=True)
    around = _around(low, high)
    ticks = around if len(around) <= most else _decades(around, most)
    minor = tuple(tick for tick in around if tick not in ticks)
    return Scale(around[0], around[-1], start, end, tuple(ticks), logarithmic=True, minor=minor)


def _round_step(step: float) -> float:
    """The next larger of 1, 2, 2.5, 5, 10, 20 …"""
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in _STEPS if factor * power >= step * (1 - 1e-9))


def _clean(value: float, step: float) -> float:
    return round(value, max(0, 2 - math.floor(math.log10(step))))


def _powers_of_two(values: Sequence[float], most: int) -> list[float]:
    """The values themselves when all are powers of two, as numbers of workers are."""
    if len(values) > most or any(value < 1 or not math.log2(value).is_integer() for value in values):
        return []
    return list(values) if len(values) > 1 else []


def _around(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, 20 … from the last one below the values to the first one above them."""
    first, last = math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1
    every = [factor * 10.0**power for power in range(first, last + 1) for factor in (1, 2, 5)]
    start = max(place for place, tick in enumerate(every) if tick <= low * 1.0001)
    end = min(place for place, tick in enumerate(every) if tick >= high * 0.9999)
    return [_clean(tick, tick) for tick in every[start : end + 1]]


def _decades(ticks: Sequence[float], most: int) -> list[float]:
    """The powers of ten among them, or as many of those as there may be."""
    powers = [tick for tick in ticks if math.isclose(math.log10(tick), round(math.log10(tick)))]
    return powers[:: math.ceil(len(powers) / most)]


def tick_text(value: float, scale: Scale) -> str:
    """`0.5`, `1,000`, `20k`, `1M`: as many places as the ticks beside it need."""
    size = abs(value)
    if size >= 10_000:
        unit, sign = (1e6, "M") if size >= 1e6 else (1e3, "k")
        return f"{value / unit:.6g}{sign}"
    if size >= 1000:
        return f"{value:,.0f}"
    beside = [value] if scale.logarithmic else scale.ticks
    return f"{value:.{max(map(_places, beside))}f}"


def _places(value: float) -> int:
    written = f"{value:.9f}".rstrip("0")
    return len(written.partition(".")[2])
