"""The embedded database: one file, used through a thread for each connection.

A copy of a database beside it: whole or not there at all, and never in place of an older one.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from aioflow.config.folders import data_folder, shown_path
from aioflow.errors import SettingError
from aioflow.relation import Batch, Row, Schema
from aioflow.state.driver import Address, Column, ColumnNeed, Connection, Dialect, Kind
from aioflow.state.errors import DatabaseError
from aioflow.state.sqlite.connection import DatabaseThread, Scan, Work
from aioflow.state.sqlite.errors import explained
from aioflow.state.sqlite.rows import (
    Insertion,
    atomically,
    columns_of,
    folded,
    insert_into,
    quoted,
)
from aioflow.state.sqlite.values import declared_type, decode_rows, kind_of, take_any_text


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


T = TypeVar("T")

_DIALECT = Dialect("sqlite", "?")
_FIRST_WORD = re.compile(r"(?:[\s;\ufeff]|--[^\n]*(?:\n|$)|/\*.*?(?:\*/|$))*(\w*)", re.DOTALL)
_NOT_FOR_PLANS = frozenset({"BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE", "ATTACH", "DETACH"})


class SqliteConnection:
    """A connection to a file; see `state.driver.Connection`."""

    def __init__(self, thread: DatabaseThread, shown: str) -> None:
        self._thread = thread
        self._shown = shown
        self._kind: Kind | None = None
        self._savepoints = 0
        self._is_tolerant = False

    @property
    def dialect(self) -> Dialect:
        return _DIALECT

    async def close(self) -> None:
        await self._thread.close()

    async def tolerate_damage(self) -> None:
        self._is_tolerant = True
        await self._thread.do(take_any_text)

    # --- statements -----------------------------------------------------------------------------

    async def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        def work(database: sqlite3.Connection) -> int:
            before = database.total_changes
            cursor = database.execute(sql, self._insertion(database, sql).bound(values))
            for _ in cursor:  # until its last row the statement has not ended
                pass
            return cursor.rowcount if cursor.rowcount >= 0 else database.total_changes - before

        return await self._do(work, sql)

    async def run_each(self, sql: str, rows: Sequence[Row]) -> int:
        def work(database: sqlite3.Connection) -> int:
            insertion = self._insertion(database, sql)
            return atomically(database, lambda: insertion.run([list(rows)]))

        return await self._do(work, sql)

    async def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        def work(database: sqlite3.Connection) -> list[Row]:
            cursor = database.execute(sql, self._insertion(database, sql).bound(values))
            names = [name for name, *_ in cursor.description or ()]
            return decode_rows(cursor.fetchall(), names, tolerant=self._is_tolerant)

        return await self._do(work, sql)

    async def select(self, sql: str, values: Sequence[Any] = ()) -> AsyncGenerator[Schema | Batch, None]:
        scan = Scan(self._thread, sql, tolerant=self._is_tolerant)

        def begin(database: sqlite3.Connection) -> None:
            scan.begin(database.execute(sql, self._insertion(database, sql).bound(values)))

        try:
            await self._do(begin, sql)
            yield self._schema(scan.names)
            async with aclosing(scan.batches()) as batches:
                async for batch in batches:
                    yield batch
        finally:
            await scan.close()

    def _schema(self, names: tuple[str, ...]) -> Schema:
        try:
            return Schema(names)
        except SettingError as error:
            raise DatabaseError(
                f"{self._shown}: {error.message} in the result of the query; rename one of them with AS"
            ) from error

    async def load(
        self,
        table: str,
        columns: Sequence[str],
        batches: Iterable[Batch],
        needs: Sequence[ColumnNeed] = (),
    ) -> int:
        def work(database: sqlite3.Connection) -> int:
            insertion = self._insertion(database, insert_into(table, columns))
            return atomically(database, lambda: insertion.insert(batches))

        return await self._do(work)

    def _insertion(self, database: sqlite3.Connection, sql: str) -> Insertion:
        return Insertion(database, self._shown, sql, self._thread.check_stopped)

    async def _do(self, work: Work[T], sql: str = "") -> T:
        self._refuse_control(sql)
        is_open = self._kind is not None

        def within(database: sqlite3.Connection) -> T:
            if is_open:
                self._check_open(database)
            return work(database)

        return await self._thread.do(within, sql)

    def _refuse_control(self, sql: str) -> None:
        found = _FIRST_WORD.match(sql)
        word = found[1].upper() if found else ""
        if word in _NOT_FOR_PLANS:
            raise DatabaseError(
                f"{self._shown}: {word} is not for plans: the transaction of a run begins and ends with "
                "the run, and it has one database; leave it out"
            )

    def _check_open(self, database: sqlite3.Connection) -> None:
        """What comes after a failure that undid the transaction must not be committed all alone."""
        if not database.in_transaction:
            raise DatabaseError(
                f"{self._shown}: the database has undone the whole transaction after a failure in it"
            )

    # --- tables ---------------------------------------------------------------------------------

    async def columns(self, table: str) -> tuple[Column, ...] | None:
        found = await self._do(lambda database: columns_of(database, table))
        return tuple(Column(name, kind_of(declared), declared) for name, declared in found) or None

    async def create_table(self, table: str, needs: Sequence[ColumnNeed], *, temporary: bool = False) -> None:
        def work(database: sqlite3.Connection) -> None:
            self._check_names(table, [need.name for need in needs])
            columns = ", ".join(f"{quoted(need.name)} {declared_type(need)}" for need in needs)
            made = "CREATE TEMPORARY TABLE" if temporary else "CREATE TABLE"
            database.execute(f"{made} {quoted(table)} ({columns})")

        await self._do(work)

    async def add_columns(self, table: str, needs: Sequence[ColumnNeed]) -> None:
        def work(database: sqlite3.Connection) -> None:
            there = [name for name, _ in columns_of(database, table)]
            self._check_names(table, [*there, *(need.name for need in needs)])
            for need in needs:
                column = f"{quoted(need.name)} {declared_type(need)}"
                database.execute(f"ALTER TABLE {quoted(table)} ADD COLUMN {column}")

        await self._do(lambda database: atomically(database, lambda: work(database)))

    async def widen(self, table: str, needs: Sequence[ColumnNeed]) -> None:
        """Nothing: a column of SQLite holds values of every type."""

    def _check_names(self, table: str, names: Sequence[str]) -> None:
        if not names:
            raise DatabaseError(f"{self._shown}: table {table!r} needs at least one attribute")
        seen: dict[str, str] = {}
        for name in names:
            other = seen.setdefault(folded(name), name)
            if other != name:
                raise DatabaseError(
                    f"{self._shown}: table {table!r} cannot have both {other!r} and {name!r}: SQLite does "
                    "not tell capitals from small letters in names of columns; rename one with project"
                )

    # --- transactions ---------------------------------------------------------------------------

    @asynccontextmanager
    async def transaction(self, kind: Kind) -> AsyncIterator[None]:
        if self._kind is not None:
            raise DatabaseError(f"{self._shown}: a transaction is open already on this connection")
        self._kind = kind
        try:
            await self._thread.do(_begin_write if kind == "write" else _begin_snapshot, to_the_end=True)
            yield
            if kind == "write":
                await self._thread.do(self._commit, to_the_end=True)
        finally:
            self._kind = None
            if not self._thread.is_closed:
                await self._thread.do(_end, to_the_end=True)

    def _commit(self, database: sqlite3.Connection) -> None:
        self._check_open(database)
        database.execute("COMMIT")

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        name = f"aioflow_{self._savepoints}"

        def begin(database: sqlite3.Connection) -> None:
            self._check_open(database)
            database.execute(f"SAVEPOINT {name}")

        def undo(database: sqlite3.Connection) -> None:
            if database.in_transaction:
                database.execute(f"ROLLBACK TO {name}")
                database.execute(f"RELEASE {name}")

        await self._thread.do(begin, to_the_end=True)
        self._savepoints += 1
        try:
            yield
            await self._thread.do(lambda database: database.execute(f"RELEASE {name}"), to_the_end=True)
        except BaseException:
            await self._thread.do(undo, to_the_end=True)
            raise
        finally:
            self._savepoints -= 1

    async def copy_beside(self, path: Path) -> Path:
        """Write a copy of the whole database into a file of that name, or with a number when there is one."""

        def work(database: sqlite3.Connection) -> Path:
            try:
                return copy_database(database, path)
            except OSError as error:
                raise explained(error, self._shown) from error

        return await self._thread.do(work)


def _begin_write(database: sqlite3.Connection) -> None:
    """Take the write lock, or fail at once: whoever asked waits in a way that can be told and cancelled."""
    ((patience,),) = database.execute("PRAGMA busy_timeout").fetchall()
    database.execute("PRAGMA busy_timeout = 0").fetchall()
    try:
        database.execute("BEGIN IMMEDIATE")
    finally:
        database.execute(f"PRAGMA busy_timeout = {patience}").fetchall()


def _begin_snapshot(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA query_only = ON")
    database.execute("BEGIN")
    # The view is taken by the first read.
    database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()


def _end(database: sqlite3.Connection) -> None:
    """Undo what was not committed."""
    if database.in_transaction:
        database.execute("ROLLBACK")
    database.execute("PRAGMA query_only = OFF")


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
        thread = DatabaseThread(path, shown)
        try:
            await thread.open()
        except BaseException:
            await thread.close()
            raise
        return SqliteConnection(thread, shown)

    def unstorable(self, schema: Schema, batch: Batch) -> Sequence[tuple[int, int, str]]:
        return ()  # it holds whatever a relation can carry

    async def copy_before_upgrade(self, connection: Connection, address: Address, version: int) -> str:
        if not isinstance(connection, SqliteConnection):
            raise TypeError("a connection of another driver")
        path = path_of(address)
        copy = path.with_name(f"{path.stem}.version-{version}{path.suffix}")
        return shown_path(await connection.copy_beside(copy))


def path_of(address: Address) -> Path:
    """The file of an address: `sqlite:relative/path.db`, `sqlite:///absolute/path.db`."""
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


SQLITE = SqliteDriver()
