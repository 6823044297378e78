"""How much sooner 15 workers extract a hidden database: simulated on the virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aioflow.benchmarks.harness import Bench, Curve, at_least, experiment
from aioflow.benchmarks.hidden_forms import (
    ADULT,
    DIAMONDS,
    MENUS,
    NSF,
    Crawled,
    Form,
    Row,
    Table,
    crawl_form,
    read_table,
)
from aioflow.benchmarks.hidden_series import MIDDLE_K
from aioflow.hidden.algorithms.choice import Algorithm
from aioflow.testing import run

_WORKERS, _SECONDS = 15, 0.1
_ALGORITHMS: Mapping[str, tuple[Algorithm, ...]] = {
    "Adult's ranges": ("binary-shrink", "rank-shrink", "auto"),
    "NSF": ("dfs", "slice-cover", "lazy-slice-cover", "auto"),
    "Adult": ("hybrid", "auto"),
    "diamonds": ("hybrid", "auto"),
}


@dataclass(frozen=True)
class SimulatedCrawl:
    """A crawl on the virtual clock, with the moment of each tuple."""

    found: Crawled
    seconds: float
    arrivals: tuple[float, ...]

    def curve(self, name: str) -> Curve:
        points = list(enumerate(self.arrivals, 1))[:: max(1, len(self.arrivals) // 200)]
        return Curve(name, ((0.0, 0.0), *((moment, count) for count, moment in points)))


def simulate(table: Table, k: int, algorithm: Algorithm, workers: int) -> SimulatedCrawl:
    """Crawl a form that takes its time for each query."""
    form = Form(table, k)
    arrivals: list[float] = []

    async def query(conditions: Mapping[str, Any]) -> tuple[list[Row], bool]:
        await asyncio.sleep(_SECONDS)
        return await form(conditions)

    async def main() -> SimulatedCrawl:
        clock = asyncio.get_running_loop().time
        found = await crawl_form(
            *(table, form, algorithm),
            workers=workers,
            query=query,
            found=lambda count: arrivals.append(clock()),
        )
        return SimulatedCrawl(found, clock(), tuple(arrivals))

    return run(main())


@experiment(
    f"How much sooner do {_WORKERS} workers extract a hidden database than one?",
    work=f"Adult, its ranges, the diamonds and the awards of NSF behind forms that take {_SECONDS * 1000:g} "
    f"ms for a query, for k = {MIDDLE_K}, on the virtual clock",
    limit="the queries of n/k full answers, by all workers",
    name="simulated-hidden",
)
def simulated_hidden(bench: Bench) -> None:
    k, at_most = bench.size((MIDDLE_K, None), (32, 500))
    adult = read_table(ADULT, at_most)
    tables = {
        "Adult's ranges": adult.without_first(MENUS[ADULT]),
        "NSF": read_table(NSF, at_most),
        "Adult": adult,
        "diamonds": read_table(DIAMONDS, at_most),
    }
    for _ in bench.rounds(1, warm_up=0):
        for name, table in tables.items():
            drawn = [_measure(bench, name, table, k, algorithm) for algorithm in _ALGORITHMS[name]]
            title = f"Tuples over time with {_WORKERS} workers, {name}"
            bench.plot(title, "seconds", "tuples", drawn, origin="simulated")


def _measure(bench: Bench, name: str, table: Table, k: int, algorithm: Algorithm) -> Curve:
    one, all_workers = (simulate(table, k, algorithm, workers) for workers in (1, _WORKERS))
    for workers, each in ((1, one), (_WORKERS, all_workers)):
        limit = max(1.0, each.found.least / workers) * _SECONDS
        figure = f"{name} by {workers} worker{'s' if workers > 1 else ''}"
        bench.sample(
            *(f"{algorithm}, {figure}", "s", each.seconds),
            limit=limit,
            origin="simulated",
            figure=figure,
        )
    bench.moved(2 * len(table))
    more = all_workers.found.queries / one.found.queries
    bench.claim(
        f"{algorithm} on {name}: one worker / {_WORKERS} workers, to the end",
        one.seconds / all_workers.seconds,
        "x",
        at_least(8) if algorithm != "auto" else None,
        f"{one.found.queries:,} queries by one worker, {more:.2f} times as many by {_WORKERS}",
        origin="simulated",
    )
    return all_workers.curve(algorithm)
