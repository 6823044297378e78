"""`aioflow suspects`: its commands and their options. What they do is imported when they run."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from aioflow.cli.exit import guarded
from aioflow.cli.options import DatabaseName, PlanFile, PlanOfDatabase

suspects = typer.Typer(
    help="Look at what diff holds back because it may not be true, and decide what is to happen.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_TableName: TypeAlias = Annotated[str, typer.Argument(metavar="TABLE", help="The table, as diff names it.")]


@suspects.command("list")
@guarded
def suspects_list(
    plan_path: PlanOfDatabase = None,
    db: DatabaseName = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object for each table.")] = False,
) -> None:
    """List what is held back from tables, and why."""
    from aioflow.cli.commands.suspects import list_suspects

    list_suspects(db, plan_path, as_json=json)


@suspects.command("confirm")
@guarded
def suspects_confirm(
    table: _TableName,
    db: DatabaseName = None,
    plan_file: PlanFile = None,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", help="Apply it without telling: the page was redesigned, nothing happened."),
    ] = False,
) -> None:
    """Say that what is held back now is true: the next whole run applies and tells it."""
    from aioflow.cli.commands.suspects import confirm

    confirm(db, plan_file, table, quietly=quiet)


@suspects.command("forget")
@guarded
def suspects_forget(table: _TableName, db: DatabaseName = None, plan_file: PlanFile = None) -> None:
    """Forget what is held back: if it is seen again, that counts as the first time."""
    from aioflow.cli.commands.suspects import forget

    forget(db, plan_file, table)
