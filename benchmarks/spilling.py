"""The longest time for which the event loop stands still while operators keep rows on disk.

`python -m aioflow.benchmarks.spilling NAME ROWS MEMORY_BYTES [URL]` is the process in which one plan is
measured, with the database at the URL if there is one.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from os import getpid
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import aioflow
from aioflow import Engine, function
from aioflow.benchmarks.harness import Bench, at_most, experiment
from aioflow.benchmarks.harness.processes import run_process
from aioflow.benchmarks.postgres_server import ServerMissingError, postgres_server

_MEMORY_BYTES = 1024 * 1024
_BEAT_SECONDS = 0.005  # rare enough to cost nothing beside the work
_COUNTED = 'aggregate (out, "count() as n" : counts) {RELATION: false}'
_COLUMNS = "n number, text char"
BODIES = {
    "minus": "minus (a, b : out)",
    "join": 'join (a, b, "left.n = right.n" : out)',
    "distinct": "distinct (a : out)",
    "sort": 'sort (a, "text" : out)',
    "aggregate": 'aggregate (a, "count() as c" : out) {BY: "n"; RELATION: false}',
    "pack": 'pack (a, "p" : out) {BY: "n"}',
    "diff": 'diff (a, "kept" : out, x, y) {KEY: "n"; GUARD: off; FIRST: news}',
    "dbexport": 'dbexport (a, "kept") project (a, "n" : out)',
    "once": "levels (a : out)",
    "once in a tail call": "steps (a : out)",
    "unpack": 'pack (a, "p" : x) unpack (x, "p" : out)',
    "held results": 'apply (a, "spilled_rows" : out) {ERRORS: failed}',
    "outbox": 'notify (a, "{text}" : out) {EACH}',
}
_PACKED = ("held results",)  # all rows are the results of one tuple
_MESSAGE_ROWS = 10  # rows of another operator for each message, which takes as long
# The same with a server, where COPY is a way of its own; each run has a table of its own there.
POSTGRES = {
    "dbexport to PostgreSQL": BODIES["dbexport"],
    "diff with PostgreSQL": BODIES["diff"],
}
CALLED = """
PLAN levels { INPUT: a OUTPUT: out ONCE: "n" BODY {
    sort (a, "n" : known)
    project (known, "n, text" : next)
    levels (next : deeper)
    union (known, deeper : out) {ALL: true}
} }
PLAN steps { INPUT: a OUTPUT: out ONCE: "n" BODY {
    project (a, "n, text" : known)
    steps (known : deeper)
    union (known, deeper : out) {ALL: true}
} }
"""


@dataclass(frozen=True)
class Spilling:
    """The figures of one plan that spilled."""

    seconds: float
    cpu_seconds: float  # of all threads
    longest_block_ms: float
    spilled_rows: int
    count: int  # of results


def rows(count: int, start: int = 0) -> Iterator[dict[str, object]]:
    """Yield tuples with different values, in an order that is not sorted."""
    return ({"n": n * 7919 % count + start, "text": f"{n * 104_729 % count} a text"} for n in range(count))


class Pulse:
    """Notes the longest time between two turns of the loop."""

    def __init__(self) -> None:
        self.longest_seconds = 0.0

    async def beat(self) -> None:
        """Look at the clock from time to time."""
        before = perf_counter()
        while True:
            await asyncio.sleep(_BEAT_SECONDS)
            now = perf_counter()
            self.longest_seconds = max(self.longest_seconds, now - before - _BEAT_SECONDS)
            before = now


@function(name="spilled_rows", returns="m number, words char", pure=True)
def _spilled_rows(row: Mapping[str, Any]) -> Iterator[dict[str, object]]:
    return ({"m": each["n"], "words": each["text"]} for each in rows(row["n"]))


def _inputs(name: str, count: int, names: Sequence[str]) -> dict[str, Iterator[dict[str, object]]]:
    if name in _PACKED:
        return {"a": iter([{"n": count, "text": ""}])}
    return {each: rows(count, start * count // 2) for start, each in enumerate(names)}


async def spill(name: str, count: int, memory_bytes: int, url: str | None = None) -> Spilling:
    """Run the plan of an operator over so many tuples with so little memory."""
    body = BODIES[name] if name in BODIES else POSTGRES[name].replace("kept", f"kept_{getpid()}")
    inputs = ["a", "b"] if "(a, b" in body else ["a"]
    declared = ", ".join(f"{each} ({_COLUMNS})" for each in inputs)
    program = aioflow.loads(
        f"PLAN p {{ INPUT: {declared} OUTPUT: counts BODY {{ {body} {_COUNTED} }} }}{CALLED}", plan="p"
    )
    with TemporaryDirectory() as folder:
        configuration = {
            "database": {"default": {"url": url or f"sqlite:{Path(folder) / 'kept.sqlite'}"}},
            "notify": {"default": {"url": "json://127.0.0.1:9"}},
            "outbox": {"deliver_seconds": 0},
        }
        async with Engine(memory_bytes=memory_bytes, configuration=configuration) as engine:
            await engine.run(program, _inputs(name, 10, inputs))
            pulse = Pulse()
            beating = asyncio.create_task(pulse.beat())
            started, cpu_started = perf_counter(), process_time()
            result = await engine.run(program, _inputs(name, count, inputs))
            seconds, cpu_seconds = perf_counter() - started, process_time() - cpu_started
            beating.cancel()
        milliseconds = pulse.longest_seconds * 1000
        return Spilling(seconds, cpu_seconds, milliseconds, result.statistics.spilled_rows, result[0]["n"])


@experiment(
    "For how long does the event loop stand still while operators keep rows on disk?",
    work="200,000 tuples an input and 1 MB of memory, so that nearly all rows go to disk; one operator at a "
    "time, each in a process of its own; 20,000 messages for the outbox, which has 8 MB of its own; a task "
    "looks at the clock each 5 ms",
    limit="a few turns of the interpreter between threads, 5 ms each",
)
def spilling(bench: Bench) -> None:
    with ExitStack() as stack:
        url, names = "", tuple(BODIES)
        with suppress(ServerMissingError):
            url = stack.enter_context(postgres_server())
            names = (*BODIES, *POSTGRES)
        for each in bench.rounds(3, warm_up=0):
            for name in each.shuffled(names):
                _sample(bench, name, url)
    for name in names:
        bench.claim_median(f"longest block of {name}", f"{name}, longest block", at_most(100))
        bench.claim_median(f"speed of {name}", f"{name}, speed")


def _sample(bench: Bench, name: str, url: str) -> None:
    count: int = bench.size(200_000, 2_000) // (_MESSAGE_ROWS if name == "outbox" else 1)
    given = [name, count, bench.size(_MEMORY_BYTES, 1), *([url] if name in POSTGRES else [])]
    found = Spilling(**run_process("aioflow.benchmarks.spilling", *given))
    bench.sample(f"{name}, longest block", "ms", found.longest_block_ms)
    bench.sample(f"{name}, speed", "rows/s", count / found.seconds)
    bench.sample(f"{name}, rows on disk", "rows", found.spilled_rows)


if __name__ == "__main__":
    _name, _count, _memory, *_url = sys.argv[1:]
    print(json.dumps(asdict(asyncio.run(spill(_name, int(_count), int(_memory), *_url)))))
