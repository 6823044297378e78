"""How much memory a million tuples take on their way through operators that must remember them, and how
far a source gets ahead of a slow consumer.

`python -m aioflow.benchmarks.memory ROWS MEMORY_BYTES` is the process whose memory is measured.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Iterator
from dataclasses import asdict, dataclass
from time import perf_counter

import aioflow
from aioflow import Engine
from aioflow.benchmarks.growth import claim_growth, curve
from aioflow.benchmarks.harness import Bench, at_most, experiment
from aioflow.benchmarks.harness.child import peak_megabytes
from aioflow.benchmarks.harness.processes import run_process

DEFAULT_MEMORY_BYTES = 32 * 1024 * 1024  # of an Engine

# Twelve operators, each of which gets every tuple. distinct, union and join remember all of them,
# the join those of both inputs, which stem from one producer.
TWELVE = """
PLAN twelve { INPUT: visits OUTPUT: summary BODY {
    select (visits, "n >= 0" : valid)
    project (valid, "n, city, n % 100 as beds" : houses)
    format (houses, "https://homes.example/{n}" : linked) {AS: "url"}
    distinct (linked : different)
    project (different, "n as id, url" : keys)
    project (different, "n, city, beds" : details)
    select (details, "beds < 100" : affordable)
    union (affordable, details : offers)
    join (offers, keys, "left.n = right.id" : joined)
    select (joined, "n = id" : matching)
    project (matching, "n, url" : brief)
    aggregate (brief, "count() as n" : summary) {RELATION: false}
} }
"""
SLOW = """
PLAN slow { INPUT: visits OUTPUT: fresh BODY {
    select (visits, "n >= 0" : valid)
    project (valid, "n, city, n % 100 as beds" : houses)
    distinct (houses : different)
    union (different, houses : fresh)
} }
"""


@dataclass(frozen=True)
class Passage:
    """How a run went."""

    count: int  # of rows
    seconds: float
    growth_megabytes: float
    spilled_rows: int


def visits(count: int) -> Iterator[dict[str, object]]:
    """Tuples, made one by one."""
    return ({"n": n, "city": f"city {n % 1000}"} for n in range(count))


async def pass_through(count: int, memory_bytes: int = DEFAULT_MEMORY_BYTES) -> Passage:
    """Send so many tuples through twelve operators; growth is of the peak, since before the run."""
    program = aioflow.loads(TWELVE)
    async with Engine(memory_bytes=memory_bytes) as engine:
        await engine.run(program, visits=visits(10))  # loads what is loaded late
        before, started = peak_megabytes(), perf_counter()
        result = await engine.run(program, visits=visits(count))
        growth = peak_megabytes() - before
    return Passage(result[0]["n"], perf_counter() - started, growth, result.statistics.spilled_rows)


async def greatest_lead(consumed: int, *, slow_seconds: float) -> int:
    """How many tuples a source is ahead of a consumer that takes its time for each, at most.

    Without pauses a source of a run gives a tuple in far less than a hundredth of `slow_seconds`.
    """
    given = 0

    async def source() -> AsyncGenerator[dict[str, object], None]:
        nonlocal given
        for row in visits(1_000_000):
            given += 1
            yield row

    lead = taken = 0
    async with Engine() as engine, engine.stream(aioflow.loads(SLOW), visits=source()) as rows:
        async for _ in rows:
            taken += 1
            lead = max(lead, given - taken)
            if taken == consumed:
                break
            await asyncio.sleep(slow_seconds)
    return lead


@experiment(
    "How do time and memory grow with the number of tuples, and does a slow consumer hold its source back?",
    work="1,000 to 1,000,000 tuples through twelve operators, of which three must remember all of them: what "
    "does not fit into 32 MB goes to disk; each size in a process of its own",
    limit="linear in time, and at most the memory that the engine may use",
)
def memory(bench: Bench) -> None:
    counts: tuple[int, ...] = bench.size((1_000, 10_000, 100_000, 1_000_000), (500, 2_000))
    for each in bench.rounds(1, warm_up=0):
        found = {count: _apart(count) for count in each.shuffled(counts)}
        for count in counts:
            bench.sample(f"{count:,} tuples, time", "s", found[count].seconds)
            bench.sample(f"{count:,} tuples, memory", "MB", found[count].growth_megabytes)
            bench.sample(f"{count:,} tuples, rows on disk", "rows", found[count].spilled_rows)
    most = counts[-1]
    bench.claim_median(f"memory for {most:,} tuples", f"{most:,} tuples, memory", at_most(50))
    bench.claim("speed", most / bench.values(f"{most:,} tuples, time")[0], "rows/s")
    time = curve(bench, "time", counts, [f"{count:,} tuples, time" for count in counts])
    grown = curve(bench, "memory", counts, [f"{count:,} tuples, memory" for count in counts])
    claim_growth(bench, "time with tuples", time)
    claim_growth(bench, "memory with tuples", grown)
    bench.plot("Time over tuples", "tuples", "seconds", [time], logarithmic_x=True, logarithmic_y=True)
    bench.plot("Memory over tuples", "tuples", "MB", [grown], logarithmic_x=True)
    lead = asyncio.run(greatest_lead(bench.size(2_000, 100), slow_seconds=0.001))
    bench.claim("lead of a source over a consumer 100 times slower", lead, "rows", at_most(16 * 256))


def _apart(count: int) -> Passage:
    passage = Passage(**run_process("aioflow.benchmarks.memory", count, DEFAULT_MEMORY_BYTES))
    if passage.count != count:
        raise AssertionError(f"{passage.count} of {count} tuples came through")
    return passage


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(pass_through(int(sys.argv[1]), int(sys.argv[2]))))))
