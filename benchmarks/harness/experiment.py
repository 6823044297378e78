"""Experiments: a question, the work that answers it, and a function that measures with a `Bench`."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from aioflow.benchmarks.harness.results import Claim, Curve, Finding, Goal, Origin, Plot, Samples, Unit
from aioflow.benchmarks.harness.statistics import Interval, median_of, paired_ratio, ratio_to

T = TypeVar("T")
Measure: TypeAlias = Callable[["Bench"], None]


@dataclass(frozen=True)
class Round:
    """One repetition, in which every variant has its turn."""

    number: int
    is_warm_up: bool
    order: random.Random = field(repr=False)

    def shuffled(self, variants: Iterable[T]) -> list[T]:
        """Return the variants in a random order, so that none always comes first."""
        mixed = list(variants)
        self.order.shuffle(mixed)
        return mixed


class Bench:
    """Takes the samples and claims of an experiment. The figures of a quick run mean little."""

    def __init__(
        self, quick: bool = False, told: Callable[[str], None] = lambda text: None, seed: int = 1
    ) -> None:
        self.quick = quick
        self.rounds_done = 0
        self.moved_count = 0
        self._told = told
        self._random = random.Random(seed)
        self._warming_up = False
        self._samples: dict[str, Samples] = {}
        self._plots: list[Plot] = []
        self._claims: list[Claim] = []
        self._notes: list[str] = []

    def size(self, full: T, quick: T) -> T:
        """Return the size of the work."""
        return quick if self.quick else full

    def rounds(self, full: int, quick: int = 1, warm_up: int = 1) -> Iterator[Round]:
        """Yield repetitions; samples of those that warm up are discarded."""
        warm = 0 if self.quick else warm_up
        count = quick if self.quick else full
        for number in range(warm + count):
            self._warming_up = number < warm
            self.tell("warming up" if self._warming_up else f"round {number - warm + 1} of {count}")
            yield Round(number, self._warming_up, self._random)
        self._warming_up = False
        self.rounds_done = max(self.rounds_done, count)

    def tell(self, text: str) -> None:
        """Report progress."""
        self._told(text)

    def moved(self, count: int) -> None:
        """Count tuples or pages that went through this process: profiles show the cost of each.

        Processes of `measure_process` report theirs as `count` in their output.
        """
        self.moved_count += count

    def sample(
        self,
        name: str,
        unit: Unit,
        value: float,
        *,
        limit: float | None = None,
        origin: Origin = "measured",
        figure: str | None = None,
    ) -> None:
        """Record one value of a variant in this round.

        Variants of one figure are compared in the report. By default the figure is the part of the name after
        the comma: `D-, last tuple` and `D+S+, last tuple` are two variants of `last tuple`.
        """
        if self._warming_up:
            return
        if not math.isfinite(value):
            raise ValueError(f"{name} is {value}, which is no figure")
        known = self._samples.get(name)
        values = (*known.values, value) if known else (value,)
        self._samples[name] = Samples(name, unit, values, limit, origin, figure or "")

    def values(self, name: str) -> Sequence[float]:
        return self._samples[name].values

    def plot(self, title: str, x: str, y: str, curves: Sequence[Curve], **how: bool | Origin) -> None:
        self._plots.append(Plot(title, x, y, tuple(curves), **how))  # type: ignore[arg-type]  # by name

    def note(self, text: str) -> None:
        """Add a remark that a reader of the figures must know."""
        self._notes.append(text)

    # --- claims ---------------------------------------------------------------------------------

    def claim_median(self, what: str, of: str, goal: Goal | None = None, remark: str = "") -> None:
        """Claim the median of a variant's values."""
        samples = self._samples[of]
        self._claim(what, median_of(samples.values), samples.unit, goal, remark, samples.origin)

    def claim_limit(self, what: str, of: str, goal: Goal | None = None, remark: str = "") -> None:
        """Claim the median of a variant as a multiple of its limit."""
        samples = self._samples[of]
        assert samples.limit is not None, f"{of} has no limit"
        self._claim(what, ratio_to(samples.values, samples.limit), "x", goal, remark, samples.origin)

    def claim_ratio(self, what: str, of: str, to: str, goal: Goal | None = None, remark: str = "") -> None:
        """Claim the median of a variant's values, each divided by the other's of the same round."""
        one, other = self._samples[of], self._samples[to]
        if not all(other.values):  # a quick run under the profiler, whose clock is coarse
            self.claim(what, None, "x", goal, f"{to} took less than the clock can tell", one.origin)
            return
        self._claim(what, paired_ratio(one.values, other.values), "x", goal, remark, one.origin)

    def claim(
        self,
        what: str,
        value: float | None,
        unit: Unit,
        goal: Goal | None = None,
        remark: str = "",
        origin: Origin = "measured",
    ) -> None:
        """Claim a figure that the experiment computed itself; None when it could not."""
        if value is not None and not math.isfinite(value):
            raise ValueError(f"{what} is {value}, which is no figure")
        self._claims.append(Claim(what, value, unit, goal=goal, remark=remark, origin=origin))

    def _claim(
        self, what: str, found: Interval, unit: Unit, goal: Goal | None, remark: str, origin: Origin
    ) -> None:
        self._claims.append(Claim(what, found.value, unit, found.low, found.high, goal, remark, origin))

    def finding(self, experiment: Experiment) -> Finding:
        return Finding(
            experiment.name,
            experiment.question,
            experiment.work,
            experiment.limit,
            self.rounds_done,
            with_figures(tuple(self._samples.values())),
            tuple(self._plots),
            tuple(self._claims),
            tuple(self._notes),
        )


def with_figures(samples: Sequence[Samples]) -> tuple[Samples, ...]:
    """Give samples without a figure the part of their names after the comma.

    Where some names of a unit have no comma, only an ending that several share is a figure: `Scrapy, tuned`
    is a variant beside `aioflow`.
    """
    unnamed = [each for each in samples if not each.figure]
    ends = Counter((each.unit, _end(each)) for each in unnamed)
    mixed = {each.unit for each in unnamed if not _end(each)}
    return tuple(
        replace(each, figure=_end(each))
        if not each.figure and (each.unit not in mixed or ends[each.unit, _end(each)] > 1)
        else each
        for each in samples
    )


def _end(samples: Samples) -> str:
    return samples.name.rpartition(", ")[2] if ", " in samples.name else ""


@dataclass(frozen=True)
class Experiment:
    """A function that measures, with the question that it answers."""

    name: str
    question: str
    work: str
    limit: str
    measure: Measure


experiments: dict[str, Experiment] = {}


def experiment(
    question: str, *, work: str, limit: str = "", name: str | None = None
) -> Callable[[Measure], Measure]:
    """Register a function as an experiment, under its own name unless another is given.

    `work` describes the work that is measured, `limit` the bound that no program could beat.
    """

    def register(measure: Measure) -> Measure:
        called = name or measure.__name__.replace("_", "-")
        experiments[called] = Experiment(called, question, work, limit, measure)
        return measure

    return register
