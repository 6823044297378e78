"""`aioflow task list`, `show`, `history` and `logs`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from aioflow.cli.commands.task.actions import AsJson, Home, TaskName, with_actions
from aioflow.cli.exit import guarded, os_error_text, print_message
from aioflow.cli.output.colour import print_json, shortened
from aioflow.cli.output.formats import Table
from aioflow.config.masking import mask
from aioflow.errors import InputError
from aioflow.relation import Record, Schema
from aioflow.values.display import visible, visible_lines
from aioflow.values.quantities import count_text, duration_text

if TYPE_CHECKING:
    from aioflow.service.actions import RunView, TaskView
    from aioflow.service.store.occurrences import Occurrence
    from aioflow.service.task import TaskDefinition

_WIDTH = 60
_VALUE_WIDTH = 300


@guarded
def task_list(home: Home = None, json: AsJson = False) -> None:
    """List the tasks: their schedules, states, next times and latest runs."""
    found = with_actions(home, lambda actions: actions.list_tasks())
    if json:
        for each in found:
            print_json(task_as_json(each))
    elif not found:
        print_message("note", "there are no tasks: aioflow task add PLAN '0 8 * * *' adds one")
    else:
        columns = ("task", "schedule", "state", "next", "latest run")
        print_table(columns, [_line(each) for each in found])


@guarded
def task_show(name: TaskName, home: Home = None, json: AsJson = False) -> None:
    """Show a task with all its settings, and whether its plan has changed on disk."""
    found = with_actions(home, lambda actions: actions.show_task(name))
    if json:
        print_json(task_as_json(found))
    else:
        print_task(found)


@guarded
def task_history(
    name: Annotated[str | None, typer.Argument(metavar="[TASK]", help="A task; by default all.")] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many, the latest first.")
    ] = 20,
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state", metavar="STATE", help="Only failed, succeeded, skipped, missed, cancelled, …"
        ),
    ] = None,
    home: Home = None,
    json: AsJson = False,
) -> None:
    """List the runs of a task or of all, and the times that were skipped or missed."""

    from aioflow.service.store.occurrences import OccurrenceState

    known: tuple[str, ...] = get_args(OccurrenceState)
    if unknown := [each for each in state or () if each not in known]:
        raise InputError(f"--state {unknown[0]}: a state is one of {', '.join(known)}")

    async def work(actions: Any) -> tuple[list[Occurrence], dict[str, TaskDefinition]]:
        tasks = {each.task_id: each.definition for each in await actions.list_tasks()}
        return await actions.list_runs(name, states=state or (), limit=limit), tasks

    found, tasks = with_actions(home, work)
    if json:
        names = {task_id: each.name for task_id, each in tasks.items()}
        for each in found:
            print_json(run_as_json(each, names))
    elif not found:
        print_message("note", "there are no such runs" if state else "there are no runs yet")
    else:
        columns = ("due", "task", "state", "time", "rows", "reason", "run")
        print_table(columns, [_run_line(each, tasks.get(each.task_id)) for each in found])


@guarded
def task_logs(
    name: Annotated[
        str, typer.Argument(metavar="TASK|RUN", help="A task, for its latest run, or the id of a run.")
    ],
    trace: Annotated[
        str | None,
        typer.Option("--trace", metavar="FILE", help="Write the trace of the run for ui.perfetto.dev."),
    ] = None,
    home: Home = None,
    json: AsJson = False,
) -> None:
    """Show the log of a run, its account and the first rows of its outputs."""
    found = with_actions(home, lambda actions: actions.show_run(name))
    if trace is not None:
        _write_trace(found, trace)
    if json:
        told = run_as_json(found.occurrence, {found.occurrence.task_id: found.task_name})
        print_json({**told, "log": found.log.splitlines(), "sample": found.sample.splitlines()})
    else:
        _print_run(found)


# --- as text ------------------------------------------------------------------------------------


def print_table(columns: Sequence[str], lines: Sequence[tuple[Any, ...]]) -> None:
    """Print rows as a table, as wide as the terminal."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    table = Table(several_outputs=False, width=width)
    schema = Schema(tuple(columns))
    records = [Record(schema, tuple(line)) for line in lines]
    sys.stdout.write((table.rows("", records) + table.end()).decode(errors="replace"))


def time_text(moment: datetime | None, zone: str | None) -> str:
    """Return `2026-03-28 08:05:00+01:00`, in the zone of a task or else of the machine; `-` for none."""
    from aioflow.service.schedules.schedule import find_zone

    if moment is None:
        return "-"
    try:
        shown = moment.astimezone() if zone is None else moment.astimezone(find_zone(zone)[0])
    except InputError:  # of a service on another machine, which knows more zones
        shown = moment.astimezone()
    return shown.isoformat(sep=" ", timespec="seconds")


def _line(task: TaskView) -> tuple[str, ...]:
    latest, zone = task.latest, task.definition.zone
    run = "-" if latest is None else f"{latest.state} {time_text(latest.started, zone)}"
    state = task.state if not task.failures else f"{task.state}, {task.failures} failed"
    return task.definition.name, task.schedule_words, state, time_text(task.next_due, zone), run


def _run_line(run: Occurrence, task: TaskDefinition | None) -> tuple[Any, ...]:
    account = run.account or {}
    rows = sum(each.get("rows", 0) for each in account.get("outputs", {}).values()) if account else None
    elapsed = account.get("elapsed-seconds")
    if elapsed is None and run.started is not None and run.ended is not None:
        elapsed = (run.ended - run.started).total_seconds()
    time = "-" if elapsed is None else duration_text(elapsed)
    due = time_text(run.due, None if task is None else task.zone)
    due += "" if run.number == 1 else f" ({run.number:,} times)"
    reason = shortened(visible(mask(run.reason.partition("\n")[0])), _WIDTH)
    name = run.task_id if task is None else task.name
    return due, name, run.state, time, rows, reason, run.run_id or "-"


def print_task(task: TaskView) -> None:
    """Print a task for people."""
    definition, zone = task.definition, task.definition.zone
    lines = {
        "task": f"{definition.name} ({task.task_id})",
        "plan": definition.plan + (f", plan {definition.plan_name}" if definition.plan_name else ""),
        "schedule": f"{definition.schedule or '-'}  {task.schedule_words}",
        "next": time_text(task.next_due, zone),
        "state": task.state + (f": {task.state_reason}" if task.state_reason else ""),
        **_settings(definition),
        "last success": time_text(task.last_success, zone),
    }
    if task.failures:
        lines["failures in a row"] = f"{task.failures}, the latest {time_text(task.last_failure, zone)}"
    if task.newer_problem:
        lines["plan on disk"] = f"cannot be taken over: {task.newer_problem}"
    elif task.newer_version:
        lines["plan on disk"] = "differs; aioflow task edit TASK --reload takes it over"
    for module, digest in task.code.items():
        lines[f"code of {module}"] = digest
    width = max(map(len, lines))
    for name, value in lines.items():
        print(f"{name:<{width}}  {visible_lines(mask(value))}")


def _settings(definition: Any) -> dict[str, str]:
    """Return the settings that are not at their defaults; large ones are shortened."""
    import json

    from msgspec import to_builtins

    shown = ("name", "plan", "plan_name", "schedule")
    found = to_builtins(definition)
    return {
        name.replace("_", " "): value
        if isinstance(value, str)
        else shortened(json.dumps(value, ensure_ascii=False), _VALUE_WIDTH)
        for name, value in found.items()
        if name not in shown
    }


def _write_trace(found: RunView, path: str) -> None:
    if not found.trace:
        raise InputError(f"the run {found.occurrence.run_id} has no trace, or it is too old to be kept")
    try:
        Path(path).write_text(found.trace, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write trace: {os_error_text(error)}") from error


def _print_run(found: RunView) -> None:
    run, zone = found.occurrence, found.zone
    began, ended = time_text(run.started, zone), time_text(run.ended, zone)
    print(f"run     {run.run_id or '-'} of {found.task_name}")
    print(f"due     {time_text(run.due, zone)}, began {began}, ended {ended}")
    print(f"state   {run.state}" + (f": {visible_lines(mask(run.reason))}" if run.reason else ""))
    account = run.account or {}
    for output, figures in account.get("outputs", {}).items():
        print(f"output  {visible(output)}: {count_text(figures.get('rows', 0), 'row')}")
    for kind in ("warning", "note"):
        for text in account.get(f"{kind}s", ()):
            print(f"{kind:<7} {visible_lines(mask(text))}")
    if found.log:
        print(visible_lines(mask(found.log)))
    for line in found.sample.splitlines()[:20]:
        print(visible_lines(mask(line)))


# --- as JSON ------------------------------------------------------------------------------------


def task_as_json(task: TaskView) -> Any:
    from msgspec import to_builtins

    found = to_builtins(task)
    found.pop("feed_key", None)
    return found


def run_as_json(run: Occurrence, names: dict[str, str]) -> Any:
    from msgspec import to_builtins

    return {"task": names.get(run.task_id), **to_builtins(run)}
