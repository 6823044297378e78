"""Five operators in a row, against the same work as chained synchronous generators.

The generators are written by hand for plain tuples and call the same function. So does the engine
inside; through `engine.stream` it also makes tuples of mappings and mappings of tuples.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import aioflow
from aioflow import Engine, Schema, function
from aioflow.plan import Program
from benchmarks import fivestages
from benchmarks.experiment import Effort, Line, at_most, experiment
from benchmarks.sources import offer
from benchmarks.timing import best_seconds

# The generators keep what they have seen in memory, so the engine is not to spill either.
MEMORY_BYTES = 1 << 30

BODY = f"""
    select (rows, "city != '{fivestages.UNWANTED}'" : wanted)
    project (wanted, "url, price-text" : brief)
    apply (brief, "price" : priced)
    distinct (priced : fresh)
    union (fresh, known : all)
"""
INSIDE = f"""
PLAN inside {{ OUTPUT: count BODY {{
    offered ("rows" : rows)
    offered ("known" : known)
    {BODY}
    counted (all : count)
}} }}
"""
THROUGH = f"""
PLAN through {{ INPUT: rows, known OUTPUT: all BODY {{
    {BODY}
}} }}
"""

function(name="price", takes="price-text", returns="price number", pure=True)(fivestages.read_price)


def inside_engine(rows: Sequence[fivestages.Row], known: Sequence[fivestages.Row]) -> Program:
    """The plan with its source and its sink inside the engine."""
    offer("rows", Schema(fivestages.NAMES), rows)
    offer("known", Schema(fivestages.KNOWN_NAMES), known)
    return aioflow.loads(INSIDE)


def run_inside(program: Program) -> int:
    """How many rows arrive at the sink."""

    async def main() -> int:
        async with Engine(memory_bytes=MEMORY_BYTES) as engine:
            count: int = (await engine.run(program))[0]["count"]
            return count

    return asyncio.run(main())


def run_through(
    program: Program, rows: Sequence[dict[str, object]], known: Sequence[dict[str, object]]
) -> int:
    """How many mappings come out of the engine."""

    async def main() -> int:
        count = 0
        async with Engine(memory_bytes=MEMORY_BYTES) as engine:
            async for _ in engine.stream(program, rows=rows, known=known):
                count += 1
        return count

    return asyncio.run(main())


@experiment("What do five operators cost beside the same work as chained synchronous generators?")
def measure(effort: Effort) -> list[Line]:
    rows, known = fivestages.make_rows(effort.size(100_000, 2_000)), fivestages.make_known()
    inside, through = inside_engine(rows, known), aioflow.loads(THROUGH)
    mappings = [dict(zip(fivestages.NAMES, row, strict=True)) for row in rows]
    known_mappings = [dict(zip(fivestages.KNOWN_NAMES, row, strict=True)) for row in known]
    best = best_seconds(
        {
            "generators": lambda: fivestages.chained(rows, known),
            "inside": lambda: run_inside(inside),
            "through": lambda: run_through(through, mappings, known_mappings),
        },
        effort.rounds(11),
    )
    base = best["generators"]
    return [
        Line("chained generators, plain tuples", len(rows) / base, "rows/s"),
        Line("inside the engine, plain tuples", best["inside"] / base, "x", at_most(1.3)),
        Line("engine.stream, mappings in and out", best["through"] / base, "x", at_most(2.5)),
    ]
