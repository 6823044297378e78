"""What `aioflow suspects` does: lists, confirms and forgets the marks of suspect runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from aioflow.cli.ending import tell
from aioflow.cli.loop import run_interruptibly
from aioflow.cli.place import Place, find_place
from aioflow.cli.table import Table
from aioflow.errors import InputError, suggestion
from aioflow.relation import Record, Schema
from aioflow.state.driver import Connection
from aioflow.state.own_tables import are_there
from aioflow.state.patience import Patience
from aioflow.state.suspects import Suspect, confirm_suspect, forget_suspect, read_suspects

_COLUMNS = Schema(("table", "missing", "of", "noticed", "confirmed", "run"))


async def _marks(place: Place, connection: Connection) -> list[Suspect]:
    if not await are_there(connection, place.address):
        return []
    return await read_suspects(connection)


# --- list -----------------------------------------------------------------------------------------


def list_suspects(db: str | None, plan_path: str | None, *, as_json: bool) -> None:
    """Show the marks, by table; nothing is changed."""
    place = find_place(db, plan_path)
    marks = run_interruptibly(_list(place))
    if as_json:
        for mark in marks:
            print(json.dumps(_described(mark), ensure_ascii=False))
    elif marks:
        table = Table(several_outputs=False, width=None)
        shown = table.rows("suspects", [Record(_COLUMNS, _line(mark)) for mark in marks]) + table.end()
        sys.stdout.write(shown.decode(errors="replace"))
    else:
        tell("note", f"no table is suspect in {place.address.shown}")


async def _list(place: Place) -> list[Suspect]:
    connection = await place.databases.connect(place.address)
    try:
        return await _marks(place, connection)
    finally:
        await connection.close()


def _line(mark: Suspect) -> tuple[object, ...]:
    noticed = f"{mark.noticed.astimezone():%Y-%m-%d %H:%M:%S}"
    return mark.table, mark.vanishing, mark.total, noticed, "yes" if mark.confirmed else "no", mark.run_id


def _described(mark: Suspect) -> dict[str, object]:
    return {
        "table": mark.table,
        "missing": mark.vanishing,
        "of": mark.total,
        "noticed": mark.noticed.isoformat(),
        "confirmed": mark.confirmed,
        "run": mark.run_id,
    }


# --- confirm and forget ---------------------------------------------------------------------------


def confirm(db: str | None, plan_path: str | None, table: str) -> None:
    """Let the next run delete what is missing then."""
    mark = run_interruptibly(_change(find_place(db, plan_path), table, confirm_suspect))
    print(
        f"confirmed: the next run deletes what is missing from {table} then "
        f"(it was {mark.vanishing} of {mark.total} rows)"
    )


def forget(db: str | None, plan_path: str | None, table: str) -> None:
    """Take the mark off a table."""
    run_interruptibly(_change(find_place(db, plan_path), table, forget_suspect))
    print(f"forgotten: {table} is not suspect any more")


async def _change(place: Place, table: str, change: Callable[[Connection, str], Awaitable[bool]]) -> Suspect:
    """Change the mark of a table; returns it as it was."""
    address, databases = place.address, place.databases
    wait_seconds = databases.settings(address.name).wait_seconds
    patience = Patience(address, wait_seconds, lambda message: tell("warning", message))
    connection = await databases.connect(address)
    try:
        marks = {mark.table: mark for mark in await _marks(place, connection)}
        if table not in marks:
            known = ", ".join(marks) or "none"
            raise InputError(
                f"the table {table!r} is not suspect{suggestion(table, marks)} (suspect: {known})"
            )
        async with AsyncExitStack() as stack:
            await patience.enter(connection, stack)
            await change(connection, table)
        return marks[table]
    finally:
        await connection.close()
