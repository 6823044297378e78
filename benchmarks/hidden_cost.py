"""The processor time and the memory of a crawl of a hidden database.

`python -m aioflow.benchmarks.hidden_cost time|memory ALGORITHM K TUPLES` is the process that is measured.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tracemalloc
from collections.abc import Mapping
from statistics import fmean
from time import process_time
from typing import Any

from aioflow.benchmarks.harness import Bench, at_most, experiment
from aioflow.benchmarks.harness.child import MEGABYTE
from aioflow.benchmarks.harness.processes import run_process
from aioflow.benchmarks.hidden_forms import DIAMONDS, Form, Row, Table, crawl_form, read_table
from aioflow.hidden import crawl

_MODULE = "aioflow.benchmarks.hidden_cost"
_MILLI = 1000
_TIME = "processor time of a query"


def processor_time(table: Table, k: int, algorithm: Any, late_from: int) -> dict[str, float]:
    """Return the milliseconds a query without those of the form: of the first fifth, and late ones."""
    form = Form(table, k)
    spent: list[float] = []  # the own time of the crawl before each query
    seen: list[int] = []
    since = process_time()
    count = 0

    def found(number: int) -> None:
        nonlocal count
        count = number

    async def query(conditions: Mapping[str, Any]) -> tuple[list[Row], bool]:
        nonlocal since
        await asyncio.sleep(0)  # the reader has its turn
        spent.append(process_time() - since)
        seen.append(count)
        answer = await form(conditions)
        since = process_time()
        return answer

    asyncio.run(crawl_form(table, form, algorithm, query=query, found=found))
    early = [each for each, number in zip(spent[1:], seen[1:], strict=True) if number < late_from // 5]
    late = [each for each, number in zip(spent, seen, strict=True) if number >= late_from]
    return {
        "early": fmean(early) * _MILLI,
        "late": fmean(late) * _MILLI,
    }


async def memory(table: Table, k: int, algorithm: Any) -> dict[str, float]:
    """Return the megabytes that a crawl allocates at most, while its reader keeps nothing."""
    form = Form(table, k)

    async def query(conditions: Mapping[str, Any]) -> tuple[list[Row], bool]:
        await asyncio.sleep(0)
        rows, more = await form(conditions)
        return [(*row,) for row in rows], more  # as a source would send them

    found = 0
    tracemalloc.start()
    async with crawl(query, table.attributes(), k=k, algorithm=algorithm) as crawled:
        async for _ in crawled:
            found += 1
    most = tracemalloc.get_traced_memory()[1] / MEGABYTE
    tracemalloc.stop()
    if found != len(table) or not crawled.report.complete:
        raise AssertionError(f"{found} of {len(table)} tuples: {crawled.report.statement()}")
    return {"megabytes": most}


@experiment(
    "What does a query cost the machine that crawls, and how much memory does a crawl take?",
    work="53,940 diamonds with ten attributes, for several k: the processor time of a query without that of "
    "the form, once 50,000 tuples were seen, and in the first fifth of them; the memory that Python "
    "allocates, where the tuples are not kept; each in a process of its own",
    limit="none: a query reads up to k tuples",
    name="hidden-cost",
)
def hidden_cost(bench: Bench) -> None:
    rows, late_from = bench.size((53_940, 50_000), (600, 500))
    every_k, algorithms = bench.size(((64, 256), ("auto", "hybrid")), ((32,), ("auto",)))
    for each in bench.rounds(5, warm_up=0):
        for k in each.shuffled(every_k):
            for algorithm in each.shuffled(algorithms):
                found = run_process(_MODULE, "time", algorithm, k, rows, late_from)
                for when, spent in found.items():
                    bench.sample(f"{algorithm} with k {k}, {when}", "ms", spent, figure=_TIME)
                bench.moved(rows)
    for _ in bench.rounds(1, warm_up=0):
        for k in every_k:
            for algorithm in algorithms:
                taken = run_process(_MODULE, "memory", algorithm, k, rows, late_from)
                bench.sample(f"{algorithm} with k {k}, memory", "MB", taken["megabytes"])
    for k in every_k:
        for algorithm in algorithms:
            name = f"{algorithm} with k {k}"
            what = f"{name}: {_TIME} after {late_from:,} tuples"
            bench.claim_median(what, f"{name}, late", at_most(1))
            bench.claim_ratio(f"{what}, of one in the first fifth", f"{name}, late", f"{name}, early")
            bench.claim_median(f"{name}: memory", f"{name}, memory")


def main(what: str, algorithm: str, k: str, rows: str, late_from: str) -> None:
    table = read_table(DIAMONDS, int(rows))
    if what == "time":
        found = processor_time(table, int(k), algorithm, int(late_from))
    else:
        found = asyncio.run(memory(table, int(k), algorithm))
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
