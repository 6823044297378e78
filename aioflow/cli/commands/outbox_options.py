"""`aioflow outbox`: its commands and their options. What they do is imported when they run."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from aioflow.cli.exit import guarded
from aioflow.cli.options import (
    DatabaseName,
    LogFile,
    LogFormat,
    LogFormatName,
    PlanFile,
    PlanOfDatabase,
    Verbose,
)

outbox = typer.Typer(
    help="Look at the messages that plans have sent or will, and deliver those that wait.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@outbox.command("list")
@guarded
def outbox_list(
    plan_path: PlanOfDatabase = None,
    db: DatabaseName = None,
    all: Annotated[bool, typer.Option("--all", help="Also what was sent or dropped.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object for each message.")] = False,
) -> None:
    """List messages that wait, are just being delivered, or could not be delivered (dead)."""
    from aioflow.cli.commands.outbox import list_messages

    list_messages(db, plan_path, everything=all, as_json=json)


@outbox.command("retry")
@guarded
def outbox_retry(
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="KEY", help="Messages, by the beginnings of their keys.")
    ] = None,
    all_dead: Annotated[bool, typer.Option("--all-dead", help="All that were given up.")] = False,
    db: DatabaseName = None,
    plan_file: PlanFile = None,
) -> None:
    """Have messages tried again from the beginning, at the next delivery."""
    from aioflow.cli.commands.outbox import retry_messages

    sys.exit(retry_messages(db, plan_file, keys or (), all_dead=all_dead))


@outbox.command("drop")
@guarded
def outbox_drop(
    keys: Annotated[
        list[str], typer.Argument(metavar="KEY", help="Messages, by the beginnings of their keys.")
    ],
    db: DatabaseName = None,
    plan_file: PlanFile = None,
) -> None:
    """Have messages never tried again."""
    from aioflow.cli.commands.outbox import drop_messages

    sys.exit(drop_messages(db, plan_file, keys))


@outbox.command("deliver")
@guarded
def outbox_deliver(
    plan_path: PlanOfDatabase = None,
    db: DatabaseName = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on until interrupted, with whatever becomes due.")
    ] = False,
    verbose: Verbose = 0,
    log_file: LogFile = None,
    log_format: LogFormat = LogFormatName.TEXT,
) -> None:
    """Deliver all messages that wait, now; with --watch whatever becomes due."""
    from aioflow.cli.commands.outbox import deliver_messages
    from aioflow.cli.output.logs import LogOptions, logged

    with logged(LogOptions(verbose, log_file, log_format)):
        sys.exit(deliver_messages(db, plan_path, watch=watch))
