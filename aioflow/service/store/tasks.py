"""Tasks and the versions of their plans in the task database."""

from __future__ import annotations

from datetime import datetime
from secrets import token_urlsafe
from typing import Any

import msgspec

from aioflow.errors import InputError, suggestion
from aioflow.language import PlanSnapshot
from aioflow.relation import Row
from aioflow.service.errors import NotFoundError
from aioflow.service.store.database import Statements
from aioflow.service.task import Task, TaskDefinition, TaskState, task_id_of
from aioflow.state.system_tables import from_stamp, stamp

_COLUMNS = (
    "definition, version, state, state_reason, created, changed, anchor, scheduled_until, failures, "
    "last_success, last_failure, feed_key"
)
_FEED_KEY_BYTES = 24


async def read_revision(statements: Statements) -> int:
    """Return the number of changes to tasks so far."""
    ((revision,),) = await statements.fetch("SELECT revision FROM aioflow_revision WHERE id = 1")
    return int(revision)


async def note_change(statements: Statements) -> None:
    """Have services notice that tasks or occurrences were changed."""
    await statements.run("UPDATE aioflow_revision SET revision = revision + 1 WHERE id = 1")


async def read_tasks(statements: Statements) -> list[Task]:
    """Return all tasks, by name."""
    rows = await statements.fetch(f"SELECT {_COLUMNS} FROM aioflow_tasks ORDER BY name")
    return [_task_of(row) for row in rows]


async def read_task(statements: Statements, task_id: str) -> Task | None:
    rows = await statements.fetch(f"SELECT {_COLUMNS} FROM aioflow_tasks WHERE task_id = {{}}", task_id)
    return _task_of(rows[0]) if rows else None


async def find_task(statements: Statements, name_or_id: str, *, what: str = "task") -> Task:
    """Return the task of a name or id; a NotFoundError names similar ones, and says `what` was looked for."""
    rows = await statements.fetch(
        f"SELECT {_COLUMNS} FROM aioflow_tasks WHERE name = {{}} OR task_id = {{}}", name_or_id, name_or_id
    )
    if rows:
        return _task_of(rows[0])
    names = [str(name) for (name,) in await statements.fetch("SELECT name FROM aioflow_tasks")]
    known = ", ".join(sorted(names)[:10]) or "none"
    raise NotFoundError(f"there is no {what} {name_or_id!r}{suggestion(name_or_id, names)} (tasks: {known})")


async def store_task(
    statements: Statements, definition: TaskDefinition, snapshot: PlanSnapshot, *, paused: str | None = None
) -> Task:
    """Add a task, or change the one of that name; return it as it is now.

    A changed schedule counts from now on: no time before the change is missed. `paused` is the reason of a
    task that does not run yet.
    """
    await _store_version(statements, snapshot)
    now = statements.now
    before = await read_task(statements, task_id_of(definition.name))
    if before is None:
        state: TaskState = "active" if paused is None else "paused"
        task = Task(
            *(definition, snapshot.digest, state, paused or "", now, now, now, now),
            feed_key=token_urlsafe(_FEED_KEY_BYTES),
        )
    else:
        task = _changed(before, definition, snapshot.digest, now)
        if task == msgspec.structs.replace(before, changed=now):
            return before
    await _write(statements, task)
    await note_change(statements)
    return task


def _changed(before: Task, definition: TaskDefinition, version: str, now: datetime) -> Task:
    timing = ("schedule", "zone", "ends")
    same_times = all(getattr(before.definition, name) == getattr(definition, name) for name in timing)
    task = msgspec.structs.replace(before, definition=definition, version=version, changed=now)
    if same_times:
        return task
    state: TaskState = "active" if before.state == "ended" else before.state
    reason = "" if before.state == "ended" else before.state_reason
    return msgspec.structs.replace(task, anchor=now, scheduled_until=now, state=state, state_reason=reason)


async def set_state(statements: Statements, task: Task, state: TaskState, reason: str) -> Task:
    """Pause, resume or end a task. The times of a pause are not made up for."""
    changes: dict[str, Any] = {"state": state, "state_reason": reason, "changed": statements.now}
    if state == "active" and task.state != "active":
        changes |= {"scheduled_until": statements.now, "failures": 0}
    changed = msgspec.structs.replace(task, **changes)
    await _write(statements, changed)
    await note_change(statements)
    return changed


async def renew_feed_key(statements: Statements, task: Task) -> Task:
    """Give the feeds of a task another address."""
    changed = msgspec.structs.replace(task, feed_key=token_urlsafe(_FEED_KEY_BYTES))
    await _write(statements, changed)
    await note_change(statements)
    return changed


async def remove_task(statements: Statements, task_id: str) -> bool:
    """Remove a task; a run under way ends normally. Return whether the task existed."""
    removed = await statements.run("DELETE FROM aioflow_tasks WHERE task_id = {}", task_id)
    await statements.run("DELETE FROM aioflow_alerts WHERE task_id = {}", task_id)
    await note_change(statements)
    return removed > 0


async def set_scheduled_until(statements: Statements, task: Task, until: datetime) -> bool:
    """Note that all times up to a moment have occurrences; return whether no other service did so before."""
    changed = await statements.run(
        "UPDATE aioflow_tasks SET scheduled_until = {} WHERE task_id = {} AND scheduled_until = {} "
        "AND state = 'active'",
        *(stamp(until), task.task_id, stamp(task.scheduled_until)),
    )
    return changed == 1


async def note_outcome(statements: Statements, task_id: str, *, succeeded: bool) -> int | None:
    """Count the failures in a row; return their number, or None for a task that was removed."""
    now = stamp(statements.now)
    if succeeded:
        await statements.run(
            "UPDATE aioflow_tasks SET failures = 0, last_success = {} WHERE task_id = {}", now, task_id
        )
    else:
        await statements.run(
            "UPDATE aioflow_tasks SET failures = failures + 1, last_failure = {} WHERE task_id = {}",
            *(now, task_id),
        )
    rows = await statements.fetch("SELECT failures FROM aioflow_tasks WHERE task_id = {}", task_id)
    return int(rows[0][0]) if rows else None


# --- versions of plans --------------------------------------------------------------------------


async def _store_version(statements: Statements, snapshot: PlanSnapshot) -> None:
    await statements.run(
        "INSERT INTO aioflow_plan_versions (version, snapshot, created) VALUES ({}, {}, {}) "
        "ON CONFLICT (version) DO NOTHING",
        *(snapshot.digest, msgspec.json.encode(snapshot).decode(), stamp(statements.now)),
    )


async def read_version(statements: Statements, version: str) -> PlanSnapshot:
    """Return the files of a version of a plan."""
    rows = await statements.fetch("SELECT snapshot FROM aioflow_plan_versions WHERE version = {}", version)
    if not rows:
        raise InputError(f"the version {version} of the plan is not in the task database: reload the task")
    return msgspec.json.decode(rows[0][0], type=PlanSnapshot)


async def drop_unused_versions(statements: Statements) -> int:
    """Delete versions that neither a task nor a kept run names."""
    return await statements.run(
        "DELETE FROM aioflow_plan_versions WHERE version NOT IN (SELECT version FROM aioflow_tasks) "
        "AND NOT EXISTS (SELECT 1 FROM aioflow_occurrences "
        "WHERE aioflow_occurrences.version = aioflow_plan_versions.version)"
    )


# --- rows ---------------------------------------------------------------------------------------


async def _write(statements: Statements, task: Task) -> None:
    names = ("task_id", "name", *_COLUMNS.split(", "))
    values = (
        *(task.task_id, task.name, msgspec.json.encode(task.definition).decode(), task.version, task.state),
        *(task.state_reason, stamp(task.created), stamp(task.changed), stamp(task.anchor)),
        *(stamp(task.scheduled_until), task.failures, _stamp(task.last_success), _stamp(task.last_failure)),
        task.feed_key,
    )
    changes = ", ".join(f"{name} = excluded.{name}" for name in names[2:])
    places = ", ".join("{}" for _ in names)
    await statements.run(
        f"INSERT INTO aioflow_tasks ({', '.join(names)}) VALUES ({places}) "
        f"ON CONFLICT (task_id) DO UPDATE SET {changes}",
        *values,
    )


def _task_of(row: Row) -> Task:
    definition, version, state, reason, created, changed, anchor, until, failures, success, failure, key = row
    return Task(
        msgspec.json.decode(definition, type=TaskDefinition),
        *(version, state, reason, from_stamp(created), from_stamp(changed), from_stamp(anchor)),
        *(from_stamp(until), int(failures), _moment(success), _moment(failure), key),
    )


def _stamp(moment: datetime | None) -> str | None:
    return None if moment is None else stamp(moment)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else from_stamp(text)
