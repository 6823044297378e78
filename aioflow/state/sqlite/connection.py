"""A SQLite connection and the thread on which alone it is used, so that the loop never waits for a disk.

The rows of a query, handed on while it runs: in large batches when they come fast, else as they come.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias, TypeVar

from aioflow.relation import Batch, Row
from aioflow.runtime.memory import batch_size
from aioflow.state.errors import DatabaseError
from aioflow.state.sqlite.errors import explained
from aioflow.state.sqlite.values import UnfitError, decode_rows, register_converters

T = TypeVar("T")
Work: TypeAlias = Callable[[sqlite3.Connection], T]

# How long a statement waits while another connection recovers or closes the file.
_PATIENCE_SECONDS = 2.0
_INSTRUCTIONS_BETWEEN_LOOKS = 20_000


class StoppedError(Exception):
    """The work was cancelled; never leaves the thread's owner."""


class DatabaseThread:
    """Runs functions on a connection, one after the other."""

    def __init__(self, path: Path, shown: str) -> None:
        self._path = path
        self._shown = shown
        self._executor: ThreadPoolExecutor | None = ThreadPoolExecutor(1, "aioflow-sqlite")
        self._database: sqlite3.Connection | None = None
        self._is_stopping = False
        # Called on the thread now and then while a statement works.
        self.on_look: Callable[[], None] | None = None

    @property
    def is_closed(self) -> bool:
        return self._executor is None

    async def open(self) -> None:
        """Open the file, which is made when it is missing. To be closed also when this fails."""
        await self._submit(self._open, "", True)

    async def do(self, work: Work[T], sql: str = "", *, to_the_end: bool = False) -> T:
        """The result of a function on the thread; when it is cancelled, only after it has returned.

        A statement under way is interrupted then, unless it has to come `to_the_end`.
        """
        return await self._submit(lambda: work(self._connected()), sql, to_the_end)

    def start(self, work: Work[T], sql: str = "") -> asyncio.Future[T]:
        """Begin work on the thread, for whoever calls `stop` if it is not awaited to its end."""
        return self._begin(lambda: work(self._connected()), sql)

    async def stop(self, future: asyncio.Future[Any]) -> None:
        """Interrupt work, and wait until the thread is at rest."""
        await self._settle(future, to_the_end=False)

    def _begin(self, work: Callable[[], T], sql: str) -> asyncio.Future[T]:
        if self._executor is None:
            raise DatabaseError(f"{self._shown}: the connection is closed")
        return asyncio.get_running_loop().run_in_executor(self._executor, self._guarded, work, sql)

    async def _submit(self, work: Callable[[], T], sql: str, to_the_end: bool) -> T:
        future = self._begin(work, sql)
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            await self._settle(future, to_the_end)
            raise
        return future.result()

    async def _settle(self, future: asyncio.Future[Any], to_the_end: bool) -> None:
        self._is_stopping = not to_the_end and not future.done()
        if self._is_stopping and self._database is not None:
            self._database.interrupt()
        while not future.done():
            # The first cancellation is raised when the thread is at rest; further ones say nothing new.
            with suppress(asyncio.CancelledError):
                await asyncio.wait([future])
        self._is_stopping = False
        future.exception()  # it was seen: what became of cancelled work is nobody's concern

    def check_stopped(self) -> None:
        """To be called on the thread between parts of long work."""
        if self._is_stopping:
            raise StoppedError

    async def close(self) -> None:
        """Close the connection and end the thread."""
        if self._executor is None:
            return
        try:
            await self._submit(self._close, "", True)
        finally:
            executor, self._executor = self._executor, None
            executor.shutdown()  # it is idle: there is nothing to wait for

    # --- on the thread --------------------------------------------------------------------------

    def _guarded(self, work: Callable[[], T], sql: str) -> T:
        try:
            return work()
        except (sqlite3.Error, sqlite3.Warning, UnicodeError, UnfitError) as error:
            raise explained(error, self._shown, sql, self._database) from error

    def _connected(self) -> sqlite3.Connection:
        if self._database is None:
            raise DatabaseError(f"{self._shown}: the connection is closed")
        return self._database

    def _open(self) -> None:
        register_converters()
        database = sqlite3.connect(
            self._path,
            timeout=_PATIENCE_SECONDS,
            isolation_level=None,  # transactions begin and end where we say so
            detect_types=sqlite3.PARSE_DECLTYPES,
            check_same_thread=False,
        )
        self._database = database
        # Unlike `interrupt`, this also stops what begins just after it was asked to.
        database.set_progress_handler(self._look, _INSTRUCTIONS_BETWEEN_LOOKS)
        database.execute("PRAGMA foreign_keys = ON")
        # What was committed survives a loss of power.
        database.execute("PRAGMA synchronous = FULL")
        self._write_ahead(database)

    def _write_ahead(self, database: sqlite3.Connection) -> None:
        """Let readers and a writer work at the same time, if the file is ours to change."""
        ((mode,),) = database.execute("PRAGMA journal_mode").fetchall()
        database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()  # fails when it is no database
        if mode == "wal":
            return
        try:
            database.execute("PRAGMA journal_mode = WAL").fetchall()
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith(("SQLITE_READONLY", "SQLITE_BUSY", "SQLITE_CANTOPEN")):
                raise

    def _look(self) -> bool:
        if self.on_look is not None:
            self.on_look()
        return self._is_stopping

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None


_ROWS_AT_ONCE = 1024
_BYTES_AT_ONCE = 1 << 20
_SCAN_PATIENCE_SECONDS = 0.02


class Scan:
    """A query that runs on the thread of a connection.

    The thread gathers rows up to a number that doubles with every batch. Within one step SQLite may search
    for long: what was found before is then handed on in the meantime, but for the last row, which Python's
    module keeps until it has found the next.
    """

    def __init__(self, thread: DatabaseThread, sql: str, *, tolerant: bool = False) -> None:
        self._thread = thread
        self._is_tolerant = tolerant
        self._sql = sql
        self.names: tuple[str, ...] = ()
        self._cursor: sqlite3.Cursor | None = None
        self._found: deque[Row] = deque()
        self._taking = Lock()  # rows leave in their order, whoever takes them
        self._most = 1
        self._since = 0.0
        self._loop = asyncio.get_running_loop()
        self._news = self._loop.create_future()

    async def batches(self) -> AsyncGenerator[Batch, None]:
        """The rows, batch by batch."""
        while True:
            filling = self._thread.start(self._fill, self._sql)
            try:
                while not filling.done():
                    either: list[asyncio.Future[Any]] = [filling, self._expect_news()]
                    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                    if not filling.done() and (rows := self._take_one_by_one()):
                        yield decode_rows(rows, self.names, tolerant=self._is_tolerant)
            finally:
                if not filling.done():
                    await self._thread.stop(filling)
            batch = filling.result()
            if batch is None:
                return
            if batch:
                yield batch

    def _expect_news(self) -> asyncio.Future[None]:
        if self._news.done():
            self._news = self._loop.create_future()
        return self._news

    def _tell(self) -> None:
        if not self._news.done():
            self._news.set_result(None)

    def _take_one_by_one(self) -> Batch:
        """What was found so far; the thread may be adding to it."""
        with self._taking:
            return [self._found.popleft() for _ in range(len(self._found))]

    async def close(self) -> None:
        if self._cursor is not None and not self._thread.is_closed:
            cursor, self._cursor = self._cursor, None
            await self._thread.do(lambda _: cursor.close(), to_the_end=True)

    # --- on the thread --------------------------------------------------------------------------

    def begin(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor
        self.names = tuple(name for name, *_ in cursor.description or ())

    def _fill(self, _: sqlite3.Connection) -> Batch | None:
        """Some rows, less those that were taken meanwhile; None at the end."""
        self._since = time.perf_counter()
        self._thread.on_look = self._look
        try:
            if self._cursor is None or (first := next(self._cursor, None)) is None:
                return None
            self._found.append(first)
            self._found.extend(islice(self._cursor, self._most - 1))
        finally:
            self._thread.on_look = None
        with self._taking:
            rows = list(self._found)
            self._found.clear()
        self._adapt(rows)
        return decode_rows(rows, self.names, tolerant=self._is_tolerant)

    def _look(self) -> None:
        now = time.perf_counter()
        if self._found and now - self._since > _SCAN_PATIENCE_SECONDS:
            self._since = now
            self._loop.call_soon_threadsafe(self._tell)

    def _adapt(self, rows: Batch) -> None:
        if batch_size(rows) > _BYTES_AT_ONCE:
            self._most = max(1, self._most // 2)
        else:
            self._most = min(2 * self._most, _ROWS_AT_ONCE)
