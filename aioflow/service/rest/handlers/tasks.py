"""Tasks: listed, added, changed, paused, run, exported and imported."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from aioflow.service.actions import ImportReport, TaskView
from aioflow.service.rest.content import Moment, RunPage, RunsQuery, TaskContent, run_page
from aioflow.service.rest.declarations import RestCall, RouteTable
from aioflow.service.rest.plan_versions import PlanVersion, compare_version
from aioflow.service.schedules.schedule import find_zone, parse_schedule
from aioflow.service.schedules.words import describe
from aioflow.service.store.tasks import find_task, read_version
from aioflow.service.task import TaskDefinition

TABLE = RouteTable("tasks")


class TaskList(msgspec.Struct, frozen=True):
    """All tasks, by name."""

    tasks: list[TaskView]


class NewTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task to be added. With `replace`, one of that name is changed instead."""

    task: TaskContent
    paused: bool = False
    replace: bool = False


class TaskChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Changes of a task. `reload` reads its plan anew.

    `expected` is the value of `changed` that was read: if the task was changed since, it is a conflict.
    """

    changes: TaskContent = TaskContent()
    reload: bool = False
    expected: Moment | None = None


class PauseReason(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(max_length=500)] = ""


class RemovedTask(msgspec.Struct, frozen=True):
    name: str


class BegunRun(msgspec.Struct, frozen=True):
    """A run that was asked for. Its occurrence stands in the list of runs."""

    occurrence: str


class CancelledRuns(msgspec.Struct, frozen=True):
    number: int


class ExportQuery(msgspec.Struct, frozen=True):
    name: list[str] = msgspec.field(default_factory=list)


class TaskExport(msgspec.Struct, frozen=True):
    """Definitions of tasks, for a file under version control."""

    tasks: list[TaskDefinition]


class TaskImport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tasks to be added or changed, all of them or none. New ones that `paused` names are added so."""

    tasks: Annotated[list[TaskContent], Meta(max_length=10_000)]
    paused: list[str] = msgspec.field(default_factory=list)


class PreviewQuery(msgspec.Struct, frozen=True):
    """A schedule, its time zone, the moment to begin after, and the number of times."""

    text: Annotated[str, Meta(max_length=1000)]
    zone: str | None = None
    start: Moment | None = None
    count: Annotated[int, Meta(ge=1, le=100)] = 5


class SchedulePreview(msgspec.Struct, frozen=True):
    """A schedule in words, and its next times."""

    words: str
    zone: str
    times: list[datetime]


@TABLE.add("GET", "/api/tasks")
async def list_tasks(call: RestCall[None, None]) -> TaskList:
    """List all tasks with their states and last runs."""
    return TaskList(await call.context.actions(call.role).list_tasks())


@TABLE.add("POST", "/api/tasks", role="editor", status=201, refusals=(409, 422))
async def add_task(call: RestCall[None, NewTask]) -> TaskView:
    """Add a task."""
    given = call.body
    actions = call.context.actions(call.role)
    return await actions.add_task(given.task.as_mapping(), paused=given.paused, replace=given.replace)


@TABLE.add("GET", "/api/tasks/{name}", refusals=(404,))
async def show_task(call: RestCall[None, None]) -> TaskView:
    """Return a task by its name or id, with the state of its plan on disk."""
    found = await call.context.actions(call.role).show_task(call.path["name"])
    # The address of its feed is a secret, for which there is a request of its own.
    return msgspec.structs.replace(found, feed_key="")


@TABLE.add("PATCH", "/api/tasks/{name}", role="editor", refusals=(404, 409, 422))
async def edit_task(call: RestCall[None, TaskChange]) -> TaskView:
    """Change a task."""
    given = call.body
    return await call.context.actions(call.role).edit_task(
        *(call.path["name"], given.changes.as_mapping()), reload=given.reload, expected=given.expected
    )


@TABLE.add("DELETE", "/api/tasks/{name}", role="editor", refusals=(404,))
async def remove_task(call: RestCall[None, None]) -> RemovedTask:
    """Remove a task. Its history stays until it is old."""
    return RemovedTask(await call.context.actions(call.role).remove_task(call.path["name"]))


@TABLE.add("POST", "/api/tasks/{name}/pause", role="editor", refusals=(404,))
async def pause_task(call: RestCall[None, PauseReason]) -> TaskView:
    """Pause a task. A run under way goes on."""
    return await call.context.actions(call.role).pause_task(call.path["name"], call.body.reason)


@TABLE.add("POST", "/api/tasks/{name}/resume", role="editor", refusals=(404,))
async def resume_task(call: RestCall[None, None]) -> TaskView:
    """Have a paused task run again, from its next time on."""
    return await call.context.actions(call.role).resume_task(call.path["name"])


@TABLE.add("POST", "/api/tasks/{name}/run", role="editor", status=202, refusals=(404,))
async def run_task(call: RestCall[None, None]) -> BegunRun:
    """Have a task run now, also if it is paused."""
    return BegunRun(await call.context.actions(call.role).run_task(call.path["name"]))


@TABLE.add("POST", "/api/tasks/{name}/cancel", role="editor", refusals=(404,))
async def cancel_runs(call: RestCall[None, None]) -> CancelledRuns:
    """Cancel the runs of a task that are under way."""
    return CancelledRuns(await call.context.actions(call.role).cancel_runs(call.path["name"]))


@TABLE.add("GET", "/api/tasks/{name}/plan", refusals=(404, 422))
async def read_task_plan(call: RestCall[None, None]) -> PlanVersion:
    """Return the text of the plan version that a task runs, with its difference from the files on disk."""
    async with call.context.service.database.reading() as statements:
        task = await find_task(statements, call.path["name"])
        snapshot = await read_version(statements, task.version)
    may_show = call.context.may_show(call.role)
    return await call.context.in_thread(lambda: compare_version(snapshot, task.definition, may_show))


@TABLE.add("GET", "/api/tasks/{name}/runs", refusals=(404,))
async def list_task_runs(call: RestCall[RunsQuery, None]) -> RunPage:
    """List the runs of a task, and times that were skipped or missed."""
    query = call.query
    found = await call.context.actions(call.role).list_runs(
        *(call.path["name"],), states=query.state, before=query.before, cursor=query.cursor, limit=query.limit
    )
    return run_page(found, query.limit)


@TABLE.add("GET", "/api/export", refusals=(404,))
async def export_tasks(call: RestCall[ExportQuery, None]) -> TaskExport:
    """Return the definitions of tasks; without names those of all."""
    return TaskExport(await call.context.actions(call.role).export_tasks(call.query.name))


@TABLE.add("POST", "/api/import", role="editor", refusals=(422,))
async def import_tasks(call: RestCall[None, TaskImport]) -> ImportReport:
    """Add or change tasks, all of them or none."""
    contents: list[dict[str, Any]] = [each.as_mapping() for each in call.body.tasks]
    return await call.context.actions(call.role).import_tasks(contents, paused=call.body.paused)


@TABLE.add("GET", "/api/schedules/preview", refusals=(422,))
async def preview_schedule(call: RestCall[PreviewQuery, None]) -> SchedulePreview:
    """Return the words for a schedule, and its next times."""
    query = call.query
    find_zone(query.zone)
    schedule = parse_schedule(query.text, query.zone)
    start = query.start or call.context.service.clock()
    times = []
    for time in schedule.times_after(start):
        times.append(time)
        if len(times) == query.count:
            break
    return SchedulePreview(describe(schedule), schedule.zone_name, times)
