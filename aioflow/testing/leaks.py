"""Finds tasks, permits, files, memory and open generators that a run has left."""

from __future__ import annotations

import asyncio

from aioflow.engine import Engine, Result
from aioflow.relation import Relation
from aioflow.testing.virtual_loop import VirtualLoop, describe_task


def assert_nothing_left(engine: Engine | None = None, result: Result | None = None) -> None:
    """Fail unless everything has been released; to be called where the run has just ended.

    Checks the tasks of the running loop, and the permits, memory and files of an engine; on a VirtualLoop
    also unhandled exceptions and async generators that were not closed. Embedded relations in a result that
    is still alive may keep memory and files. A blocking function that was cancelled may keep its permit.
    """
    found = [*_on_the_loop(), *(_in_the_engine(engine, result) if engine is not None else ())]
    if found:
        raise AssertionError("left behind: " + "; ".join(found))


def _on_the_loop() -> list[str]:
    loop = asyncio.get_running_loop()
    tasks = loop.tasks() if isinstance(loop, VirtualLoop) else list(asyncio.all_tasks(loop))
    found = [f"task {describe_task(task)}" for task in tasks if task is not asyncio.current_task(loop)]
    if isinstance(loop, VirtualLoop):
        found += [f"unclosed generator {name}" for name in loop.abandoned]
        found += loop.complaints
    return found


def _in_the_engine(engine: Engine, result: Result | None) -> list[str]:
    held = {
        "permits": engine.budget.used - engine.budget.outlasting,
        "requests for permits": engine.budget.common.waiting,
        "runs": len(engine._runs),
    }
    if result is None or not _embeds(result):
        held |= {"open files": engine.memory.open_files, "bytes of memory": engine.memory.used_bytes}
    return [f"{number} {what}" for what, number in held.items() if number]


def _embeds(result: Result) -> bool:
    return any(
        isinstance(value, Relation)
        for records in result.outputs.values()
        for record in records
        for value in record.row
    )
