"""How many queries it takes to extract a hidden database again."""

from __future__ import annotations

from collections.abc import Sequence

from aioflow.benchmarks.harness import Bench, at_most, experiment
from aioflow.benchmarks.hidden_forms import ADULT, DIAMONDS, NSF, Crawled, Row, Table, crawl_table, read_table
from aioflow.benchmarks.hidden_series import MIDDLE_K, sample_queries

_SHARE = 0.99
FIRST, AGAIN, CHANGED = "first", "again", "again, with 1 % new"


@experiment(
    "How much does it spare to know the tuples of an earlier crawl?",
    work=f"Adult, the diamonds and the awards of NSF extracted by auto for k = {MIDDLE_K}, and again with "
    "the tuples of the first crawl: once all of them, and once without 1 % of them, which are new then",
    limit="n/k: no answer has more than k of the n tuples",
    name="hidden-again",
)
def hidden_again(bench: Bench) -> None:
    k, rows = bench.size((MIDDLE_K, None), (32, 500))
    tables = {
        "Adult": read_table(ADULT, rows),
        "diamonds": read_table(DIAMONDS, rows),
        "NSF": read_table(NSF, rows),
    }
    for _ in bench.rounds(1, warm_up=0):
        for name, table in tables.items():
            _measure(bench, name, table, k)
    for name in tables:
        goal = at_most(0.7) if name == "Adult" else None
        first, again, changed = (f"{each}, {name}" for each in (FIRST, AGAIN, CHANGED))
        bench.claim_ratio(f"{name}: queries when nothing is new, of the first crawl", again, first, goal)
        bench.claim_ratio(f"{name}: queries when 1 % is new, of the first crawl", changed, first)


def _measure(bench: Bench, name: str, table: Table, k: int) -> None:
    for variant, known in ((FIRST, ()), (AGAIN, table.rows), (CHANGED, table.sampled(_SHARE).rows)):
        found = crawl_table(table, k, "auto", known=known)
        _expect_changes(found, table, known)
        sample_queries(bench, variant, found, name)


def _expect_changes(found: Crawled, table: Table, known: Sequence[Row]) -> None:
    added, removed = found.report.added, found.report.removed
    if known and (added is None or added.total() != len(table) - len(known) or removed):
        raise AssertionError(f"a crawl of {len(table)} tuples, {len(known)} of them known, found {added} new")
