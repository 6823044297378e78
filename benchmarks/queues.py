"""The five stages inside the engine, against a task for each stage with an asyncio.Queue between two of
them, and against aiostream. Both hand on tuple by tuple; the work done to a tuple is small here, for it
is the handing on that is compared. A queue holds as many rows as one between two steps of the engine.

aiostream is under the GPL and no dependency of aioflow: it is installed into an environment that only
this experiment uses, and runs in a process of its own.
"""

from __future__ import annotations

import asyncio
from asyncio import Queue
from collections.abc import Callable, Iterable
from typing import TypeAlias

from benchmarks.environments import EnvironmentMissingError, python_with
from benchmarks.experiment import Effort, Line, at_least, experiment
from benchmarks.fivestages import Row, Work, brief, computed, is_new, is_wanted, numbers
from benchmarks.pipeline import inside_engine, run_inside
from benchmarks.processes import run_apart
from benchmarks.timing import best_seconds

AIOSTREAM = "aiostream==0.8.1"
_QUEUE_ROWS = 256

Rows: TypeAlias = "Queue[Row | None]"  # None is the end of the rows


async def give(rows: Iterable[Row], out: Rows) -> None:
    for row in rows:
        await out.put(row)
    await out.put(None)


async def keep(holds: Callable[[Row], bool], rows: Rows, out: Rows) -> None:
    """The stages select and distinct."""
    while (row := await rows.get()) is not None:
        if holds(row):
            await out.put(row)
    await out.put(None)


async def change(function: Callable[[Row], Row], rows: Rows, out: Rows) -> None:
    """The stages project and apply."""
    while (row := await rows.get()) is not None:
        await out.put(function(row))
    await out.put(None)


async def union(rows: Rows, out: Rows, inputs: int) -> None:
    """All that comes from several writers into one queue, each row once."""
    new = is_new()
    while inputs:
        row = await rows.get()
        if row is None:
            inputs -= 1
        elif new(row):
            await out.put(row)
    await out.put(None)


async def count(rows: Rows) -> int:
    found = 0
    while await rows.get() is not None:
        found += 1
    return found


async def through_queues(work: Work) -> int:
    """How many rows come out of five tasks with queues between them."""
    queues: list[Rows] = [Queue(_QUEUE_ROWS) for _ in range(6)]
    async with asyncio.TaskGroup() as group:
        group.create_task(give(work.rows, queues[0]))
        group.create_task(keep(is_wanted(work), queues[0], queues[1]))
        group.create_task(change(brief, queues[1], queues[2]))
        group.create_task(change(computed(work), queues[2], queues[3]))
        group.create_task(keep(is_new(), queues[3], queues[4]))
        group.create_task(give(work.known, queues[4]))
        group.create_task(union(queues[4], queues[5], inputs=2))
        counted = group.create_task(count(queues[5]))
    return counted.result()


@experiment("How much faster is the engine than what hands on tuple by tuple?")
def measure(effort: Effort) -> list[Line]:
    size = effort.size(200_000, 1_000)
    work = numbers(size)
    program = inside_engine(work)
    best = best_seconds(
        {
            "engine": lambda: run_inside(program),
            "queues": lambda: asyncio.run(through_queues(work)),
        },
        effort.rounds(5),
    )
    return [
        Line("inside the engine", size / best["engine"], "rows/s"),
        Line("against asyncio.Queue", best["queues"] / best["engine"], "x", at_least(5)),
        _against_aiostream(size, best["engine"], effort),
    ]


def _against_aiostream(size: int, engine_seconds: float, effort: Effort) -> Line:
    what = f"against {AIOSTREAM.replace('==', ' ')}"
    try:
        python = python_with("aiostream", AIOSTREAM, may_install=not effort.quick)
    except EnvironmentMissingError as error:
        return Line(what, None, "x", at_least(5), str(error))
    module = "benchmarks.aiostream_stages"
    seconds = min(run_apart(module, size, python=python) for _ in range(effort.rounds(3)))
    return Line(what, seconds / engine_seconds, "x", at_least(5))
