"""The commands and their options. What a command does is imported when it runs."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from aioflow.cli.ending import guarded
from aioflow.cli.options import (
    AppendTo,
    Cache,
    Capacity,
    DrawingName,
    FormatOption,
    Inputs,
    MemoryLimit,
    ModeOption,
    Modules,
    Offline,
    OutputName,
    Overwrite,
    PlanName,
    PlanPath,
    Record,
    Replay,
    Sets,
    Timeout,
    TraceFile,
    Workers,
)
from aioflow.version import __version__

# A module named by --ops may lie beside the plan that uses it, whichever way aioflow was started.
if os.getcwd() not in sys.path:
    sys.path.insert(0, os.getcwd())

app = typer.Typer(
    name="aioflow",
    help="Run, check and draw streaming dataflow plans.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"aioflow {__version__}")
        raise typer.Exit


@app.callback()
def aioflow(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
@guarded
def run(
    plan_path: PlanPath,
    plan: PlanName = None,
    input: Inputs = None,
    set: Sets = None,
    output: OutputName = None,
    append: AppendTo = None,
    overwrite: Overwrite = None,
    format: FormatOption = None,
    workers: Workers = None,
    mode: ModeOption = None,
    trace: TraceFile = None,
    timeout: Timeout = None,
    ops: Modules = None,
    capacity: Capacity = None,
    memory: MemoryLimit = None,
    offline: Offline = False,
    cache: Cache = None,
    record: Record = None,
    replay: Replay = None,
) -> None:
    """Run a plan and show its output as it comes.

    With several outputs JSON lines are {"output": NAME, "row": {...}}. Progress and messages go to stderr.
    """
    from aioflow.cli.config import effective_settings, web_options
    from aioflow.cli.run import RunOptions, run_plan

    options = RunOptions(
        plan_path, plan, input or (), set or (), output, append, overwrite, format, trace, timeout
    )
    given: dict[str, Any] = {"ops": ops, "workers": workers, "mode": mode, "capacity": capacity}
    given |= {"memory": memory, **web_options(offline, cache, record, replay)}
    run_plan(options, effective_settings(given, plan_path))


@app.command()
@guarded
def check(
    plans: Annotated[list[str], typer.Argument(metavar="PLAN", help="Plan files.")],
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object for each mistake or warning.")
    ] = False,
    ops: Modules = None,
) -> None:
    """Find every mistake in plans without running them."""
    from aioflow.cli.checking import check_files
    from aioflow.cli.config import effective_settings

    modules = {module: None for path in plans for module in effective_settings({"ops": ops}, path).ops}
    sys.exit(check_files(plans, as_json=json, modules=tuple(modules)))


@app.command()
@guarded
def fmt(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="Plan files; - formats stdin to stdout.")
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; show what would, and exit 1 if any.")
    ] = False,
) -> None:
    """Format plans in place."""
    from aioflow.cli.formatting import format_files

    sys.exit(format_files(files, check_only=check))


@app.command()
@guarded
def graph(
    plan_path: PlanPath,
    format: Annotated[DrawingName | None, typer.Option(help="By the ending of -o, else mermaid.")] = None,
    file: Annotated[
        str | None, typer.Option("-o", metavar="FILE", help="Write to a file instead of stdout.")
    ] = None,
    plan: PlanName = None,
    all: Annotated[bool, typer.Option("--all", help="Draw the plans that it calls as well.")] = False,
    ops: Modules = None,
) -> None:
    """Draw a plan as a graph."""
    from aioflow.cli.config import effective_settings
    from aioflow.cli.graphing import draw_plan

    modules = effective_settings({"ops": ops}, plan_path).ops
    draw_plan(plan_path, plan, format, file, all_plans=all, modules=modules)


@app.command()
@guarded
def explain(
    plan_path: PlanPath,
    plan: PlanName = None,
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Run the plan and add rows and the time spent waiting.")
    ] = False,
    input: Inputs = None,
    set: Sets = None,
    workers: Workers = None,
    mode: ModeOption = None,
    timeout: Timeout = None,
    ops: Modules = None,
    capacity: Capacity = None,
    memory: MemoryLimit = None,
    offline: Offline = False,
    cache: Cache = None,
    record: Record = None,
    replay: Replay = None,
) -> None:
    """Show a plan as it will run: steps, schemas, buffers, permits, effects and tail calls."""
    from aioflow.cli.config import effective_settings, web_options
    from aioflow.cli.explaining import explain_plan
    from aioflow.cli.run import RunOptions

    options = RunOptions(plan_path, plan, input or (), set or (), timeout=timeout)
    given: dict[str, Any] = {"ops": ops, "workers": workers, "mode": mode, "capacity": capacity}
    given |= {"memory": memory, **web_options(offline, cache, record, replay)}
    explain_plan(options, effective_settings(given, plan_path), analyze=analyze)


@app.command()
@guarded
def ops(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="An operator, for its reference.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="All references as a Markdown page.")] = False,
    modules: Modules = None,
) -> None:
    """List the operators, or show the reference of one."""
    from aioflow.cli.config import effective_settings
    from aioflow.cli.reference import show_operators

    show_operators(name, markdown=markdown, modules=effective_settings({"ops": modules}).ops)


@app.command()
@guarded
def config(
    plan_path: Annotated[
        str | None,
        typer.Argument(metavar="PLAN", help="A plan file, for the settings that a run of it would have."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object for each setting.")] = False,
) -> None:
    """Show the settings in force and where each came from."""
    from aioflow.cli.config import effective_settings, show_settings

    show_settings(effective_settings({}, plan_path), as_json=json)


@app.command()
@guarded
def demo() -> None:
    """Search a bundled web site with a recursive plan, in the three modes, and draw its requests."""
    from aioflow.demo import show_demo

    show_demo()
