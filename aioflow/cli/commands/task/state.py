"""`aioflow task pause`, `resume`, `run`, `cancel` and `remove`."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aioflow.cli.commands.task.actions import AsJson, Home, TaskName, server_url, with_actions
from aioflow.cli.commands.task.look import run_as_json, time_text
from aioflow.cli.exit import FAILED, guarded, print_message, run_interruptibly
from aioflow.cli.output.colour import print_json
from aioflow.config.masking import mask
from aioflow.errors import AioflowError, InputError

if TYPE_CHECKING:
    from aioflow.service.store.occurrences import Occurrence

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 2.0


@guarded
def task_pause(
    name: TaskName,
    reason: Annotated[str, typer.Option("--reason", help="Why, for those who look at it later.")] = "",
    home: Home = None,
) -> None:
    """Pause a task: it does not run until it is resumed. A run under way goes on."""
    found = with_actions(home, lambda actions: actions.pause_task(name, reason))
    print(f"paused: {found.definition.name}")


@guarded
def task_resume(name: TaskName, home: Home = None) -> None:
    """Have a paused task run again, from its next time on."""
    found = with_actions(home, lambda actions: actions.resume_task(name))
    print(f"resumed: {found.definition.name}, next {time_text(found.next_due, found.definition.zone)}")


@guarded
def task_cancel(name: TaskName, home: Home = None) -> None:
    """Cancel the runs of a task that are under way or wait; nothing of them is stored."""
    number = with_actions(home, lambda actions: actions.cancel_runs(name))
    if not number:
        raise InputError(f"no run of {name!r} is under way or waiting")
    print(f"{number} {'run is' if number == 1 else 'runs are'} being cancelled")


@guarded
def task_remove(name: TaskName, home: Home = None) -> None:
    """Remove a task. Its plan, its tables and its history stay."""
    removed = with_actions(home, lambda actions: actions.remove_task(name))
    print(f"removed: {removed}")


@guarded
def task_run(
    name: TaskName,
    wait: Annotated[
        bool,
        typer.Option("--wait/--no-wait", help="Wait for the end of the run, or only ask the service for it."),
    ] = True,
    home: Home = None,
    json: AsJson = False,
) -> None:
    """Run a task now: by the service if one works on this home, else in this process.

    It ends with 1 if the run does not succeed. Ctrl-C stops waiting for a service; the run goes on.
    """

    async def ask(actions: Any) -> Occurrence | str | None:
        if not server_url() and not await actions.list_services():
            await actions.show_task(name)
            return None
        occurrence: str = await actions.run_task(name)
        return await _end_of(actions, occurrence) if wait else occurrence

    found = with_actions(home, ask)
    if found is None:
        found = run_interruptibly(_run_here(home, name))
    if not isinstance(found, str):
        _print_end(found, name, json)
    elif json:
        print_json({"occurrence": found})
    else:
        print(f"asked the service for a run of {name}; aioflow task history shows it")


async def _end_of(actions: Any, occurrence: str) -> Occurrence:
    """Return how a run ended that a service was asked for."""
    print_message("note", "waiting for the service to run it; Ctrl-C stops waiting only")
    pause = _FIRST_PAUSE_SECONDS
    try:
        while True:
            found: Occurrence = (await actions.show_run(occurrence)).occurrence
            if found.state not in ("waiting", "running"):
                return found
            if found.state == "waiting" and not await actions.list_services():
                raise AioflowError("no service works any more: the run waits for the next one")
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
    except asyncio.CancelledError:
        print_message("note", "the run goes on; aioflow task history shows it, aioflow task cancel ends it")
        raise


def _print_end(found: Occurrence, name: str, json: bool) -> None:
    """Print how a run ended, and exit with 1 unless it succeeded."""
    if json:
        print_json(run_as_json(found, {found.task_id: name}))
    else:
        reason = f": {mask(found.reason)}" if found.reason else ""
        run = f" (run {found.run_id})" if found.run_id else ""
        print(f"{found.state}{reason}{run}")
    if found.state != "succeeded":
        if found.run_id:
            print_message("note", f"aioflow task logs {found.run_id} shows its log")
        sys.exit(FAILED)


async def _run_here(home: str | None, name: str) -> Occurrence:
    from aioflow.cli.config import effective_settings
    from aioflow.service import MonitorService
    from aioflow.service.home import find_home

    folder = find_home(home)
    service = MonitorService(folder, effective_settings({}, str(folder / "aioflow.toml")))
    return await service.run_here(name)
