"""The findings of experiments as data, and the JSON files that hold them: written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from aioflow.errors import InputError

FORMAT = 1

# `power` is an exponent of growth: time that grows linearly with tuples has power 1.
Unit: TypeAlias = Literal[
    "x",
    "s",
    "ms",
    "us",
    "MB",
    "bytes",
    "rows",
    "rows/s",
    "pages/s",
    "characters/s",
    "requests",
    "queries",
    "tuples",
    "power",
]
# Simulations run on the virtual clock, and are never mixed with times of the real clock.
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
    """The values of one variant, round by round; `limit` is the bound that no program could beat.

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
    """A main figure of an experiment: the median, the bounds of its interval, and its goal."""

    what: str
    value: float | None  # None when it could not be found; `remark` then says why
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
    """The findings of one experiment."""

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
    failure: str = ""  # the reason why it stopped early; findings until then remain


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


T = TypeVar("T")
_KIND = "aioflow benchmarks"


def save(results: Results, path: Path) -> None:
    """Write a file; readers meanwhile see the old one or the new one, never a part."""
    text = json.dumps({"kind": _KIND, **asdict(results)}, indent=1, allow_nan=False, ensure_ascii=False)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(text + "\n", encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise InputError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from error


def load(path: Path) -> Results:
    """Read a file that `save` wrote."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path} holds no results of aioflow bench") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from error
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path} holds no results of aioflow bench: line {error.lineno} is no JSON"
        ) from None
    _expect_format(found, path)
    try:
        return _results(found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} does not hold together: {type(error).__name__}: {error}") from error


def _expect_format(found: Any, path: Path) -> None:
    if not isinstance(found, dict) or found.get("kind") != _KIND:
        raise InputError(f"{path} holds no results of aioflow bench")
    version = found.get("format")
    if not isinstance(version, int) or version > FORMAT:
        raise InputError(
            f"{path} has format {version}, which a newer aioflow wrote (this one reads up to {FORMAT})"
        )


def _results(found: Mapping[str, Any]) -> Results:
    findings = tuple(_finding(each) for each in found["findings"])
    return _made(Results, found, findings=findings)


def _finding(found: Mapping[str, Any]) -> Finding:
    return _made(
        Finding,
        found,
        samples=tuple(_made(Samples, each, values=_numbers(each["values"])) for each in found["samples"]),
        plots=tuple(_plot(each) for each in found["plots"]),
        claims=tuple(_claim(each) for each in found["claims"]),
        notes=tuple(map(str, found["notes"])),
    )


def _plot(found: Mapping[str, Any]) -> Plot:
    curves = tuple(
        _made(Curve, each, points=tuple((float(x), float(y)) for x, y in each["points"]))
        for each in found["curves"]
    )
    return _made(Plot, found, curves=curves)


def _claim(found: Mapping[str, Any]) -> Claim:
    goal = found.get("goal")
    return _made(Claim, found, goal=None if goal is None else _made(Goal, goal))


def _numbers(found: Any) -> tuple[float, ...]:
    return tuple(float(each) for each in found)


def _made(kind: type[T], found: Mapping[str, Any], **instead: Any) -> T:
    """Return a value of a data class; fields that an older format lacks have their defaults."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]  # all are data classes
    return kind(**{name: value for name, value in found.items() if name in names} | instead)
