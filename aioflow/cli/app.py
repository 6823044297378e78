"""The commands and their options. What a command does is imported when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import Annotated, Any

import typer

from aioflow.cli.commands.bench import bench
from aioflow.cli.commands.notify import notifications
from aioflow.cli.commands.outbox_options import outbox
from aioflow.cli.commands.suspects_options import suspects
from aioflow.cli.exit import guarded
from aioflow.cli.options import (
    AllowEmpty,
    AppendTo,
    Cache,
    Capacity,
    Database,
    DrawingName,
    FormatOption,
    FormulasOption,
    Inputs,
    LogFile,
    LogFormat,
    LogFormatName,
    MemoryLimit,
    ModeOption,
    Modules,
    Offline,
    OutputName,
    Overwrite,
    PlanName,
    PlanPath,
    Quiet,
    Record,
    Replay,
    ReportFile,
    Sets,
    Timeout,
    TraceFile,
    Verbose,
    Workers,
)
from aioflow.errors import InputError
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
    db: Database = None,
    offline: Offline = False,
    cache: Cache = None,
    record: Record = None,
    replay: Replay = None,
    allow_empty: AllowEmpty = False,
    formulas: FormulasOption = None,
    quiet: Quiet = False,
    report: ReportFile = None,
    verbose: Verbose = 0,
    log_file: LogFile = None,
    log_format: LogFormat = LogFormatName.TEXT,
) -> None:
    """Run a plan and show its output as it comes.

    With several outputs JSON lines are {"output": NAME, "row": {...}}. Progress and messages go to stderr.
    """
    from aioflow.cli.commands.run import RunOptions, run_plan
    from aioflow.cli.config import database_options, web_options
    from aioflow.cli.output.logs import LogOptions

    options = RunOptions(
        *(plan_path, plan, input or (), set or (), output, append, overwrite, format, trace, timeout),
        *(allow_empty, quiet, report, LogOptions(verbose, log_file, log_format, quiet)),
    )
    given: dict[str, Any] = {"ops": ops, "workers": workers, "mode": mode, "capacity": capacity}
    given |= {"memory": memory, **database_options(db), **web_options(offline, cache, record, replay)}
    given |= {} if formulas is None else {"files": {"formulas": formulas}}
    run_plan(options, given)


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
    from aioflow.cli.commands.check import check_files
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
    from aioflow.cli.commands.fmt import format_files

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
    from aioflow.cli.commands.graph import draw_plan
    from aioflow.cli.config import effective_settings

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
    db: Database = None,
    offline: Offline = False,
    cache: Cache = None,
    record: Record = None,
    replay: Replay = None,
) -> None:
    """Show a plan as it will run: steps, schemas, buffers, permits, effects and tail calls."""
    from aioflow.cli.commands.explain import explain_plan
    from aioflow.cli.commands.run import RunOptions
    from aioflow.cli.config import database_options, web_configuration, web_options

    options = RunOptions(plan_path, plan, input or (), set or (), timeout=timeout)
    given: dict[str, Any] = {"ops": ops, "workers": workers, "mode": mode, "capacity": capacity}
    given |= {"memory": memory, **database_options(db), **web_options(offline, cache, record, replay)}
    explain_plan(options, web_configuration(given, plan_path), analyze=analyze)


@app.command()
@guarded
def fetch(
    url: Annotated[str, typer.Argument(metavar="URL", help="An http:// or https:// address.")],
    method: Annotated[
        str | None, typer.Option("--method", "-X", metavar="METHOD", help="GET, or POST if there is --data.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header", "-H", metavar="'NAME: VALUE'", help="A header; the value may be secret:NAME."
        ),
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", metavar="TEXT", help="The body of the request; @FILE reads it.")
    ] = None,
    head: Annotated[bool, typer.Option("--head", "-I", help="Ask for the headers only.")] = False,
    output: Annotated[
        str | None, typer.Option("-o", metavar="FILE", help="Write the body to a file; - is stdout.")
    ] = None,
    body: Annotated[
        bool, typer.Option("--body", help="Write the body to stdout, and the report to stderr.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="The report as a JSON object.")] = False,
    offline: Offline = False,
    cache: Cache = None,
    record: Record = None,
    replay: Replay = None,
    verbose: Verbose = 0,
    log_file: LogFile = None,
    log_format: LogFormat = LogFormatName.TEXT,
) -> None:
    """Make one request as a plan would, and tell all about its answer, or why it was refused."""
    from aioflow.cli.commands.fetch import FetchOptions, fetch_url
    from aioflow.cli.config import web_configuration, web_options
    from aioflow.cli.output.logs import LogOptions, logged

    options = FetchOptions(url, method, header or (), data, head, output, body, json)
    with logged(LogOptions(verbose, log_file, log_format)):
        sys.exit(fetch_url(options, web_configuration(web_options(offline, cache, record, replay))))


@app.command()
@guarded
def shell(
    page: Annotated[
        str, typer.Argument(metavar="URL|FILE", help="A page of the web, or one that was saved.")
    ],
    offline: Offline = False,
    cache: Cache = None,
    record: Record = None,
    replay: Replay = None,
) -> None:
    """Try selectors on a page, and build a wrapper from those that work."""
    from aioflow.cli.commands.shell import run_shell
    from aioflow.cli.config import web_configuration, web_options

    sys.exit(run_shell(page, web_configuration(web_options(offline, cache, record, replay))))


wrappers = typer.Typer(
    help="List wrappers, and try one on a page.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(wrappers, name="wrapper")
app.add_typer(outbox, name="outbox")
app.add_typer(notifications, name="notify")
app.add_typer(suspects, name="suspects")
app.add_typer(bench, name="bench")


@wrappers.command("test")
@guarded
def wrapper_test(
    target: Annotated[
        list[str],
        typer.Argument(metavar="[PLAN] NAME", help="A wrapper, and the plan file that it stands in."),
    ],
    plan_file: Annotated[
        str | None,
        typer.Option("--plan-file", metavar="PLAN", help="The plan file, if it is not given before NAME."),
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="Read this page; with --file, where it was.")
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", metavar="PAGE", help="Read a page that was saved.")
    ] = None,
    input: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="NAME=VALUE|JSON", help="Values for the wrapper's inputs."),
    ] = None,
    rows: Annotated[
        int, typer.Option("--rows", min=0, metavar="N", help="Tell of so many rows where they came from (3).")
    ] = 3,
    json: Annotated[bool, typer.Option("--json", help="One JSON object for each page.")] = False,
    ops: Modules = None,
    offline: Offline = False,
    cache: Cache = None,
    record: Record = None,
    replay: Replay = None,
    verbose: Verbose = 0,
    log_file: LogFile = None,
    log_format: LogFormat = LogFormatName.TEXT,
) -> None:
    """Show the tuples that a wrapper reads in a page, where each came from, and what was missing."""
    from aioflow.cli.commands.wrapper_test import WrapperTest, run_test
    from aioflow.cli.config import web_configuration, web_options
    from aioflow.cli.output.logs import LogOptions, logged

    test = WrapperTest(target, plan_file, url, file, input or (), rows, json)
    given = {"ops": ops, **web_options(offline, cache, record, replay)}
    with logged(LogOptions(verbose, log_file, log_format)):
        sys.exit(run_test(test, partial(web_configuration, given)))


@wrappers.command("list")
@guarded
def wrapper_list(
    plan_path: Annotated[
        str | None, typer.Argument(metavar="PLAN", help="A plan file; without one, all of this folder.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object for each wrapper.")] = False,
    ops: Modules = None,
) -> None:
    """List the wrappers of a plan file, or of those in this folder: inputs, request and fields."""
    from aioflow.cli.commands.wrapper_list import list_wrappers
    from aioflow.cli.config import effective_settings

    list_wrappers(plan_path, as_json=json, modules=effective_settings({"ops": ops}, plan_path).ops)


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
    from aioflow.cli.commands.ops import show_operators
    from aioflow.cli.config import effective_settings

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

    if plan_path is not None and not os.path.exists(plan_path):
        raise InputError(f"there is no file {plan_path}")
    show_settings(effective_settings({}, plan_path), as_json=json)


@app.command()
@guarded
def demo() -> None:
    """Search a bundled web site with a recursive plan, in the three modes, and draw its requests."""
    from aioflow.demo import show_demo

    show_demo()


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """What reads these arguments. If they begin with a command, it knows no other: typer reads them all."""
    commands = [
        each for each in app.registered_commands if getattr(each.callback, "__name__", "") in arguments[:1]
    ]
    groups = [each for each in app.registered_groups if each.name in arguments[:1]]
    if not commands and not groups:
        return app
    narrow = copy(app)
    narrow.registered_commands, narrow.registered_groups = commands, groups
    return narrow
