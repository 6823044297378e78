"""Five operators in a row, against the same work as chained synchronous generators.

The generators are written by hand for plain tuples and call the same function. So does the engine
inside; through `engine.stream` it also makes tuples of mappings and mappings of tuples.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import aioflow
from aioflow import Engine, Schema, function
from aioflow.benchmarks import fivestages
from aioflow.benchmarks.contenders import sample_all
from aioflow.benchmarks.fivestages import Row, Work
from aioflow.benchmarks.harness import Bench, at_most, experiment
from aioflow.benchmarks.sources import offer
from aioflow.plan import Program
from aioflow.relation import type_of_value

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


@experiment(
    "What do five operators cost beside the same work as chained synchronous generators?",
    work="200,000 houses through select, project, apply, distinct and union: inside the engine as plain "
    "tuples, and through engine.stream as mappings in and out; processor time",
    limit="the generators: they hand on plain tuples, without a loop, a queue, or anything at the same time",
)
def pipeline(bench: Bench) -> None:
    work = fivestages.houses(bench.size(200_000, 2_000))
    inside, through = inside_engine(work), through_engine(work)
    rows = [dict(zip(("key", "group", "value"), row, strict=True)) for row in work.rows]
    known = [dict(zip(("key", "value", "result"), row, strict=True)) for row in work.known]
    contenders = {
        "generators": lambda: fivestages.chained(work),
        "inside the engine": lambda: run_inside(inside),
        "engine.stream": lambda: run_through(through, rows, known),
    }
    sample_all(bench, contenders, rounds=9)
    bench.moved(len(rows) * len(contenders) * bench.rounds_done)
    bench.claim_ratio(
        "inside the engine, of generators, plain tuples", "inside the engine", "generators", at_most(1.3)
    )
    bench.claim_ratio(
        "engine.stream, of generators, mappings in and out", "engine.stream", "generators", at_most(2.5)
    )
    for name in contenders:
        bench.claim(f"speed of {name}", len(rows) / median(bench.values(name)), "rows/s")
