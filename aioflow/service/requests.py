"""Requests of plans for tasks: `schedule` and `unschedule` stage them in the database of their run.

A service takes them over after the commit. Each is carried out once, even if the service ends between its two
databases: the task database notes the requests that it has carried out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from aioflow.config.masking import masked_logger
from aioflow.errors import AioflowError, InputError
from aioflow.service.programs import off_the_loop, read_plan
from aioflow.service.runner import Runner
from aioflow.service.store.database import ServiceDatabase, Statements
from aioflow.service.store.occurrences import skip_waiting
from aioflow.service.store.tasks import read_task, remove_task, store_task
from aioflow.service.task import read_definition
from aioflow.state.crash_points import moment
from aioflow.state.driver import Address, Connection
from aioflow.state.system_tables import TASK_REQUESTS, stamp
from aioflow.values.quantities import count_text

_LOG = masked_logger("aioflow.service")
_AT_ONCE = 100

_TAKEN = moment("requests taken", "requests of a plan are carried out, and still stand in its database")
_DELETED = moment("requests deleted", "requests of a plan are carried out and deleted")


async def take_over_requests(
    connection: Connection, address: Address, database: ServiceDatabase, runner: Runner
) -> int:
    """Carry out the requests that wait in a database, in their order; return their number."""
    done = 0
    while True:
        rows = await connection.fetch(
            f"SELECT request_id, action, task_id, content FROM {TASK_REQUESTS} "
            f"ORDER BY created, run_id, place LIMIT {_AT_ONCE}"
        )
        if not rows:
            return done
        async with database.writing() as statements:
            for request_id, action, task_id, content in rows:
                if await _is_new(statements, request_id):
                    await _carry_out(statements, action, task_id, msgspec.json.decode(content), runner)
        _TAKEN()
        one = connection.dialect.placeholders(1)
        await connection.run_each(
            f"DELETE FROM {TASK_REQUESTS} WHERE request_id = {one}", [(row[0],) for row in rows]
        )
        _DELETED()
        done += len(rows)
        _LOG.info("%s: %s for tasks taken over", address.shown, count_text(len(rows), "request"))


async def _is_new(statements: Statements, request_id: str) -> bool:
    changed = await statements.run(
        "INSERT INTO aioflow_requests_taken (request_id, taken) VALUES ({}, {}) "
        "ON CONFLICT (request_id) DO NOTHING",
        *(request_id, stamp(statements.now)),
    )
    return changed == 1


async def _carry_out(
    statements: Statements, action: str, task_id: str, content: dict[str, Any], runner: Runner
) -> None:
    try:
        if action == "remove":
            await remove_task(statements, task_id)
            await skip_waiting(statements, task_id, "the task was removed by a plan", scheduled_only=False)
            return
        await _schedule(statements, task_id, content, runner)
    except (AioflowError, OSError) as error:
        # The request was checked when it was staged; a file may have changed since.
        _LOG.error("a plan asked for the task %s, which cannot be added: %s", content.get("name"), error)


async def _schedule(statements: Statements, task_id: str, content: dict[str, Any], runner: Runner) -> None:
    before = await read_task(statements, task_id)
    known = {} if before is None else msgspec.to_builtins(before.definition)
    definition = read_definition({**known, **content})
    if not Path(definition.plan).is_absolute():
        raise InputError(f"the plan {definition.plan!r} of a request has no absolute path")
    _, snapshot = await off_the_loop(lambda: read_plan(definition, runner.engine.registry))
    await store_task(statements, definition, snapshot)
