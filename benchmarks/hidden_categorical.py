"""Figure 11 of Sheng, Zhang, Tao and Jin (2012): the algorithms for forms of menus."""

from __future__ import annotations

from aioflow.benchmarks.harness import Bench, experiment
from aioflow.benchmarks.hidden_forms import NSF, read_table
from aioflow.benchmarks.hidden_series import (
    ALL_K,
    SHARES,
    measure_series,
    over_d,
    over_k,
    over_n,
)
from aioflow.hidden.algorithms.choice import Algorithm

_ALGORITHMS: tuple[Algorithm, ...] = ("dfs", "slice-cover", "lazy-slice-cover", "auto")
# With a quarter of the paper's tuples, a quarter of its k has the same n/k.
_K = 64


@experiment(
    "How many queries does a form of menus take?",
    work="figure 11 of the paper on hidden databases: 11,252 awards of NSF with nine menus of 5 to 10,115 "
    "values, extracted for k from 16 to 1,024, for the 5 to 9 menus with the most values, and for samples of "
    "20 to 100 % (both for k = 64, as the paper has four times as many tuples)",
    limit="n/k: no answer has more than k of the n tuples",
    name="hidden-categorical",
)
def hidden_categorical(bench: Bench) -> None:
    table = read_table(NSF, bench.size(None, 300))
    tables = [table.without_first(9 - d) for d in bench.size((5, 6, 7, 8, 9), (8, 9))]
    for _ in bench.rounds(1, warm_up=0):
        for series in (
            over_k(table, bench.size((16, 32, *ALL_K), (32, 64))),
            over_d(tables, _K),
            over_n(table, _K, bench.size(SHARES, (50, 100))),
        ):
            measure_series(bench, series, _ALGORITHMS, logarithmic_y=True)
