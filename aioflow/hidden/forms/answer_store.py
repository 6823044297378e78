"""The answers of crawls under way, and the tuples of those that ended: a SQLite file for all forms.

Each answer is committed when it has come. A crawl that was killed is repeated from its stored answers, which
its deterministic algorithm asks for in the same way; then it goes on with queries.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import msgspec

from aioflow.config.folders import data_folder, shown_path
from aioflow.errors import AioflowError
from aioflow.runtime.sqlite import SqliteWorker

T = TypeVar("T")
FILE_NAME = "hidden.sqlite"
_BUSY_SECONDS = 30.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS crawl (
    id TEXT PRIMARY KEY, form TEXT NOT NULL, begun REAL NOT NULL, ended REAL);
CREATE INDEX IF NOT EXISTS crawl_form ON crawl (form, begun);
CREATE TABLE IF NOT EXISTS answer (
    crawl TEXT NOT NULL, query TEXT NOT NULL, asked REAL NOT NULL, content TEXT NOT NULL,
    PRIMARY KEY (crawl, query)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tuple (crawl TEXT NOT NULL, number INTEGER NOT NULL, content TEXT NOT NULL,
    PRIMARY KEY (crawl, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS asked (form TEXT NOT NULL, at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS asked_at ON asked (form, at);
"""


class HiddenStoreError(AioflowError):
    """The file of stored answers cannot be used."""


class StoredCrawl(msgspec.Struct, frozen=True):
    """A crawl that goes on, or begins: its stored answers, and the tuples of the one before it."""

    id: str
    is_resumed: bool
    answers: dict[str, str]
    known: list[str]


class AnswerStore:
    """The stored answers. The file is opened when it is first used."""

    def __init__(self, path: Path | None = None, *, clock: Callable[[], float]) -> None:
        self.path = path or data_folder() / FILE_NAME
        self._clock = clock
        self._worker: SqliteWorker | None = None
        self._opening = asyncio.Lock()

    async def close(self) -> None:
        if self._worker is not None:
            await self._worker.close()
            self._worker = None

    async def begin(self, form: str) -> StoredCrawl:
        """Return the crawl of a form that was cut off, or a new one."""
        now, new = self._clock(), uuid4().hex

        def work(database: sqlite3.Connection) -> StoredCrawl:
            open_one = database.execute(
                "SELECT id FROM crawl WHERE form = ? AND ended IS NULL ORDER BY begun LIMIT 1", (form,)
            ).fetchone()
            crawl = new if open_one is None else open_one[0]
            if open_one is None:
                database.execute("INSERT INTO crawl VALUES (?, ?, ?, NULL)", (crawl, form, now))
            answers = database.execute("SELECT query, content FROM answer WHERE crawl = ?", (crawl,))
            before = database.execute(
                "SELECT id FROM crawl WHERE form = ? AND ended IS NOT NULL ORDER BY ended DESC LIMIT 1",
                (form,),
            ).fetchone()
            known = (
                []
                if before is None
                else database.execute(
                    "SELECT content FROM tuple WHERE crawl = ? ORDER BY number", before
                ).fetchall()
            )
            return StoredCrawl(crawl, open_one is not None, dict(answers), [content for (content,) in known])

        return await self._call(work)

    async def add_answer(self, crawl: str, query: str, content: str) -> None:
        """Store an answer durably."""
        now = self._clock()

        def work(database: sqlite3.Connection) -> None:
            database.execute(
                "INSERT OR REPLACE INTO answer VALUES (?, ?, ?, ?)", (crawl, query, now, content)
            )

        await self._call(work)

    async def take_query(self, form: str, quota: int, since: float) -> bool:
        """Count a query of a form before it is asked; False if the quota since a moment is used up."""
        now = self._clock()

        def work(database: sqlite3.Connection) -> bool:
            database.execute("DELETE FROM asked WHERE at < ?", (since - 86_400.0,))
            found = database.execute("SELECT count(*) FROM asked WHERE form = ? AND at >= ?", (form, since))
            if found.fetchone()[0] >= quota:
                return False
            database.execute("INSERT INTO asked VALUES (?, ?)", (form, now))
            return True

        return await self._call(work)

    async def end(self, form: str, crawl: str, tuples: Sequence[str]) -> None:
        """Note the end of a crawl with all its tuples, and forget its answers and older crawls."""
        now = self._clock()

        def work(database: sqlite3.Connection) -> None:
            older = "crawl IN (SELECT id FROM crawl WHERE form = ? AND id <> ?)"
            for table in ("answer", "tuple"):
                database.execute(f"DELETE FROM {table} WHERE {older}", (form, crawl))
            database.execute("DELETE FROM crawl WHERE form = ? AND id <> ?", (form, crawl))
            database.execute("DELETE FROM answer WHERE crawl = ?", (crawl,))
            database.execute("DELETE FROM tuple WHERE crawl = ?", (crawl,))
            rows = ((crawl, number, content) for number, content in enumerate(tuples))
            database.executemany("INSERT INTO tuple VALUES (?, ?, ?)", rows)
            database.execute("UPDATE crawl SET ended = ? WHERE id = ?", (now, crawl))

        await self._call(work)

    async def _call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        worker = await self._opened()

        def whole(database: sqlite3.Connection) -> T:
            database.execute("BEGIN IMMEDIATE")
            try:
                result = work(database)
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")
            return result

        try:
            return await worker.call(whole, interruptible=False)
        except sqlite3.Error as error:
            raise HiddenStoreError(f"{shown_path(self.path)}: {error}") from error

    async def _opened(self) -> SqliteWorker:
        async with self._opening:
            if self._worker is None:
                try:
                    self._worker = await SqliteWorker.open(self._connect)
                except (OSError, sqlite3.Error) as error:
                    raise HiddenStoreError(f"{shown_path(self.path)}: {error}") from error
            return self._worker

    def _connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(
            self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.executescript(_SCHEMA)
        except BaseException:
            database.close()
            raise
        return database
