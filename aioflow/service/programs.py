"""Programs of tasks: loaded from the versions in the task database, and compared with the files on disk."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from aioflow.authoring.operator import Registry
from aioflow.compiler.analysis import Analysis
from aioflow.compiler.check import analyse
from aioflow.errors import AioflowError, InputError, PlanError
from aioflow.language import PlanSnapshot, load_snapshot, take_snapshot
from aioflow.plan import Program
from aioflow.service.store.database import Statements
from aioflow.service.store.tasks import read_version
from aioflow.service.task import Task, TaskDefinition
from aioflow.values.coercion import Intake

T = TypeVar("T")

_PROGRAMS_AT_MOST = 200


async def off_the_loop(analysis: Callable[[], T]) -> T:
    """Return the result of the analysis of plans, made in a thread.

    A plan of an editor may take seconds. The loop goes on meanwhile: it renews the leases of runs.
    """
    return await asyncio.to_thread(analysis)


class NewerPlan(msgspec.Struct, frozen=True):
    """The state of a plan's files on disk, where it differs from the version of a task.

    `problem` says why the files cannot be taken over; "" if they can.
    """

    version: str
    problem: str = ""


def read_plan(definition: TaskDefinition, registry: Registry) -> tuple[Program, PlanSnapshot]:
    """Return the program and the files of a task as they are on disk, checked with its inputs."""
    program, snapshot = take_snapshot(definition.plan, definition.plan_name)
    check_program(program, definition, registry)
    return program, snapshot


def check_program(program: Program, definition: TaskDefinition, registry: Registry) -> None:
    """Raise a PlanError for mistakes in a plan, and an InputError for inputs that do not fit."""
    _check_job(program, definition)
    declared = {each.name.lower(): each for each in program.main.parameters}
    for name in definition.parameters:
        if name.lower() not in declared:
            known = ", ".join(each.name for each in program.main.parameters) or "none"
            raise InputError(f"plan {program.name} has no parameter {name!r} (parameters: {known})")
    missing = [each for each in program.main.parameters if each.required]
    given = {name.lower() for name in definition.parameters}
    if absent := [each.name for each in missing if each.name.lower() not in given]:
        raise InputError(f"plan {program.name} needs the parameter {', '.join(absent)}")
    inputs = [each.name for each in program.main.inputs]
    for name in definition.inputs:
        if name not in inputs:
            raise InputError(
                f"plan {program.name} has no input {name!r} (inputs: {', '.join(inputs) or 'none'})"
            )
    if absent := [name for name in inputs if name not in definition.inputs]:
        raise InputError(f"plan {program.name} needs rows for its input {', '.join(absent)}")
    for declaration in program.main.inputs:
        if rows := definition.inputs[declaration.name]:
            Intake(declaration.name, declaration.schema).batch(rows)
    analyse_for_task(program, definition, registry)


def _check_job(program: Program, definition: TaskDefinition) -> None:
    """Raise an InputError for a task that is to be a job and cannot be one."""
    early = next((plan for plan in program if plan.commits_in_batches), None)
    if definition.job and early is not None:
        raise InputError(
            f"plan {early.name} has COMMIT: batch, and a job commits once, at its end: leave job out"
        )


def analyse_for_task(program: Program, definition: TaskDefinition, registry: Registry) -> Analysis:
    """Return all that is known of a program with the parameters of a task; raise a PlanError for mistakes."""
    # The parameters of a run, as they would be in one that begins now.
    built_in = {
        "run-id": "0" * 32,
        "task-id": definition.task_id,
        "started": datetime.now(UTC).isoformat(),
    }
    analysis = analyse(program, registry, parameters=parameters_of(definition) | built_in)
    analysis.raise_mistakes()
    return analysis


def parameters_of(definition: TaskDefinition) -> dict[str, object]:
    """Return the parameters of a task, as the engine takes them: a list becomes a tuple."""
    return {
        name.lower(): tuple(value) if isinstance(value, list) else value
        for name, value in definition.parameters.items()
    }


def find_newer_plan(task: Task, registry: Registry) -> NewerPlan | None:
    """Return the plan on disk if it is another than that of the task; None if it is the same."""
    try:
        _, snapshot = read_plan(task.definition, registry)
    except PlanError as error:
        return NewerPlan("", str(error.diagnostics[0]).splitlines()[0] if error.diagnostics else str(error))
    except (AioflowError, OSError) as error:
        return NewerPlan("", str(error))
    return None if snapshot.digest == task.version else NewerPlan(snapshot.digest)


def code_digests(modules: Sequence[str]) -> dict[str, str]:
    """Return a digest of the file of each module with operators of the user's own. Code is not frozen.

    A module beside the configuration is named by its path, and shown by its name.
    """
    found = {}
    for name in modules:
        path = Path(name)
        if not name.endswith(".py"):
            spec = importlib.util.find_spec(name)
            path = Path(spec.origin) if spec is not None and spec.origin is not None else path
        if path.is_file():
            shown = path.stem if name.endswith(".py") else name
            found[shown] = hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()
    return found


class Programs:
    """Programs by version, and the latest of them in memory."""

    def __init__(self) -> None:
        self._loaded: OrderedDict[tuple[str, str | None], Program] = OrderedDict()

    async def load(self, statements: Statements, version: str, plan_name: str | None) -> Program:
        """Return the program of a version; an AioflowError says why it cannot be read any more."""
        key = (version, plan_name)
        program = self._loaded.pop(key, None)
        if program is None:
            snapshot = await read_version(statements, version)
            program = await off_the_loop(lambda: load_snapshot(snapshot, plan_name))
        self._loaded[key] = program
        if len(self._loaded) > _PROGRAMS_AT_MOST:
            self._loaded.popitem(last=False)
        return program
