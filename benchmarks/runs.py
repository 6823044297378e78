"""The cost of a run beyond its tuples: one run, one statement, one call of a subplan, and a plan that waits.

`python -m aioflow.benchmarks.runs COUNT` is the process whose memory is measured.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from asyncio import Event
from collections.abc import AsyncGenerator

import aioflow
from aioflow import Engine
from aioflow.benchmarks.contenders import sample_all
from aioflow.benchmarks.harness import Bench, experiment
from aioflow.benchmarks.harness.child import resident_megabytes
from aioflow.benchmarks.harness.processes import run_process
from aioflow.plan import Program

STATEMENTS = 50
IDLE = """
PLAN idle { INPUT: visits OUTPUT: fresh BODY {
    select (visits, "n >= 0" : valid)
    project (valid, "n, n % 100 as beds" : houses)
    distinct (houses : different)
    select (different, "beds < 50" : small)
    union (small, houses : fresh)
} }
"""
_KILO = 1000


def chain(statement: str, count: int) -> str:
    """A plan that passes its input through so many statements."""
    body = [f"{statement.format(before=f's{number}', here=f's{number + 1}')}" for number in range(count)]
    return f"PLAN chain {{ INPUT: s0 OUTPUT: s{count} BODY {{\n" + "\n".join(body) + "\n} }"


ONE = chain('select ({before}, "n >= 0" : {here})', 1)
INLINE = chain('select ({before}, "n >= 0" : {here})', STATEMENTS)
SUBPLAN = 'PLAN part { INPUT: rows OUTPUT: kept BODY { select (rows, "n >= 0" : kept) } }\n'
CALLED = chain("part ({before} : {here})", STATEMENTS) + "\n" + SUBPLAN


def run_often(program: Program, times: int) -> int:
    """How many rows come out of so many runs on one engine, each with one row."""

    async def main() -> int:
        async with Engine() as engine:
            results = [await engine.run(program, s0=[{"n": 1}]) for _ in range(times)]
            return sum(map(len, results))

    return asyncio.run(main())


async def idle_kilobytes(count: int) -> float:
    """What a run takes that has begun and waits for its source, in kilobytes."""
    program = aioflow.loads(IDLE)
    over = Event()

    async def silent() -> AsyncGenerator[dict[str, int], None]:
        yield {"n": 1}
        await over.wait()

    async def wait_in(engine: Engine) -> None:
        async with engine.stream(program, visits=silent()) as rows:
            async for _ in rows:
                begun.release()

    async with Engine() as engine:
        await engine.run(program, visits=[{"n": 1}])  # loads what is loaded late
        begun = asyncio.Semaphore(0)
        gc.collect()
        before = resident_megabytes()
        tasks = [asyncio.create_task(wait_in(engine)) for _ in range(count)]
        for _ in tasks:
            await begun.acquire()
        gc.collect()
        grown = resident_megabytes() - before
        over.set()
        await asyncio.gather(*tasks)
    return grown * _KILO / count


@experiment(
    "What does a run cost, a statement, a call of a subplan, and a plan that waits?",
    work=f"runs with one tuple: of one statement, of {STATEMENTS}, and of {STATEMENTS} calls of a subplan "
    "with one statement (processor time); and five hundred plans of five statements that wait for their "
    "source, in a process of their own",
    limit="none: an empty run has nothing to do",
)
def runs(bench: Bench) -> None:
    times = bench.size(40, 2)
    programs = {"one statement": ONE, "statements": INLINE, "subplan calls": CALLED}
    loaded = {name: aioflow.loads(text) for name, text in programs.items()}
    sample_all(
        bench,
        {name: lambda program=program: run_often(program, times) for name, program in loaded.items()},  # type: ignore[misc]
        rounds=7,
        unit="us",
        scale=1e6 / times,
        figure="one run",
    )
    bench.moved(times * len(programs) * bench.rounds_done)
    base = bench.values("one statement")
    bench.claim_median("a run of one statement", "one statement")
    for name in ("statements", "subplan calls"):
        for whole, least in zip(bench.values(name), base, strict=True):
            bench.sample(
                f"each of {STATEMENTS} {name}", "us", (whole - least) / STATEMENTS, figure="one of them"
            )
    bench.claim_median("each further statement", f"each of {STATEMENTS} statements")
    bench.claim_median(
        "each further call of a subplan, with its statement", f"each of {STATEMENTS} subplan calls"
    )
    idle = run_process("aioflow.benchmarks.runs", bench.size(500, 20))["kilobytes"]
    bench.claim("memory of a plan of five statements that waits", idle * _KILO, "bytes")


if __name__ == "__main__":
    waiting = int(sys.argv[1])
    print(json.dumps({"count": waiting, "kilobytes": asyncio.run(idle_kilobytes(waiting))}))
