"""Compares two runs: what became significantly faster or slower."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import sub

from aioflow.bench.results import Results, Samples, Unit
from aioflow.bench.statistics import Interval, Test, corrected, paired_ratio, ratio_of_medians, t_test
from aioflow.errors import InputError

_SIGNIFICANT = 0.05
# What people call a figure that has become less, and one that has become more.
_WORDS: Mapping[str, tuple[str, str]] = {
    "s": ("faster", "slower"),
    "ms": ("faster", "slower"),
    "us": ("faster", "slower"),
    "rows/s": ("slower", "faster"),
    "pages/s": ("slower", "faster"),
    "MB": ("smaller", "larger"),
    "bytes": ("smaller", "larger"),
}
_BETTER = ("faster", "smaller")
# What a machine must have in common for its figures to be compared.
_ALIKE = ("processor", "cores", "architecture")


@dataclass(frozen=True)
class Change:
    """One variant in both runs. `ratio` is the later median by the earlier; `p` is corrected for all."""

    experiment: str
    name: str
    unit: Unit
    before: Samples
    after: Samples
    ratio: Interval | None
    p: float | None

    @property
    def is_significant(self) -> bool:
        """Whether the interval leaves out 1 and chance alone hardly makes such a difference."""
        if self.ratio is None or self.p is None or self.ratio.low is None or self.ratio.high is None:
            return False
        return not self.ratio.low <= 1 <= self.ratio.high and self.p < _SIGNIFICANT

    @property
    def word(self) -> str:
        """`faster`, `slower`, `smaller`, `larger`, `more`, `less`, or that nothing is known or shown."""
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
class Comparison:
    """All that two runs have in common, and what only one of them has."""

    changes: tuple[Change, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]

    @property
    def is_worse(self) -> bool:
        return any(change.is_worse for change in self.changes)


def compare(before: Results, after: Results, *, force: bool = False) -> Comparison:
    """Compare two runs; refuses those whose figures mean different things, unless forced."""
    differences = incomparable(before, after)
    if differences and not force:
        raise InputError("; ".join(differences) + "; --force compares them all the same")
    earlier, later = _variants(before), _variants(after)
    shared = [key for key in earlier if key in later and earlier[key].unit == later[key].unit]
    ratios = {key: _ratio(earlier[key], later[key]) for key in shared}
    # Only what can show a change is counted: each comparison more demands more of all others.
    tested = [key for key, ratio in ratios.items() if ratio is not None and ratio.low is not None]
    tests = [_test(earlier[key], later[key]) for key in tested]
    chances = dict(zip(tested, corrected([test.p for test in tests if test is not None]), strict=True))
    changes = [
        Change(*key, later[key].unit, earlier[key], later[key], ratios[key], chances.get(key))
        for key in shared
    ]
    return Comparison(
        tuple(changes),
        tuple(f"{name}: {variant}" for name, variant in earlier if (name, variant) not in shared),
        tuple(f"{name}: {variant}" for name, variant in later if (name, variant) not in shared),
    )


def incomparable(before: Results, after: Results) -> list[str]:
    """Why figures of two runs cannot be laid side by side."""
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


def _test(before: Samples, after: Samples) -> Test | None:
    if not _has_pairs(before, after):
        return t_test(before.values, after.values)
    # The paired test is that of the differences against nothing.
    differences = list(map(sub, before.values, after.values))
    return t_test(differences, [0.0] * len(differences))


def _has_pairs(before: Samples, after: Samples) -> bool:
    """Whether the rounds of two runs belong together: those of a simulation have the same seeds."""
    return before.origin == "simulated" and len(before.values) == len(after.values)
