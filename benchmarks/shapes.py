"""How time and memory grow with the shape of a plan: its depth, a chain of operators, and its width, branches
side by side of one source.

`python -m aioflow.benchmarks.shapes SHAPE ROWS SIZE…` is the process that is measured.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from time import process_time

import aioflow
from aioflow import Engine
from aioflow.benchmarks.growth import claim_growth, curve
from aioflow.benchmarks.harness import Bench, experiment
from aioflow.benchmarks.harness.child import peak_megabytes
from aioflow.benchmarks.harness.processes import run_process
from aioflow.plan import Program


@dataclass(frozen=True)
class ShapeRun:
    """How a run of a plan of some size went; the memory is what the process had at most so far."""

    size: int
    rows: int
    seconds: float
    peak_megabytes: float


def deep(size: int) -> str:
    """So many operators one after the other."""
    steps = (
        'select (s{0}, "n >= 0" : s{1})' if number % 2 else 'project (s{0}, "n + 1 as n, city" : s{1})'
        for number in range(size)
    )
    body = "\n".join(step.format(number, number + 1) for number, step in enumerate(steps))
    return f"PLAN deep {{ INPUT: s0 (n number, city char) OUTPUT: s{size} BODY {{\n{body}\n}} }}"


def wide(size: int) -> str:
    """So many operators side by side, each of which gets every tuple and keeps its share."""
    body = "\n".join(f'select (all, "n % {size} = {number}" : s{number})' for number in range(size))
    union = f"union ({', '.join(f's{number}' for number in range(size))} : out) {{ALL}}" if size > 1 else ""
    out = "out" if size > 1 else "s0"
    return f"PLAN wide {{ INPUT: all (n number, city char) OUTPUT: {out} BODY {{\n{body}\n{union}\n}} }}"


SHAPES: dict[str, Callable[[int], str]] = {"depth": deep, "width": wide}


def visits(count: int) -> Iterator[dict[str, object]]:
    return ({"n": n, "city": f"city {n % 1000}"} for n in range(count))


async def passages(shape: str, count: int, sizes: list[int]) -> list[ShapeRun]:
    """One size after the other, the smallest first: so the peak is always that of the last one."""
    found = []
    for size in sorted(sizes):
        program = aioflow.loads(SHAPES[shape](size))
        await _rows(program, 1)  # loads what is loaded late
        gc.collect()
        started = process_time()
        rows = await _rows(program, count)
        found.append(ShapeRun(size, rows, process_time() - started, peak_megabytes()))
    return found


async def _rows(program: Program, count: int) -> int:
    rows = 0
    async with Engine() as engine:
        (source,) = (declared.name for declared in program.main.inputs)
        async for _, records in engine.stream(program, {source: visits(count)}).batches():
            rows += len(records)
    return rows


@experiment(
    "How do time and memory grow with the depth and the width of a plan?",
    work="20,000 tuples through chains of 1 to 256 operators, and through 1 to 256 branches side by side, "
    "each of which looks at every tuple; processor time, each shape in a process of its own",
    limit="linear in time: every operator gets every tuple",
)
def shapes(bench: Bench) -> None:
    sizes: tuple[int, ...] = bench.size((1, 4, 16, 64, 256), (1, 4))
    count = bench.size(20_000, 200)
    for each in bench.rounds(2, warm_up=0):
        apart = {
            shape: run_process("aioflow.benchmarks.shapes", shape, count, *sizes)["passages"]
            for shape in each.shuffled(SHAPES)
        }
        for shape in SHAPES:
            for passage in (ShapeRun(**one) for one in apart[shape]):
                if passage.rows != count:
                    raise AssertionError(f"{passage.rows} of {count} tuples came through")
                name = f"{shape} {passage.size}"
                bench.sample(
                    f"{name}, a tuple and operator", "us", passage.seconds / count / passage.size * 1e6
                )
                bench.sample(f"{name}, time", "s", passage.seconds)
                bench.sample(f"{name}, peak memory", "MB", passage.peak_megabytes)
    drawn = {
        what: [curve(bench, shape, sizes, [f"{shape} {size}, {what}" for size in sizes]) for shape in SHAPES]
        for what in ("time", "peak memory")
    }
    for what, curves in drawn.items():
        for each_curve in curves:
            claim_growth(bench, f"{what} with {each_curve.name}", each_curve)
    for shape in SHAPES:
        bench.claim_median(
            f"a tuple and operator at {shape} {sizes[-1]}", f"{shape} {sizes[-1]}, a tuple and operator"
        )
    bench.plot(
        "Processor time over operators",
        "operators",
        "seconds",
        drawn["time"],
        logarithmic_x=True,
        logarithmic_y=True,
    )
    bench.plot("Peak memory over operators", "operators", "MB", drawn["peak memory"], logarithmic_x=True)


def main(shape: str, count: str, *sizes: str) -> None:
    found = asyncio.run(passages(shape, int(count), [int(size) for size in sizes]))
    rows = sum(passage.rows for passage in found)
    print(json.dumps({"count": rows, "passages": [asdict(passage) for passage in found]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
