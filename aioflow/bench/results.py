"""What experiments found, as data: one format for reports, comparisons and machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

FORMAT = 1

# `power` is an exponent of growth: time that grows linearly with tuples has power 1.
Unit: TypeAlias = Literal[
    "x", "s", "ms", "us", "MB", "bytes", "rows", "rows/s", "pages/s", "requests", "tuples", "power"
]
# A simulation runs on the virtual clock: it is never mixed with what a clock on the wall said.
Origin: TypeAlias = Literal["measured", "simulated"]


@dataclass(frozen=True)
class Goal:
    """A bound that a value must not cross."""

    value: float
    direction: Literal["at most", "at least"]

    def is_reached(self, value: float) -> bool:
        return value <= self.value if self.direction == "at most" else value >= self.value


def at_most(value: float) -> Goal:
    return Goal(value, "at most")


def at_least(value: float) -> Goal:
    return Goal(value, "at least")


@dataclass(frozen=True)
class Samples:
    """What one variant gave, round by round; `limit` is what no program could beat.

    Variants of one `figure`, such as the time to the last tuple, are compared with each other.
    """

    name: str
    unit: Unit
    values: tuple[float, ...]
    limit: float | None = None
    origin: Origin = "measured"
    figure: str = ""


@dataclass(frozen=True)
class Curve:
    """Points of one line of a plot."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Plot:
    """Lines over one pair of axes, such as tuples over time."""

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    logarithmic_x: bool = False
    logarithmic_y: bool = False
    steps: bool = False  # a value holds until the next point
    origin: Origin = "measured"


@dataclass(frozen=True)
class Claim:
    """A figure that the experiment is about: the median, the bounds of its interval, and its goal."""

    what: str
    value: float | None  # None when it could not be found, which `remark` then explains
    unit: Unit
    low: float | None = None
    high: float | None = None
    goal: Goal | None = None
    remark: str = ""
    origin: Origin = "measured"

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None without a goal or a value."""
        if self.goal is None or self.value is None:
            return None
        return self.goal.is_reached(self.value)


@dataclass(frozen=True)
class Finding:
    """What one experiment found."""

    name: str
    question: str
    work: str
    limit: str
    repetitions: int
    samples: tuple[Samples, ...] = ()
    plots: tuple[Plot, ...] = ()
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    conditions: Mapping[str, Any] = field(default_factory=dict)  # load and collections meanwhile
    failure: str = ""  # why it ended before its end; what it found until then stands


@dataclass(frozen=True)
class Results:
    """One run of the harness."""

    findings: tuple[Finding, ...]
    quick: bool
    started: str
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    commit: str  # of the checkout that ran, empty without one
    dirty: bool = False  # whether files were changed since that commit
    format: int = FORMAT
