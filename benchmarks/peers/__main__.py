"""`python -m benchmarks.peers measure|print MODULE JOB ADDRESS WORKERS`: does one job by one tool.

Measured, it prints at its end what was found and when, as JSON; the clock starts when everything is imported.
Printed, it prints each tuple as a line of JSON when it is there, as a program for the shell would.
Imports nothing but the standard library until the tool is imported.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from time import perf_counter, process_time
from typing import Any, TypeAlias

# As `aioflow run` has it, for every tool alike: with Python's 700 each would look through the objects of its
# requests again and again while they are under way.
OBJECTS_BETWEEN_COLLECTIONS = 10_000
# Calls its last argument with each tuple; a coroutine function, or one that runs a loop of its own.
Job: TypeAlias = Callable[[str, int, Callable[[Any], None]], Any]


def prepared(module: str, job: str) -> Job:
    tool = import_module(module)
    if hasattr(tool, "prepare"):
        tool.prepare(job)
    found: Job = getattr(tool, job)
    return found


def run(job: Job, address: str, workers: int, found: Callable[[Any], None]) -> None:
    running = job(address, workers, found)
    if running is not None:
        asyncio.run(running)


def print_job(job: Job, address: str, workers: int) -> None:
    run(job, address, workers, lambda row: print(json.dumps(row), flush=True))


def measure_job(job: Job, address: str, workers: int) -> None:
    rows: list[Any] = []
    arrivals: list[float] = []

    def found(row: Any) -> None:
        arrivals.append(perf_counter())
        rows.append(row)

    started, used = perf_counter(), process_time()
    run(job, address, workers, found)
    whole, processor = perf_counter() - started, process_time() - used
    report = {
        "count": len(rows),
        "arrivals": [round(when - started, 5) for when in arrivals],
        "whole": whole,
        "processor": processor,
        "contents": fingerprint(rows),
    }
    print(json.dumps(report))


def fingerprint(rows: list[Any]) -> str:
    """The same for the same rows in whatever order."""
    from hashlib import sha256

    lines = sorted(json.dumps(_plain(row), sort_keys=True, default=str) for row in rows)
    return sha256("\n".join(lines).encode()).hexdigest()


def _plain(row: Any) -> Any:
    """Numbers are equal when their values are, whatever their types."""
    if not isinstance(row, Mapping):
        return row
    return {name: float(value) if isinstance(value, int) else value for name, value in row.items()}


def main(how: str, module: str, job: str, address: str, workers: str) -> None:
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    work = prepared(module, job)
    (print_job if how == "print" else measure_job)(work, address, int(workers))


if __name__ == "__main__":
    main(*sys.argv[1:])
