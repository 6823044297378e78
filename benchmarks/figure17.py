"""Figure 17 of the paper: FEC-Yahoo-Crime with 3, 6 and 10 workers, and with one worker for each operator."""

from __future__ import annotations

from dataclasses import dataclass

from aioflow.benchmarks.harness import Bench, experiment
from aioflow.benchmarks.web_runs import WebRun, run_job
from aioflow.demo.running import running_site
from aioflow.demo.site.campaign import Campaign

YAHOO_SECONDS = 0.1
CRIME_SECONDS = 0.25


@dataclass(frozen=True)
class System:
    """A system that runs the query: the number of workers in all, and whether each operator has its own."""

    name: str
    workers: int
    each_one: bool = False


# Three operators that ask a source, so three workers.
TELEGRAPH = System("Telegraph", 3, each_one=True)
SYSTEMS = (TELEGRAPH, *(System(f"THESEUS-{workers}", workers) for workers in (3, 6, 10)))


# The file comes piece by piece, each of which takes as long as a page.
PIECES = 12


def limit_seconds(system: System, zips: int, yahoo: float, crime: float) -> float:
    """To the last tuple: a piece of the file, then the slowest source, or all requests by all workers."""
    if system.each_one:
        return yahoo + zips * crime
    return max(PIECES * yahoo, yahoo + max(crime, zips * (yahoo + crime) / system.workers))


@experiment(
    "Does the same query get faster with workers than with one for each operator?",
    work="FEC-Yahoo-Crime: contributors of some 35 zip codes, joined with incomes (100 ms a zip code) and "
    "crime (250 ms, the slowest source); THESEUS has so many workers in all, Telegraph one for each operator "
    "that asks a source. The sites are processes of their own",
    limit="Telegraph 250 ms for each zip code; THESEUS all requests by all workers",
    name="figure-17",
)
def figure_17(bench: Bench) -> None:
    below = bench.size("40", "05")
    scale = bench.size(1.0, 0.05)
    yahoo, crime = YAHOO_SECONDS * scale, CRIME_SECONDS * scale
    zips, expected = _joined(below)
    systems: tuple[System, ...] = bench.size(SYSTEMS, SYSTEMS[::3])
    runs: dict[str, WebRun] = {}
    with running_site(latency=yahoo) as site, running_site(latency=crime) as crime_site:

        def run(system: System) -> WebRun:
            each = "WORKERS: 1" if system.each_one else ""
            more = (crime_site.url, below, each)
            return run_job("contributions", site.url, system.workers, *more, expected=expected)

        if not bench.quick:
            run(systems[-1])  # a warm-up of the slowest would tell no more
        for each in bench.rounds(5, warm_up=0):
            for system in each.shuffled(systems):
                runs[system.name] = run(system)
            for system in systems:
                limit = limit_seconds(system, zips, yahoo, crime)
                bench.sample(f"{system.name}, last tuple", "s", runs[system.name].last, limit=limit)
                bench.sample(f"{system.name}, first tuple", "s", runs[system.name].first, limit=yahoo + crime)
    for system in systems:
        if system is not TELEGRAPH:
            bench.claim_ratio(
                f"Telegraph / {system.name}, to the last tuple",
                "Telegraph, last tuple",
                f"{system.name}, last tuple",
            )
    for system in systems:
        bench.claim_limit(f"{system.name}, to the last tuple, of its limit", f"{system.name}, last tuple")
    curves = [runs[system.name].curve(system.name) for system in systems]
    bench.plot("Tuples over time", "seconds", "tuples", curves, steps=True)


def _joined(below: str) -> tuple[int, int]:
    """How many zip codes are asked about, and how many contributors the sources know all of."""
    campaign = Campaign()
    contributions = [each for each in campaign.contributions if each.zip < below]
    known = campaign.neighborhoods.keys() & campaign.crimes.keys()
    return len({each.zip for each in contributions}), sum(each.zip in known for each in contributions)
