"""How long a tuple is under way through five operators when nothing else holds it up."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator
from importlib import import_module
from statistics import median
from time import perf_counter

import aioflow
from aioflow import Engine
from aioflow.benchmarks.harness import Bench, at_most, experiment
from aioflow.plan import Program

import_module("aioflow.benchmarks.pipeline")  # registers the function of the plan

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


@experiment(
    "How long is a tuple under way through five operators?",
    work="a source that gives a tuple every 3 ms, so that nothing else holds it up: the first tuple of a "
    "run, and later ones",
    limit="none: nothing is waited for but the operators",
)
def latency(bench: Bench) -> None:
    program = aioflow.loads(PLAN)
    runs, count = bench.size(9, 1), bench.size(101, 5)
    for _ in bench.rounds(11):
        gc.collect()
        first = [asyncio.run(delays(program, 1))[0] for _ in range(runs)]
        later = asyncio.run(delays(program, count))[1:]
        bench.moved(len(first) + len(later))
        for name, seconds in (("first tuple of a run", first), ("later tuples", later)):
            bench.sample(name, "ms", median(seconds) * MILLISECONDS, figure="time under way")
    bench.claim_median("first tuple of a run", "first tuple of a run", at_most(1))
    bench.claim_median("later tuples of a slow source", "later tuples")
