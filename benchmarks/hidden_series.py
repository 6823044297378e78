"""Queries of several algorithms on forms that differ in one thing, such as k or the number of tuples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aioflow.benchmarks.growth import claim_growth
from aioflow.benchmarks.harness import Bench, Curve, at_most
from aioflow.benchmarks.hidden_forms import Crawled, Table, crawl_table
from aioflow.hidden.algorithms.choice import Algorithm

LEAST = "n/k"
ALL_K = (64, 128, 256, 512, 1024)
MIDDLE_K = 256
SHARES = (20, 40, 60, 80, 100)


@dataclass(frozen=True)
class Series:
    """Forms that differ in one thing; `x` names it on the axis of a plot."""

    what: str
    x: str
    forms: Mapping[float, tuple[Table, int]]  # the tuples and k by the value of that thing


def over_k(table: Table, every_k: Sequence[int], of: str = "") -> Series:
    return Series(f"k{of}", "k", {float(k): (table, k) for k in every_k})


def over_d(tables: Sequence[Table], k: int) -> Series:
    return Series("d", "attributes", {float(len(each.names)): (each, k) for each in tables})


def over_n(table: Table, k: int, shares: Sequence[int]) -> Series:
    """Samples of a table, by their share in per cent."""
    tables = {float(share): table if share == 100 else table.sampled(share / 100) for share in shares}
    return Series("n", "% of the tuples", {share: (each, k) for share, each in tables.items()})


def measure_series(
    bench: Bench, series: Series, algorithms: Sequence[Algorithm], *, logarithmic_y: bool = False
) -> None:
    """Sample and plot the queries of algorithms: ours is the last, the best of the paper the one before."""
    found = {each: _crawls(bench, series, each) for each in algorithms}
    curves = [_curve(name, series, [each.queries for each in crawls]) for name, crawls in found.items()]
    least = _curve(LEAST, series, [each.least for each in found[algorithms[0]]])
    bench.plot(
        f"Queries over {series.what}",
        series.x,
        "queries",
        [*curves, least],
        logarithmic_x=series.x == "k",
        logarithmic_y=logarithmic_y or series.x == "k",
    )
    _claim(bench, series, found, algorithms[-1], algorithms[-2])
    if series.x != "attributes":
        for curve in curves[-2:]:
            claim_growth(bench, f"queries of {curve.name} with {series.what}", curve)


def _crawls(bench: Bench, series: Series, algorithm: Algorithm) -> list[Crawled]:
    crawls = []
    for x, (table, k) in series.forms.items():
        crawls.append(crawl_table(table, k, algorithm))
        sample_queries(bench, f"{algorithm} at {x:g}", crawls[-1], f"queries over {series.what}")
    return crawls


def _curve(name: str, series: Series, values: Sequence[float]) -> Curve:
    return Curve(name, tuple(zip(series.forms, values, strict=True)))


def sample_queries(bench: Bench, name: str, found: Crawled, figure: str, limit: float | None = None) -> None:
    """Sample the queries of a variant of a figure beside those that no algorithm can do without."""
    bench.sample(f"{name}, {figure}", "queries", found.queries, limit=limit or found.least, figure=figure)
    bench.moved(found.n)


def _claim(
    bench: Bench,
    series: Series,
    found: Mapping[Algorithm, Sequence[Crawled]],
    ours: Algorithm,
    theirs: Algorithm,
) -> None:
    pairs = list(zip(found[ours], found[theirs], strict=True))
    what = f"{ours} over {series.what}: the most queries, of"
    bench.claim(f"{what} n/k", max(each.queries / each.least for each, _ in pairs), "x")
    bench.claim(f"{what} those of {theirs}", max(each.queries / other.queries for each, other in pairs), "x")
    bench.claim(f"{what} the bound of theorem 1", max(each.of_bound for each, _ in pairs), "x", at_most(1))
