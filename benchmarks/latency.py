"""How long a tuple is under way through five operators when nothing else holds it up."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator
from statistics import median
from time import perf_counter

import aioflow
from aioflow import Engine
from aioflow.plan import Program
from benchmarks.experiment import Effort, Line, at_most, experiment

# `given` is the moment at which the source gives the tuple.
PLAN = """
PLAN first_tuple { INPUT: rows, known OUTPUT: all BODY {
    select (rows, "group != 'city 7'" : wanted)
    project (wanted, "key, value, given" : brief)
    apply (brief, "read_price" : computed)
    distinct (computed, "key" : fresh)
    union (fresh, known : all)
} }
"""
MILLISECONDS = 1000
_PAUSE_SECONDS = 0.003


async def slow_source(count: int) -> AsyncGenerator[dict[str, object], None]:
    """Tuples with pauses before them, in which the run has nothing left to do."""
    for n in range(count):
        await asyncio.sleep(_PAUSE_SECONDS)
        yield {"key": n, "group": "Irvine", "value": "$ 450,500", "given": perf_counter()}


async def delays(program: Program, count: int) -> list[float]:
    """The seconds that each tuple of one run was under way, in their order."""
    async with Engine() as engine:
        stream = engine.stream(program, rows=slow_source(count), known=[])
        return [perf_counter() - row["given"] async for row in stream]


@experiment("How long is a tuple under way through five operators?")
def measure(effort: Effort) -> list[Line]:
    import benchmarks.pipeline  # noqa: F401  # registers the function

    program = aioflow.loads(PLAN)
    runs = []
    for _ in range(effort.rounds(101)):
        gc.collect()
        runs.append(asyncio.run(delays(program, 1)))
    first = [run[0] for run in runs]
    later = asyncio.run(delays(program, effort.size(1001, 5)))[1:]
    return [
        Line("first tuple of a run, median", median(first) * MILLISECONDS, "ms", at_most(1)),
        Line("later tuples of a slow source, median", median(later) * MILLISECONDS, "ms"),
    ]
