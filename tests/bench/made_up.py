"""Results with likely numbers, as a full run would give them, and all that a report has to show."""

import random
from functools import cache

from aioflow.benchmarks.harness import Curve, Results
from aioflow.benchmarks.harness.experiment import Bench, Experiment
from aioflow.benchmarks.harness.results import Finding, Origin, at_least, at_most

# Name, seconds to the first and last tuple, and the limits of both.
MODES = (("D-", 8.52, 8.55, 8.3, 8.4), ("D+S-", 1.74, 1.76, 1.6, 1.7), ("D+S+", 0.212, 1.36, 0.2, 1.3))


@cache
def made_up_results(quick: bool = False) -> Results:
    """A run on a machine that does not exist."""
    return Results(
        (modes(), peers(), over_time(), scaling(), in_the_paper(), broken()),
        quick,
        "2026-11-16T10:00:00+00:00",
        {
            "processor": "Imaginary 9000",
            "cores": 2,
            "memory_megabytes": 25275,
            "system": "Linux 6.18.44",
            "architecture": "x86_64",
        },
        {"aioflow": "0.1.0", "Python": "CPython 3.11.7", "aiohttp": "3.14.5", "scrapy": "2.13.0"},
        "6c6cc08d1f1b2f2d3c4b5a69788796a5b4c3d2e1",
        True,
    )


def finding(bench: Bench, name: str, question: str, work: str, limit: str = "", failure: str = "") -> Finding:
    made = bench.finding(Experiment(name, question, work, limit, lambda bench: None))
    load = {"load_before": 0.4, "load_after": 1.1, "collections": [812, 74, 3], "megahertz": [2445, 2450]}
    shares = {"own_share": 0.41, "others_share": 0.03, "stolen_share": 0.02}
    return Finding(**vars(made) | {"seconds": 143.2, "conditions": load | shares, "failure": failure})


def modes(rounds: int = 12) -> Finding:
    bench, chance = Bench(), random.Random(5)
    for _ in bench.rounds(rounds):
        slow = chance.gauss(0, 0.01)
        for mode, first, last, first_limit, last_limit in MODES:
            near = abs(chance.gauss(slow, 0.012))
            bench.sample(f"{mode}, first tuple", "s", first + near, limit=first_limit)
            bench.sample(f"{mode}, last tuple", "s", last + near * 1.5, limit=last_limit)
    bench.claim_limit("D+S+ to the last tuple, of its limit", "D+S+, last tuple", at_most(1.10))
    bench.claim_limit("D+S+ to the first tuple, of its limit", "D+S+, first tuple", at_most(1.15))
    bench.claim_limit("D- to the last tuple, of its limit", "D-, last tuple", at_most(1.05))
    bench.claim_limit(
        "D+S- to the last tuple, of its limit", "D+S-, last tuple", at_most(1.03), "a goal that is missed"
    )
    bench.claim_ratio("D- beside D+S+, to the last tuple", "D-, last tuple", "D+S+, last tuple")
    curves = [Curve(mode, arrivals(first, last)) for mode, first, last, _, _ in MODES]
    bench.plot("Tuples over time", "seconds since the start", "tuples", curves, steps=True)
    bench.note("The site answers every request after 100 ms; the three modes share one process for the site.")
    return finding(
        bench,
        "figure-14",
        "How long do the three modes take to the first and to the last tuple?",
        "Homeseekers: 72 houses on 12 result pages, 15 workers, each answer after 100 ms",
        "The requests that must wait for each other: 84, 17 and 13 of them",
    )


def arrivals(first: float, last: float, count: int = 72) -> tuple[tuple[float, float], ...]:
    chance = random.Random(3)
    moments = sorted([first, last, *(first + (last - first) * chance.random() for _ in range(count - 2))])
    return ((0.0, 0.0), *((moment, number + 1.0) for number, moment in enumerate(moments)))


def peers() -> Finding:
    bench, chance = Bench(), random.Random(8)
    rates = {
        "aioflow": 2890,
        "by hand": 3400,
        "Scrapy, tuned": 537,
        "Scrapy, as documented": 169,
        "Crawlee": 328,
    }
    for _ in bench.rounds(10):
        for tool, rate in rates.items():
            bench.sample(tool, "pages/s", rate * chance.gauss(1, 0.04))
            bench.sample(
                f"{tool} (memory)", "MB", rate**0.4 * 4 * chance.gauss(1, 0.01), figure="peak memory"
            )
    bench.claim_ratio("pages a second, of code by hand", "aioflow", "by hand", at_least(0.8))
    bench.claim_ratio("pages a second, of Scrapy as tuned", "aioflow", "Scrapy, tuned", at_least(5))
    bench.claim_ratio("pages a second, of Crawlee with Parsel", "aioflow", "Crawlee", at_least(8))
    bench.claim(
        "pages a second, of a tool that is not there", None, "x", at_least(2), "it could not be installed"
    )
    return finding(
        bench,
        "peers-crawl",
        "How many pages a second, beside other tools?",
        "5,000 pages with 20 links, no latency",
    )


def over_time() -> Finding:
    bench = Bench()
    pace = {"THESEUS-3": 0.29, "THESEUS-6": 0.135, "THESEUS-10": 0.082, "Telegraph baseline": 0.26}
    curves = []
    for name, seconds in pace.items():
        curves.append(Curve(name, tuple((0.4 + n * seconds, float(n)) for n in range(301))))
    bench.plot("FEC, Yahoo and Crime: tuples over time", "seconds", "tuples", curves, steps=True)
    bench.claim("THESEUS-10 beside the baseline", 0.315, "x", at_most(0.5))
    return finding(
        bench, "figure-17", "Do more workers than operators help?", "A join of three sources, 300 tuples"
    )


def scaling() -> Finding:
    bench = Bench()
    workers = [2.0**n for n in range(8)]
    tuples = [10.0**n for n in (3, 3.5, 4, 4.5, 5, 5.5, 6)]
    bench.plot(
        "Time by workers",
        "workers",
        "seconds to the last tuple",
        [
            Curve("aioflow", tuple((n, 8.4 / n**0.93 + 0.25) for n in workers)),
            Curve("limit", tuple((n, max(8.4 / n, 0.25)) for n in workers)),
        ],
        logarithmic_x=True,
        logarithmic_y=True,
    )
    bench.plot(
        "Time by tuples",
        "tuples",
        "seconds",
        [
            Curve("synchronous generators", tuple((n, n * 1.6e-6) for n in tuples)),
            Curve("aioflow", tuple((n, n * 1.9e-6 + 0.001) for n in tuples)),
            Curve("asyncio.Queue", tuple((n, n * 19e-6) for n in tuples)),
            Curve("aiostream", tuple((n, n * 12e-6) for n in tuples)),
        ],
        logarithmic_x=True,
        logarithmic_y=True,
    )
    bench.plot(
        "Memory by tuples in flight",
        "tuples",
        "MB",
        [Curve("peak", tuple((n, 41 + 3 * (n % 7) / 7) for n in tuples))],
        logarithmic_x=True,
    )
    bench.claim("growth of time with tuples, as a power", 1.01, "x")
    return finding(bench, "scaling", "How do time and memory grow?", "One thing grows at a time")


def in_the_paper() -> Finding:
    bench, chance = Bench(), random.Random(9)
    origin: Origin = "simulated"
    for _ in bench.rounds(10):
        for mode, first, last, _, last_limit in MODES:
            bench.sample(f"{mode}, first tuple", "s", first * 9 * chance.gauss(1, 0.05), origin=origin)
            bench.sample(
                f"{mode}, last tuple",
                "s",
                last * 9 * chance.gauss(1, 0.05),
                limit=last_limit * 8,
                origin=origin,
            )
    bench.claim_ratio("D- beside D+S+, to the last tuple", "D-, last tuple", "D+S+, last tuple", at_least(3))
    curves = [Curve(mode, arrivals(first * 9, last * 9)) for mode, first, last, _, _ in MODES]
    bench.plot(
        "Tuples over time", "seconds on the virtual clock", "tuples", curves, steps=True, origin=origin
    )
    return finding(
        bench,
        "paper-14",
        "And with the latencies of the paper?",
        "Homeseekers, about a second a request, seed 1",
    )


def broken() -> Finding:
    return finding(
        Bench(),
        "broken",
        "What happens when an experiment fails?",
        "None",
        failure="ValueError: it is <broken> & told",
    )
