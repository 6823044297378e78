"""The rows of a query, handed on while it runs: in large batches when they come fast, else as they come."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import AsyncGenerator
from itertools import islice
from threading import Lock
from typing import Any

from aioflow.memory import batch_size
from aioflow.relation import Batch, Row
from aioflow.state.sqlite_thread import DatabaseThread
from aioflow.state.sqlite_values import decode_rows

_ROWS_AT_ONCE = 1024
_BYTES_AT_ONCE = 1 << 20
_PATIENCE_SECONDS = 0.02


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
        if self._found and now - self._since > _PATIENCE_SECONDS:
            self._since = now
            self._loop.call_soon_threadsafe(self._tell)

    def _adapt(self, rows: Batch) -> None:
        if batch_size(rows) > _BYTES_AT_ONCE:
            self._most = max(1, self._most // 2)
        else:
            self._most = min(2 * self._most, _ROWS_AT_ONCE)
