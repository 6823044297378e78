"""Databases that are files: their addresses, and copies of them.

A copy is made before the system tables are upgraded. It is whole or not there at all, and never replaces an
older one.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from uuid import uuid4

from aioflow.config.folders import data_folder, shown_path
from aioflow.relation import Batch, Schema
from aioflow.state.driver import Address, Connection
from aioflow.state.errors import DatabaseError
from aioflow.state.sqlite.connection import SqliteConnection, open_connection
from aioflow.state.sqlite.errors import explained


class SqliteDriver:
    """Databases that are files."""

    schemes = ("sqlite",)

    def check(self, address: Address) -> None:
        path = path_of(address)
        shown = address.shown or str(path)
        if path.is_dir():
            raise DatabaseError(f"{shown} is a folder; name a file in it, such as {shown}/aioflow.db")
        if not path.parent.is_dir() and path.parent != data_folder():
            raise DatabaseError(f"{shown}: there is no folder {path.parent}; make it, or name another file")

    async def connect(self, address: Address) -> Connection:
        path = path_of(address)
        self.check(address)
        if path.parent == data_folder():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shown = address.shown or str(path)
        return await open_connection(path, shown)

    def unstorable(self, schema: Schema, batch: Batch) -> Sequence[tuple[int, int, str]]:
        return ()  # it holds whatever a relation can carry

    async def copy_before_upgrade(self, connection: Connection, address: Address, version: int) -> str:
        if not isinstance(connection, SqliteConnection):
            raise TypeError("a connection of another driver")
        path = path_of(address)
        copy = path.with_name(f"{path.stem}.version-{version}{path.suffix}")

        def work(database: sqlite3.Connection) -> Path:
            try:
                return copy_database(database, copy)
            except OSError as error:
                raise explained(error, address.shown or str(path)) from error

        return shown_path(await connection.call(work))


def path_of(address: Address) -> Path:
    """Return the file of an address: `sqlite:relative/path.db`, `sqlite:///absolute/path.db`."""
    if address.path is not None:
        return address.path
    text = address.url.partition(":")[2]
    text = text[2:] if text.startswith("//") else text
    if text.strip("/") in ("", ".", ":memory:"):
        raise DatabaseError(
            f"{address.url!r} names no file: a run needs several connections, and each would have a database "
            "in memory of its own; write sqlite:aioflow.db"
        )
    return Path(text).expanduser()


# --- copies ---


def copy_database(database: sqlite3.Connection, path: Path) -> Path:
    """Copy a database, as it is at one moment, to a new file of that name, or a numbered one."""
    draft = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        database.execute("VACUUM INTO ?", (str(draft),))
        _flush(draft)
        return _publish(draft, path)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()


def _publish(draft: Path, path: Path) -> Path:
    for number in count(1):
        target = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
        with suppress(FileExistsError):
            _name(draft, target)
            _flush(target.parent)
            return target
    raise AssertionError("numbers never end")


def _name(draft: Path, target: Path) -> None:
    """Give a file a name that must be free."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: reserve the name, then take it
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        draft.replace(target)


def _flush(path: Path) -> None:
    """Have a file or folder survive a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


SQLITE = SqliteDriver()
