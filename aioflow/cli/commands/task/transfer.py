"""`aioflow task export` and `task import`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aioflow.cli.commands.task.actions import Home, server_url, with_actions
from aioflow.cli.commands.task.change import main_plan, rows_of
from aioflow.cli.exit import guarded, os_error_text, print_message
from aioflow.errors import InputError, PlanError

if TYPE_CHECKING:
    from aioflow.service.actions import ImportReport, LocalActions
    from aioflow.service.importing.backup_import import BackupReport
    from aioflow.service.rest.client import RemoteActions
    from aioflow.service.task import TaskDefinition
    from aioflow.service.task_files import FileMistake, FileTask, TaskLine


class _Origin(StrEnum):
    CHANGEDETECTION = "changedetection"


@guarded
def task_export(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[TASK]…", help="Tasks; by default all.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("-o", metavar="FILE", help="Write to a file; paths of plans are relative to it."),
    ] = None,
    home: Home = None,
) -> None:
    """Print tasks as TOML, for version control. Importing it again changes nothing."""
    from aioflow.service.task_files import write_toml

    async def work(actions: Any) -> tuple[list[TaskDefinition], set[str]]:
        tasks = await actions.list_tasks()
        paused = {each.definition.name for each in tasks if each.state == "paused"}
        return await actions.export_tasks(names or ()), paused

    found, paused = with_actions(home, work)
    if output is None:
        sys.stdout.write(write_toml(found, paused=paused))
        return
    path = Path(output)
    path.write_text(write_toml(found, path.parent.absolute(), paused=paused), encoding="utf-8")


@guarded
def task_import(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="TOML as `task export` writes it, or lines like '05 8-17 1,3,5 * * homes.plan city=Irvine'.",
        ),
    ],
    origin: Annotated[
        _Origin | None,
        typer.Option("--from", metavar="changedetection", help="FILE is a backup of changedetection.io."),
    ] = None,
    home: Home = None,
) -> None:
    """Add and change tasks as a file says. All of them, or none if one is wrong.

    Watches of changedetection.io become plans in the home; what cannot be taken over is listed for each.
    """
    path = Path(file)
    if origin is not None:
        _import_watches(path, home)
        return
    from aioflow.service.task_files import shown_mistakes

    text = _read(path)
    tasks, mistakes = ([], []) if server_url() else read_tasks_of(text, path)

    async def work(actions: Any) -> ImportReport:
        if server_url():
            return await _sent(actions, text, path)
        mistakes.extend(_mistakes_in(tasks, actions))
        if mistakes:
            raise InputError(shown_mistakes(mistakes, path, text))
        paused = [each.content.get("name", "") for each in tasks if each.is_paused]
        report: ImportReport = await actions.import_tasks([each.content for each in tasks], paused=paused)
        return report

    report = with_actions(home, work)
    for kind in ("added", "changed", "unchanged"):
        for name in getattr(report, kind):
            print(f"{kind}: {name}")
    if not (report.added or report.changed or report.unchanged):
        print_message("note", f"{file} has no tasks")


async def _sent(actions: RemoteActions, text: str, path: Path) -> ImportReport:
    """Send a file of tasks to the service; paths of plans begin at its folder of plans."""
    return await actions.import_text(text, "toml" if path.suffix == ".toml" else "lines", path.name)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read the file of tasks: {os_error_text(error)}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 (byte {error.start})") from None


def read_tasks_of(text: str, path: Path) -> tuple[list[FileTask], list[FileMistake]]:
    """Return the tasks in a file, and its mistakes; tasks with mistakes may be left out."""
    from aioflow.service.task_files import FileMistake, read_task_lines, read_toml

    if path.suffix == ".toml":
        return read_toml(text, path)
    lines, mistakes = read_task_lines(text, path)
    tasks = []
    for line in lines:
        try:
            tasks.append(_task_of(line))
        except (InputError, PlanError) as error:
            mistakes.append(FileMistake(line.line, str(error)))
    return tasks, mistakes


def _mistakes_in(tasks: list[FileTask], actions: LocalActions) -> Iterator[FileMistake]:
    """Yield the mistakes of all tasks and their plans."""
    from aioflow.service.task import DefinitionError
    from aioflow.service.task_files import FileMistake

    for index, error in actions.read_tasks([each.content for each in tasks])[1]:
        found = error.mistakes if isinstance(error, DefinitionError) else [("", str(error))]
        for key, message in found:
            yield FileMistake(tasks[index].line_of(key), message)


def _task_of(line: TaskLine) -> FileTask:
    """Return the task of a line; its name tells plan, input and schedule."""
    from aioflow.service.task import default_name
    from aioflow.service.task_files import FileTask

    inputs = rows_of(line.inputs, main_plan(str(line.plan), None))
    found: dict[str, Any] = {
        "name": default_name(line.plan.name, inputs, line.schedule),
        "plan": str(line.plan.absolute()),
        "schedule": line.schedule,
    }
    if inputs:
        found["inputs"] = inputs
    if line.zone is not None:
        found["zone"] = line.zone
    return FileTask(found, {"": line.line})


def _import_watches(path: Path, home: str | None) -> None:
    """Write a plan for each watch of a backup, add the tasks, and list the parts that are not taken over."""

    async def work(actions: Any) -> BackupReport:
        if server_url():
            found: BackupReport = await actions.import_backup(path)
            return found
        from aioflow.service.importing.backup_import import import_backup

        return await import_backup(actions, path)

    report = with_actions(home, work)
    for kind in ("added", "changed", "unchanged"):
        for name in getattr(report, kind):
            print(f"{kind}: {name}{' (paused)' if name in report.paused else ''}")
    for watch in report.watches:
        for note in watch.notes:
            print(f"  {watch.name}: {note}")
    for line in report.left:
        print_message("note", line)
