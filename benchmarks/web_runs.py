"""Jobs of `web_jobs` as experiments run them: each in a process of its own, as are the sites."""

from __future__ import annotations

from dataclasses import dataclass

from aioflow.benchmarks.arrivals import Arrivals
from aioflow.benchmarks.harness.processes import measure_process

WORKERS = 15
PAGES = 12
PER_PAGE = 6
LARGE_PER_PAGE = 30
LATENCY_SECONDS = 0.1
QUICK_LATENCY_SECONDS = 0.005
# Said wherever aioflow is compared with what has no such things.
UNLIKE_DEFAULTS = (
    "Unlike its defaults, aioflow does not ask for robots.txt, which none of the others does either, and may "
    "ask the site as often at once as there are workers. In processes that use it as a library it moreover "
    "keeps no record of how well extraction goes (`health`); `aioflow run` keeps it."
)


@dataclass(frozen=True)
class WebRun(Arrivals):
    """How a job went, without the start of its process."""

    peak_megabytes: float  # of the process


def run_job(name: str, address: str, workers: int, *more: str, expected: int) -> WebRun:
    """Do a job once; raises when it does not find as much as expected."""
    arguments = (name, address, workers, *more)
    used = measure_process("aioflow.benchmarks.web_jobs", *arguments, profiled_as=name)
    found = used.found
    if found["count"] != expected:
        raise AssertionError(f"the job {name} found {found['count']} of {expected}")
    return WebRun(tuple(found["arrivals"]), used.peak_megabytes)
