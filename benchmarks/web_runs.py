"""Jobs of `web_jobs` as experiments run them: each in a process of its own, as are the sites."""

from __future__ import annotations

from dataclasses import dataclass

from aioflow.bench import Curve
from aioflow.bench.processes import measure_apart

WORKERS = 15
PAGES = 12
LATENCY_SECONDS = 0.1
QUICK_LATENCY_SECONDS = 0.005


@dataclass(frozen=True)
class WebRun:
    """How a job went; times are in seconds since its start, without the process's."""

    arrivals: tuple[float, ...]  # of the tuples, as they came
    processor_seconds: float
    peak_megabytes: float  # of the process

    @property
    def first(self) -> float:
        return self.arrivals[0]

    @property
    def last(self) -> float:
        return self.arrivals[-1]

    def curve(self, name: str) -> Curve:
        """Tuples over time."""
        steps = ((seconds, float(number)) for number, seconds in enumerate(self.arrivals, 1))
        return Curve(name, ((0.0, 0.0), *steps))


def run_job(name: str, address: str, workers: int, *more: str, expected: int) -> WebRun:
    """Do a job once; raises when it does not find as much as expected."""
    arguments = (name, address, workers, *more)
    used = measure_apart("aioflow.benchmarks.web_jobs", *arguments, profiled_as=name)
    found = used.found
    if found["count"] != expected:
        raise AssertionError(f"the job {name} found {found['count']} of {expected}")
    return WebRun(tuple(found["arrivals"]), found["processor"], used.peak_megabytes)
