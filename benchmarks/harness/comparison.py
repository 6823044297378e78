"""Comparisons: the variants of one experiment with each other, and the figures of two runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from aioflow.benchmarks.harness.results import Origin, Plot, Results, Samples, Unit
from aioflow.benchmarks.harness.statistics import (
    Interval,
    TTest,
    corrected,
    paired_ratio,
    paired_t_test,
    ratio_of_medians,
    t_test,
)
from aioflow.benchmarks.harness.wording import variant
from aioflow.errors import InputError

# More variants than this are a series: each is compared with the first only.
_ALL_PAIRS = 5
_SIGNIFICANT = 0.05
# The words for a figure that has fallen and for one that has risen.
_WORDS: Mapping[str, tuple[str, str]] = {
    "s": ("faster", "slower"),
    "ms": ("faster", "slower"),
    "us": ("faster", "slower"),
    "rows/s": ("slower", "faster"),
    "pages/s": ("slower", "faster"),
    "characters/s": ("slower", "faster"),
    "MB": ("smaller", "larger"),
    "bytes": ("smaller", "larger"),
}
_BETTER = ("faster", "smaller")
# The properties that two machines must share for their figures to be compared.
_ALIKE = ("processor", "cores", "architecture")

# --- variants of one experiment ---------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """The variants of one figure, whose values can be compared."""

    name: str
    samples: tuple[Samples, ...]


@dataclass(frozen=True)
class VariantPair:
    """Two variants: the difference of their means (the paper's test), and their ratio (ours)."""

    one: Samples
    other: Samples
    test: TTest | None
    ratio: Interval | None
    is_paired: bool

    @property
    def differs(self) -> bool | None:
        """Whether the interval of the ratio excludes 1; None without an interval."""
        if self.ratio is None or self.ratio.low is None or self.ratio.high is None:
            return None
        return not self.ratio.low <= 1 <= self.ratio.high


def figures(samples: Iterable[Samples], origin: Origin = "measured") -> list[Figure]:
    """Group the samples of an origin by figure, with variants in the order of their first samples."""
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
    """Return the figures whose variants are rivals and no points of a curve, as 8 and 16 workers are."""
    curves = {curve.name for plot in plots if plot.origin == origin for curve in plot.curves}
    return [
        each
        for each in figures(samples, origin)
        if not curves or any(variant(one) in curves for one in each.samples)
    ]


def pairs(
    samples: Sequence[Samples], origin: Origin = "measured", plots: Iterable[Plot] = ()
) -> list[VariantPair]:
    """Return all comparisons of an experiment."""
    every = compared(samples, origin, plots)
    return [pair(one, other) for each in every for one, other in _pairs_of(each)]


def _pairs_of(figure: Figure) -> Iterator[tuple[Samples, Samples]]:
    first, *others = figure.samples
    if len(figure.samples) <= _ALL_PAIRS:
        yield from combinations(figure.samples, 2)
        return
    for other in others:
        yield first, other


def pair(one: Samples, other: Samples) -> VariantPair:
    """Compare two variants, round by round when both have the same number of rounds."""
    is_paired = len(one.values) == len(other.values)
    test = t_test(one.values, other.values)
    if not all(value > 0 for value in other.values):
        return VariantPair(one, other, test, None, is_paired)
    compared = paired_ratio if is_paired else ratio_of_medians
    return VariantPair(one, other, test, compared(one.values, other.values), is_paired)


# --- two runs ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class FigureChange:
    """One variant in two runs.

    `ratio` is the later median divided by the earlier one; `p` is corrected for the number of comparisons.
    """

    experiment: str
    name: str
    unit: Unit
    before: Samples
    after: Samples
    ratio: Interval | None
    p: float | None

    @property
    def is_significant(self) -> bool:
        """Whether the interval excludes 1 and chance alone rarely makes such a difference."""
        if self.ratio is None or self.p is None or self.ratio.low is None or self.ratio.high is None:
            return False
        return not self.ratio.low <= 1 <= self.ratio.high and self.p < _SIGNIFICANT

    @property
    def word(self) -> str:
        """`faster`, `slower`, `smaller`, `larger`, `more`, `less`, or why no change is shown."""
        if self.ratio is None or self.p is None or self.ratio.low is None:
            return "too few rounds"
        if not self.is_significant:
            return "no change shown"
        less, more = _WORDS.get(self.unit, ("less", "more"))
        return less if self.ratio.value < 1 else more

    @property
    def is_worse(self) -> bool:
        return self.is_significant and self.unit in _WORDS and self.word not in _BETTER


@dataclass(frozen=True)
class RunComparison:
    """The variants that two runs share, and the names of those that only one of them has."""

    changes: tuple[FigureChange, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]

    @property
    def is_worse(self) -> bool:
        return any(change.is_worse for change in self.changes)


def compare(before: Results, after: Results, *, force: bool = False) -> RunComparison:
    """Compare two runs; those whose figures mean different things are refused, unless forced."""
    differences = incomparable(before, after)
    if differences and not force:
        raise InputError("; ".join(differences) + "; --force compares them all the same")
    earlier, later = _variants(before), _variants(after)
    shared = [key for key in earlier if key in later and earlier[key].unit == later[key].unit]
    ratios = {key: _ratio(earlier[key], later[key]) for key in shared}
    # Only figures that can show a change are counted: each further comparison makes the test of all stricter.
    tested = [key for key, ratio in ratios.items() if ratio is not None and ratio.low is not None]
    tests = [_test(earlier[key], later[key]) for key in tested]
    chances = dict(zip(tested, corrected([test.p for test in tests if test is not None]), strict=True))
    changes = [
        FigureChange(*key, later[key].unit, earlier[key], later[key], ratios[key], chances.get(key))
        for key in shared
    ]
    return RunComparison(
        tuple(changes),
        tuple(f"{name}: {variant}" for name, variant in earlier if (name, variant) not in shared),
        tuple(f"{name}: {variant}" for name, variant in later if (name, variant) not in shared),
    )


def incomparable(before: Results, after: Results) -> list[str]:
    """Return the reasons why the figures of two runs cannot be compared."""
    found = []
    if before.quick != after.quick:
        found.append("one run is quick and the other is full")
    for name in _ALIKE:
        one, other = before.machine.get(name), after.machine.get(name)
        if one != other:
            found.append(f"the runs are of different machines ({name}: {one} and {other})")
    return found


def _variants(results: Results) -> dict[tuple[str, str], Samples]:
    return {
        (finding.name, _named(samples)): samples
        for finding in results.findings
        for samples in finding.samples
    }


def _named(samples: Samples) -> str:
    return samples.name if samples.origin == "measured" else f"{samples.name} (simulated)"


def _ratio(before: Samples, after: Samples) -> Interval | None:
    if not all(value > 0 for value in (*before.values, *after.values)):
        return None
    compared = paired_ratio if _has_pairs(before, after) else ratio_of_medians
    return compared(after.values, before.values)


def _test(before: Samples, after: Samples) -> TTest | None:
    compared = paired_t_test if _has_pairs(before, after) else t_test
    return compared(before.values, after.values)


def _has_pairs(before: Samples, after: Samples) -> bool:
    """Return whether the rounds of two runs belong together: those of a simulation have the same seeds."""
    return before.origin == "simulated" and len(before.values) == len(after.values)
