"""The data sets of theorems 3 and 4 of Sheng, Zhang, Tao and Jin (2012), on which every algorithm is slow."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

from aioflow.benchmarks.harness import Bench, at_most, experiment
from aioflow.benchmarks.hidden_forms import Table, crawl_table, made_table
from aioflow.benchmarks.hidden_series import sample_queries
from aioflow.hidden.algorithms.choice import Algorithm

_NUMERIC: tuple[Algorithm, ...] = ("binary-shrink", "rank-shrink", "auto")
_CATEGORICAL: tuple[Algorithm, ...] = ("dfs", "slice-cover", "lazy-slice-cover", "auto")
# Algorithms that theorem 1 is about, and ours.
_BOUND = ("rank-shrink", "slice-cover", "lazy-slice-cover", "auto")


@dataclass(frozen=True)
class HardForm:
    """A form of which a theorem says how many queries any algorithm needs at least."""

    name: str
    table: Table
    k: int
    least: float


def ranges(d: int, k: int, m: int) -> HardForm:
    """Return figure 7: m points with k tuples each, and beside each of them one tuple on every attribute."""
    rows = []
    for group in range(1, m + 1):
        rows += [(group,) * d] * k
        rows += [_beside((group,) * d, place, group + 1) for place in range(d)]
    table = made_table([f"A{place + 1}" for place in range(d)], rows, 0)
    return HardForm(f"theorem 3, d {d}, k {k}, m {m}", table, k, d * m)


def menus(d: int, values: int) -> HardForm:
    """Return figure 8, for k = d/2: each tuple has one value on all menus but one.

    The proof counts at least d/8 queries for each pair of values, or 2^(d/4) in all.
    """
    rows = [
        _beside((group,) * d, place, (group + 1) % values) for group in range(values) for place in range(d)
    ]
    table = made_table([f"A{place + 1}" for place in range(d)], rows, d)
    least = min(d / 8 * comb(values, 2), 2 ** (d / 4))
    return HardForm(f"theorem 4, d {d}, k {d // 2}, U {values}", table, d // 2, least)


def _beside(point: tuple[int, ...], place: int, value: int) -> tuple[int, ...]:
    return (*point[:place], value, *point[place + 1 :])


@experiment(
    "How many queries do the hardest forms take?",
    work="the data sets of theorems 3 and 4 of the paper on hidden databases (its figures 7 and 8): points "
    "with k tuples and single tuples beside them, and tuples that agree on all menus but one",
    limit="what the theorems prove: for ranges d·m queries; for menus d/8 for each pair of values, or "
    "2^(d/4) in all",
    name="hidden-worst",
)
def hidden_worst(bench: Bench) -> None:
    numeric = bench.size((ranges(6, 64, 100), ranges(32, 64, 30)), (ranges(3, 8, 5),))
    categorical = bench.size((menus(34, 3), menus(40, 5), menus(48, 9)), (menus(8, 3),))
    forms = [(each, _NUMERIC) for each in numeric] + [(each, _CATEGORICAL) for each in categorical]
    for _ in bench.rounds(1, warm_up=0):
        for form, algorithms in forms:
            for algorithm in algorithms:
                _measure(bench, form, algorithm)


def _measure(bench: Bench, form: HardForm, algorithm: Algorithm) -> None:
    found = crawl_table(form.table, form.k, algorithm)
    name = f"{algorithm}, {form.name}"
    sample_queries(bench, algorithm, found, form.name, form.least)
    bench.claim_limit(f"{name}: queries, of the least", name)
    if algorithm in _BOUND:
        bench.claim(f"{name}: queries, of the bound of theorem 1", found.of_bound, "x", at_most(1))
