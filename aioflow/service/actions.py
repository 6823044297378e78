"""Everything that people do with tasks, on the task database. The command line and REST both use it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from aioflow.authoring.operator import Registry, load_operators
from aioflow.config.configuration import Configuration
from aioflow.errors import AioflowError, InputError, PlanError, suggestion
from aioflow.language import PlanSnapshot, load_snapshot
from aioflow.plan import Program
from aioflow.service.alerts import Alert, end_alerts, lasting_alerts
from aioflow.service.errors import EditConflictError, ForbiddenError, NotFoundError
from aioflow.service.home import PLANS_FOLDER
from aioflow.service.planning import next_due
from aioflow.service.programs import check_program, code_digests, find_newer_plan, off_the_loop, read_plan
from aioflow.service.schedules.words import describe
from aioflow.service.store.database import ServiceDatabase, Statements
from aioflow.service.store.occurrences import (
    CANCELLED_BY_HAND,
    Occurrence,
    add_manual,
    cancel_waiting,
    latest_of_tasks,
    read_details,
    read_history,
    read_occurrence,
    request_cancel,
    skip_waiting,
)
from aioflow.service.store.services import KnownService, read_services
from aioflow.service.store.tasks import (
    find_task,
    note_change,
    read_task,
    read_tasks,
    read_version,
    remove_task,
    set_state,
    store_task,
)
from aioflow.service.task import (
    BY_HAND,
    DefinitionError,
    Task,
    TaskDefinition,
    TaskState,
    read_definition,
    task_id_of,
)

_ALIVE_SECONDS = 60.0


class TaskView(msgspec.Struct, frozen=True):
    """A task as people see it: its definition, its state, and the run that was last."""

    task_id: str
    definition: TaskDefinition
    state: TaskState
    state_reason: str
    schedule_words: str
    next_due: datetime | None
    version: str
    created: datetime
    changed: datetime
    failures: int
    last_success: datetime | None
    last_failure: datetime | None
    latest: Occurrence | None = None
    newer_version: str | None = None  # of the plan on disk
    newer_problem: str = ""  # why the plan on disk cannot be taken over
    code: Mapping[str, str] = msgspec.field(default_factory=dict)  # digests of modules with Python code
    feed_key: str = ""


class RunView(msgspec.Struct, frozen=True):
    """A run with its log and the first rows of its outputs."""

    occurrence: Occurrence
    task_name: str
    log: str
    sample: str
    trace: str
    zone: str | None = None  # of its task


class ImportReport(msgspec.Struct, frozen=True):
    """The tasks that an import added, changed, and left as they were."""

    added: list[str]
    changed: list[str]
    unchanged: list[str]


class LocalActions:
    """Actions on the task database of a home.

    `approve` is called with the program and the definition of each task that is to be stored, and raises an
    AioflowError for a task that must not be.
    """

    def __init__(
        self,
        home: Path,
        configuration: Configuration,
        database: ServiceDatabase,
        registry: Registry | None = None,
        approve: Callable[[Program, TaskDefinition], None] = lambda program, definition: None,
    ) -> None:
        self.home = home
        self.configuration = configuration
        self.database = database
        self.registry = registry if registry is not None else load_operators(configuration.ops)
        self._approve = approve

    async def close(self) -> None:
        await self.database.close()

    # --- tasks --------------------------------------------------------------------------------------

    async def list_tasks(self) -> list[TaskView]:
        """Return all tasks, by name."""
        async with self.database.reading() as statements:
            tasks = await read_tasks(statements)
            latest = await latest_of_tasks(statements)
        return [view(task, latest.get(task.task_id)) for task in tasks]

    async def show_task(self, name: str) -> TaskView:
        """Return a task with the state of its plan on disk."""
        async with self.database.reading() as statements:
            task = await find_task(statements, name)
            latest = await latest_of_tasks(statements)
        newer = await off_the_loop(lambda: find_newer_plan(task, self.registry))
        return msgspec.structs.replace(
            view(task, latest.get(task.task_id)),
            newer_version=newer.version if newer is not None else None,
            newer_problem=newer.problem if newer is not None else "",
            code=code_digests(self.configuration.ops),
            feed_key=task.feed_key,
        )

    async def add_task(
        self, content: Mapping[str, Any], *, paused: bool = False, replace: bool = False
    ) -> TaskView:
        """Add a task; with `replace` one of that name is changed instead."""
        definition = self._definition(content)
        snapshot = await off_the_loop(lambda: self._read_plan(definition))
        async with self.database.writing() as statements:
            known = await read_task(statements, definition.task_id)
            if known is not None and not replace:
                raise EditConflictError(
                    f"there is a task {definition.name!r} already: edit it, or take another name"
                )
            _check_comes(definition, statements.now)
            reason = "it was added so" if paused else None
            return view(await store_task(statements, definition, snapshot, paused=reason))

    async def edit_task(
        self,
        name: str,
        changes: Mapping[str, Any],
        *,
        reload: bool = False,
        expected: datetime | None = None,
    ) -> TaskView:
        """Change a task. The plan is read anew if it is another one, or with `reload`.

        `expected` is the time of the last change that the caller knows of; after a later one, an
        EditConflictError is raised.
        """
        async with self.database.reading() as statements:
            task = await find_task(statements, name)
        if changes.get("name", task.name) != task.name:
            raise InputError("the name of a task cannot be changed: add another task, and remove this one")
        known = msgspec.to_builtins(task.definition)
        given = {key: value for key, value in changes.items() if value is not None}
        if "accounts" in given:  # one by one; an empty name is for the default
            accounts = {**task.definition.accounts, **given["accounts"]}
            given["accounts"] = {kind: account for kind, account in accounts.items() if account}
        dropped = [key for key, value in changes.items() if value is None]
        content = {key: value for key, value in {**known, **given}.items() if key not in dropped}
        definition = self._definition(content)
        has_other_plan = (definition.plan, definition.plan_name) != (
            task.definition.plan,
            task.definition.plan_name,
        )
        if reload or has_other_plan or definition.reload == "automatic":
            snapshot = await off_the_loop(lambda: self._read_plan(definition))
        else:
            snapshot = await self._checked_version(task, definition)
        async with self.database.writing() as statements:
            if expected is not None:
                _check_unchanged(await find_task(statements, name), expected)
            return view(await store_task(statements, definition, snapshot))

    async def _checked_version(self, task: Task, definition: TaskDefinition) -> PlanSnapshot:
        """Return the files of a task as they were, checked with its new inputs and parameters."""
        async with self.database.reading() as statements:
            snapshot = await read_version(statements, task.version)

        def check() -> None:
            program = load_snapshot(snapshot, definition.plan_name)
            check_program(program, definition, self.registry)
            self._approve(program, definition)
            _check_channels(definition.accounts)

        await off_the_loop(check)
        return snapshot

    def _read_plan(self, definition: TaskDefinition) -> PlanSnapshot:
        """Return the files of a task as they are on disk, checked and approved."""
        plan, folder = Path(definition.plan), self.home / PLANS_FOLDER
        if plan.is_relative_to(folder) and not plan.exists():
            raise InputError(
                f"there is no file {plan.relative_to(folder)} in the folder of plans of the service, "
                f"{folder}: put it there, or give its whole path"
            )
        program, snapshot = read_plan(definition, self.registry)
        self._approve(program, definition)
        _check_channels(definition.accounts)
        return snapshot

    async def pause_task(self, name: str, reason: str = "") -> TaskView:
        """Pause a task; its runs that wait are skipped, a run under way goes on."""
        return await self._set_state(name, "paused", reason or "by hand")

    async def resume_task(self, name: str) -> TaskView:
        """Have a paused task run again, from its next time on."""
        return await self._set_state(name, "active", "")

    async def _set_state(self, name: str, state: TaskState, reason: str) -> TaskView:
        async with self.database.writing() as statements:
            task = await find_task(statements, name)
            if state == "paused":
                await skip_waiting(statements, task.task_id, "the task was paused", scheduled_only=True)
                await end_alerts(statements, task.task_id, "the task was paused")
            return view(await set_state(statements, task, state, reason))

    async def remove_task(self, name: str) -> str:
        """Remove a task; return its name. Its history stays until it is old."""
        async with self.database.writing() as statements:
            task = await find_task(statements, name)
            await remove_task(statements, task.task_id)
            await skip_waiting(statements, task.task_id, "the task was removed", scheduled_only=False)
        return task.name

    async def run_task(self, name: str) -> str:
        """Have a task run now, also if it is paused; return the occurrence."""
        async with self.database.writing() as statements:
            task = await find_task(statements, name)
            return await add_manual(statements, task)

    async def cancel_runs(self, name: str) -> int:
        """Cancel the runs of a task that are under way or wait; return their number."""
        async with self.database.writing() as statements:
            task = await find_task(statements, name)
            waiting = await cancel_waiting(statements, task.task_id)
            if waiting:
                await note_change(statements)
            return waiting + await request_cancel(statements, task.task_id, CANCELLED_BY_HAND)

    # --- runs ---------------------------------------------------------------------------------------

    async def list_runs(
        self,
        name: str | None = None,
        *,
        states: Sequence[str] = (),
        before: datetime | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> list[Occurrence]:
        """Return the runs of a task or of all, and times that were skipped or missed; the latest first.

        With the occurrence of a run as the `cursor`, the answer begins after that run.
        """
        async with self.database.reading() as statements:
            task_id = None if name is None else await _task_with_history(statements, name)
            return await read_history(
                statements, task_id, states=states, before=before, cursor=cursor, limit=limit
            )

    async def show_run(self, name: str) -> RunView:
        """Return a run by its id or its occurrence, or the latest run of a task."""
        async with self.database.reading() as statements:
            found = await read_occurrence(statements, name)
            if found is None:
                task = await find_task(statements, name, what="task or run")
                found = (await latest_of_tasks(statements)).get(task.task_id)
                if found is None:
                    raise NotFoundError(f"task {task.name!r} has not run yet")
            details = await read_details(statements, found.occurrence)
            known = await read_task(statements, found.task_id)
        name, zone = (found.task_id, None) if known is None else (known.name, known.definition.zone)
        return RunView(found, name, details.log, details.sample, details.trace, zone)

    async def list_services(self) -> list[KnownService]:
        """Return the services that work on this task database."""
        async with self.database.reading() as statements:
            return await read_services(statements, _ALIVE_SECONDS)

    async def list_alerts(self) -> list[Alert]:
        """Return the causes of alerts that last."""
        async with self.database.reading() as statements:
            return await lasting_alerts(statements)

    # --- export and import --------------------------------------------------------------------------

    async def export_tasks(self, names: Sequence[str] = ()) -> list[TaskDefinition]:
        """Return the definitions of tasks, for a file under version control."""
        async with self.database.reading() as statements:
            if names:
                return [(await find_task(statements, name)).definition for name in names]
            return [task.definition for task in await read_tasks(statements)]

    async def import_tasks(
        self, contents: Sequence[Mapping[str, Any]], *, paused: Collection[str] = ()
    ) -> ImportReport:
        """Add or change tasks, all of them or none; those that are the same stay as they are.

        New tasks whose names are in `paused` are added so.
        """
        read, mistakes = await off_the_loop(lambda: self.read_tasks(contents))
        if mistakes:
            raise _joined(mistakes)
        report = ImportReport([], [], [])
        async with self.database.writing() as statements:
            for definition, snapshot in read:
                before = await read_task(statements, definition.task_id)
                reason = "it was imported so" if definition.name in paused else None
                after = await store_task(statements, definition, snapshot, paused=reason)
                if before is None:
                    report.added.append(definition.name)
                else:
                    (report.unchanged if after == before else report.changed).append(definition.name)
        return report

    def read_tasks(
        self, contents: Sequence[Mapping[str, Any]]
    ) -> tuple[list[tuple[TaskDefinition, PlanSnapshot]], list[tuple[int, AioflowError]]]:
        """Return the definitions of tasks with the files of their plans, and the mistakes of the others.

        Each mistake comes with the index of its task.
        """
        read: list[tuple[TaskDefinition, PlanSnapshot]] = []
        mistakes: list[tuple[int, AioflowError]] = []
        for index, content in enumerate(contents):
            try:
                definition = self._definition(content)
                read.append((definition, self._read_plan(definition)))
            except DefinitionError as error:
                mistakes += [(index, each) for each in (error, *self._mistakes_beside(error, content))]
            except AioflowError as error:
                mistakes.append((index, error))
        return read, mistakes

    def _mistakes_beside(self, error: DefinitionError, content: Mapping[str, Any]) -> Iterator[AioflowError]:
        """Yield the mistakes of a plan whose task has others."""
        wrong = {key for key, _ in error.mistakes}
        if not wrong & {"", "name", "plan", "plan_name", "inputs", "parameters"}:
            rest = {key: value for key, value in content.items() if key not in wrong}
            yield from (each for _, each in self.read_tasks([rest])[1])

    def _definition(self, content: Mapping[str, Any]) -> TaskDefinition:
        """Return a definition with the path of its plan: as it is, or in the folder of plans of the home."""
        definition = read_definition(content)
        plan = Path(definition.plan).expanduser()
        if not plan.is_absolute():
            plan = self.home / PLANS_FOLDER / plan
        if definition.database is not None:
            self.database.databases.address(
                definition.database, plan.parent
            )  # an InputError if there is none
        return msgspec.structs.replace(definition, plan=os.path.abspath(plan))


async def _task_with_history(statements: Statements, name: str) -> str:
    """Return the id of a task by its name or id, also of one that was removed and has runs."""
    try:
        return (await find_task(statements, name)).task_id
    except NotFoundError:
        for task_id in (task_id_of(name), name):
            if await read_history(statements, task_id, limit=1):
                return task_id
        raise


def _check_channels(accounts: Mapping[str, str]) -> None:
    """Raise an InputError for accounts of a channel that does not exist; accounts may be configured later."""
    from aioflow.messages.channels import Channels

    kinds = Channels({}).kinds() if accounts else []
    for kind in accounts:
        if kind not in kinds:
            raise InputError(f"accounts.{kind}: there is no channel {kind!r}{suggestion(kind, kinds)}")


def _joined(mistakes: Sequence[tuple[int, AioflowError]]) -> AioflowError:
    """Return one error for all mistakes. What is forbidden goes first; plans are not quoted beside others."""
    errors = [error for _, error in mistakes]
    forbidden = next((each for each in errors if isinstance(each, ForbiddenError)), None)
    if forbidden is not None or len(errors) == 1:
        return forbidden or errors[0]
    return InputError(
        "\n".join(
            f"task {index + 1} of the import: the plan has mistakes"
            if isinstance(error, PlanError)
            else str(error)
            for index, error in mistakes
        )
    )


def _check_comes(definition: TaskDefinition, now: datetime) -> None:
    """Raise an InputError for a schedule that has no time any more."""
    schedule = definition.read_schedule()
    if schedule is None:
        return
    found, ends = schedule.next_after(now), definition.ends
    if found is None:
        raise InputError(f"task {definition.name!r}: {definition.schedule!r} never comes any more")
    if ends is not None and found > ends:
        late = "has passed" if ends <= now else f"is before the first time, {found.isoformat(sep=' ')}"
        raise InputError(f"task {definition.name!r}: ends={ends.isoformat()} {late}")


def _check_unchanged(task: Task, expected: datetime) -> None:
    if task.changed != expected:
        raise EditConflictError(
            f"task {task.name!r} was changed at {task.changed.isoformat()}, after you have read it: "
            "read it again, and change it then"
        )


def view(task: Task, latest: Occurrence | None = None) -> TaskView:
    """Return a task as people see it."""
    schedule = task.definition.read_schedule()
    words = "only by hand" if schedule is None else f"{describe(schedule)} ({schedule.zone_name})"
    return TaskView(
        task_id=task.task_id,
        definition=task.definition,
        state=task.state,
        state_reason=task.state_reason,
        schedule_words=words if task.definition.schedule != BY_HAND else "only by hand",
        next_due=next_due(task),
        version=task.version,
        created=task.created,
        changed=task.changed,
        failures=task.failures,
        last_success=task.last_success,
        last_failure=task.last_failure,
        latest=latest,
    )
