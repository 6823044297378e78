"""What it costs to hand a tuple on: the five stages inside the engine, as chained synchronous generators,
as tasks with an asyncio.Queue between two of them, and with aiostream. The last two hand on tuple by tuple;
the work done to a tuple is small here, for it is the handing on that is compared. A queue holds as many rows
as one between two steps of the engine.

aiostream is under the GPL and no dependency of aioflow: it is installed into an environment that only
this experiment uses, and runs in a process of its own.
"""

from __future__ import annotations

import asyncio
from asyncio import Queue
from collections.abc import Callable, Iterable
from typing import TypeAlias

from aioflow.benchmarks.contenders import Contender, expect_same, timed
from aioflow.benchmarks.fivestages import Row, Work, brief, chained, computed, is_new, is_wanted, numbers
from aioflow.benchmarks.harness import Bench, at_least, experiment
from aioflow.benchmarks.harness.environments import EnvironmentMissingError, python_with
from aioflow.benchmarks.harness.processes import run_process
from aioflow.benchmarks.pipeline import inside_engine, run_inside

AIOSTREAM = "aiostream==0.8.1"
_QUEUE_ROWS = 256
_HOPS = 5
_MICROSECONDS = 1e6

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


@experiment(
    "What does it cost to hand one tuple on, and how much faster is that than tuple by tuple?",
    work="100,000 tuples through five stages that do next to nothing, inside the engine, as synchronous "
    "generators, with asyncio.Queue and with aiostream; processor time for each tuple and stage",
    limit="synchronous generators",
)
def queues(bench: Bench) -> None:
    size = bench.size(100_000, 1_000)
    work = numbers(size)
    program = inside_engine(work)
    contenders: dict[str, Contender] = {
        "generators": lambda: chained(work),
        "engine": lambda: run_inside(program),
        "asyncio.Queue": lambda: asyncio.run(through_queues(work)),
    }
    python, missing = _python_with_aiostream(bench)
    for each in bench.rounds(5):
        found = {name: timed(contenders[name]) for name in each.shuffled(contenders)}
        expect_same({name: result for name, (_, result) in found.items()})
        seconds = {name: found[name][0] for name in contenders}
        if python is not None:
            apart = run_process("aioflow.benchmarks.aiostream_stages", size, python=python)
            expect_same({"aiostream": apart["count"], "generators": found["generators"][1]})
            seconds["aiostream"] = apart["seconds"]
        for name, taken in seconds.items():
            bench.sample(name, "us", taken / size / _HOPS * _MICROSECONDS, figure="for each tuple and stage")
    bench.moved(size * len(contenders) * bench.rounds_done)
    bench.claim_median("a tuple and stage inside the engine", "engine")
    bench.claim_ratio("the engine, of synchronous generators", "engine", "generators")
    bench.claim_ratio("asyncio.Queue, of the engine", "asyncio.Queue", "engine", at_least(5))
    if python is None:
        bench.claim(f"{AIOSTREAM}, of the engine", None, "x", at_least(5), missing)
    else:
        bench.claim_ratio(f"{AIOSTREAM}, of the engine", "aiostream", "engine", at_least(5))


def _python_with_aiostream(bench: Bench) -> tuple[str | None, str]:
    """The interpreter, or why there is none."""
    try:
        return python_with("aiostream", AIOSTREAM, may_install=not bench.quick), ""
    except EnvironmentMissingError as error:
        return None, str(error)
