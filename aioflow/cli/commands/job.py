"""`aioflow job`: lists, shows, resumes, stops and forgets jobs."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep
from typing import Annotated, Any, TypeAlias

import typer

from aioflow.cli.config import effective_settings
from aioflow.cli.exit import guarded, print_message
from aioflow.cli.job_run import job_folder
from aioflow.cli.output.colour import print_json
from aioflow.cli.output.formats import Table
from aioflow.config.folders import shown_path
from aioflow.jobs.exchange import ExchangeStatistics
from aioflow.jobs.store import JobDescription, JobError, JobFolder, JobState, is_worked_on
from aioflow.relation import Record, Schema

_COLUMNS = Schema(("job", "state", "done", "failed", "attempts", "changed", "plan"))
# A run that is interrupted stores what it has, which takes a moment.
_STOPS_WITHIN_SECONDS = 60.0
_LOOK_SECONDS = 0.1

job = typer.Typer(
    help="Look at jobs, which survive a crash, and go on with them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="The name of the job.")]
_Json: TypeAlias = Annotated[bool, typer.Option("--json", help="JSON instead of text.")]


def _jobs() -> JobFolder:
    return job_folder(effective_settings({}))


def _state(description: JobDescription, is_running: bool) -> str:
    """Return the state in words: a job that was killed could not say so itself."""
    if description.state is JobState.RUNNING and not is_running:
        return "interrupted"
    return str(description.state)


@job.command("list")
@guarded
def job_list(json: _Json = False) -> None:
    """List the jobs of the current folder."""
    jobs = _jobs()
    found = [(name, *jobs.look(name)) for name in jobs.names()]
    if json:
        for name, description, statistics, is_running in found:
            print_json(_described(name, description, statistics, is_running))
        return
    if not found:
        print_message(
            "note", f"there are no jobs in {shown_path(jobs.path)}: `aioflow run PLAN --job NAME` begins one"
        )
        return
    table = Table(several_outputs=False, width=None)
    rows = [Record(_COLUMNS, _line(*each)) for each in found]
    sys.stdout.write((table.rows("jobs", rows) + table.end()).decode(errors="replace"))


def _line(name: str, description: JobDescription, statistics: ExchangeStatistics, is_running: bool) -> Any:
    state = _state(description, is_running)
    counts = (statistics.done, statistics.failed, description.attempts)
    return name, state, *counts, _local(description.changed), description.plan


@job.command("show")
@guarded
def job_show(name: _Name, json: _Json = False) -> None:
    """Show what a job has done, by host, and what became of it."""
    description, statistics, is_running = _jobs().look(name)
    if json:
        print_json(_described(name, description, statistics, is_running))
        return
    rate = _rate(description, statistics) if is_running else None
    lines = [
        ("job", name),
        ("state", _state(description, is_running)),
        ("plan", description.plan),
        ("begun", _local(description.created)),
        ("changed", _local(description.changed)),
        ("attempts", f"{description.attempts:,}"),
        ("done", f"{statistics.done:,}"),
        ("failed", f"{statistics.failed:,}"),
        *([("rate", f"{rate:.1f} requests a second")] if rate is not None else []),
        *(("", f"{number:,} from {host}") for host, number in statistics.hosts.items()),
        *([("error", description.error)] if description.error else []),
        ("command", f"aioflow {' '.join(description.arguments)}"),
    ]
    for label, text in lines:
        print(f"{label:10}{text}")


def _described(
    name: str, description: JobDescription, statistics: ExchangeStatistics, is_running: bool
) -> dict[str, Any]:
    return {
        "job": name,
        "state": _state(description, is_running),
        "plan": description.plan,
        "created": description.created,
        "changed": description.changed,
        "attempts": description.attempts,
        "done": statistics.done,
        "failed": statistics.failed,
        "hosts": dict(statistics.hosts),
        "requests-per-second": _rate(description, statistics) if is_running else None,
        "error": description.error,
        "arguments": list(description.arguments),
    }


def _rate(description: JobDescription, statistics: ExchangeStatistics) -> float | None:
    """Return the requests a second of the attempt under way; None in its first second."""
    if not description.began:
        return None
    seconds = (datetime.now(UTC) - datetime.fromisoformat(description.began)).total_seconds()
    made = statistics.done + statistics.failed - description.known
    return round(made / seconds, 2) if seconds >= 1 else None


def _local(moment: str) -> str:
    return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M:%S}" if moment else "-"


@job.command("resume")
@guarded
def job_resume(name: _Name) -> None:
    """Go on with a job: the command that began it is run again, in the folder where it began."""
    description, _, is_running = _jobs().look(name)
    if is_running:
        raise JobError(f"the job {name} is running already")
    if not description.arguments:
        raise JobError(f"the job {name} belongs to a task: its service goes on with it")
    if not os.path.isdir(description.folder):
        raise JobError(f"the job {name} began in {description.folder!r}, which is not there any more")
    os.chdir(description.folder)
    # In place of this process: signals and the exit code are those of the run.
    os.execv(sys.executable, [sys.executable, "-m", "aioflow", *description.arguments])


@job.command("stop")
@guarded
def job_stop(name: _Name) -> None:
    """Stop a job that is running, and keep what it has done. `resume` goes on with it."""
    jobs = _jobs()
    description, _, is_running = jobs.look(name)
    if not is_running:
        print_message("note", f"the job {name} is not running: it is {_state(description, is_running)}")
        return
    if not description.process:
        raise JobError(f"the job {name} has only just begun: try again")
    with suppress(ProcessLookupError):
        os.kill(description.process, signal.SIGINT)
    if not _ends(jobs.of(name)):
        raise JobError(f"the job {name} still runs, as process {description.process}")


def _ends(folder: Path) -> bool:
    """Wait until no process works on a job; return whether that came."""
    until = monotonic() + _STOPS_WITHIN_SECONDS
    while is_worked_on(folder):
        if monotonic() > until:
            return False
        sleep(_LOOK_SECONDS)
    return True


@job.command("forget")
@guarded
def job_forget(name: _Name) -> None:
    """Delete a job and all its records. Its outputs and what it has committed stay."""
    _jobs().forget(name)
