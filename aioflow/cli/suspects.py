"""`aioflow suspects`: its commands and their options. What they do is imported when they run."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from aioflow.cli.ending import guarded
from aioflow.cli.options import DatabaseName, PlanFile, PlanOfDatabase

suspects = typer.Typer(
    help="Look at tables from which suspiciously much would have vanished, and decide what is to happen.",
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
    """List the tables in which diff deleted nothing, since too much would have vanished."""
    from aioflow.cli.suspect_commands import list_suspects

    list_suspects(db, plan_path, as_json=json)


@suspects.command("confirm")
@guarded
def suspects_confirm(table: _TableName, db: DatabaseName = None, plan_file: PlanFile = None) -> None:
    """Let the next run delete what is missing then, however much it is."""
    from aioflow.cli.suspect_commands import confirm

    confirm(db, plan_file, table)


@suspects.command("forget")
@guarded
def suspects_forget(table: _TableName, db: DatabaseName = None, plan_file: PlanFile = None) -> None:
    """Forget what was missing: if it is missing again, that counts as the first time."""
    from aioflow.cli.suspect_commands import forget

    forget(db, plan_file, table)
