"""A run with a listener and timing, against the same run that nothing watches.

The listener counts events and adds up the rows of steps, as a display of progress does. Statements that map
batches run where rows are written, watched or not; the levels of a tail recursion are one work list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from statistics import median
from typing import Any

import aioflow
from aioflow import Engine, function
from aioflow.benchmarks import fivestages
from aioflow.benchmarks.contenders import sample_all
from aioflow.benchmarks.harness import Bench, at_most, experiment
from aioflow.benchmarks.pipeline import MEMORY_BYTES, inside_engine
from aioflow.plan import Program
from aioflow.runtime.events import Event, StepEnded

COUNTDOWN = """
PLAN countdown { INPUT: level OUTPUT: levels BODY {
    select (level, "n > 0" : more)
    project (more, "n - 1 as n" : next)
    countdown (next : rest)
    union (level, rest : levels) {ALL}
} }
"""
REQUESTS = """
PLAN requests { INPUT: pages OUTPUT: answers BODY {
    apply (pages, "watching_answer" : answered)
    select (answered, "answer >= 0" : answers)
} }
"""
MOST = 1.05
_MICROSECONDS = 1e6


@function(name="watching_answer", takes="n", returns="answer number")
async def answer(n: int) -> int:
    """A request that is answered two turns of the loop later."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return n


class Watcher:
    """Counts what it is told of."""

    def __init__(self) -> None:
        self.events = 0
        self.rows = 0

    def listen(self, event: Event) -> None:
        self.events += 1
        if isinstance(event, StepEnded):
            self.rows += event.rows_out


def run_once(program: Program, inputs: Mapping[str, Any], *, watched: bool) -> int:
    """How many rows come out."""

    async def main() -> int:
        async with Engine(memory_bytes=MEMORY_BYTES, timing=watched) as engine:
            watcher = Watcher()
            if watched:
                engine.subscribe(watcher.listen)
            found = len(await engine.run(program, **inputs))
        if watched and not watcher.rows:
            raise AssertionError("the watcher saw no rows")
        return found

    return asyncio.run(main())


@experiment(
    "What does it cost to watch a run?",
    work="five operators on 200,000 houses, a tail recursion of 50,000 levels, and 10,000 requests that are "
    "answered at once: with a listener to all events and timing, and without; processor time",
    limit="the same run that nothing watches",
)
def watching(bench: Bench) -> None:
    houses = fivestages.houses(bench.size(200_000, 2_000))
    levels, requests = bench.size(50_000, 500), bench.size(10_000, 100)
    works: dict[str, tuple[Program, dict[str, Any]]] = {
        "five operators": (inside_engine(houses), {}),
        "tail recursion": (aioflow.loads(COUNTDOWN), {"level": [{"n": levels}]}),
        "requests": (aioflow.loads(REQUESTS), {"pages": [{"n": number} for number in range(requests)]}),
    }
    for work, (program, inputs) in works.items():
        contenders = {
            f"{work}, watched": partial(run_once, program, inputs, watched=True),
            f"{work}, unwatched": partial(run_once, program, inputs, watched=False),
        }
        sample_all(bench, contenders, rounds=11)
        if work != "requests":
            bench.claim_ratio(
                f"{work}: watched, of unwatched", f"{work}, watched", f"{work}, unwatched", at_most(MOST)
            )
    watched, unwatched = (median(bench.values(f"requests, {how}")) for how in ("watched", "unwatched"))
    bench.claim("events of a request", (watched - unwatched) / requests * _MICROSECONDS, "us")
    bench.moved((len(houses.rows) + levels + requests) * 2 * bench.rounds_done)
