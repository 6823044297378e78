"""`aioflow suspects`: lists, confirms and forgets what diff holds back."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Annotated, TypeAlias

import typer

from aioflow.cli.config import DatabaseChoice, find_database
from aioflow.cli.exit import guarded, print_message, run_interruptibly
from aioflow.cli.options import DatabaseName, PlanFile, PlanOfDatabase
from aioflow.cli.output.colour import print_json
from aioflow.cli.output.formats import Table
from aioflow.errors import InputError, suggestion
from aioflow.relation import Record, Schema
from aioflow.state.diff.suspects import Suspect, confirm_suspect, forget_suspect, read_suspects
from aioflow.state.driver import Connection
from aioflow.state.lock_wait import LockWait
from aioflow.state.system_tables import are_there

_COLUMNS = Schema(("table", "held back", "why", "since", "confirmed"))


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
    confirm(db, plan_file, table, quietly=quiet)


@suspects.command("forget")
@guarded
def suspects_forget(table: _TableName, db: DatabaseName = None, plan_file: PlanFile = None) -> None:
    """Forget what is held back: if it is seen again, that counts as the first time."""
    forget(db, plan_file, table)


async def _suspects(choice: DatabaseChoice, connection: Connection) -> list[Suspect]:
    if not await are_there(connection, choice.address):
        return []
    return await read_suspects(connection)


# --- list -----------------------------------------------------------------------------------------


def list_suspects(db: str | None, plan_path: str | None, *, as_json: bool) -> None:
    """Print what is held back, by table. Nothing is changed."""
    choice = find_database(db, plan_path)
    found = run_interruptibly(_list(choice))
    if as_json:
        for suspect in found:
            print_json(_described(suspect))
    elif found:
        table = Table(several_outputs=False, width=None)
        lines = [Record(_COLUMNS, _line(suspect)) for suspect in found]
        sys.stdout.write((table.rows("suspects", lines) + table.end()).decode(errors="replace"))
    else:
        print_message("note", f"nothing is held back in {choice.address.shown}")


async def _list(choice: DatabaseChoice) -> list[Suspect]:
    connection = await choice.databases.connect(choice.address)
    try:
        return await _suspects(choice, connection)
    finally:
        await connection.close()


def _line(suspect: Suspect) -> tuple[object, ...]:
    since = f"{suspect.noticed.astimezone():%Y-%m-%d %H:%M:%S}"
    return suspect.table, suspect.held, _why(suspect), since, suspect.confirmed or "no"


def _why(suspect: Suspect) -> str:
    return "; ".join(reason.text for reason in suspect.reasons)


def _described(suspect: Suspect) -> dict[str, object]:
    return {
        "table": suspect.table,
        "rows": suspect.total,
        "gone": suspect.gone,
        "added": suspect.added,
        "changed": suspect.changed,
        "columns": list(suspect.columns),
        "incomplete": suspect.incomplete,
        "reasons": [reason.text for reason in suspect.reasons],
        "noticed": suspect.noticed.isoformat(),
        "seen": suspect.seen.isoformat(),
        "confirmed": suspect.confirmed or None,
        "run": suspect.run_id,
    }


# --- confirm and forget ---------------------------------------------------------------------------


def confirm(db: str | None, plan_path: str | None, table: str, *, quietly: bool) -> None:
    """Let the next whole run apply what is held back now."""

    async def change(connection: Connection) -> None:
        await confirm_suspect(connection, table, quietly=quietly)

    suspect = run_interruptibly(_change(find_database(db, plan_path), table, change))
    told = "applies it without a word" if quietly else "applies and tells it"
    print(f"confirmed: the next whole run of {table} {told} ({suspect.held})")


def forget(db: str | None, plan_path: str | None, table: str) -> None:
    """Forget what is held back of a table."""

    async def change(connection: Connection) -> None:
        await forget_suspect(connection, table)

    run_interruptibly(_change(find_database(db, plan_path), table, change))
    print(f"forgotten: nothing is held back from {table} any more")


async def _change(
    choice: DatabaseChoice, table: str, change: Callable[[Connection], Awaitable[None]]
) -> Suspect:
    """Change what is held back of a table; return it as it was before."""
    address, databases = choice.address, choice.databases
    wait_seconds = databases.settings(address.name).wait_seconds
    lock = LockWait(address, wait_seconds, lambda message: print_message("warning", message))
    connection = await databases.connect(address)
    try:
        found = {suspect.table: suspect for suspect in await _suspects(choice, connection)}
        if table not in found:
            known = ", ".join(found) or "none"
            raise InputError(
                f"nothing is held back from the table {table!r}{suggestion(table, found)} (suspect: {known})"
            )
        async with AsyncExitStack() as stack:
            await lock.enter(connection, stack)
            await change(connection)
        return found[table]
    finally:
        await connection.close()
