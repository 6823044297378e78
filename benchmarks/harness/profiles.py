"""Profiles of experiments: the hottest functions, with the cost of each tuple where their number is known."""

from __future__ import annotations

import sys
import sysconfig
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aioflow.benchmarks.harness.child import Place, Sampler
from aioflow.benchmarks.harness.experiment import Bench, Experiment
from aioflow.benchmarks.harness.processes import ROOT, profiles_to
from aioflow.benchmarks.harness.results import Finding
from aioflow.benchmarks.harness.runner import run_experiment

HERE = "in the experiment's own process"
# Of an experiment's processor time: processes with less are not shown.
_LEAST_SHARE = 0.02
_LEAST_SAMPLES = 10
_MICROSECONDS = 1e6


@dataclass
class Profile:
    """The computation of all processes of one name."""

    name: str
    processor_seconds: float = 0.0  # without imports
    importing_seconds: float = 0.0
    moved: int = 0
    own: Counter[Place] = field(default_factory=Counter)
    total: Counter[Place] = field(default_factory=Counter)

    @property
    def samples(self) -> int:
        return self.own.total()

    def add(self, seen: Mapping[str, Any], moved: int) -> None:
        """Add the samples of one more process."""
        self.processor_seconds += seen["processor_seconds"]
        self.importing_seconds += seen["importing_seconds"]
        self.moved += moved
        for file, line, function, own, total in seen["functions"]:
            self.own[file, line, function] += own
            self.total[file, line, function] += total

    def hottest(self, count: int) -> list[HotFunction]:
        """Return the functions with the most processor time of their own."""
        scale = self.processor_seconds / max(1, self.samples)
        return [
            HotFunction(
                function, shown_place(file, line), own * scale, self.total[file, line, function] * scale
            )
            for (file, line, function), own in self.own.most_common(count)
            if own
        ]

    def each(self, seconds: float) -> float | None:
        """Return the microseconds for each tuple; None when their number is not known."""
        return seconds * _MICROSECONDS / self.moved if self.moved else None


@dataclass(frozen=True)
class HotFunction:
    """A function, with its own processor time and that including the functions it called."""

    function: str
    place: str
    own_seconds: float
    total_seconds: float


def profile_experiment(experiment: Experiment, bench: Bench) -> tuple[Finding, list[Profile]]:
    """Run an experiment and profile this process and those that it measures."""
    profiles: dict[str, Profile] = {}

    def receive(name: str, seen: Mapping[str, Any], found: Any) -> None:
        count = found.get("count") if isinstance(found, dict) else None
        profiles.setdefault(name, Profile(name)).add(seen, count if isinstance(count, int) else 0)

    sampler = Sampler()
    with profiles_to(receive):
        sampler.start()
        try:
            finding = run_experiment(experiment, bench)
        finally:
            seen = sampler.stop()
    here = Profile(HERE)
    here.add(seen, bench.moved_count)
    every = [*profiles.values(), here]
    least = _LEAST_SHARE * sum(profile.processor_seconds for profile in every)
    return finding, [
        each for each in every if each.samples >= _LEAST_SAMPLES and each.processor_seconds >= least
    ]


def shown_place(file: str, line: int) -> str:
    """Return the place of a function, without the folders of this machine: `aioflow/stream.py:120`."""
    path = Path(file)
    folders = [ROOT, *map(Path, sys.path), *map(Path, sysconfig.get_paths().values())]
    inside = [
        path.relative_to(folder) for folder in folders if path.is_absolute() and path.is_relative_to(folder)
    ]
    short = min(inside, key=lambda each: len(each.parts), default=Path(path.name))
    parts = short.parts
    if "site-packages" in parts:  # an environment inside one of our folders
        short = Path(*parts[parts.index("site-packages") + 1 :])
    return f"{short.as_posix()}:{line}"
