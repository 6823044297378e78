"""How much memory tuples under way take: those that a source has given and no reader has got yet.

`python -m aioflow.benchmarks.in_flight CAPACITY TAKEN` is the process that is measured.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import AsyncGenerator
from dataclasses import asdict, dataclass
from statistics import median

import aioflow
from aioflow import Engine
from aioflow.benchmarks.growth import claim_growth, curve
from aioflow.benchmarks.harness import Bench, at_most, experiment
from aioflow.benchmarks.harness.child import resident_megabytes
from aioflow.benchmarks.harness.processes import run_process

PLAN = """
PLAN under_way { INPUT: visits (n number, city char, url char) OUTPUT: brief BODY {
    select (visits, "n >= 0" : valid)
    project (valid, "n, city, url, n % 100 as beds" : houses)
    format (houses, "$ {n}" : priced) {AS: "price"}
    select (priced, "beds >= 0" : known)
    project (known, "n, url, price" : brief)
} }
"""
SMALL, LARGE = 256, 16_384  # rows in a queue: the engine's default, and more
# What the allocator keeps; more than that would grow with the stream.
FLAT_MEGABYTES = 2


@dataclass(frozen=True)
class Stall:
    """What a run holds when its reader has stopped reading."""

    count: int  # of rows that it has read
    in_flight: int
    grown_megabytes: float  # since before the run
    megabytes: float  # of the whole process


async def stall(capacity_rows: int, taken: int) -> Stall:
    """Take so many tuples, then wait until the queues before are full."""
    program = aioflow.loads(PLAN)
    given = 0

    async def source() -> AsyncGenerator[dict[str, object], None]:
        nonlocal given
        while True:
            given += 1
            yield {"n": given, "city": f"city {given % 1000}", "url": f"https://homes.example/{given}"}

    async with Engine(capacity_rows=capacity_rows) as engine:
        await engine.run(program, visits=[{"n": 1, "city": "Irvine", "url": "https://homes.example/1"}])
        gc.collect()
        before, got = resident_megabytes(), 0
        async with engine.stream(program, visits=source()) as rows:
            async for _, records in rows.batches():
                got += len(records)
                if got >= taken:
                    break
            seen = -1
            while seen != given:  # until nothing moves any more
                seen = given
                for _ in range(100):
                    await asyncio.sleep(0)
            gc.collect()
            now = resident_megabytes()
            return Stall(got, given - got, now - before, now)


@experiment(
    "How much memory do a thousand tuples under way take, and is it the same for long streams?",
    work="a source that never ends and a reader that stops after 10,000 to 1,000,000 tuples, with five "
    "operators between them: the memory of the process when all queues are full; each in its own process",
    limit="flat: what has been read is gone",
)
def in_flight(bench: Bench) -> None:
    lengths: tuple[int, ...] = bench.size((10_000, 100_000, 1_000_000), (500, 2_000))
    cases = [(SMALL, length) for length in lengths] + [(LARGE, lengths[0])]
    for each in bench.rounds(1, warm_up=0):
        found = {case: _apart(*case) for case in each.shuffled(cases)}
        small, large = found[SMALL, lengths[0]], found[LARGE, lengths[0]]
        more = large.in_flight - small.in_flight
        bench.sample(
            "1,000 tuples under way", "MB", (large.grown_megabytes - small.grown_megabytes) / more * 1000
        )
        for length in lengths:
            bench.sample(f"after {length:,} tuples, memory", "MB", found[SMALL, length].megabytes)
            bench.sample(f"after {length:,} tuples, under way", "tuples", found[SMALL, length].in_flight)
    names = [f"after {length:,} tuples, memory" for length in lengths]
    drawn = curve(bench, "memory", lengths, names)
    bench.claim_median("memory of 1,000 tuples under way", "1,000 tuples under way")
    later = median(bench.values(names[-1])) - median(bench.values(names[0]))
    bench.claim(
        f"memory after {lengths[-1]:,} tuples, more than after {lengths[0]:,}",
        later,
        "MB",
        at_most(FLAT_MEGABYTES),
    )
    claim_growth(bench, "memory with the length of the stream", drawn)
    bench.plot("Memory over the length of the stream", "tuples read", "MB", [drawn], logarithmic_x=True)


def _apart(capacity_rows: int, taken: int) -> Stall:
    return Stall(**run_process("aioflow.benchmarks.in_flight", capacity_rows, taken))


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(stall(int(sys.argv[1]), int(sys.argv[2]))))))
