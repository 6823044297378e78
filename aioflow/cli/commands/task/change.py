"""`aioflow task add` and `task edit`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from aioflow.cli.commands.task.actions import AsJson, Home, TaskName, server_url, with_actions
from aioflow.cli.commands.task.look import print_task, task_as_json
from aioflow.cli.commands.task.next import warn_of
from aioflow.cli.exit import guarded, print_message
from aioflow.cli.options import Inputs, PlanName, Sets
from aioflow.cli.output.colour import print_json
from aioflow.errors import InputError, suggestion

if TYPE_CHECKING:
    from aioflow.plan import Plan

_Schedule: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="[SCHEDULE]",
        help="In quotes: a line as in crontab(5), @daily, or 'every 15m'; without one the task runs by hand "
        "only.",
    ),
]
_Zone: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--zone", metavar="ZONE", help="The time zone, like Europe/Berlin; by default the machine's."
    ),
]
_Settings: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="KEY=VALUE",
        help="Any other setting of a task: overlap, catch_up, catch_up_window_seconds, jitter_seconds, "
        "timeout_seconds, retries, retry_pause_seconds, pause_after_failures, ends, priority, first, "
        "database, accounts.email, alert_after_failures, alert_after_silence_seconds, reload. "
        "An empty value sets the default again.",
    ),
]
_JOB_HELP = "A run that is begun again makes only the requests that are left."


@guarded
def task_add(
    plan_path: Annotated[str, typer.Argument(metavar="PLAN", help="A plan file.")],
    schedule: _Schedule = "",
    name: Annotated[
        str | None, typer.Option("--name", help="The name of the task; by default plan and input.")
    ] = None,
    plan: PlanName = None,
    input: Inputs = None,
    set: Sets = None,
    zone: _Zone = None,
    option: _Settings = None,
    job: Annotated[bool, typer.Option("--job", help=_JOB_HELP)] = False,
    paused: Annotated[bool, typer.Option("--paused", help="Add the task paused.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Change a task of that name.")] = False,
    home: Home = None,
    json: AsJson = False,
) -> None:
    """Add a task: a plan with its inputs and a schedule. The plan is kept as it is now."""
    content: dict[str, Any] = {"plan": _plan_path(plan_path), "schedule": schedule}
    content |= {"plan_name": plan, "zone": zone, **_given(plan_path, plan, input, set)}
    content |= read_options(option or ()) | ({"job": True} if job else {})
    content = {key: value for key, value in content.items() if value is not None}
    from aioflow.service.task import default_name

    content["name"] = name or content.get("name") or default_name(plan_path, content.get("inputs", {}))
    warn_of(schedule)
    added = with_actions(home, lambda actions: actions.add_task(content, paused=paused, replace=replace))
    if json:
        print_json(task_as_json(added))
    else:
        print_task(added)


@guarded
def task_edit(
    name: TaskName,
    schedule: Annotated[
        str | None,
        typer.Option(
            "--schedule", metavar="SCHEDULE", help="As for `task add`; '' for a task that runs by hand only."
        ),
    ] = None,
    zone: _Zone = None,
    plan_path: Annotated[
        str | None, typer.Option("--plan-file", metavar="PLAN", help="Another plan file.")
    ] = None,
    plan: PlanName = None,
    input: Inputs = None,
    set: Sets = None,
    option: _Settings = None,
    job: Annotated[bool | None, typer.Option("--job/--no-job", help=_JOB_HELP)] = None,
    reload: Annotated[
        bool, typer.Option("--reload", help="Take over the plan as it is on disk now, if it is sound.")
    ] = False,
    home: Home = None,
    json: AsJson = False,
) -> None:
    """Change a task; settings that are not given stay as they are."""

    async def work(actions: Any) -> Any:
        changes: dict[str, Any] = dict(read_options(option or ()))
        given = {"schedule": schedule, "zone": zone, "plan_name": plan, "job": job}
        given["plan"] = None if plan_path is None else _plan_path(plan_path)
        changes |= {key: value for key, value in given.items() if value is not None}
        if input or set:
            path = plan_path or (await actions.show_task(name)).definition.plan
            changes |= _given(path, plan, input, set)
        if not changes and not reload:
            raise InputError("nothing is to be changed: see `aioflow task edit --help`")
        return await actions.edit_task(name, changes, reload=reload)

    warn_of(schedule or "")
    changed = with_actions(home, work)
    if json:
        print_json(task_as_json(changed))
    else:
        print_task(changed)


def _plan_path(path: str) -> str:
    return path if server_url() else os.path.abspath(path)


def _given(
    path: str, plan: str | None, inputs: Sequence[str] | None, sets: Sequence[str] | None
) -> dict[str, Any]:
    """Return the inputs and parameters of the command line, as a definition has them."""
    if server_url() and not inputs and not sets:
        return {}
    main = main_plan(path, plan)
    from aioflow.cli.inputs import read_parameters

    found: dict[str, Any] = {}
    if inputs or main.inputs:
        found["inputs"] = rows_of(inputs or (), main)
    if sets:
        given = read_parameters(sets, main, all_needed=False)
        found["parameters"] = {
            name: list(value) if isinstance(value, tuple) else value for name, value in given.items()
        }
    return found


def main_plan(path: str, plan: str | None) -> Plan:
    """Return the main plan of a file; all mistakes in it are reported."""
    from aioflow.authoring.operator import load_operators
    from aioflow.cli.program import load_program

    return load_program(path, plan, load_operators()).main


def rows_of(given: Sequence[str], plan: Plan) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each input as plain JSON; a task keeps them, so stdin and pipes make no sense."""
    from aioflow.cli.inputs import read_inputs

    if any(text == "-" or text.endswith("=-") for text in given):
        raise InputError("a task keeps its rows, and cannot read stdin: give a file, as in NAME=@FILE")
    found: dict[str, list[dict[str, Any]]] = {}
    for name, rows in read_inputs(given, plan).items():
        if not hasattr(rows, "__iter__"):
            raise InputError(f"--input {name}: a task keeps its rows, and cannot read a pipe")
        found[name] = [dict(row) for row in rows]
    return found


def read_options(given: Sequence[str]) -> dict[str, Any]:
    """Return the settings KEY=VALUE of the command line; numbers, booleans and JSON are read as such."""
    from aioflow.cli.inputs import constant
    from aioflow.service.task import TaskDefinition

    found: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--option {text}: expected KEY=VALUE")
        if key.partition(".")[0] not in TaskDefinition.__struct_fields__:
            raise InputError(f"unknown setting {key!r}{suggestion(key, TaskDefinition.__struct_fields__)}")
        if key.startswith("accounts."):
            found.setdefault("accounts", {})[key.removeprefix("accounts.")] = value
        elif value == "":
            found[key] = None
        elif key == "ends":
            found[key] = _moment(value)
        else:
            found[key] = value if key in ("zone", "schedule") else constant(value)
    if any(isinstance(value, dict) for key, value in found.items() if key not in ("accounts", "parameters")):
        print_message("note", "inputs are given with --input, parameters with --set")
    return found


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise InputError(f"ends={text}: a time needs an offset, as in 2026-12-31T18:00+01:00")
    return found
