"""Homeseekers on a site with a heavy tail, through real sockets, with and without restarts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from aioflow.benchmarks.harness import Bench, Curve, at_most, experiment
from aioflow.benchmarks.web_runs import PAGES, PER_PAGE, QUICK_LATENCY_SECONDS, WORKERS, WebRun, run_job
from aioflow.demo.running import running_site
from aioflow.demo.site.requests import Latency

MEDIAN_SECONDS, SIGMA = 0.04, 1.5
HOUSES = PAGES * PER_PAGE
# The most extra requests for each request, over time: the default, and none to speak of.
CAPS = {"restarts, 5 % extra requests": "0.05", "restarts, without a cap": "10"}
_LEARNING_RUNS = 8


@experiment(
    "How much sooner is the last tuple there if slow requests are sent again?",
    work=f"Homeseekers: {HOUSES} houses on {PAGES} pages, {WORKERS} workers, through real sockets; the site "
    f"is a process of its own, with lognormal latencies: a median of 40 ms, sigma {SIGMA}, so that one "
    f"request in a hundred takes more than 1.3 s. RESTART: auto, after {_LEARNING_RUNS} runs to learn from",
    limit="the longest chain of pages and a house, of the latencies that a run meets",
)
def restarts(bench: Bench) -> None:
    latency = Latency(bench.size(MEDIAN_SECONDS, QUICK_LATENCY_SECONDS), SIGMA)
    names = ("no restarts", *CAPS)
    runs: dict[str, list[WebRun]] = {name: [] for name in names}
    with (
        TemporaryDirectory() as folder,
        running_site(latency=str(latency), results=HOUSES, per_page=PER_PAGE) as site,
    ):
        files = {name: str(Path(folder) / f"{number}.sqlite") for number, name in enumerate(CAPS)}

        def run(name: str) -> WebRun:
            if name not in CAPS:
                return run_job("houses", site.url, WORKERS, expected=HOUSES)
            arguments = (CAPS[name], files[name])
            return run_job("restarted_houses", site.url, WORKERS, *arguments, expected=HOUSES)

        for name in CAPS:
            for _ in range(bench.size(_LEARNING_RUNS, 1)):
                run(name)
        for each in bench.rounds(30, warm_up=0):
            for name in each.shuffled(names):
                site.clear_log()
                found = run(name)
                runs[name].append(found)
                bench.sample(f"{name}, last tuple", "s", found.last)
                bench.sample(f"{name}, half of the tuples", "s", found.arrivals[HOUSES // 2])
                bench.sample(f"{name}, requests", "requests", len(site.log()))
    for name in CAPS:
        goal = at_most(1.0)
        bench.claim_ratio(
            f"{name}: time to the last tuple", f"{name}, last tuple", "no restarts, last tuple", goal
        )
        bench.claim_ratio(f"{name}: requests", f"{name}, requests", "no restarts, requests")
    curves = [_median_curve(name, runs[name]) for name in names]
    bench.plot("Tuples over time, the median of all rounds", "seconds", "tuples", curves, steps=True)


def _median_curve(name: str, runs: Sequence[WebRun]) -> Curve:
    """Return the tuples over time, each at the median of its moments."""
    moments = [median(moments) for moments in zip(*(run.arrivals for run in runs), strict=True)]
    return Curve(name, ((0.0, 0.0), *((moment, count) for count, moment in enumerate(moments, 1))))
