"""Which variants of an experiment are compared with each other, in the paper's way and in ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from aioflow.bench.results import Origin, Plot, Samples
from aioflow.bench.statistics import Interval, Test, paired_ratio, ratio_of_medians, t_test
from aioflow.bench.wording import variant

# More variants than these are a series: each is compared with the first alone.
_ALL_PAIRS = 5


@dataclass(frozen=True)
class Figure:
    """The variants of one figure: their values can be laid side by side."""

    name: str
    samples: tuple[Samples, ...]


@dataclass(frozen=True)
class Pair:
    """Two variants: how their means differ (the paper's test), and how they stand to each other (ours)."""

    one: Samples
    other: Samples
    test: Test | None
    ratio: Interval | None
    is_paired: bool

    @property
    def differs(self) -> bool | None:
        """Whether the interval of the ratio leaves out 1; None when there is none."""
        if self.ratio is None or self.ratio.low is None or self.ratio.high is None:
            return None
        return not self.ratio.low <= 1 <= self.ratio.high


def figures(samples: Iterable[Samples], origin: Origin = "measured") -> list[Figure]:
    """The samples of an origin by what they measure; variants in the order in which they first came."""
    kept = [each for each in samples if each.origin == origin]
    order = list(dict.fromkeys(variant(each) for each in kept))
    groups: dict[tuple[str, str], list[Samples]] = {}
    for each in sorted(kept, key=lambda each: order.index(variant(each))):
        groups.setdefault((each.figure, each.unit), []).append(each)
    names = dict.fromkeys((each.figure, each.unit) for each in kept)
    return [Figure(name[0], tuple(groups[name])) for name in names]


def compared(
    samples: Iterable[Samples], origin: Origin = "measured", plots: Iterable[Plot] = ()
) -> list[Figure]:
    """The figures whose variants are rivals, and not points of a curve: 8 workers do not compete with 16."""
    curves = {curve.name for plot in plots if plot.origin == origin for curve in plot.curves}
    return [
        each
        for each in figures(samples, origin)
        if not curves or any(variant(one) in curves for one in each.samples)
    ]


def pairs(samples: Sequence[Samples], origin: Origin = "measured", plots: Iterable[Plot] = ()) -> list[Pair]:
    """All comparisons of an experiment."""
    every = compared(samples, origin, plots)
    return [pair(one, other) for each in every for one, other in _pairs_of(each)]


def _pairs_of(figure: Figure) -> Iterator[tuple[Samples, Samples]]:
    first, *others = figure.samples
    if len(figure.samples) <= _ALL_PAIRS:
        yield from combinations(figure.samples, 2)
        return
    for other in others:
        yield first, other


def pair(one: Samples, other: Samples) -> Pair:
    """Compare two variants; round by round when both have as many."""
    is_paired = len(one.values) == len(other.values)
    test = t_test(one.values, other.values)
    if not all(value > 0 for value in other.values):
        return Pair(one, other, test, None, is_paired)
    compared = paired_ratio if is_paired else ratio_of_medians
    return Pair(one, other, test, compared(one.values, other.values), is_paired)
