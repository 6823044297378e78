"""What `aioflow suspects` does: lists, confirms and forgets what diff holds back."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from aioflow.cli.database_option import DatabaseChoice, find_place
from aioflow.cli.exit import tell
from aioflow.cli.interrupt import run_interruptibly
from aioflow.cli.output.colour import print_json
from aioflow.cli.output.formats import Table
from aioflow.errors import InputError, suggestion
from aioflow.relation import Record, Schema
from aioflow.state.diff.suspects import Suspect, confirm_suspect, forget_suspect, read_suspects
from aioflow.state.driver import Connection
from aioflow.state.lock_wait import LockWait
from aioflow.state.system_tables import are_there

_COLUMNS = Schema(("table", "held back", "why", "since", "confirmed"))


async def _suspects(place: DatabaseChoice, connection: Connection) -> list[Suspect]:
    if not await are_there(connection, place.address):
        return []
    return await read_suspects(connection)


# --- list -----------------------------------------------------------------------------------------


def list_suspects(db: str | None, plan_path: str | None, *, as_json: bool) -> None:
    """Show what is held back, by table; nothing is changed."""
    place = find_place(db, plan_path)
    found = run_interruptibly(_list(place))
    if as_json:
        for suspect in found:
            print_json(_described(suspect))
    elif found:
        table = Table(several_outputs=False, width=None)
        lines = [Record(_COLUMNS, _line(suspect)) for suspect in found]
        sys.stdout.write((table.rows("suspects", lines) + table.end()).decode(errors="replace"))
    else:
        tell("note", f"nothing is held back in {place.address.shown}")


async def _list(place: DatabaseChoice) -> list[Suspect]:
    connection = await place.databases.connect(place.address)
    try:
        return await _suspects(place, connection)
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

    suspect = run_interruptibly(_change(find_place(db, plan_path), table, change))
    told = "applies it without a word" if quietly else "applies and tells it"
    print(f"confirmed: the next whole run of {table} {told} ({suspect.held})")


def forget(db: str | None, plan_path: str | None, table: str) -> None:
    """Forget what is held back of a table."""

    async def change(connection: Connection) -> None:
        await forget_suspect(connection, table)

    run_interruptibly(_change(find_place(db, plan_path), table, change))
    print(f"forgotten: nothing is held back from {table} any more")


async def _change(
    place: DatabaseChoice, table: str, change: Callable[[Connection], Awaitable[None]]
) -> Suspect:
    """Change what is held back of a table; return it as it was."""
    address, databases = place.address, place.databases
    wait_seconds = databases.settings(address.name).wait_seconds
    patience = LockWait(address, wait_seconds, lambda message: tell("warning", message))
    connection = await databases.connect(address)
    try:
        suspects = {suspect.table: suspect for suspect in await _suspects(place, connection)}
        if table not in suspects:
            known = ", ".join(suspects) or "none"
            raise InputError(
                f"nothing is held back from the table {table!r}{suggestion(table, suspects)} "
                f"(suspect: {known})"
            )
        async with AsyncExitStack() as stack:
            await patience.enter(connection, stack)
            await change(connection)
        return suspects[table]
    finally:
        await connection.close()
