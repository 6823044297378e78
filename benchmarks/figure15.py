"""Figure 15 of the paper: against a network query engine, which streams but cannot loop over result pages."""

from __future__ import annotations

from aioflow.benchmarks.harness import Bench, experiment
from aioflow.benchmarks.web_runs import (
    LATENCY_SECONDS,
    PAGES,
    PER_PAGE,
    QUICK_LATENCY_SECONDS,
    WORKERS,
    WebRun,
    run_job,
)
from aioflow.demo.running import running_site

HOUSES = PAGES * PER_PAGE
JOBS = {"D+S+": "houses", "page by page": "houses_by_page"}


@experiment(
    "What does it cost not to be able to follow the Next links at once?",
    work=f"Homeseekers: {HOUSES} houses on {PAGES} pages, {WORKERS} workers, 100 ms a request. Page by "
    "page is what a network query engine can do: one page and its houses in parallel, then the next page",
    limit="page by page 12 times a page and a house (2.4 s); D+S+ 12 pages and the last one's houses (1.3 s)",
    name="figure-15",
)
def figure_15(bench: Bench) -> None:
    latency = bench.size(LATENCY_SECONDS, QUICK_LATENCY_SECONDS)
    limits = {"D+S+": (PAGES + 1) * latency, "page by page": 2 * PAGES * latency}
    runs: dict[str, WebRun] = {}
    with running_site(latency=latency, results=HOUSES) as site:
        for each in bench.rounds(5):
            for name in each.shuffled(JOBS):
                runs[name] = run_job(JOBS[name], site.url, WORKERS, expected=HOUSES)
            for name in JOBS:
                bench.sample(f"{name}, last tuple", "s", runs[name].last, limit=limits[name])
                bench.sample(f"{name}, first tuple", "s", runs[name].first, limit=2 * latency)
    bench.claim_ratio(
        "page by page / D+S+, to the last tuple", "page by page, last tuple", "D+S+, last tuple"
    )
    bench.claim_ratio(
        "page by page / D+S+, to the first tuple", "page by page, first tuple", "D+S+, first tuple"
    )
    bench.claim_limit("page by page, to the last tuple, of its limit", "page by page, last tuple")
    bench.plot("Tuples over time", "seconds", "tuples", [runs[name].curve(name) for name in JOBS], steps=True)
