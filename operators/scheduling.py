"""schedule and unschedule, with which plans add and remove tasks."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Any

from aioflow import AioflowError, Context, InputError, Schema, Stream, operator
from aioflow.authoring.operator import Settings, StoreUse
from aioflow.authoring.services import ServiceHost
from aioflow.relation import Batch, Relation, Row, Type
from aioflow.service import TaskRequests, default_name
from aioflow.state import Databases

_TASK_ID = "task-id"
_REMOVED = "removed"
_NAMES = ("plan", "schedule", "input", "name", "zone")


def _posts(settings: Settings) -> StoreUse:
    return StoreUse(settings.get("db"), "post")


def _missing(settings: Settings, host: ServiceHost) -> Iterable[str]:
    assert host.run is not None
    database = host.run.default("database", settings["db"])
    return host.service(Databases).problems(database, host.run.folder)


def _added(*needed: str, attribute: str, kind: Type) -> Any:
    def schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
        found = inputs[0]
        if found is None:
            return None
        for name in needed:
            found.position(name)
        return found.add(Schema((attribute,), (kind,)))

    return schema


@operator(
    schema=_added("plan", "schedule", attribute=_TASK_ID, kind=Type.CHAR),
    firing="tuple",
    effects=True,
    store=_posts,
    requires=_missing,
)
async def schedule(rel: Stream, *, db: str | None = None, context: Context) -> AsyncGenerator[Batch, None]:
    """Add a task for each tuple, or change the one of its name, and add its id.

    A tuple has `plan`, a plan file beside this one or with a path, and `schedule`: a line as in crontab(5),
    `@daily`, or `every 15m`. It may have `input`, `name` and `zone`. The input is a relation, or a text: JSON
    or `city=Irvine`. The name is by default made of plan and input. The request is stored in the database of
    the run, in its transaction: a service takes it over after the commit, and without a service it waits.

    Arguments:
        rel: the tuples.
        db: the database of the run.

    Examples:
        schedule (cleaners : added)
    """
    assert rel.schema is not None
    names = [name for name in _NAMES if name in rel.schema]
    joined = rel.schema.add(Schema((_TASK_ID,), (Type.CHAR,)))
    requests = context.service(TaskRequests)
    async for batch in rel.batches():
        results: Batch = []
        for row in batch:
            given = {name: row[rel.schema.position(name)] for name in names}
            try:
                task_id = requests.schedule(_definition(given), db)
            except AioflowError as error:
                context.fail(row, error)
                continue
            context.fired()
            results.append(_with(rel.schema, joined, row, _TASK_ID, task_id))
        if results:
            yield results


@operator(
    schema=_added(_TASK_ID, attribute=_REMOVED, kind=Type.BOOLEAN),
    firing="tuple",
    effects=True,
    store=_posts,
    requires=_missing,
)
async def unschedule(rel: Stream, *, db: str | None = None, context: Context) -> AsyncGenerator[Batch, None]:
    """Remove the task of each tuple's `task-id`, and add `removed`.

    The request is stored in the database of the run, in its transaction, and a service carries it out after
    the commit. `removed` is true for a request that was stored, and false for a tuple without an id. A plan
    may remove its own task, `$task-id`: the run under way ends normally.

    Arguments:
        rel: the tuples.
        db: the database of the run.

    Examples:
        unschedule (tasks : removed)
    """
    assert rel.schema is not None
    joined = rel.schema.add(Schema((_REMOVED,), (Type.BOOLEAN,)))
    requests = context.service(TaskRequests)
    place = rel.schema.position(_TASK_ID)
    async for batch in rel.batches():
        results: Batch = []
        for row in batch:
            task_id = row[place]
            if task_id:
                requests.unschedule(str(task_id), db)
            context.fired()
            results.append(_with(rel.schema, joined, row, _REMOVED, bool(task_id)))
        if results:
            yield results


def _with(schema: Schema, joined: Schema, row: Row, name: str, value: Any) -> Row:
    """Return a tuple with one attribute more, or with another value for it."""
    values = dict(zip(schema.names, row, strict=True)) | {name: value}
    return tuple(values[each] for each in joined.names)


def _definition(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition of a task that a tuple asks for."""
    for name in ("plan", "schedule"):
        if not isinstance(given[name], str) or not given[name].strip():
            raise InputError(f"{name} must be a text, not {given[name]!r}")
    inputs = _inputs(given.get("input"))
    name = given.get("name") or default_name(given["plan"], inputs)
    found: dict[str, Any] = {"name": name, "plan": given["plan"], "schedule": given["schedule"]}
    if given.get("zone"):
        found["zone"] = given["zone"]
    if inputs:
        found["inputs"] = inputs
    return found


def _inputs(value: Any) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a task's only input, under the name that stands for it."""
    if value is None or value == "":
        return {}
    if isinstance(value, Relation):
        return {"": [dict(zip(value.schema.names, row, strict=True)) for row in value.rows]}
    try:
        content = json.loads(value)
    except (TypeError, ValueError):
        content = dict(part.split("=", 1) for part in str(value).split() if "=" in part)
    rows = content if isinstance(content, list) else [content]
    if not rows or not all(isinstance(row, dict) and row for row in rows):
        raise InputError(f"input must be a relation, JSON, or a text like city=Irvine, not {value!r}")
    return {"": rows}
