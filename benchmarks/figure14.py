"""Figure 14 of the paper: Homeseekers one request at a time, as dataflow, and as streaming dataflow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from aioflow.benchmarks.harness import Bench, at_most, experiment
from aioflow.benchmarks.harness.results import Goal
from aioflow.benchmarks.limits import Limit, limit_of, limit_of_drawn
from aioflow.benchmarks.web_runs import (
    LARGE_PER_PAGE,
    LATENCY_SECONDS,
    PAGES,
    PER_PAGE,
    QUICK_LATENCY_SECONDS,
    WORKERS,
    WebRun,
    run_job,
)
from aioflow.demo.running import Site, running_site
from aioflow.demo.site.houses import STANDARD_SEARCH, Catalogue
from aioflow.demo.site.requests import Latency, Switches, fate_of
from aioflow.runtime.session import MODES, Mode

# Less than where all are equal: ten rounds with D- take their time.
MEDIAN_SECONDS, SIGMA = 0.04, 0.5
_LAST_GOALS = {"D-": at_most(1.05), "D+S-": at_most(1.10), "D+S+": at_most(1.10)}
_FIRST_GOAL = at_most(1.15)


def sample_modes(bench: Bench, modes: Sequence[Mode], per_page: int, rounds: int) -> dict[Mode, WebRun]:
    """Sample every mode in every round; returns the last run of each."""
    latency = bench.size(LATENCY_SECONDS, QUICK_LATENCY_SECONDS)
    runs: dict[Mode, WebRun] = {}
    houses = PAGES * per_page
    with running_site(latency=latency, results=houses, per_page=per_page) as site:
        if not bench.quick:
            run_job("houses", site.url, WORKERS, expected=houses)  # a warm-up of D- would tell no more
        for each in bench.rounds(rounds, warm_up=0):
            for mode in each.shuffled(modes):
                runs[mode] = run_job("houses", site.url, WORKERS, mode, expected=houses)
            for mode in modes:
                limit = limit_of(mode, PAGES, per_page, WORKERS, latency)
                bench.sample(f"{mode}, last tuple", "s", runs[mode].last, limit=limit.last)
                bench.sample(f"{mode}, first tuple", "s", runs[mode].first, limit=limit.first)
    return {mode: runs[mode] for mode in modes}


def claim_limits(bench: Bench, mode: Mode, last_goal: Goal, per_page: int) -> None:
    limit = limit_of(mode, PAGES, per_page, WORKERS, LATENCY_SECONDS)
    bench.claim_limit(
        f"{mode}, to the last tuple, of its limit of {limit.last:.1f} s", f"{mode}, last tuple", last_goal
    )
    if mode == "D+S+":
        bench.claim_limit(
            f"{mode}, to the first tuple, of its limit of {limit.first:.1f} s",
            f"{mode}, first tuple",
            _FIRST_GOAL,
        )


def _claim_saved(bench: Bench, modes: Sequence[Mode]) -> None:
    """How much longer these modes take than D+S+."""
    for mode in modes:
        for which in ("last tuple", "first tuple"):
            bench.claim_ratio(f"{mode} / D+S+, to the {which}", f"{mode}, {which}", f"D+S+, {which}")


@experiment(
    "How much do dataflow and streaming save, and how near does each mode come to its limit?",
    work=f"Homeseekers: {PAGES * PER_PAGE} houses on {PAGES} pages, {WORKERS} workers, 100 ms a request; the "
    "site is a process of its own. D- is one request at a time, D+S- runs operators in parallel, D+S+ "
    "streams as well",
    limit="D- 84 requests one after the other (8.4 s); D+S- 12 pages, then 72 houses by 15 workers (1.7 s); "
    "D+S+ 12 pages and the houses of the last one (1.3 s), a page and a house to the first tuple (0.2 s)",
    name="figure-14",
)
def figure_14(bench: Bench) -> None:
    runs = sample_modes(bench, MODES, PER_PAGE, rounds=10)
    for mode in MODES:
        claim_limits(bench, mode, _LAST_GOALS[mode], PER_PAGE)
    _claim_saved(bench, MODES[:-1])
    bench.plot(
        "Tuples over time", "seconds", "tuples", [run.curve(mode) for mode, run in runs.items()], steps=True
    )


@experiment(
    "How near to its limit is streaming where the workers are what limits?",
    work=f"Homeseekers: {PAGES * LARGE_PER_PAGE} houses on {PAGES} pages, {WORKERS} workers, 100 ms a "
    "request; the site is a process of its own",
    limit="372 requests by 15 workers, where only the first page can be asked for at first: 2.6 s to the "
    "last tuple, 0.2 s to the first",
    name="figure-14-large",
)
def figure_14_large(bench: Bench) -> None:
    runs = sample_modes(bench, ["D+S+"], bench.size(LARGE_PER_PAGE, 8), rounds=10)
    claim_limits(bench, "D+S+", at_most(1.10), LARGE_PER_PAGE)
    bench.plot("Tuples over time", "seconds", "tuples", [runs["D+S+"].curve("D+S+")], steps=True)


# --- latencies that vary ------------------------------------------------------------------------


@experiment(
    "What is left of it where some requests take much longer than others?",
    work=f"Homeseekers as in figure 14, but the latencies are lognormal: a median of 40 ms, sigma {SIGMA}, "
    "drawn by a seed for each request of each run",
    limit="that of the latencies which a run met: for D+S+ the longest chain of pages and a house",
    name="figure-14-lognormal",
)
def figure_14_lognormal(bench: Bench) -> None:
    latency = Latency(bench.size(MEDIAN_SECONDS, QUICK_LATENCY_SECONDS), SIGMA)
    modes: Sequence[Mode] = bench.size(MODES, MODES[-1:])
    houses = PAGES * PER_PAGE
    runs: dict[Mode, tuple[WebRun, Limit]] = {}
    with running_site(latency=str(latency), results=houses, per_page=PER_PAGE) as site:
        if not bench.quick:
            run_job("houses", site.url, WORKERS, expected=houses)
        for each in bench.rounds(10, warm_up=0):
            for mode in each.shuffled(modes):
                run = run_job("houses", site.url, WORKERS, mode, expected=houses)
                runs[mode] = run, _limit_of_last_run(site, mode, latency)
            for mode in modes:
                run, limit = runs[mode]
                bench.sample(f"{mode}, last tuple", "s", run.last)
                bench.sample(f"{mode}, first tuple", "s", run.first)
                bench.sample(f"{mode}, last tuple of its limit", "x", run.last / limit.last)
                bench.sample(f"{mode}, first tuple of its limit", "x", run.first / limit.first)
    for mode in modes:
        bench.claim_median(f"{mode}, to the last tuple, of its limit", f"{mode}, last tuple of its limit")
    bench.claim_median("D+S+, to the first tuple, of its limit", "D+S+, first tuple of its limit")
    _claim_saved(bench, modes[:-1])
    curves = [runs[mode][0].curve(mode) for mode in modes]
    bench.plot("Tuples over time, in the last round", "seconds", "tuples", curves, steps=True)


def _limit_of_last_run(site: Site, mode: Mode, latency: Latency) -> Limit:
    """By the latencies that the site drew for it."""
    switches = Switches(latency, results=PAGES * PER_PAGE, per_page=PER_PAGE)
    asked: Counter[str] = Counter()
    drawn: dict[str, float] = {}
    pages: dict[str, None] = {}  # in the order in which they were asked for, which is theirs
    for request in site.log():
        asked[request.path] += 1
        drawn[request.path] = fate_of(switches, request.path, asked[request.path]).latency_seconds
        if request.path.startswith("/search"):
            pages[request.path] = None
    houses = [drawn[house.path] for house in Catalogue(results=switches.results).find(STANDARD_SEARCH)]
    on_pages = [houses[start : start + PER_PAGE] for start in range(0, len(houses), PER_PAGE)]
    return limit_of_drawn(mode, [drawn[path] for path in pages], on_pages, WORKERS)
