"""How Homeseekers grows with the pages of a site, the houses on a page, and the latency of a request."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace

from aioflow.benchmarks.growth import claim_growth, curve
from aioflow.benchmarks.harness import Bench, Curve, experiment
from aioflow.benchmarks.limits import limit_of
from aioflow.benchmarks.web_runs import WORKERS, WebRun, run_job
from aioflow.demo.running import Site, running_site


@dataclass(frozen=True)
class Size:
    """Of a site."""

    pages: int = 12
    per_page: int = 6
    latency: float = 0.05

    @property
    def houses(self) -> int:
        return self.pages * self.per_page

    @property
    def limit(self) -> float:
        return limit_of("D+S+", self.pages, self.per_page, WORKERS, self.latency).last


@dataclass(frozen=True)
class Series:
    """Sizes that differ in one thing."""

    what: str
    unit: str
    values: Sequence[float]
    sizes: Sequence[Size]


def series(
    base: Size, pages: Sequence[int], houses: Sequence[int], latencies: Sequence[float]
) -> list[Series]:
    return [
        Series("pages", "pages", pages, [replace(base, pages=each) for each in pages]),
        Series("houses on a page", "houses", houses, [replace(base, per_page=each) for each in houses]),
        Series("latency", "seconds", latencies, [replace(base, latency=each) for each in latencies]),
    ]


FULL = series(Size(), (3, 6, 12, 24, 48), (3, 6, 12, 24), (0.01, 0.02, 0.05, 0.1, 0.2))
QUICK = series(Size(4, 2, 0.005), (2, 4), (2, 4), (0.005, 0.01))[:1]  # each site takes a second to start


@experiment(
    "How do time and memory grow with pages, houses on a page, and latency?",
    work=f"Homeseekers with {WORKERS} workers on sites of 3 to 48 pages, 3 to 24 houses on a page, and 10 to "
    "200 ms a request; while one varies there are 12 pages with 6 houses, and 50 ms a request. The sites are "
    "processes of their own",
    limit="the pages one after the other and the houses of the last one; all requests by all workers",
)
def site_size(bench: Bench) -> None:
    compared: list[Series] = bench.size(FULL, QUICK)
    sizes = list(dict.fromkeys(size for each in compared for size in each.sizes))
    with ExitStack() as stack:
        sites = {size: stack.enter_context(_site(size)) for size in sizes}
        if not bench.quick:
            _run(sizes[0], sites[sizes[0]])
        for each in bench.rounds(1, warm_up=0):
            runs = {size: _run(size, sites[size]) for size in each.shuffled(sizes)}
            for size in sizes:
                bench.sample(f"{_name(size)}, last tuple", "s", runs[size].last, limit=size.limit)
                bench.sample(f"{_name(size)}, peak memory", "MB", runs[size].peak_megabytes)
    for growing in compared:
        names = [_name(size) for size in growing.sizes]
        measured = curve(bench, "measured", growing.values, [f"{name}, last tuple" for name in names])
        memory = curve(bench, "memory", growing.values, [f"{name}, peak memory" for name in names])
        limits = Curve(
            "limit", tuple(zip(growing.values, (size.limit for size in growing.sizes), strict=True))
        )
        claim_growth(bench, f"time with {growing.what}", measured)
        claim_growth(bench, f"memory with {growing.what}", memory)
        bench.plot(
            f"Time to the last tuple over {growing.what}",
            growing.unit,
            "seconds",
            [measured, limits],
            logarithmic_x=True,
            logarithmic_y=True,
        )


def _name(size: Size) -> str:
    return f"{size.pages} x {size.per_page} at {size.latency * 1000:g} ms"


def _site(size: Size) -> AbstractContextManager[Site]:
    """One that does nothing while it is not asked: all of them can run at the same time."""
    return running_site(latency=size.latency, results=size.houses, per_page=size.per_page)


def _run(size: Size, site: Site) -> WebRun:
    return run_job("houses", site.url, WORKERS, expected=size.houses)
