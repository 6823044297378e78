"""Figures 12 and 13 of Sheng, Zhang, Tao and Jin (2012): forms of menus and ranges."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from aioflow.benchmarks.harness import Bench, Curve, experiment
from aioflow.benchmarks.hidden_forms import ADULT, DIAMONDS, Form, Row, Table, crawl_form, read_table
from aioflow.benchmarks.hidden_series import ALL_K, MIDDLE_K, measure_series, over_k
from aioflow.hidden.algorithms.choice import Algorithm

_ALGORITHMS: tuple[Algorithm, ...] = ("hybrid", "auto")
_POINTS = 100  # of a curve
_HALF = "share of the tuples after half of the queries"
_HALF = "tuples after half of the queries"


def _tables(bench: Bench) -> dict[str, Table]:
    at_most = bench.size(None, 1_000)
    return {"Adult": read_table(ADULT, at_most), "diamonds": read_table(DIAMONDS, at_most)}


@experiment(
    "How many queries does a form of menus and ranges take?",
    work="figure 12 of the paper on hidden databases: 45,222 tuples of Adult with 8 menus and 6 ranges, and "
    "53,940 diamonds with 3 menus and 7 ranges (in place of the paper's cars), extracted for k from 64 to "
    "1,024",
    limit="n/k: no answer has more than k of the n tuples",
    name="hidden-mixed",
)
def hidden_mixed(bench: Bench) -> None:
    for _ in bench.rounds(1, warm_up=0):
        for name, table in _tables(bench).items():
            series = over_k(table, bench.size(ALL_K, (64, 128)), f", {name}")
            measure_series(bench, series, _ALGORITHMS)


@experiment(
    "Do tuples arrive steadily while a form is crawled?",
    work="figure 13 of the paper on hidden databases: the share of the tuples of Adult and of the diamonds "
    f"that have arrived after each share of the queries, for k = {MIDDLE_K}",
    limit="none: a steady algorithm has found half of the tuples after half of its queries",
    name="hidden-progress",
)
def hidden_progress(bench: Bench) -> None:
    k = bench.size(MIDDLE_K, 64)
    for _ in bench.rounds(1, warm_up=0):
        for name, table in _tables(bench).items():
            curves = {each: _progress(table, k, each) for each in _ALGORITHMS}
            for algorithm, curve in curves.items():
                what = f"{algorithm} on {name}, {_HALF}"
                bench.sample(what, "x", curve.points[_POINTS // 2][1] / 100, figure=_HALF)
                bench.claim_median(what, what)
                lag = max(x - y for x, y in curve.points) / 100
                bench.claim(f"{algorithm} on {name}, the most by which tuples lag behind queries", lag, "x")
            title = f"Tuples over queries, {name}"
            bench.plot(title, "% of the queries", "% of the tuples", list(curves.values()))


def _progress(table: Table, k: int, algorithm: Algorithm) -> Curve:
    """Return the share of tuples after each share of queries, in per cent."""
    form = Form(table, k)
    counts: list[int] = []  # the tuples that had arrived before each query
    arrived = 0

    def found(count: int) -> None:
        nonlocal arrived
        arrived = count

    async def query(conditions: Mapping[str, Any]) -> tuple[list[Row], bool]:
        await asyncio.sleep(0)  # the reader has its turn
        counts.append(arrived)
        return await form(conditions)

    asyncio.run(crawl_form(table, form, algorithm, query=query, found=found))
    counts.append(arrived)
    last = len(counts) - 1
    places = [number * last // _POINTS for number in range(_POINTS + 1)]
    return Curve(algorithm, tuple((100 * each / last, 100 * counts[each] / counts[-1]) for each in places))
