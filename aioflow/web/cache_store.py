"""The file of the HTTP cache: a SQLite database, shared by processes and bounded in size.

The answers that were unused the longest leave first. URLs, and the request headers that chose an answer, are
stored as keyed digests because they may hold secrets. Each call of `runtime.sqlite` is a whole transaction,
so that no cancellation leaves one open.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import zlib
from collections.abc import Callable, Mapping, Set
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from aioflow.config.folders import shown_path
from aioflow.runtime.shielded import run_shielded
from aioflow.runtime.sqlite import SqliteWork, SqliteWorker
from aioflow.web.errors import WebError
from aioflow.web.freshness import StoredHead
from aioflow.web.settings import KIBIBYTE

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")

SUFFIX = ".sqlite"
FILE_NAME = f"http-cache{SUFFIX}"
PIECE_BYTES = 256 * KIBIBYTE
MOST_VARIANTS = 20
MOST_SHARE = 0.25  # of the whole cache, for one answer
_APPLICATION = 0x61666C77
_VERSION = 1
_BUSY_SECONDS = 10.0
_FULL_SHARE = 0.9  # how full the cache is after it was made smaller
_ROW_BYTES = 512  # what a row takes besides its body and headers, roughly
_USES_AT_ONCE = 64
_ABANDONED_SECONDS = 24 * 3600.0
_SCHEMA = """
CREATE TABLE about (salt BLOB NOT NULL, bytes INTEGER NOT NULL);
CREATE TABLE entry (
    id INTEGER PRIMARY KEY AUTOINCREMENT, url BLOB NOT NULL, selecting TEXT NOT NULL, status INTEGER NOT NULL,
    headers TEXT NOT NULL, requested_at REAL NOT NULL, received_at REAL NOT NULL, used_at REAL NOT NULL,
    size INTEGER NOT NULL, pieces INTEGER NOT NULL, is_whole INTEGER NOT NULL);
CREATE INDEX entry_url ON entry (url);
CREATE INDEX entry_used_at ON entry (used_at);
CREATE TABLE piece (
    entry INTEGER NOT NULL, number INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE (entry, number));
CREATE TRIGGER entry_new AFTER INSERT ON entry BEGIN UPDATE about SET bytes = bytes + new.size; END;
CREATE TRIGGER entry_size AFTER UPDATE OF size ON entry BEGIN
    UPDATE about SET bytes = bytes + new.size - old.size; END;
CREATE TRIGGER entry_gone AFTER DELETE ON entry BEGIN
    UPDATE about SET bytes = bytes - old.size; DELETE FROM piece WHERE entry = old.id; END;
"""


class CacheError(WebError):
    """The file of the HTTP cache cannot be used; if `is_damaged` or of another owner, until it is mended."""

    is_damaged = False


class CacheEntry(msgspec.Struct, frozen=True):
    """A stored answer. A small body is here; a large one is stored in `pieces`."""

    id: int
    kept: StoredHead
    pieces: int
    body: bytes | None


class Chosen(msgspec.Struct, frozen=True):
    """The key of a stored response: its URL, and by name the request headers that it depends on."""

    url: str
    selecting: Mapping[str, str | None]


class CacheStore:
    """The stored answers. Nothing is opened before it is first used."""

    def __init__(self, path: Path, most_bytes: int, *, clock: Callable[[], float]) -> None:
        self.path = path
        self.most_bytes = most_bytes
        self._clock = clock
        self._worker: SqliteWorker | None = None
        self._opening = asyncio.Lock()
        self._is_closed = False
        self._salt = b""
        self._used: dict[int, float] = {}

    @property
    def largest_bytes(self) -> int:
        """Return the largest size of one stored answer."""
        return int(self.most_bytes * MOST_SHARE)

    # --- what is asked of it --------------------------------------------------------------------

    async def find(
        self,
        url: str,
        headers: Mapping[str, str],
        personal: Mapping[str, str],
        *,
        leaving_out: frozenset[str] = frozenset(),
    ) -> CacheEntry | None:
        """Return the latest answer that fits a request; headers by their names in lower case.

        Whatever the answer says that it depends on, all of the request's `personal` headers have to fit,
        except those to be left out.
        """

        def work(file: sqlite3.Connection) -> CacheEntry | None:
            # One view of the file: another process may replace the answer meanwhile.
            with _transaction(file, "DEFERRED"):
                return latest(file)

        def latest(file: sqlite3.Connection) -> CacheEntry | None:
            rows = file.execute(
                "SELECT id, status, headers, requested_at, received_at, pieces, selecting FROM entry"
                " WHERE url = ? AND is_whole ORDER BY received_at DESC, id DESC",
                (self._digest(url),),
            )
            for identity, status, kept_headers, requested_at, received_at, pieces, selecting in rows:
                chosen_by = {
                    name: each for name, each in json.loads(selecting).items() if name not in leaving_out
                }
                if not self._fits(chosen_by, headers, personal.keys() - leaving_out):
                    continue
                pairs = tuple((name, value) for name, value in json.loads(kept_headers))
                kept = StoredHead(status, pairs, requested_at, received_at)
                body = self._read(file, identity, 0) if pieces == 1 else b"" if pieces == 0 else None
                self._used[identity] = self._clock()
                return CacheEntry(identity, kept, pieces, body)
            return None

        found = await self._do(work)
        if len(self._used) >= _USES_AT_ONCE:
            await self._do(self._write_uses)
        return found

    async def read(self, entry: CacheEntry) -> bytes | None:
        """Return the whole body, or None when the answer is no longer there."""
        if entry.body is not None:
            return entry.body

        def work(file: sqlite3.Connection) -> bytes | None:
            with _transaction(file, "DEFERRED"):
                pieces = [self._read(file, entry.id, number) for number in range(entry.pieces)]
            return None if None in pieces else b"".join(piece for piece in pieces if piece is not None)

        return await self._do(work)

    async def piece(self, entry: CacheEntry, number: int) -> bytes | None:
        """Return one piece of a body, or None when the answer is no longer there."""
        return await self._do(lambda file: self._read(file, entry.id, number))

    async def put(self, chosen: Chosen, kept: StoredHead, body: bytes) -> None:
        """Store an answer in place of the one that was stored for the same."""

        def work(file: sqlite3.Connection) -> None:
            with _transaction(file):
                identity = self._insert(file, chosen, kept)
                pieces = [body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES)]
                for number, piece in enumerate(pieces):
                    self._append(file, identity, number, piece)
                self._finish(file, identity)

        await self._do(work)

    async def begin(self, chosen: Chosen, kept: StoredHead) -> int:
        """Begin an answer that comes in pieces. It is not found before it is whole."""

        def work(file: sqlite3.Connection) -> int:
            with _transaction(file):
                return self._insert(file, chosen, kept)

        return await self._do(work)

    async def append(self, identity: int, number: int, piece: bytes) -> None:
        def work(file: sqlite3.Connection) -> None:
            with _transaction(file):
                self._append(file, identity, number, piece)

        await self._do(work)

    async def finish(self, identity: int) -> None:
        """Make an answer that has all its pieces visible."""

        def work(file: sqlite3.Connection) -> None:
            with _transaction(file):
                self._finish(file, identity)

        await self._do(work)

    async def drop(self, identity: int) -> None:
        await self._do(lambda file: _change(file, "DELETE FROM entry WHERE id = ?", identity))

    async def renew(self, entry: CacheEntry, kept: StoredHead) -> None:
        """Keep new headers and times for an answer that its server has confirmed."""
        change = "UPDATE entry SET headers = ?, requested_at = ?, received_at = ? WHERE id = ?"
        values = (json.dumps(kept.headers), kept.requested_at, kept.received_at, entry.id)
        await self._do(lambda file: _change(file, change, *values))

    async def forget(self, url: str) -> None:
        """Drop every answer of a URL."""
        await self._do(lambda file: _change(file, "DELETE FROM entry WHERE url = ?", self._digest(url)))

    async def close(self) -> None:
        """Note the latest uses, and close the file for good, also when this is cancelled."""
        self._is_closed = True
        await run_shielded(self._close())

    async def _close(self) -> None:
        async with self._opening:
            worker, self._worker = self._worker, None
        if worker is None:
            return
        try:
            with suppress(sqlite3.Error):  # a use that is not noted does no harm
                await worker.call(self._write_uses, interruptible=False)
        finally:
            await worker.close()

    async def _do(self, work: SqliteWork[T]) -> T:
        async with self._opening:
            if self._is_closed:
                raise CacheError(f"{shown_path(self.path)}: the HTTP cache is closed")
            if self._worker is None:
                self._worker = await SqliteWorker.open(lambda: self._explaining(self._open))
            worker = self._worker
        return await worker.call(lambda file: self._explaining(lambda: work(file)), interruptible=False)

    # --- on the thread --------------------------------------------------------------------------

    def _explaining(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except (sqlite3.Error, zlib.error, OSError) as error:
            raise self._explained(error) from error

    def _explained(self, error: Exception) -> CacheError:
        shown = shown_path(self.path)
        code = getattr(error, "sqlite_errorname", "")
        if not isinstance(error, zlib.error) and not code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            return CacheError(f"{shown}: the HTTP cache cannot be used: {error}")
        damaged = CacheError(
            f"{shown}: the HTTP cache is damaged ({error}); delete the file to begin a new one"
        )
        damaged.is_damaged = True
        return damaged

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))  # pages are nobody else's to read
        file = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            with _transaction(file):
                self._check(file)
            with suppress(sqlite3.OperationalError):  # another process is about to do the same
                file.execute("PRAGMA journal_mode = WAL")
            file.execute("PRAGMA synchronous = NORMAL")
            (self._salt,) = file.execute("SELECT salt FROM about").fetchone()
            before = self._clock() - _ABANDONED_SECONDS
            _change(file, "DELETE FROM entry WHERE NOT is_whole AND used_at < ?", before)
        except BaseException:
            file.close()
            raise
        return file

    def _check(self, file: sqlite3.Connection) -> None:
        """Make the tables of a new file; refuse one that is not ours."""
        application = file.execute("PRAGMA application_id").fetchone()[0]
        version = file.execute("PRAGMA user_version").fetchone()[0]
        if (application, version) == (_APPLICATION, _VERSION):
            return
        if application or version or file.execute("SELECT 1 FROM sqlite_master").fetchone():
            whose = "another version of aioflow" if application == _APPLICATION else "something else"
            error = CacheError(
                f"{shown_path(self.path)}: this file is of {whose}; "
                "delete it, or name another under [http] cache"
            )
            error.is_damaged = True
            raise error
        for statement in _statements(_SCHEMA):
            file.execute(statement)
        file.execute("INSERT INTO about VALUES (?, 0)", (token_bytes(16),))
        file.execute(f"PRAGMA application_id = {_APPLICATION}")
        file.execute(f"PRAGMA user_version = {_VERSION}")

    def _digest(self, text: str) -> bytes:
        return blake2b(text.encode("utf-8", "surrogatepass"), key=self._salt, digest_size=16).digest()

    def _fits(
        self, selecting: Mapping[str, str | None], headers: Mapping[str, str], personal: Set[str]
    ) -> bool:
        if not selecting.keys() >= personal:
            return False
        return all(self._selected(headers.get(name)) == digest for name, digest in selecting.items())

    def _selected(self, value: str | None) -> str | None:
        return None if value is None else self._digest(value.strip()).hex()

    def _read(self, file: sqlite3.Connection, identity: int, number: int) -> bytes | None:
        row = file.execute("SELECT data FROM piece WHERE entry = ? AND number = ?", (identity, number))
        found = row.fetchone()
        return None if found is None else zlib.decompress(found[0])

    def _insert(self, file: sqlite3.Connection, chosen: Chosen, kept: StoredHead) -> int:
        selecting = {name: self._selected(value) for name, value in sorted(chosen.selecting.items())}
        headers = json.dumps(kept.headers)
        values = (self._digest(chosen.url), json.dumps(selecting), kept.status, headers, kept.requested_at)
        more = (kept.received_at, self._clock(), _ROW_BYTES + len(headers))
        inserted = file.execute(
            "INSERT INTO entry (url, selecting, status, headers, requested_at, received_at, used_at, size,"
            " pieces, is_whole) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0)",
            (*values, *more),
        )
        assert inserted.lastrowid is not None
        return inserted.lastrowid

    def _append(self, file: sqlite3.Connection, identity: int, number: int, piece: bytes) -> None:
        data = zlib.compress(piece)
        file.execute("INSERT INTO piece VALUES (?, ?, ?)", (identity, number, data))
        file.execute(
            "UPDATE entry SET size = size + ?, pieces = pieces + 1 WHERE id = ?", (len(data), identity)
        )

    def _finish(self, file: sqlite3.Connection, identity: int) -> None:
        """Replace what was stored for the same, and keep to the limits."""
        file.execute("UPDATE entry SET is_whole = 1 WHERE id = ?", (identity,))
        file.execute(
            "DELETE FROM entry WHERE is_whole AND id != ? AND (url, selecting) ="
            " (SELECT url, selecting FROM entry WHERE id = ?)",
            (identity, identity),
        )
        file.execute(
            "DELETE FROM entry WHERE id IN (SELECT id FROM entry WHERE is_whole AND url ="
            " (SELECT url FROM entry WHERE id = ?) ORDER BY received_at DESC, id DESC LIMIT -1 OFFSET ?)",
            (identity, MOST_VARIANTS),
        )
        self._write_uses(file)
        self._make_room(file)

    def _make_room(self, file: sqlite3.Connection) -> None:
        total = file.execute("SELECT bytes FROM about").fetchone()[0]
        if total <= self.most_bytes:
            return
        oldest = file.execute("SELECT id, size FROM entry WHERE is_whole ORDER BY used_at, id")
        gone = []
        for identity, size in oldest:
            if total <= self.most_bytes * _FULL_SHARE:
                break
            gone.append((identity,))
            total -= size
        file.executemany("DELETE FROM entry WHERE id = ?", gone)

    def _write_uses(self, file: sqlite3.Connection) -> None:
        used, self._used = self._used, {}
        if used:
            changes = [(when, identity) for identity, when in used.items()]
            file.executemany("UPDATE entry SET used_at = ? WHERE id = ?", changes)


@contextmanager
def _transaction(file: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    file.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        if file.in_transaction:
            file.execute("ROLLBACK")
        raise
    file.execute("COMMIT")


def _change(file: sqlite3.Connection, statement: str, *values: Any) -> None:
    file.execute(statement, values)


def _statements(script: str) -> Iterator[str]:
    """Yield the statements of a script one by one: `executescript` would end the transaction."""
    text = ""
    for line in script.splitlines():
        text += line + "\n"
        if sqlite3.complete_statement(text):
            yield text
            text = ""
