"""A connection to a SQLite file: statements, tables and transactions, and scans that hand rows on early.

`runtime.sqlite` has the thread; `rows`, `values` and `errors` do the work on it.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from aioflow.errors import SettingError
from aioflow.relation import Batch, Row, Schema
from aioflow.runtime.memory import batch_size
from aioflow.runtime.shielded import run_shielded
from aioflow.runtime.sqlite import SqliteWork, SqliteWorker
from aioflow.state.driver import Column, ColumnNeed, Dialect, Kind
from aioflow.state.errors import DatabaseError
from aioflow.state.sqlite.errors import explained
from aioflow.state.sqlite.rows import Insertion, atomically, columns_of, folded, insert_into, quoted
from aioflow.state.sqlite.values import (
    UnfitError,
    declared_type,
    decode_rows,
    kind_of,
    register_converters,
    take_any_text,
)

T = TypeVar("T")

# How long a statement waits while another connection recovers or closes the file.
_BUSY_SECONDS = 2.0
_DIALECT = Dialect("sqlite", "?")
_FIRST_WORD = re.compile(r"(?:[\s;\ufeff]|--[^\n]*(?:\n|$)|/\*.*?(?:\*/|$))*(\w*)", re.DOTALL)
_NOT_FOR_PLANS = frozenset({"BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE", "ATTACH", "DETACH"})


class SqliteConnection:
    """A connection to a file; see `state.driver.Connection`."""

    def __init__(self, worker: SqliteWorker, shown: str) -> None:
        self._worker = worker
        self._shown = shown
        self._kind: Kind | None = None
        self._savepoints = 0
        self._is_tolerant = False

    @property
    def dialect(self) -> Dialect:
        return _DIALECT

    async def close(self) -> None:
        await self._worker.close()

    async def call(self, work: SqliteWork[T], sql: str = "", *, interruptible: bool = True) -> T:
        """Return the result of a function on the thread, as `SqliteWorker.call`. Errors show `sql`."""
        if not self._worker.is_open:
            raise DatabaseError(f"{self._shown}: the connection is closed")
        return await self._worker.call(
            lambda database: _explaining(lambda: work(database), self._shown, sql, database),
            interruptible=interruptible,
        )

    async def tolerate_damage(self) -> None:
        self._is_tolerant = True
        await self.call(take_any_text)

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
        scan = _Scan(self, self._worker, sql, tolerant=self._is_tolerant)

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
        return Insertion(database, self._shown, sql, self._worker.check_interrupted)

    async def _do(self, work: SqliteWork[T], sql: str = "") -> T:
        self._refuse_control(sql)
        is_open = self._kind is not None

        def within(database: sqlite3.Connection) -> T:
            if is_open:
                self._check_open(database)
            return work(database)

        return await self.call(within, sql)

    def _refuse_control(self, sql: str) -> None:
        found = _FIRST_WORD.match(sql)
        word = found[1].upper() if found else ""
        if word in _NOT_FOR_PLANS:
            raise DatabaseError(
                f"{self._shown}: {word} is not for plans: the transaction of a run begins and ends with "
                "the run, and it has one database; leave it out"
            )

    def _check_open(self, database: sqlite3.Connection) -> None:
        """Refuse statements after a failure that undid the transaction: they must not be committed alone."""
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
            await self.call(_begin_write if kind == "write" else _begin_snapshot, interruptible=False)
            yield
            if kind == "write":
                await self.call(self._commit, interruptible=False)
        finally:
            self._kind = None
            if self._worker.is_open:
                await self.call(_end, interruptible=False)

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

        await self.call(begin, interruptible=False)
        self._savepoints += 1
        try:
            yield
            await self.call(lambda database: database.execute(f"RELEASE {name}"), interruptible=False)
        except BaseException:
            await self.call(undo, interruptible=False)
            raise
        finally:
            self._savepoints -= 1


def _begin_write(database: sqlite3.Connection) -> None:
    """Take the write lock or fail at once: `LockWait` waits for it in a way that can be cancelled."""
    ((milliseconds,),) = database.execute("PRAGMA busy_timeout").fetchall()
    database.execute("PRAGMA busy_timeout = 0").fetchall()
    try:
        database.execute("BEGIN IMMEDIATE")
    finally:
        database.execute(f"PRAGMA busy_timeout = {milliseconds}").fetchall()


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


# --- scans --------------------------------------------------------------------------------------

_MOST_ROWS = 1024
_MOST_BYTES = 1 << 20
_HAND_ON_SECONDS = 0.02


class _Scan:
    """The rows of a query while it runs: in large batches when they come fast, else as they come.

    The thread gathers rows up to a number that doubles with every batch. SQLite may search for long before
    it finds the next row. The rows found before are then handed on, all but the last, which Python's module
    keeps until it has found the next.
    """

    def __init__(
        self, connection: SqliteConnection, worker: SqliteWorker, sql: str, *, tolerant: bool = False
    ) -> None:
        self._connection = connection
        self._worker = worker
        self._is_tolerant = tolerant
        self._sql = sql
        self.names: tuple[str, ...] = ()
        self._cursor: sqlite3.Cursor | None = None
        self._found: deque[Row] = deque()
        self._taking = Lock()  # rows leave in their order, on either thread
        self._batch_rows = 1
        self._handed_on = 0.0
        self._loop = asyncio.get_running_loop()
        self._rows_found = self._loop.create_future()

    async def batches(self) -> AsyncGenerator[Batch, None]:
        """Yield the rows, batch by batch."""
        while True:
            filling = self._loop.create_task(self._connection.call(self._fill, self._sql))
            try:
                while not filling.done():
                    either: list[asyncio.Future[Any]] = [filling, self._expect_rows()]
                    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                    if not filling.done() and (rows := self._take_one_by_one()):
                        yield decode_rows(rows, self.names, tolerant=self._is_tolerant)
            finally:
                if not filling.done():
                    filling.cancel()
                    await run_shielded(asyncio.wait([filling]))
            batch = filling.result()
            if batch is None:
                return
            if batch:
                yield batch

    def _expect_rows(self) -> asyncio.Future[None]:
        if self._rows_found.done():
            self._rows_found = self._loop.create_future()
        return self._rows_found

    def _announce(self) -> None:
        if not self._rows_found.done():
            self._rows_found.set_result(None)

    def _take_one_by_one(self) -> Batch:
        """Return the rows found so far. The thread may be adding others meanwhile."""
        with self._taking:
            return [self._found.popleft() for _ in range(len(self._found))]

    async def close(self) -> None:
        if self._cursor is not None and self._worker.is_open:
            cursor, self._cursor = self._cursor, None
            await self._connection.call(lambda _: cursor.close(), interruptible=False)

    # --- on the thread --------------------------------------------------------------------------

    def begin(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor
        self.names = tuple(name for name, *_ in cursor.description or ())

    def _fill(self, _: sqlite3.Connection) -> Batch | None:
        """Return some rows, less those that were taken meanwhile, or None at the end."""
        self._handed_on = time.perf_counter()
        self._worker.on_progress = self._on_progress
        try:
            if self._cursor is None or (first := next(self._cursor, None)) is None:
                return None
            self._found.append(first)
            self._found.extend(islice(self._cursor, self._batch_rows - 1))
        finally:
            self._worker.on_progress = None
        with self._taking:
            rows = list(self._found)
            self._found.clear()
        self._adapt(rows)
        return decode_rows(rows, self.names, tolerant=self._is_tolerant)

    def _on_progress(self) -> None:
        now = time.perf_counter()
        if self._found and now - self._handed_on > _HAND_ON_SECONDS:
            self._handed_on = now
            self._loop.call_soon_threadsafe(self._announce)

    def _adapt(self, rows: Batch) -> None:
        if batch_size(rows) > _MOST_BYTES:
            self._batch_rows = max(1, self._batch_rows // 2)
        else:
            self._batch_rows = min(2 * self._batch_rows, _MOST_ROWS)


# --- opening ------------------------------------------------------------------------------------


async def open_connection(path: Path, shown: str) -> SqliteConnection:
    """Open a file, which is created when it is missing."""
    worker = await SqliteWorker.open(lambda: _explaining(lambda: _open(path), shown))
    return SqliteConnection(worker, shown)


def _explaining(
    work: Callable[[], T], shown: str, sql: str = "", database: sqlite3.Connection | None = None
) -> T:
    """Return the result of work on the thread; errors of SQLite become those of `state.errors`."""
    try:
        return work()
    except (sqlite3.Error, sqlite3.Warning, UnicodeError, UnfitError) as error:
        raise explained(error, shown, sql, database) from error


def _open(path: Path) -> sqlite3.Connection:
    register_converters()
    database = sqlite3.connect(
        path,
        timeout=_BUSY_SECONDS,
        isolation_level=None,  # transactions begin and end where we say so
        detect_types=sqlite3.PARSE_DECLTYPES,
    )
    try:
        database.execute("PRAGMA foreign_keys = ON")
        # What was committed survives a loss of power.
        database.execute("PRAGMA synchronous = FULL")
        _write_ahead(database)
    except BaseException:
        database.close()
        raise
    return database


def _write_ahead(database: sqlite3.Connection) -> None:
    """Let readers and a writer work at the same time, if the file may be changed."""
    ((mode,),) = database.execute("PRAGMA journal_mode").fetchall()
    database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()  # fails when it is no database
    if mode == "wal":
        return
    try:
        database.execute("PRAGMA journal_mode = WAL").fetchall()
    except sqlite3.OperationalError as error:
        if not error.sqlite_errorname.startswith(("SQLITE_READONLY", "SQLITE_BUSY", "SQLITE_CANTOPEN")):
            raise
