"""What an experiment is: a question, and a function that answers it in measured lines beside their goals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Literal, TypeAlias

Unit: TypeAlias = Literal["x", "s", "ms", "MB", "rows", "rows/s"]

# In the order in which they run and are printed; each is a module beside this one.
NAMES = ("pipeline", "latency", "queues", "join", "recursion", "startup", "memory", "homeseekers", "crawl")


@dataclass(frozen=True)
class Effort:
    """How much to do: a quick run shows that an experiment works, its figures mean nothing."""

    quick: bool = False

    def size(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    def rounds(self, full: int) -> int:
        return 1 if self.quick else full


@dataclass(frozen=True)
class Goal:
    """A bound that a measured value must not cross."""

    value: float
    direction: Literal["at most", "at least"]

    def is_reached(self, measured: float) -> bool:
        return measured <= self.value if self.direction == "at most" else measured >= self.value


@dataclass(frozen=True)
class Line:
    """One measured value. `measured` is None when it could not be measured, `remark` then says why."""

    what: str
    measured: float | None
    unit: Unit
    goal: Goal | None = None
    remark: str = ""

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None without a goal or a value."""
        if self.goal is None or self.measured is None:
            return None
        return self.goal.is_reached(self.measured)


@dataclass(frozen=True)
class Finding:
    """What an experiment found."""

    name: str
    question: str
    lines: tuple[Line, ...]

    @property
    def command(self) -> str:
        return f"python -m benchmarks {self.name}"


Measure: TypeAlias = Callable[[Effort], Sequence[Line]]


@dataclass(frozen=True)
class Experiment:
    """A function that measures, and the question it answers."""

    name: str
    question: str
    measure: Measure

    def run(self, effort: Effort) -> Finding:
        return Finding(self.name, self.question, tuple(self.measure(effort)))


_experiments: dict[str, Experiment] = {}


def experiment(question: str) -> Callable[[Measure], Measure]:
    """Make a function the experiment of its module."""

    def register(measure: Measure) -> Measure:
        name = measure.__module__.rpartition(".")[2]
        _experiments[name] = Experiment(name, question, measure)
        return measure

    return register


def find(name: str) -> Experiment:
    """The experiment of that name."""
    import_module(f"benchmarks.{name}")
    return _experiments[name]


def at_most(value: float) -> Goal:
    return Goal(value, "at most")


def at_least(value: float) -> Goal:
    return Goal(value, "at least")
