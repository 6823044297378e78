"""The file of latencies: a SQLite database of observations, to which any number of processes add.

Losing it costs some learning. So a file that cannot be used is reported once, and the rest goes on without.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from aioflow.config.folders import cache_folder, shown_path
from aioflow.config.masking import masked_logger
from aioflow.errors import InputError
from aioflow.restart.learning import KEPT, KEPT_DAYS, PARTS_OF_DAY, Observation
from aioflow.runtime.shielded import run_shielded
from aioflow.runtime.sqlite import SqliteWork, SqliteWorker
from aioflow.web.settings import HttpSettings

if TYPE_CHECKING:
    from aioflow.web.latencies import RestartCounts, SourceRecord

T = TypeVar("T")

FILE_NAME = "latencies.sqlite"
_APPLICATION = 0x61666C6C
_VERSION = 1
_BUSY_SECONDS = 10.0
_KEPT = KEPT * PARTS_OF_DAY  # observations of a source
_SCHEMA = """
CREATE TABLE observation (
    host TEXT NOT NULL, kind TEXT NOT NULL, at REAL NOT NULL, seconds REAL NOT NULL,
    is_answered INTEGER NOT NULL, is_again INTEGER NOT NULL);
CREATE INDEX observation_source ON observation (host, kind, at);
CREATE TABLE counts (host TEXT NOT NULL, kind TEXT NOT NULL, counts TEXT NOT NULL, PRIMARY KEY (host, kind));
"""
_LOG = masked_logger("aioflow.web")


def latency_path(settings: HttpSettings) -> Path | None:
    """Return the file of latencies: the configured one, that in the user's cache folder, or none."""
    if isinstance(settings.latencies, Path):
        return settings.latencies
    return cache_folder() / FILE_NAME if settings.latencies else None


class LatencyStore:
    """The stored observations. The file is opened at its first use; each call is a whole transaction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._worker: SqliteWorker | None = None
        self._is_usable = True

    async def load(self, record: SourceRecord) -> None:
        """Add the stored observations of a source to its record."""
        rows = await self._try(lambda file: _read(file, record.host, record.kind))
        for at, seconds, is_answered, is_again in rows or ():
            record.latencies.add(Observation(at, seconds, bool(is_answered)), again=bool(is_again))

    async def save(self, records: Sequence[SourceRecord]) -> None:
        """Add the new observations and counts of these sources."""
        added = [(record.host, record.kind, tuple(record.unsaved), record.counts) for record in records]

        def work(file: sqlite3.Connection) -> None:
            file.execute("BEGIN IMMEDIATE")
            try:
                for host, kind, unsaved, counts in added:
                    file.executemany(
                        "INSERT INTO observation VALUES (?, ?, ?, ?, ?, ?)",
                        [(host, kind, *seen, is_again) for seen, is_again in unsaved],
                    )
                    _add_counts(file, host, kind, counts)
                    _trim(file, host, kind, unsaved[-1][0].at)
                file.execute("COMMIT")
            except BaseException:
                file.execute("ROLLBACK")
                raise

        await self._try(work)

    async def close(self) -> None:
        worker, self._worker = self._worker, None
        self._is_usable = False
        if worker is not None:
            await run_shielded(worker.close())

    async def _try(self, work: SqliteWork[T]) -> T | None:
        """Return the result of `work`, or None if the file cannot be used, which is told once."""
        if not self._is_usable:
            return None
        try:
            if self._worker is None:
                self._worker = await SqliteWorker.open(lambda: _open(self.path))
            return await self._worker.call(work, interruptible=False)
        except (sqlite3.Error, OSError, InputError) as error:
            self._is_usable = False
            _LOG.warning("%s: latencies are not kept: %s", shown_path(self.path), error)
            return None


def read_records(path: Path) -> list[SourceRecord]:
    """Return the records of all sources in a file, with all of their counts."""
    from aioflow.web.latencies import RestartCounts, SourceRecord

    if not path.is_file():
        return []
    records = []
    try:
        with closing(_open(path)) as file:
            names = file.execute("SELECT DISTINCT host, kind FROM observation ORDER BY host, kind").fetchall()
            for host, kind in names:
                record = SourceRecord(host, kind)
                for at, seconds, is_answered, is_again in _read(file, host, kind):
                    record.latencies.add(Observation(at, seconds, bool(is_answered)), again=bool(is_again))
                record.counts = _counts(file, host, kind) or RestartCounts()
                records.append(record)
    except (sqlite3.Error, OSError) as error:
        raise InputError(f"{shown_path(path)}: the latencies cannot be read: {error}") from error
    return records


def _read(file: sqlite3.Connection, host: str, kind: str) -> list[tuple[float, float, int, int]]:
    return file.execute(
        "SELECT at, seconds, is_answered, is_again FROM observation WHERE host = ? AND kind = ? ORDER BY at",
        (host, kind),
    ).fetchall()


def _counts(file: sqlite3.Connection, host: str, kind: str) -> RestartCounts | None:
    from aioflow.web.latencies import RestartCounts

    found = file.execute("SELECT counts FROM counts WHERE host = ? AND kind = ?", (host, kind)).fetchone()
    return None if found is None else msgspec.json.decode(found[0], type=RestartCounts)


def _add_counts(file: sqlite3.Connection, host: str, kind: str, counts: RestartCounts) -> None:
    total = _counts(file, host, kind)
    if total is None:
        total = counts
    else:
        total.add(counts)
    file.execute(
        "INSERT OR REPLACE INTO counts VALUES (?, ?, ?)", (host, kind, json.dumps(msgspec.to_builtins(total)))
    )


def _trim(file: sqlite3.Connection, host: str, kind: str, now: float) -> None:
    file.execute(
        "DELETE FROM observation WHERE host = ? AND kind = ? AND (at < ? OR at < "
        "(SELECT at FROM observation WHERE host = ? AND kind = ? ORDER BY at DESC LIMIT 1 OFFSET ?))",
        (host, kind, now - KEPT_DAYS * 86_400.0, host, kind, _KEPT),
    )


def _open(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # which hosts are asked is the user's own affair
    file = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = NORMAL")
        file.execute("BEGIN IMMEDIATE")
        application = file.execute("PRAGMA application_id").fetchone()[0]
        version = file.execute("PRAGMA user_version").fetchone()[0]
        if (application, version) != (_APPLICATION, _VERSION):
            if application or version or file.execute("SELECT 1 FROM sqlite_master").fetchone():
                raise InputError(
                    "this file is of something else; delete it, or name another as http.latencies"
                )
            for statement in _SCHEMA.split(";"):
                file.execute(statement)
            file.execute(f"PRAGMA application_id = {_APPLICATION}")
            file.execute(f"PRAGMA user_version = {_VERSION}")
        file.execute("COMMIT")
    except BaseException:
        file.close()
        raise
    return file
