"""Deep recursions: how long they take, and whether memory stays flat while they go on.

Each runs in a process of its own, which looks at its memory as the results of its levels arrive.
`python -m benchmarks.recursion NAME LEVELS` is that process.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from time import process_time
from typing import Any

import aioflow
from aioflow import Engine, function
from benchmarks.experiment import Effort, Line, at_most, experiment
from benchmarks.processes import resident_megabytes, run_apart

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
# So many levels pass before memory is first looked at: caches and queues have their size by then.
_WARM_UP = 10


@dataclass(frozen=True)
class Descent:
    """How a recursion went."""

    seconds: float  # of processor time: nothing here waits
    rows: int
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
    started = process_time()
    async with Engine() as engine:
        async for _ in engine.stream(program, first_input(name, levels)):
            rows += 1
            if rows == levels // _WARM_UP:
                gc.collect()
                early = resident_megabytes()
    seconds = process_time() - started
    gc.collect()
    return Descent(seconds, rows, early, resident_megabytes())


@experiment("How long do deep recursions take, and does their memory stay flat?")
def measure(effort: Effort) -> list[Line]:
    deep, less_deep = effort.size(100_000, 200), effort.size(10_000, 100)
    rounds = effort.rounds(3)
    countdowns = [_apart("countdown", deep) for _ in range(rounds)]
    growth = min(descent.late_megabytes - descent.early_megabytes for descent in countdowns)
    lines = [
        Line(f"tail recursion, {deep:,} levels", _fastest(countdowns), "s", at_most(5)),
        Line(f"its memory from level {deep // 10:,} on", growth, "MB", at_most(FLAT_MEGABYTES)),
    ]
    for name, what in (("pages", "shape of get_urls"), ("way_back", "no tail call")):
        descents = [_apart(name, less_deep) for _ in range(rounds)]
        lines.append(Line(f"{what}, {less_deep:,} levels", _fastest(descents), "s"))
    return lines


def _apart(name: str, levels: int) -> Descent:
    return Descent(**run_apart("benchmarks.recursion", name, levels))


def _fastest(descents: list[Descent]) -> float:
    return min(descent.seconds for descent in descents)


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(descend(sys.argv[1], int(sys.argv[2]))))))
