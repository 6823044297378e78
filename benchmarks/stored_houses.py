"""Houses, and the plans that store and read them: what the experiments on stores share."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from statistics import median
from time import perf_counter, process_time
from typing import Any, TypeAlias

import aioflow
from aioflow import Engine, Row, Schema
from aioflow.benchmarks.harness import Bench, at_least
from aioflow.benchmarks.sources import offer
from aioflow.relation import Type

COLUMNS = ("url", "address", "price", "beds", "listed")
SCHEMA = Schema(COLUMNS, (Type.CHAR, Type.CHAR, Type.NUMBER, Type.NUMBER, Type.DATE))
APPEND = """
PLAN stored { OUTPUT: count BODY {
    offered ("houses" : houses)
    dbappend (houses, "houses" : stored)
    counted (stored : count)
} }
"""
IMPORT = """
PLAN imported { OUTPUT: count BODY {
    dbimport ("houses" : houses)
    counted (houses : count)
} }
"""
_FIRST_DAY = date(2026, 1, 1)
_GOAL = at_least(0.7)
_OWN_TIME = " by own time"

# Does the work against an empty or a filled table, and returns the number of rows.
Work: TypeAlias = Callable[[], Awaitable[int]]


def houses(count: int) -> list[Row]:
    """Rows as web pages give them: an address, a text, a price, a small number and a day."""
    return [
        (
            f"https://homes.example/houses/irvine-{1_000_000 + 7 * n}",
            f"{n % 9000 + 1} {('Alder', 'Birch', 'Cedar', 'Elm')[n % 4]} Street, Irvine, CA 92612",
            250_000 + n * 7919 % 900_000,
            1 + n % 6,
            _FIRST_DAY + timedelta(days=n % 365),
        )
        for n in range(count)
    ]


async def run_with(plan: str, url: str) -> int:
    """The count that a plan gives which uses the database."""
    program = aioflow.loads(plan)
    async with Engine(configuration={"database": {"default": {"url": url}}}) as engine:
        count: int = (await engine.run(program))[0]["count"]
        return count


def sample_stores(
    bench: Bench,
    rows: list[Row],
    empty: Callable[[], None],
    appends: Mapping[str, Work],
    imports: Mapping[str, Work],
    rounds: int,
) -> None:
    """Sample how fast each variant appends to an empty table, and how fast each reads what is then there."""
    offer("houses", SCHEMA, rows)
    for each in bench.rounds(rounds):
        speeds: dict[str, _Speed] = {}
        for name in each.shuffled(appends):
            empty()
            speeds[f"{name}, append"] = _speed_of(appends[name], len(rows))
        for name in each.shuffled(imports):
            speeds[f"{name}, import"] = _speed_of(imports[name], len(rows))
        for name in (*(f"{name}, append" for name in appends), *(f"{name}, import" for name in imports)):
            bench.sample(name, "rows/s", speeds[name].by_clock)
            bench.sample(f"{name}{_OWN_TIME}", "rows/s", speeds[name].by_processor)
    bench.moved(2 * len(rows) * bench.rounds_done)


def claim_stores(bench: Bench, raw_append: str, raw_import: str) -> None:
    pairs = [("dbappend", raw_append, "append"), ("dbimport", raw_import, "import")]
    for ours, raw, what in pairs:
        bench.claim_ratio(f"{ours}, of {raw}", f"{ours}, {what}", f"{raw}, {what}", _GOAL)
    for ours, raw, what in pairs:
        names = (f"{ours}, {what}{_OWN_TIME}", f"{raw}, {what}{_OWN_TIME}")
        bench.claim_ratio(f"{ours}, of {raw}, by this process's own time", *names)
    for name in ("dbappend, append", "dbimport, import"):
        bench.claim(f"speed of {name.partition(',')[0]}", median(bench.values(name)), "rows/s")


def not_measured(bench: Bench, raw_append: str, raw_import: str, reason: str) -> None:
    for what in (f"dbappend, of {raw_append}", f"dbimport, of {raw_import}"):
        bench.claim(what, None, "x", _GOAL, reason)


@dataclass(frozen=True)
class _Speed:
    """Rows a second: by the clock on the wall, since databases wait, and of this process's own time."""

    by_clock: float
    by_processor: float


def _speed_of(work: Work, expected: int) -> _Speed:
    gc.collect()
    started, began = perf_counter(), process_time()
    count = asyncio.run(_awaited(work))
    seconds, own_seconds = perf_counter() - started, process_time() - began
    if count != expected:
        raise AssertionError(f"{count} of {expected} rows")
    return _Speed(expected / seconds, expected / own_seconds)


async def _awaited(work: Work) -> Any:
    return await work()
