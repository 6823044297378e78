"""Deep recursions: how long they take, and whether memory stays flat while they go on.

Each runs in a process of its own, which looks at its memory as the results of its levels arrive.
`python -m aioflow.benchmarks.recursion NAME LEVELS` is that process.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import process_time
from typing import Any

import aioflow
from aioflow import Engine, function
from aioflow.benchmarks.growth import claim_growth, curve
from aioflow.benchmarks.harness import Bench, Curve, at_most, experiment
from aioflow.benchmarks.harness.child import resident_megabytes
from aioflow.benchmarks.harness.processes import measure_process

PLANS = {
    # A tail call: each level's tuple goes straight to the outermost union.
    "countdown": """
PLAN countdown { INPUT: level OUTPUT: levels BODY {
    select (level, "n > 0" : more)
    project (more, "n - 1 as n, steps" : next)
    countdown (next : rest)
    union (level, rest : levels) {ALL}
} }
""",
    # The shape of get_urls: pages with a link to the next one; a plain union remembers all results.
    "pages": """
PLAN pages { INPUT: page OUTPUT: urls BODY {
    project (page, "url" : here)
    distinct (page, "next" : links)
    apply (links, "fetch" : next-page)
    pages (next-page : rest)
    union (here, rest : urls)
} }
""",
    # No tail call: the result of the deepest level is changed by every level on its way back.
    "way_back": """
PLAN way_back { INPUT: level OUTPUT: result BODY {
    select (level, "n = 0" : bottom)
    select (level, "n > 0" : more)
    project (more, "n - 1 as n, steps" : next)
    way_back (next : below)
    project (below, "n, steps + 1 as steps" : above)
    union (bottom, above : result) {ALL}
} }
""",
}
# Flat: what 90,000 more levels may add, in megabytes, is noise of the allocator.
FLAT_MEGABYTES = 2
DEPTHS = {
    "countdown": (100, 1_000, 10_000, 100_000),
    "pages": (100, 1_000, 10_000),
    "way_back": (100, 1_000, 10_000),
}
# A row of each level, and of the outermost call; the way back leaves one.
ROWS: dict[str, Callable[[int], int]] = {
    "countdown": lambda levels: levels + 1,
    "pages": lambda levels: levels + 2,
    "way_back": lambda levels: 1,
}
MEANT = {"countdown": "tail recursion", "pages": "shape of get_urls", "way_back": "no tail call"}
# So many levels pass before memory is first looked at: caches and queues have their size by then.
_WARM_UP = 10
_FIRST_LEVELS = 5
_MODULE = "aioflow.benchmarks.recursion"
_GROWN = "memory of the late levels"


@dataclass(frozen=True)
class Descent:
    """How a recursion went."""

    seconds: float  # of processor time: nothing here waits
    count: int  # of rows
    early_megabytes: float  # after a tenth of the levels
    late_megabytes: float


@function(name="fetch", returns="url char, next number", pure=True)
def fetch(page: Mapping[str, Any]) -> dict[str, Any] | None:
    """The page that another one links to."""
    number: int | None = page["next"]
    if number is None:
        return None
    return {"url": f"https://homes.example/{number}", "next": number - 1 if number else None}


def first_input(name: str, levels: int) -> dict[str, list[dict[str, object]]]:
    """What the outermost call gets."""
    if name == "pages":
        return {"page": [{"url": "https://homes.example/search", "next": levels}]}
    return {"level": [{"n": levels, "steps": 0}]}


async def descend(name: str, levels: int) -> Descent:
    """Run a recursion of so many levels."""
    program = aioflow.loads(PLANS[name])
    early, rows = 0.0, 0
    async with Engine() as engine:
        await engine.run(program, first_input(name, _FIRST_LEVELS))  # loads what is loaded late
        started = process_time()
        async for _ in engine.stream(program, first_input(name, levels)):
            rows += 1
            if rows == levels // _WARM_UP:
                gc.collect()
                early = resident_megabytes()
    seconds = process_time() - started
    gc.collect()
    return Descent(seconds, rows, early, resident_megabytes())


@experiment(
    "How long do deep recursions take, and does their memory stay flat?",
    work="recursions of 100 to 100,000 levels, each level a few operators: a tail call, the shape of "
    "get_urls, and one that must come back; processor time, each in a process of its own",
    limit="linear in the depth, and for a tail call no memory for a level",
)
def recursion(bench: Bench) -> None:
    depths = {name: bench.size(DEPTHS[name], (50, 200)) for name in DEPTHS}
    chosen: list[str] = bench.size(list(DEPTHS), ["countdown"])
    for each in bench.rounds(2, warm_up=0):
        cases = [(name, levels) for name in chosen for levels in depths[name]]
        found = {case: measure_process(_MODULE, *case) for case in each.shuffled(cases)}
        for name, levels in cases:
            descent = Descent(**found[name, levels].found)
            if descent.count != ROWS[name](levels):
                raise AssertionError(f"{name} gave {descent.count} rows for {levels} levels")
            bench.sample(f"{levels:,} levels, {MEANT[name]}", "s", descent.seconds)
            peak = found[name, levels].peak_megabytes
            bench.sample(f"{levels:,} levels, memory of {MEANT[name]}", "MB", peak)
            if name == "countdown" and levels == depths[name][-1]:
                bench.sample(_GROWN, "MB", max(0.0, descent.late_megabytes - descent.early_megabytes))
    deepest = depths["countdown"][-1]
    bench.claim_median(
        f"tail recursion, {deepest:,} levels", f"{deepest:,} levels, tail recursion", at_most(5)
    )
    bench.claim_median(f"its memory from level {deepest // 10:,} on", _GROWN, at_most(FLAT_MEGABYTES))
    times = [_curve(bench, name, depths[name]) for name in chosen]
    peaks = [_curve(bench, name, depths[name], "memory of ") for name in chosen]
    for what, curves in (("time", times), ("peak memory", peaks)):
        for drawn in curves:
            claim_growth(bench, f"{what} with depth, {drawn.name}", drawn)
    bench.plot(
        "Processor time over depth", "levels", "seconds", times, logarithmic_x=True, logarithmic_y=True
    )
    bench.plot("Peak memory over depth", "levels", "MB", peaks, logarithmic_x=True)


def _curve(bench: Bench, name: str, depths: Sequence[int], of: str = "") -> Curve:
    sampled = [f"{levels:,} levels, {of}{MEANT[name]}" for levels in depths]
    return curve(bench, MEANT[name], depths, sampled)


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(descend(sys.argv[1], int(sys.argv[2]))))))
