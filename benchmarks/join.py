"""A hash join inside the engine, against one that is written by hand with a dict.

Both join 2 x 200,000 tuples, one partner each. The engine's join is symmetric: it remembers both
inputs, because either could be the slow one. The hand-written one remembers one input, which it reads
to its end first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import median

import aioflow
from aioflow import Row, Schema
from aioflow.benchmarks.contenders import sample_all
from aioflow.benchmarks.harness import Bench, at_most, experiment
from aioflow.benchmarks.pipeline import run_inside
from aioflow.benchmarks.sources import offer

PLAN = """
PLAN joined { OUTPUT: count BODY {
    offered ("houses" : houses)
    offered ("sales" : sales)
    join (houses, sales, "left.id = right.id" : both)
    counted (both : count)
} }
"""


def dict_join(left: Iterable[Row], right: Iterable[Row]) -> list[Row]:
    """Pairs of rows with the same first column, which appears once."""
    partners: dict[object, list[Row]] = defaultdict(list)
    for row in left:
        partners[row[0]].append(row)
    return [partner + row[1:] for row in right for partner in partners.get(row[0], ())]


@experiment(
    "What does a hash join cost beside one written by hand with a dict?",
    work="2 x 200,000 tuples with one partner each; processor time",
    limit="the join by hand, which remembers one input, and reads that to its end first",
)
def join(bench: Bench) -> None:
    count = bench.size(200_000, 2_000)
    houses: list[Row] = [(n, f"street {n % 1000}") for n in range(count)]
    sales: list[Row] = [(n * 7919 % count, n % 100) for n in range(count)]
    offer("houses", Schema(("id", "street")), houses)
    offer("sales", Schema(("id", "price")), sales)
    program = aioflow.loads(PLAN)
    sample_all(
        bench,
        {"by hand": lambda: len(dict_join(houses, sales)), "engine": lambda: run_inside(program)},
        rounds=7,
    )
    bench.moved(count * bench.rounds_done)
    bench.claim_ratio("join inside the engine, of the dict join by hand", "engine", "by hand", at_most(2))
    bench.claim("speed inside the engine", count / median(bench.values("engine")), "rows/s")
