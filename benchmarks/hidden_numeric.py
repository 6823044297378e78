"""Figure 10 of Sheng, Zhang, Tao and Jin (2012): the algorithms for forms of ranges."""

from __future__ import annotations

from aioflow.benchmarks.harness import Bench, experiment
from aioflow.benchmarks.hidden_forms import ADULT, MENUS, read_table
from aioflow.benchmarks.hidden_series import (
    ALL_K,
    MIDDLE_K,
    SHARES,
    measure_series,
    over_d,
    over_k,
    over_n,
)
from aioflow.hidden.algorithms.choice import Algorithm

_ALGORITHMS: tuple[Algorithm, ...] = ("binary-shrink", "rank-shrink", "auto")


@experiment(
    "How many queries does a form of ranges take?",
    work="figure 10 of the paper on hidden databases: the six numeric attributes of 45,222 tuples of Adult, "
    "extracted for k from 64 to 1,024, for the 3 to 6 attributes with the most values, and for samples of 20 "
    "to 100 % (both for k = 256). Only binary-shrink is told the ends of the ranges",
    limit="n/k: no answer has more than k of the n tuples",
    name="hidden-numeric",
)
def hidden_numeric(bench: Bench) -> None:
    table = read_table(ADULT, bench.size(None, 1_000)).without_first(MENUS[ADULT])
    k = bench.size(MIDDLE_K, 64)
    tables = [table.without_last(6 - d) for d in bench.size((3, 4, 5, 6), (5, 6))]
    for _ in bench.rounds(1, warm_up=0):
        for series in (
            over_k(table, bench.size(ALL_K, (64, 128))),
            over_d(tables, k),
            over_n(table, k, bench.size(SHARES, (50, 100))),
        ):
            measure_series(bench, series, _ALGORITHMS)
