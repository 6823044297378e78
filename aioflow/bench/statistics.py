"""Figures of samples: medians with bootstrap intervals, paired ratios, and the t-test that papers use."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from statistics import NormalDist, fmean, median, variance

_RESAMPLES = 2000
_CONFIDENCE = 0.95
# Of fewer values even the least and the most hold the median too seldom to be called an interval of 95 %.
LEAST_VALUES = 5
_SEED = 20_261_116
_KEPT_SIZE = 64


@dataclass(frozen=True)
class Interval:
    """A figure, and the bounds between which it lies with 95 % confidence."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Test:
    """An unpaired two-tailed t-test (Welch): the difference of two means, and how likely chance makes it."""

    difference: float
    t: float
    degrees: float
    p: float

    @property
    def is_significant(self) -> bool:
        return self.p < 1 - _CONFIDENCE


def bootstrap(values: Sequence[float], figure: Callable[[Sequence[float]], float] = median) -> Interval:
    """A figure of samples with its interval; the same samples always give the same."""
    if len(values) < LEAST_VALUES:
        return Interval(figure(values), None, None)
    return _interval(figure(values), [figure(each) for each in _resamples(values)], len(values))


def _interval(value: float, found: list[float], size: int) -> Interval:
    """A figure, between the outer percentiles of what resamples of so many values gave."""
    found.sort()
    cut = int(len(found) * _tail(size))
    return Interval(value, found[cut], found[-cut - 1])


@lru_cache(maxsize=64)
def _tail(size: int) -> float:
    """Which share of resamples is left out on each side.

    Resamples of few values are nearer to each other than other samples would be: 2.5 % would be left out too
    much, and of seven rounds the interval would hold the median in 88 % of cases. So as much is left out as
    Student's distribution demands of a mean (Hesterberg's expanded percentiles).
    """
    degrees = size - 1
    low, high = 0.0, 100.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if two_tailed(middle, degrees) > 1 - _CONFIDENCE else (low, middle)
    return NormalDist().cdf(-low * math.sqrt(size / degrees))


def _resamples(values: Sequence[float], seed: int = _SEED) -> Iterator[Sequence[float]]:
    """As many values, drawn from them with replacement, over and over."""
    if len(values) <= _KEPT_SIZE:
        return (draw(values) for draw in _draws(len(values), seed))
    chance = random.Random(seed)
    return (chance.choices(values, k=len(values)) for _ in range(_RESAMPLES))


@lru_cache(maxsize=64)
def _draws(size: int, seed: int) -> list[Callable[[Sequence[float]], Sequence[float]]]:
    """Which places are drawn depends on the number of values alone, and drawing is most of the work."""
    chance = random.Random(seed)
    return [itemgetter(*chance.choices(range(size), k=size)) for _ in range(_RESAMPLES)]


def median_of(values: Sequence[float]) -> Interval:
    return _median_of(tuple(values))


@lru_cache(maxsize=1024)
def _median_of(values: tuple[float, ...]) -> Interval:
    """Kept: a report asks for the same in its tables and drawings."""
    return bootstrap(values)


def ratio_to(values: Sequence[float], limit: float) -> Interval:
    return bootstrap([value / limit for value in values])


def paired_ratio(values: Sequence[float], others: Sequence[float]) -> Interval:
    """Each round's ratio: what slowed both in that round cancels out."""
    return bootstrap([value / other for value, other in zip(values, others, strict=True)])


def ratio_of_medians(values: Sequence[float], others: Sequence[float]) -> Interval:
    """How one median stands to another, of samples that were not taken in the same rounds."""
    found = median(values) / median(others)
    fewer = min(len(values), len(others))
    if fewer < LEAST_VALUES:
        return Interval(found, None, None)
    # Two runs have nothing to do with each other: neither have their resamples.
    draws = zip(_resamples(values), _resamples(others, _SEED + 1), strict=True)
    return _interval(found, [median(one) / median(other) for one, other in draws], fewer)


def corrected(chances: Sequence[float]) -> list[float]:
    """Each chance made as large as so many comparisons demand (Holm): one in twenty is else found by luck."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    result, least = [0.0] * len(chances), 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, chances[place] * (len(chances) - rank)))
        result[place] = least
    return result


def t_test(values: Sequence[float], others: Sequence[float]) -> Test | None:
    """Whether two variants differ in their means; None where one value tells nothing of its spread."""
    if min(len(values), len(others)) < 2:
        return None
    difference = fmean(values) - fmean(others)
    one, other = variance(values) / len(values), variance(others) / len(others)
    if one + other == 0:
        return Test(difference, math.inf if difference else 0.0, math.inf, 0.0 if difference else 1.0)
    t = difference / math.sqrt(one + other)
    degrees = (one + other) ** 2 / (one**2 / (len(values) - 1) + other**2 / (len(others) - 1))
    return Test(difference, t, degrees, two_tailed(abs(t), degrees))


def two_tailed(t: float, degrees: float) -> float:
    """How likely Student's t is at least so far from 0."""
    return _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Lentz)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    tiny, result, c = 1e-300, 1.0, 1.0
    d = 1 / _away_from_zero(1 - (a + b) * x / (a + 1), tiny)
    result = d
    for m in range(1, 300):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _away_from_zero(1 + numerator * d, tiny)
            c = _away_from_zero(1 + numerator / c, tiny)
            result *= c * d
        if abs(c * d - 1) < 1e-12:
            break
    return result


def _away_from_zero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny
