"""The memory with which diff compares a table of a million rows, beside one of a hundred thousand.

`python -m aioflow.benchmarks.diff_memory FILE ROWS CHANGED` is the process whose memory is measured.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import aioflow
from aioflow import Engine
from aioflow.benchmarks.harness import Bench, at_most, experiment
from aioflow.benchmarks.harness.processes import ProcessUsage, measure_process

PLAN = """
PLAN watched { INPUT: houses (url char, address char, price number, beds number) OUTPUT: counts BODY {
    diff (houses, "houses" : added, changed, removed) {KEY: "url"; GUARD: off; FIRST: news}
    aggregate (added, "count() as added" : some) {RELATION: false}
    aggregate (changed, "count() as changed" : others) {RELATION: false}
    join (some, others, "true" : counts)
} }
"""
# Of a hundred rows one has another price in the second run.
_CHANGED_EACH = 100


def houses(count: int, changed: int) -> Iterator[dict[str, object]]:
    """Houses, made one by one; `changed` is added to the price of some."""
    for n in range(count):
        yield {
            "url": f"https://homes.example/houses/irvine-{1_000_000 + 7 * n}",
            "address": f"{n % 9000 + 1} Alder Street, Irvine, CA 92612",
            "price": 250_000 + n * 7919 % 900_000 + (changed if n % _CHANGED_EACH == 0 else 0),
            "beds": 1 + n % 6,
        }


async def compare(file: str, count: int, changed: int) -> dict[str, float]:
    """How many rows were added and changed, and the seconds that it took."""
    program = aioflow.loads(PLAN)
    started = perf_counter()
    async with Engine(configuration={"database": {"default": {"url": f"sqlite:{file}"}}}) as engine:
        (found,) = await engine.run(program, houses=houses(count, changed))
    return {
        "count": count,
        "added": found["added"],
        "changed": found["changed"],
        "seconds": perf_counter() - started,
    }


@experiment(
    "Does the memory of diff grow with the table?",
    work="a table of 100,000 and one of 1,000,000 houses in SQLite, compared with as many that come in, of "
    "which one in a hundred has another price; the peak memory, each in a process of its own",
    limit="flat: the memory that the engine may use, 32 MB",
    name="diff-memory",
)
def diff_memory(bench: Bench) -> None:
    sizes: tuple[int, int] = bench.size((100_000, 1_000_000), (200, 400))
    for each in bench.rounds(1, warm_up=0):
        found = {size: _second_run(size) for size in each.shuffled(sizes)}
        for size in sizes:
            bench.sample(f"{size:,} rows, peak memory", "MB", found[size].peak_megabytes)
            bench.sample(f"{size:,} rows, speed", "rows/s", size / found[size].found["seconds"])
    small, large = (f"{size:,} rows, peak memory" for size in sizes)
    bench.claim_ratio(
        f"peak memory with {sizes[1]:,} rows, of that with {sizes[0]:,}", large, small, at_most(1.2)
    )
    bench.claim_median(f"peak memory with {sizes[1]:,} rows", large)
    bench.claim_median(f"speed with {sizes[1]:,} rows", f"{sizes[1]:,} rows, speed")


def _second_run(size: int) -> ProcessUsage:
    """The first run fills the table; the second finds what has changed."""
    with TemporaryDirectory(prefix="aioflow-bench-") as folder:
        file = Path(folder, "houses.db")
        _expect(asyncio.run(compare(str(file), size, 0)), added=size, changed=0)
        run = measure_process(
            "aioflow.benchmarks.diff_memory", file, size, 1000, profiled_as=f"diff of {size:,} rows"
        )
    _expect(run.found, added=0, changed=-(-size // _CHANGED_EACH))
    return run


def _expect(found: Mapping[str, float], **expected: int) -> None:
    if {name: found[name] for name in expected} != expected:
        raise AssertionError(f"diff found {dict(found)}, not {expected}")


def main(file: str, count: str, changed: str) -> None:
    print(json.dumps(asyncio.run(compare(file, int(count), int(changed)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
