"""python -m tests.hidden.goals: the cost of auto relative to the paper's algorithms, on the real data sets.

A table shows each goal with the figure. The command fails if a goal is missed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from statistics import mean
from typing import Any

import msgspec

from aioflow.testing import run
from tests.hidden.crawls import Row, SlowForm, data_form, data_set, extract
from tests.hidden.forms import ADULT, DIAMONDS, NSF

SEEDS = 5
MANY_WORKERS = 15
RANKED_AT_MOST, MANY_WORKERS_AT_MOST = 1.15, 1.05


class Setting(msgspec.Struct, frozen=True):
    """Some columns of a data set, with the paper's algorithm for them."""

    title: str
    data: str
    algorithm: str
    first: int = 0  # column


ADULT_NUMERIC = Setting("Adult, numbers", ADULT, "rank-shrink", 8)
ADULT_MIXED = Setting("Adult, all", ADULT, "hybrid")
DIAMONDS_NUMERIC = Setting("diamonds, numbers", DIAMONDS, "rank-shrink", 3)
DIAMONDS_MIXED = Setting("diamonds, all", DIAMONDS, "hybrid")
NSF_MENUS = Setting("NSF", NSF, "lazy-slice-cover")

# The most queries of auto, as a share of those of the paper's algorithm: (setting, k, share).
SHARES = [
    (ADULT_NUMERIC, 256, 0.65),
    (ADULT_NUMERIC, 1024, 0.55),
    (ADULT_MIXED, 256, 0.35),
    (ADULT_MIXED, 1024, 0.30),
    (DIAMONDS_MIXED, 256, 0.65),
    (DIAMONDS_MIXED, 1024, 0.55),
    (NSF_MENUS, 32, 0.9),
    (NSF_MENUS, 64, 0.8),
    (NSF_MENUS, 128, 0.8),
    (NSF_MENUS, 256, 0.8),
    (NSF_MENUS, 512, 1.0),
    (NSF_MENUS, 1024, 1.0),
]
RANKED = [(setting, k) for setting in (ADULT_NUMERIC, DIAMONDS_NUMERIC) for k in (64, 256, 1024)]
WITH_WORKERS = [
    (ADULT_NUMERIC, 64),
    (ADULT_NUMERIC, 256),
    (ADULT_NUMERIC, 1024),
    (ADULT_MIXED, 256),
    (DIAMONDS_MIXED, 256),
    (DIAMONDS_MIXED, 1024),
    (NSF_MENUS, 64),
    (NSF_MENUS, 256),
]


class Ranking(msgspec.Struct, frozen=True):
    """A server that shows the tuples with the lowest, or highest, values of a column first."""

    name: str
    place: int
    is_falling: bool

    def __call__(self, row: Row) -> Any:
        return -row[self.place] if self.is_falling else row[self.place]

    def __str__(self) -> str:
        return f"{self.name} {'falling' if self.is_falling else 'rising'}"


class Figure(msgspec.Struct, frozen=True):
    """A figure and its goal, the most that it may be."""

    title: str
    k: int
    cost: float
    base: float
    goal: float

    @property
    def ratio(self) -> float:
        return self.cost / self.base

    @property
    def is_met(self) -> bool:
        return self.ratio <= self.goal

    def __str__(self) -> str:
        return (
            f"{self.title:<72} {self.k:>5} {self.base:>9,.1f} {self.cost:>9,.1f} {self.ratio:>6.3f} "
            f"{self.goal:>6.2f}  {'met' if self.is_met else 'MISSED'}"
        )


@cache
def cost(
    setting: Setting,
    k: int,
    algorithm: str,
    *,
    seed: int = 0,
    ranked_by: Ranking | None = None,
    workers: int = 1,
) -> int:
    """Return the queries of a crawl, which must be complete."""
    form, attributes = data_form(setting.data, k, setting.first, seed=seed, ranked_by=ranked_by)
    # Without delay, the first of many workers would do all the work.
    query = SlowForm(form, 0.1) if workers > 1 else form
    result = run(extract(query, attributes, k=k, algorithm=algorithm, workers=workers))
    if not result.report.complete or len(result.rows) != len(form.rows):
        raise AssertionError(f"{setting.title}, k = {k}, {algorithm}: {result.report.statement()}")
    return len(form.queries)


# --- figures ----------------------------------------------------------------------------------------------


def share(setting: Setting, k: int, goal: float, seeds: int = SEEDS) -> Figure:
    """Return the mean cost of auto by that of the paper's algorithm."""
    costs, bases = (
        [cost(setting, k, algorithm, seed=seed) for seed in range(seeds)]
        for algorithm in ("auto", setting.algorithm)
    )
    return Figure(f"{setting.title}: auto / {setting.algorithm}", k, mean(costs), mean(bases), goal)


def rankings(setting: Setting) -> Iterator[Ranking]:
    names, _, _ = data_set(setting.data, setting.first)
    for place, name in enumerate(names):
        yield Ranking(name, place, False)
        yield Ranking(name, place, True)


def ranked(setting: Setting, k: int, ranking: Ranking, workers: int = 1) -> Figure:
    base = cost(setting, k, setting.algorithm, ranked_by=ranking)
    found = cost(setting, k, "auto", ranked_by=ranking, workers=workers)
    by = f"auto by {workers} workers" if workers > 1 else "auto"
    return Figure(f"{setting.title} by {ranking}: {by} / {setting.algorithm}", k, found, base, RANKED_AT_MOST)


def worst_ranked(setting: Setting, k: int, workers: int = 1) -> Figure:
    """Return the worst figure of auto on servers that rank by an attribute."""
    return max(
        (ranked(setting, k, ranking, workers) for ranking in rankings(setting)),
        key=lambda figure: figure.ratio,
    )


def with_workers(setting: Setting, k: int, seeds: int = SEEDS) -> Figure:
    """Return the worst figure of many workers by one worker."""
    title = f"{setting.title}: auto, {MANY_WORKERS} workers / 1"
    return max(
        (
            Figure(
                title,
                k,
                cost(setting, k, "auto", seed=seed, workers=MANY_WORKERS),
                cost(setting, k, "auto", seed=seed),
                MANY_WORKERS_AT_MOST,
            )
            for seed in range(seeds)
        ),
        key=lambda figure: figure.ratio,
    )


def figures(seeds: int) -> Iterator[Figure]:
    for setting, k, goal in SHARES:
        yield share(setting, k, goal, seeds)
    for setting, k in RANKED:
        yield worst_ranked(setting, k)
        yield worst_ranked(setting, k, MANY_WORKERS)
    for setting, k in WITH_WORKERS:
        yield with_workers(setting, k, seeds)


def _print_all(found: Iterable[Figure], write: Callable[[str], None]) -> int:
    write(f"{'data and algorithms':<72} {'k':>5} {'base':>9} {'cost':>9} {'ratio':>6} {'goal':>6}")
    missed = 0
    for figure in found:
        write(str(figure))
        missed += not figure.is_met
    write(f"{missed} goals missed")
    return 1 if missed else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.hidden.goals",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of random priorities, from 0 on")
    options = parser.parse_args()
    return _print_all(figures(options.seeds), lambda line: print(line, flush=True))


if __name__ == "__main__":
    sys.exit(main())
