"""Statistics of samples on SciPy: medians with bootstrap intervals, ratios, and the t-test that papers use.

SciPy is imported where it computes: experiments import this module in the processes that they measure, whose
memory and start would have SciPy's in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from operator import sub
from statistics import fmean, median
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

if TYPE_CHECKING:
    import numpy as np

_RESAMPLES = 2000
_CONFIDENCE = 0.95
# The smallest and the largest of five values enclose the median in 93.75 % of cases, those of four in 87.5 %.
LEAST_VALUES = 5
_SEED = 20_261_116
_BATCH_RESAMPLES = 200  # bounds the memory that many values take


@dataclass(frozen=True)
class Interval:
    """A figure, and the bounds between which it lies with 95 % confidence."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class TTest:
    """A two-tailed t-test: the difference of two means, and the probability that chance makes it so large."""

    difference: float
    t: float
    degrees: float
    p: float

    @property
    def is_significant(self) -> bool:
        return self.p < 1 - _CONFIDENCE


@lru_cache(maxsize=1024)
def _median_of(values: tuple[float, ...]) -> Interval:
    """Cached, because the tables and plots of a report need the same intervals."""
    import numpy as np

    return Interval(median(values), *_bounds((values,), np.median))


def median_of(values: Sequence[float]) -> Interval:
    """Return the median with its interval; the same values always give the same."""
    return _median_of(tuple(values))


def ratio_to(values: Sequence[float], limit: float) -> Interval:
    """Return the median as a multiple of a limit."""
    return median_of([value / limit for value in values])


def paired_ratio(values: Sequence[float], others: Sequence[float]) -> Interval:
    """Return the median of each round's ratio: a slow round slows both, which cancels out."""
    return median_of([value / other for value, other in zip(values, others, strict=True)])


def ratio_of_medians(values: Sequence[float], others: Sequence[float]) -> Interval:
    """Return the ratio of two medians, of samples that were not taken in the same rounds."""
    import numpy as np

    def ratio(one: np.ndarray, other: np.ndarray, axis: int) -> Any:
        return np.median(one, axis=axis) / np.median(other, axis=axis)

    return Interval(median(values) / median(others), *_bounds((values, others), ratio))


def _bounds(
    samples: Sequence[Sequence[float]], statistic: Callable[..., Any]
) -> tuple[float, float] | tuple[None, None]:
    """Return the bounds of a statistic's interval; samples of fewer than five values have none."""
    fewest = min(map(len, samples))
    if fewest < LEAST_VALUES:
        return None, None
    from scipy.stats import bootstrap

    found = bootstrap(
        samples,
        statistic,
        n_resamples=_RESAMPLES,
        batch=_BATCH_RESAMPLES,
        confidence_level=_expanded_confidence(fewest),
        method="percentile",
        rng=_SEED,
    ).confidence_interval
    return float(found.low), float(found.high)


@lru_cache(maxsize=64)
def _expanded_confidence(size: int) -> float:
    """Return the confidence to ask percentiles for, so that their interval has 95 % (Hesterberg, 2015).

    Resamples of few values lie nearer to each other than other samples would. Of 600 samples of 7, 10 and 20
    values the percentiles of 95 % enclosed the median in 88, 94 and 93 % of cases, SciPy's BCa method in just
    as many, and percentiles expanded as Student's distribution demands of a mean in 98, 97 and 95 %.
    """
    from scipy.stats import norm, t

    degrees = size - 1
    widest = t.ppf((1 + _CONFIDENCE) / 2, degrees) * math.sqrt(size / degrees)
    return float(1 - 2 * norm.sf(widest))


def corrected(probabilities: Sequence[float]) -> list[float]:
    """Return probabilities corrected for their number (Holm), or one comparison in twenty shows a change.

    SciPy has corrections of the false discovery rate only.
    """
    order = sorted(range(len(probabilities)), key=probabilities.__getitem__)
    result, least = [0.0] * len(probabilities), 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, probabilities[place] * (len(probabilities) - rank)))
        result[place] = least
    return result


def t_test(values: Sequence[float], others: Sequence[float]) -> TTest | None:
    """Compare the means of two variants (Welch); None where one value tells nothing of its spread."""
    if min(len(values), len(others)) < 2:
        return None
    difference = fmean(values) - fmean(others)
    if len(set(values)) == len(set(others)) == 1:
        return _test_without_spread(difference)
    from scipy.stats import ttest_ind

    with _constants_allowed():
        return _test(difference, ttest_ind(values, others, equal_var=False))


def paired_t_test(values: Sequence[float], others: Sequence[float]) -> TTest | None:
    """Compare the means of two variants whose rounds belong together."""
    if len(values) < 2:
        return None
    differences = list(map(sub, values, others))
    if len(set(differences)) == 1:
        return _test_without_spread(differences[0])
    from scipy.stats import ttest_rel

    with _constants_allowed():
        return _test(fmean(differences), ttest_rel(values, others))


@contextmanager
def _constants_allowed() -> Iterator[None]:
    """Silence SciPy's warning of a sample without spread: the other has some, so the test has a result."""
    with catch_warnings():
        simplefilter("ignore", RuntimeWarning)
        yield


def _test(difference: float, found: Any) -> TTest:
    return TTest(difference, float(found.statistic), float(found.df), float(found.pvalue))


def _test_without_spread(difference: float) -> TTest:
    """Where no value differs from its mean, any difference is certain."""
    if difference == 0:
        return TTest(0.0, 0.0, math.inf, 1.0)
    return TTest(difference, math.copysign(math.inf, difference), math.inf, 0.0)
