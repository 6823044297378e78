"""The list of commands. A command is imported when it is called: no other command waits for its libraries.

To add a command, add a line to COMMANDS and a file `commands/NAME.py`. The file has a function NAME, whose
parameters are the arguments and options, or, for a command with commands of its own, a `typer.Typer` NAME.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_command, get_group

from aioflow.version import __version__

# In the order of `aioflow --help`, which shows these texts: the first sentence of the command's own help.
COMMANDS: Mapping[str, str] = {
    "run": "Run a plan and show its output as it comes.",
    "crawl": "Fetch the pages of a site by following links, and show them as they come.",
    "check": "Find every mistake in plans without running them.",
    "fmt": "Format plans in place.",
    "graph": "Draw a plan as a graph.",
    "explain": "Show a plan as it will run: steps, schemas, buffers, permits, effects and tail calls.",
    "fetch": "Make one request as a plan would, and tell all about its answer, or why it was refused.",
    "shell": "Try selectors on a page, and build a wrapper from those that work.",
    "ops": "List the operators, or show the reference of one.",
    "config": "Show the settings in force and where each came from.",
    "demo": "Search a bundled web site with a recursive plan, in the three modes, and draw its requests.",
    "wrapper": "List wrappers, and try one on a page.",
    "grammar": "Try a grammar on sources, see what it matches and why, and learn one from examples.",
    "job": "Look at jobs, which survive a crash, and go on with them.",
    "outbox": "Look at the messages that plans have sent or will, and deliver those that wait.",
    "notify": "Try the accounts through which plans tell people.",
    "sources": "Look at how long web sources take, and when slow requests are sent again.",
    "suspects": "Look at what diff holds back because it may not be true, and decide what is to happen.",
    "task": "Add, change, run and look at tasks: plans that run on a schedule.",
    "serve": "Run tasks on their schedules, until it is stopped.",
    "bench": "Measure speed and memory: `aioflow bench [NAME…] [--quick] [--profile] [-o FILE]` runs the "
    "experiments of these names, or all of them (`aioflow bench run --help` tells more).",
}

# The variable by which commands know the service that they talk to.
SERVER_VARIABLE = "AIOFLOW_SERVER"

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
    context: typer.Context,
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="URL",
            help="Have `task` commands talk to the service at this address, with the token in AIOFLOW_TOKEN.",
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    if server is None:
        return
    if context.invoked_subcommand != "task":
        raise typer.BadParameter(
            "only the commands of `aioflow task` talk to a service", param_hint="--server"
        )
    os.environ[SERVER_VARIABLE] = server


class _ListedCommand(TyperCommand):
    """A command of the list. The command of the same name in its module reads the arguments."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        assert self.name is not None
        found = getattr(import_module(f"aioflow.cli.commands.{self.name}"), self.name)
        command = get_group(found) if isinstance(found, typer.Typer) else get_command(_single(found))
        return command.make_context(info_name, args, parent, **extra)


def _single(function: Callable[..., None]) -> typer.Typer:
    """Return an application that has one command."""
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command()(function)
    return single


def _listed() -> None:
    """Never called: the context of a listed command is that of the command in its module."""


for _name, _text in COMMANDS.items():
    app.command(_name, cls=_ListedCommand, help=_text)(_listed)
