"""The longest time for which the event loop stands still while operators keep rows on disk.

`python -m aioflow.benchmarks.spilling NAME ROWS MEMORY_BYTES` is the process in which one plan is measured.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import aioflow
from aioflow import Engine
from aioflow.benchmarks.harness import Bench, at_most, experiment
from aioflow.benchmarks.harness.processes import run_process

_MEMORY_BYTES = 1024 * 1024
_BEAT_SECONDS = 0.005  # rare enough to cost nothing beside the work
_COUNTED = 'aggregate (out, "count() as n" : counts) {RELATION: false}'
_COLUMNS = "n number, text char"
BODIES = {
    "minus": "minus (a, b : out)",
    "join": 'join (a, b, "left.n = right.n" : out)',
    "distinct": "distinct (a : out)",
    "sort": 'sort (a, "text" : out)',
    "aggregate": 'aggregate (a, "count() as c" : out) {BY: "n"; RELATION: false}',
    "pack": 'pack (a, "p" : out) {BY: "n"}',
    "diff": 'diff (a, "kept" : out, x, y) {KEY: "n"; GUARD: off; FIRST: news}',
    "dbexport": 'dbexport (a, "kept") project (a, "n" : out)',
}


@dataclass(frozen=True)
class Spilling:
    """The figures of one plan that spilled."""

    seconds: float
    cpu_seconds: float  # of all threads
    longest_block_ms: float
    spilled_rows: int
    count: int  # of results


def rows(count: int, start: int = 0) -> Iterator[dict[str, object]]:
    """Yield tuples with different values, in an order that is not sorted."""
    return ({"n": n * 7919 % count + start, "text": f"{n * 104_729 % count} a text"} for n in range(count))


class Pulse:
    """Notes the longest time between two turns of the loop."""

    def __init__(self) -> None:
        self.longest_seconds = 0.0

    async def beat(self) -> None:
        """Look at the clock from time to time."""
        before = perf_counter()
        while True:
            await asyncio.sleep(_BEAT_SECONDS)
            now = perf_counter()
            self.longest_seconds = max(self.longest_seconds, now - before - _BEAT_SECONDS)
            before = now


async def spill(name: str, count: int, memory_bytes: int) -> Spilling:
    """Run the plan of an operator over so many tuples with so little memory."""
    body = BODIES[name]
    inputs = ["a", "b"] if "(a, b" in body else ["a"]
    declared = ", ".join(f"{each} ({_COLUMNS})" for each in inputs)
    program = aioflow.loads(f"PLAN p {{ INPUT: {declared} OUTPUT: counts BODY {{ {body} {_COUNTED} }} }}")
    with TemporaryDirectory() as folder:
        url = f"sqlite:{Path(folder) / 'kept.sqlite'}"
        async with Engine(
            memory_bytes=memory_bytes, configuration={"database": {"default": {"url": url}}}
        ) as engine:
            await engine.run(program, {each: rows(10) for each in inputs})
            pulse = Pulse()
            beating = asyncio.create_task(pulse.beat())
            started, cpu_started = perf_counter(), process_time()
            sources = {each: rows(count, start * count // 2) for start, each in enumerate(inputs)}
            result = await engine.run(program, sources)
            seconds, cpu_seconds = perf_counter() - started, process_time() - cpu_started
            beating.cancel()
        milliseconds = pulse.longest_seconds * 1000
        return Spilling(seconds, cpu_seconds, milliseconds, result.statistics.spilled_rows, result[0]["n"])


@experiment(
    "For how long does the event loop stand still while operators keep rows on disk?",
    work="200,000 tuples an input and 1 MB of memory, so that nearly all rows go to disk; one operator at a "
    "time, each in a process of its own; a task looks at the clock each 5 ms",
    limit="a few turns of the interpreter between threads, 5 ms each",
)
def spilling(bench: Bench) -> None:
    count: int = bench.size(200_000, 2_000)
    memory_bytes: int = bench.size(_MEMORY_BYTES, 1)
    for each in bench.rounds(3, warm_up=0):
        for name in each.shuffled(tuple(BODIES)):
            found = Spilling(**run_process("aioflow.benchmarks.spilling", name, count, memory_bytes))
            bench.sample(f"{name}, longest block", "ms", found.longest_block_ms)
            bench.sample(f"{name}, speed", "rows/s", count / found.seconds)
            bench.sample(f"{name}, rows on disk", "rows", found.spilled_rows)
    for name in BODIES:
        bench.claim_median(f"longest block of {name}", f"{name}, longest block", at_most(100))
        bench.claim_median(f"speed of {name}", f"{name}, speed")


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(spill(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))))
