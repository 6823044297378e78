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
    whole_seconds: float
    processor_seconds: float
    grown_megabytes: float
    process_processor_seconds: float  # with the start of Python and all imports
    peak_megabytes: float

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


def run_job(
    name: str, address: str, workers: int, *more: str, tool: str = "aioflow", expected: int | None = None
) -> WebRun:
    """Do a job once; raises when it does not find as much as expected."""
    used = measure_apart(
        "aioflow.benchmarks.web_jobs", tool, name, address, workers, *more, profiled_as=f"{name} by {tool}"
    )
    found = used.found
    if expected is not None and found["count"] != expected:
        raise AssertionError(f"{tool} found {found['count']} of {expected} in the job {name}")
    return WebRun(
        tuple(found["arrivals"]),
        found["whole"],
        found["processor"],
        found["grown"],
        used.processor_seconds,
        used.peak_megabytes,
    )
