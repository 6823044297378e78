"""The paper's own latencies, seconds a request: simulated on the virtual clock, without processor time."""

from __future__ import annotations

from aioflow.benchmarks.arrivals import Arrivals
from aioflow.benchmarks.figure17 import CRIME_SECONDS, SYSTEMS, TELEGRAPH, YAHOO_SECONDS
from aioflow.benchmarks.growth import claim_growth
from aioflow.benchmarks.harness import Bench, Curve, at_most, experiment
from aioflow.benchmarks.limits import Limit, limit_of, limit_of_drawn
from aioflow.benchmarks.simulated_sites import (
    CRIME_SITE,
    Latencies,
    SimulatedCampaign,
    SimulatedHomes,
    simulate,
)
from aioflow.benchmarks.web_jobs import contributions, houses, houses_by_page
from aioflow.benchmarks.web_runs import WORKERS
from aioflow.benchmarks.workers import WORKERS as WORKER_COUNTS
from aioflow.runtime.session import MODES

# The paper tells 1,852 ms for a page and one of its houses, and 3,204 ms for a page and all six of them.
# Lognormal latencies with these figures have about these means.
MEDIAN_SECONDS, SIGMA = 1.1, 0.45
_PAGE_BY_PAGE = "page by page"


@experiment(
    "What do the modes and a system without loops need with the paper's own latencies?",
    work=f"Homeseekers: 72 houses on 12 pages, {WORKERS} workers, on the virtual clock; a request takes "
    f"lognormal seconds with median {MEDIAN_SECONDS} and sigma {SIGMA}, so that a page and a house take "
    "about 1.85 s and a page with its six houses about 3.2 s, as the paper tells",
    limit="of the latencies drawn: the longest chain of requests, or all of them by all workers",
    name="simulated-figure-14",
)
def simulated_figure_14(bench: Bench) -> None:
    shown: dict[str, Arrivals] = {}
    for each in bench.rounds(10, warm_up=0):
        site = SimulatedHomes(Latencies(each.number, MEDIAN_SECONDS, SIGMA))
        limits: dict[str, Limit] = {mode: _limit(site, mode) for mode in MODES}
        found = {name: simulate(houses, site, WORKERS, name) for name in limits}
        limits[_PAGE_BY_PAGE] = _limit_by_page(site)
        found[_PAGE_BY_PAGE] = simulate(houses_by_page, site, WORKERS)
        for name, simulation in found.items():
            _sample(bench, name, simulation, limits[name])
            bench.moved(site.count)
        shown = shown or found
    for name in (*MODES, _PAGE_BY_PAGE):
        bench.claim_median(f"{name}, to the last tuple", f"{name}, last tuple")
        bench.claim_median(f"{name}, to the last tuple, of its limit", f"{name}, last tuple of its limit")
    for name in (*MODES[:-1], _PAGE_BY_PAGE):
        bench.claim_ratio(f"{name} / D+S+, to the last tuple", f"{name}, last tuple", "D+S+, last tuple")
    bench.note("The paper's page by page: 38.4 s to the last tuple, 1.85 s to the first.")
    curves = [simulation.curve(name) for name, simulation in shown.items()]
    bench.plot("Tuples over time", "seconds", "tuples", curves, steps=True, origin="simulated")


def _sample(bench: Bench, name: str, found: Arrivals, limit: Limit) -> None:
    bench.sample(f"{name}, last tuple", "s", found.last, origin="simulated")
    bench.sample(f"{name}, first tuple", "s", found.first, origin="simulated")
    bench.sample(f"{name}, last tuple of its limit", "x", found.last / limit.last, origin="simulated")


def _limit(site: SimulatedHomes, mode: str) -> Limit:
    return limit_of_drawn(mode, site.page_seconds(), site.house_seconds(), WORKERS)


def _limit_by_page(site: SimulatedHomes) -> Limit:
    pages, houses_on = site.page_seconds(), site.house_seconds()
    each = [page + max(on_page) for page, on_page in zip(pages, houses_on, strict=True)]
    return Limit(pages[0] + min(houses_on[0]), sum(each))


# --- FEC-Yahoo-Crime ----------------------------------------------------------------------------


@experiment(
    "Does the paper's comparison with Telegraph hold with its own latencies?",
    work="FEC-Yahoo-Crime on the virtual clock: 200 contributors, each of whom takes a request of 100 ms and "
    "one of 250 ms (lognormal, sigma 0.2); 3, 6 and 10 workers, and one worker for each operator",
    limit="one worker for each operator: 250 ms a tuple; else all requests by all workers",
    name="simulated-figure-17",
)
def simulated_figure_17(bench: Bench) -> None:
    count = bench.size(200, 10)
    shown: dict[str, Arrivals] = {}
    for each in bench.rounds(5, warm_up=0):
        yahoo, crime = Latencies(each.number, YAHOO_SECONDS, 0.2), Latencies(each.number, CRIME_SECONDS, 0.2)
        site = SimulatedCampaign(yahoo, crime, count)
        for system in SYSTEMS:
            more = (CRIME_SITE, "99999", "WORKERS: 1" if system.each_one else "")
            found = simulate(contributions, site, system.workers, *more)
            shown.setdefault(system.name, found)
            bench.moved(count)
            bench.sample(f"{system.name}, last tuple", "s", found.last, origin="simulated")
            bench.sample(f"{system.name}, first tuple", "s", found.first, origin="simulated")
    for system in SYSTEMS:
        bench.claim_median(f"{system.name}, to the last tuple", f"{system.name}, last tuple")
    for system in SYSTEMS:
        if system is not TELEGRAPH:
            bench.claim_ratio(
                f"Telegraph / {system.name}, to the last tuple",
                "Telegraph, last tuple",
                f"{system.name}, last tuple",
            )
    curves = [simulation.curve(name) for name, simulation in shown.items()]
    bench.plot("Tuples over time", "seconds", "tuples", curves, steps=True, origin="simulated")


# --- workers ------------------------------------------------------------------------------------


@experiment(
    "Does the order of requests waste workers?",
    work="Homeseekers: 360 houses on 12 pages, one second a request, 1 to 128 workers, on the virtual clock",
    limit="all requests by all workers, where the next page always comes first",
    name="simulated-workers",
)
def simulated_workers(bench: Bench) -> None:
    counts = bench.size(WORKER_COUNTS, (2, 8))
    per_page = bench.size(30, 4)
    limits = {count: limit_of("D+S+", 12, per_page, count, 1.0).last for count in counts}
    site = SimulatedHomes(Latencies(0, 1.0), per_page=per_page)
    for _ in bench.rounds(1, warm_up=0):
        for count in counts:
            found = simulate(houses, site, count)
            name = f"workers {count}, last tuple"
            bench.sample(name, "s", found.last, limit=limits[count], origin="simulated")
            bench.moved(site.count)
    most = max(bench.values(f"workers {count}, last tuple")[0] / limits[count] for count in counts)
    what = f"to the last tuple, of the limit: the most of {counts[0]} to {counts[-1]} workers"
    bench.claim(what, most, "x", at_most(1.05), origin="simulated")
    points = tuple((float(count), bench.values(f"workers {count}, last tuple")[0]) for count in counts)
    claim_growth(bench, "time with workers", Curve("time", points[:4]), origin="simulated")
    bench.plot(
        "Time to the last tuple over workers",
        "workers",
        "seconds",
        [Curve("simulated", points), Curve("limit", tuple(limits.items()))],
        logarithmic_x=True,
        logarithmic_y=True,
        origin="simulated",
    )
