"""Errors of PostgreSQL and asyncpg as those of aioflow, with the statement and advice."""

from __future__ import annotations

import re
import socket
import ssl
from typing import Any

import asyncpg

from aioflow.config.masking import mask, mask_line
from aioflow.errors import AioflowError
from aioflow.state.driver import Address
from aioflow.state.errors import (
    BusyError,
    ConflictError,
    DamagedError,
    DatabaseError,
    DisconnectedError,
    DiskFullError,
    StateError,
)

# What asyncpg raises when something goes wrong between us and the database.
FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, EOFError)

_SHOWN_CHARACTERS = 80
_MISSING_TABLE = re.compile(r'"(.+)"')
_STATES: dict[str, tuple[type[StateError], str]] = {
    "25006": (
        DatabaseError,
        "; dbquery and dbimport only read, and dbupdate writes, if the server allows it",
    ),
    "25P03": (DisconnectedError, ""),
    "28000": (DatabaseError, "; look at the user of the URL and at pg_hba.conf of the server"),
    "28P01": (DatabaseError, '; look at the user of the URL, and at password = "secret:NAME"'),
    "3D000": (DatabaseError, "; its owner makes it, with createdb"),
    "40001": (BusyError, "; another run wrote to the same rows, and nothing of this was kept"),
    "40P01": (BusyError, "; another run wrote to the same rows, and nothing of this was kept"),
    "42501": (DatabaseError, "; its owner can GRANT this to the user of the URL"),
    "53100": (DiskFullError, "; no room is left where the server keeps its data"),
    "53300": (DisconnectedError, "; the server has as many connections as it allows"),
    "55P03": (BusyError, "; another session holds a lock on it"),
    "57P01": (DisconnectedError, ""),
    "57P02": (DisconnectedError, ""),
    "57P03": (DisconnectedError, "; it will take connections in a moment, or has stopped to"),
    "57P05": (DisconnectedError, ""),
    "XX001": (DamagedError, "; the data of the server are damaged, nothing was changed"),
    "XX002": (DamagedError, "; an index of the server is damaged, nothing was changed"),
}


def shown_address(address: Address) -> str:
    return address.shown or address.name


def translated(
    error: Exception, address: Address, *, sql: str = "", is_closed: bool = False, writes: bool = False
) -> AioflowError:
    """Return the error to raise instead. With `writes`, a value that was to be stored may be at fault."""
    shown = shown_address(address)
    if isinstance(error, asyncpg.PostgresError):
        kind, advice = _kind_of(error, is_closed, writes)
        return kind(mask(f"{shown}: {_told(error)}{advice}{_place(error, sql)}"))
    if is_closed or isinstance(error, OSError | EOFError):
        reason = f": {error}" if str(error) else ""
        return DisconnectedError(mask(f"{shown}: the connection to the server was lost{reason}"))
    return DatabaseError(mask(f"{shown}: {error}{_asked(sql)}"))


def not_connected(error: Exception, address: Address) -> AioflowError:
    """Return the error for a connection that could not be opened."""
    shown = shown_address(address)
    if isinstance(error, asyncpg.PostgresError):
        return translated(error, address)
    if isinstance(error, ssl.SSLError | ssl.CertificateError):
        return DatabaseError(mask(f"{shown}: TLS failed: {error}; sslmode of the URL says what is asked for"))
    if isinstance(error, TimeoutError):
        return DisconnectedError(f"{shown}: the server did not answer in time")
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME:
        return DatabaseError(f"{shown}: the host of the server is unknown")
    if isinstance(error, ConnectionError) and "SSL" in str(error):
        return DatabaseError(f"{shown}: the server does not speak TLS, which sslmode of the URL asks for")
    if isinstance(error, OSError):
        return DisconnectedError(mask(f"{shown}: the server cannot be reached: {error}"))
    return DatabaseError(mask(f"{shown}: {error}"))


def missing_table(error: Exception) -> str | None:
    """Return the name of the missing table that a statement asked for."""
    if not isinstance(error, asyncpg.UndefinedTableError):
        return None
    found = _MISSING_TABLE.search(error.args[0])
    return found[1] if found else None


def _kind_of(error: Any, is_closed: bool, writes: bool) -> tuple[type[StateError], str]:
    state: str = error.sqlstate or ""
    if state in _STATES:
        return _STATES[state]
    if state.startswith("08") or is_closed:
        return DisconnectedError, ""
    # Two who make the same table at once meet in the tables of the server.
    if state.startswith("23") and error.schema_name != "pg_catalog":
        return ConflictError, ""
    if writes and (state.startswith("22") or state == "54000"):
        return ConflictError, ""
    return DatabaseError, ""


def _told(error: Any) -> str:
    parts = (error.args[0], error.detail, error.hint)
    return "; ".join(part.rstrip(". ") for part in parts if part)


def _place(error: Any, sql: str) -> str:
    """Return `, at line 2, column 8: select a FORM t`, where the server says it."""
    if not sql or not error.position:
        return _asked(sql)
    before = sql[: int(error.position) - 1]
    line = before.count("\n")
    column = len(before) - (before.rfind("\n") + 1)
    text, (shown_column,) = mask_line(sql.split("\n")[line], column)
    start = max(0, shown_column - _SHOWN_CHARACTERS // 2)
    return f", at line {line + 1}, column {column + 1}: {text[start : start + _SHOWN_CHARACTERS]}"


def _asked(sql: str) -> str:
    text = " ".join(mask(sql).split())
    if not text:
        return ""
    return f", in: {text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + '…'}"
