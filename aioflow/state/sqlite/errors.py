"""SQLite's errors for people: which database, which statement, the mistake and advice."""

from __future__ import annotations

import errno
import re
import sqlite3
from collections.abc import Callable, Sequence

from aioflow.config.masking import mask
from aioflow.errors import suggestion
from aioflow.relation import Row, Schema
from aioflow.runtime.failures import show_row
from aioflow.state.errors import (
    BusyError,
    ConflictError,
    DamagedError,
    DatabaseError,
    DiskFullError,
    StateError,
)

_SHOWN_SQL = 200
_ONLY_READS = "nothing can be written here: dbquery and dbimport only read, and dbupdate writes"


def explained(
    error: Exception, shown: str, sql: str = "", database: sqlite3.Connection | None = None
) -> StateError:
    """Return the error to raise in place of SQLite's. `database` is asked for similar names."""
    name: str = getattr(error, "sqlite_errorname", "")
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        name = "SQLITE_FULL"
    if name == "SQLITE_READONLY" and _is_snapshot(database):
        return DatabaseError(mask(f"{shown}: {_ONLY_READS}{_asked(sql)}"))
    for prefix, make in _BY_NAME:
        if name.startswith(prefix):
            return make(shown, str(error))
    return DatabaseError(mask(f"{shown}: {_told(str(error), sql, database)}{_asked(sql)}"))


def _asked(sql: str) -> str:
    return f"\n    SQL: {_cut(sql)}" if sql else ""


def _is_snapshot(database: sqlite3.Connection | None) -> bool:
    """Return whether only this connection, not the file, refuses writes."""
    try:
        return database is not None and database.execute("PRAGMA query_only").fetchone() == (1,)
    except sqlite3.Error:
        return False


def conflict(
    error: Exception, shown: str, table: str, place: int, names: Sequence[str], row: Row
) -> StateError:
    """Return the error for the row, counted from 1, that a table refused."""
    values = show_row(Schema(tuple(names)), row) if names else ", ".join(map(repr, row))
    what = f"table {table!r} refused row {place}" if table else f"row {place} was refused"
    return ConflictError(mask(f"{shown}: {what} ({_cut(values)}): {_reason(error)}"))


def is_about_a_row(error: Exception) -> bool:
    name: str = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_TOOBIG"))


def _cut(text: str) -> str:
    line = " ".join(mask(text).split())
    return line if len(line) <= _SHOWN_SQL else line[:_SHOWN_SQL] + "…"


def _reason(error: Exception) -> str:
    text = str(error)
    kind, _, what = text.partition(" constraint failed: ")
    match kind:
        case "UNIQUE" if what.startswith("index "):
            return f"another row is equal to it in the unique {what}"
        case "UNIQUE":
            return f"another row has the same {_columns(what)}"
        case "NOT NULL":
            return f"{_columns(what)} must not be null"
        case "CHECK":
            return f"the table's check {what!r} does not hold"
        case "FOREIGN KEY constraint failed":
            return "it refers to a row that is not there, or is referred to by one that is"
    return text


def _columns(text: str) -> str:
    return ", ".join(part.partition(".")[2] or part for part in text.split(", "))


# --- by SQLite's names of errors ----------------------------------------------------------------


def _busy(shown: str, text: str) -> StateError:
    return BusyError(f"{shown}: another process or run is writing to this database ({text})")


def _full(shown: str, text: str) -> StateError:
    return DiskFullError(
        f"{shown}: no room is left on the disk for the database ({text}); nothing of this was stored. "
        "Make room and run again"
    )


def _failed_disk(shown: str, text: str) -> StateError:
    return DatabaseError(f"{shown}: the disk failed while the database was read or written ({text})")


def _damaged(shown: str, text: str) -> StateError:
    return DamagedError(
        f"{shown}: the database is damaged ({text}); nothing was changed in it. Put a copy back, or rescue "
        f"what can be read: sqlite3 {shown} .recover"
    )


def _no_database(shown: str, text: str) -> StateError:
    return DamagedError(
        f"{shown}: the file is no SQLite database ({text}); nothing was changed in it. Name another file, or "
        "move this one away"
    )


def _read_only(shown: str, text: str) -> StateError:
    return DatabaseError(
        f"{shown}: the database can only be read here ({text}); allow writing to the file and to its folder "
        "(chmod u+w), or name another file"
    )


def _cannot_open(shown: str, text: str) -> StateError:
    return DatabaseError(
        f"{shown}: the database cannot be opened ({text}); the folder must exist, and it and the file "
        "must be yours to read and write"
    )


def _conflict(shown: str, text: str) -> StateError:
    return ConflictError(mask(f"{shown}: {_reason(Exception(text))}"))


_BY_NAME: tuple[tuple[str, Callable[[str, str], StateError]], ...] = (
    ("SQLITE_BUSY", _busy),
    ("SQLITE_LOCKED", _busy),
    ("SQLITE_FULL", _full),
    ("SQLITE_IOERR", _failed_disk),
    ("SQLITE_CORRUPT", _damaged),
    ("SQLITE_NOTADB", _no_database),
    ("SQLITE_READONLY", _read_only),
    ("SQLITE_CANTOPEN", _cannot_open),
    ("SQLITE_CONSTRAINT", _conflict),
)


# --- mistakes in SQL ----------------------------------------------------------------------------

_NO_TABLE = re.compile(r"no such table: (?:main\.|temp\.)?(.+)")
_NO_COLUMN = re.compile(r"no such column: (?:.+\.)?(.+)|table .+ has no column named (.+)")
_NEAR = re.compile(r'near "(.+)": syntax error', re.DOTALL)

_TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
_COLUMNS = f"SELECT DISTINCT c.name FROM ({_TABLES}) AS t, pragma_table_info(t.name) AS c"


def _told(text: str, sql: str, database: sqlite3.Connection | None) -> str:
    if found := _NO_TABLE.fullmatch(text):
        known = _names(database, _TABLES)
        listed = f" (there are: {', '.join(sorted(known)[:20]) or 'none'})"
        return f"there is no table {found[1]!r}{suggestion(found[1], known)}{listed}"
    if found := _NO_COLUMN.fullmatch(text):
        name = found[1] or found[2]
        return f"there is no column {name!r}{suggestion(name, _names(database, _COLUMNS))}"
    if found := _NEAR.fullmatch(text):
        return f"a mistake in the SQL at {found[1]!r}{_position(found[1], sql)}"
    return text


def _names(database: sqlite3.Connection | None, sql: str) -> list[str]:
    if database is None:
        return []
    try:
        return [name for (name,) in database.execute(sql)]
    except sqlite3.Error:
        return []


def _position(token: str, sql: str) -> str:
    """Return the position of a word, if there is only one."""
    places = [place.start() for place in re.finditer(rf"(?<!\w){re.escape(token)}(?!\w)", sql)]
    if len(places) != 1:
        return ""
    before = sql[: places[0]]
    column = places[0] - before.rfind("\n")
    return f", line {before.count(chr(10)) + 1}, column {column}"
