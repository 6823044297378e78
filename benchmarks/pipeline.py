"""Five operators in a row, against the same work as chained synchronous generators.

The generators are written by hand for plain tuples and call the same function. So does the engine
inside; through `engine.stream` it also makes tuples of mappings and mappings of tuples.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import aioflow
from aioflow import Engine, Schema, function
from aioflow.plan import Program
from aioflow.relation import type_of_value
from benchmarks import fivestages
from benchmarks.experiment import Effort, Line, at_most, experiment
from benchmarks.fivestages import Row, Work
from benchmarks.sources import offer
from benchmarks.timing import best_seconds

# The generators keep what they have seen in memory, so the engine is not to spill either.
MEMORY_BYTES = 1 << 30

BODY = """
    select (rows, "group != {unwanted!r}" : wanted)
    project (wanted, "key, value" : brief)
    apply (brief, "{function}" : computed)
    distinct (computed : fresh)
    union (fresh, known : all)
"""
INSIDE = """
PLAN inside {{ OUTPUT: count BODY {{
    offered ("rows" : rows)
    offered ("known" : known)
    {body}
    counted (all : count)
}} }}
"""
THROUGH = """
PLAN through {{ INPUT: rows ({rows}), known ({known}) OUTPUT: all BODY {{
    {body}
}} }}
"""

function(takes="value", returns="result number", pure=True)(fivestages.read_price)
function(takes="value", returns="result number", pure=True)(fivestages.fifth)


def inside_engine(work: Work) -> Program:
    """The plan with its source and its sink inside the engine."""
    offer("rows", _schema(work.rows, "key", "group", "value"), work.rows)
    offer("known", _schema(work.known, "key", "value", "result"), work.known)
    return aioflow.loads(INSIDE.format(body=_body(work)))


def through_engine(work: Work) -> Program:
    """The plan with its source and its sink outside."""
    rows, known = _schema(work.rows, "key", "group", "value"), _schema(work.known, "key", "value", "result")
    return aioflow.loads(THROUGH.format(rows=str(rows)[1:-1], known=str(known)[1:-1], body=_body(work)))


def _body(work: Work) -> str:
    return BODY.format(unwanted=work.unwanted, function=work.function.__name__)


def _schema(rows: Sequence[Row], *names: str) -> Schema:
    return Schema(names, tuple(map(type_of_value, rows[0])))


def run_inside(program: Program) -> int:
    """How many rows arrive at the sink."""

    async def main() -> int:
        async with Engine(memory_bytes=MEMORY_BYTES) as engine:
            count: int = (await engine.run(program))[0]["count"]
            return count

    return asyncio.run(main())


def run_through(
    program: Program, rows: Sequence[Mapping[str, Any]], known: Sequence[Mapping[str, Any]]
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
    work = fivestages.houses(effort.size(200_000, 2_000))
    inside, through = inside_engine(work), through_engine(work)
    rows = [dict(zip(("key", "group", "value"), row, strict=True)) for row in work.rows]
    known = [dict(zip(("key", "value", "result"), row, strict=True)) for row in work.known]
    best = best_seconds(
        {
            "generators": lambda: fivestages.chained(work),
            "inside": lambda: run_inside(inside),
            "through": lambda: run_through(through, rows, known),
        },
        effort.rounds(9),
    )
    base = best["generators"]
    return [
        Line("chained generators, plain tuples", len(rows) / base, "rows/s"),
        Line("inside the engine, plain tuples", best["inside"] / base, "x", at_most(1.3)),
        Line("engine.stream, mappings in and out", best["through"] / base, "x", at_most(2.5)),
    ]
