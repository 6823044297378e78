"""How much memory a million tuples take on their way through operators that must remember them, and how
far a source gets ahead of a slow consumer.

`python -m benchmarks.memory ROWS MEMORY_BYTES` is the process whose memory is measured.
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
from benchmarks.experiment import Effort, Line, at_most, experiment
from benchmarks.processes import peak_megabytes, run_apart

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

    rows: int
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


@experiment("How much memory do a million tuples take, and does a slow consumer hold its source back?")
def measure(effort: Effort) -> list[Line]:
    count = effort.size(1_000_000, 2_000)
    passage = Passage(**run_apart("benchmarks.memory", count, DEFAULT_MEMORY_BYTES))
    if passage.rows != count:
        raise AssertionError(f"{passage.rows} of {count} tuples came through")
    lead = asyncio.run(greatest_lead(effort.size(2_000, 100), slow_seconds=0.001))
    return [
        Line(f"{count:,} tuples through 12 operators", passage.growth_megabytes, "MB", at_most(50)),
        Line("rows that were on disk", passage.spilled_rows, "rows"),
        Line("speed", count / passage.seconds, "rows/s"),
        Line("lead of a source over a consumer 100 times slower", lead, "rows", at_most(16 * 256)),
    ]


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(pass_through(int(sys.argv[1]), int(sys.argv[2]))))))
