"""Files of tasks that are sent as a text: TOML, and lines as in a crontab."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias

from aioflow.cli.inputs import is_read_elsewhere, read_inputs
from aioflow.errors import InputError, PlanError
from aioflow.language.loader import load
from aioflow.plan import Plan
from aioflow.service.errors import ForbiddenError
from aioflow.service.task import default_name
from aioflow.service.task_files import (
    FileMistake,
    FileTask,
    TaskLine,
    read_task_lines,
    read_toml,
    shown_mistakes,
)

TaskFormat: TypeAlias = Literal["toml", "lines"]


def read_tasks(
    text: str, format: TaskFormat, name: str, folder: Path, may_use: Callable[[str], bool]
) -> list[FileTask]:
    """Return the tasks in a text; an InputError lists all mistakes with their lines.

    Paths of plans begin at a folder; `name` is for messages. `may_use` decides about the plans of lines.
    """
    tasks: list[FileTask] = []
    if format == "toml":
        tasks, mistakes = read_toml(text, Path(name), folder)
    else:
        lines, mistakes = read_task_lines(text, Path(name), folder)
        for line in lines:
            try:
                tasks.append(_task_of(line, name, may_use))
            except (InputError, PlanError) as error:
                mistakes.append(FileMistake(line.line, str(error)))
    if mistakes:
        raise InputError(shown_mistakes(mistakes, Path(name), text))
    return tasks


def _task_of(line: TaskLine, name: str, may_use: Callable[[str], bool]) -> FileTask:
    if not may_use(str(line.plan)):
        only = "an editor may only use plans in the folder of plans of the service"
        raise ForbiddenError(f"{name}:{line.line}: {only}")
    inputs = _rows(line.inputs, load(line.plan).main)
    found: dict[str, Any] = {
        "name": default_name(line.plan.name, inputs, line.schedule),
        "plan": str(line.plan),
        "schedule": line.schedule,
    }
    if inputs:
        found["inputs"] = inputs
    if line.zone is not None:
        found["zone"] = line.zone
    return FileTask(found, {"": line.line})


def _rows(words: tuple[str, ...], plan: Plan) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each input. The files that words name are those of the sender, and not here."""
    if elsewhere := [each for each in words if is_read_elsewhere(each, plan)]:
        shown = elsewhere[0][:80]
        raise InputError(f"{shown}: a file of rows is not sent with the tasks; give the rows as JSON")
    found: dict[str, list[dict[str, Any]]] = {}
    for name, rows in read_inputs(words, plan).items():
        assert isinstance(rows, list)
        found[name] = [dict(row) for row in rows]
    return found
