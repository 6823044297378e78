"""Jobs in a folder: an SQLite database for each, with its records and what is needed to begin it again.

Records are committed in groups: the first one at once, those that follow closely together. Each commit is
synchronous, so that neither a crash nor a power cut takes it back.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from shutil import rmtree
from time import monotonic
from typing import Any
from uuid import uuid4

import msgspec

from aioflow.config.folders import shown_path
from aioflow.errors import InputError
from aioflow.jobs.exchange import ExchangeStatistics, StageRecord
from aioflow.runtime.sqlite import SqliteWorker
from aioflow.state.crash_points import moment

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DATABASE, _LOCK = "job.db", "lock.db"
_VERSION = 1
_GROUP_SECONDS = 0.25
_GROUP_RECORDS = 256
_GROUP_CHARACTERS = 2_000_000  # of texts: a group is in memory until it is stored
# Whoever only looks at a job has its lock for a moment.
_LOCK_SECONDS = 2.0

_PUT = moment("job record put", "a call under a job has ended, and its record waits for its group")
_STORED = moment("job records stored", "a group of records of a job is durable")
_NOTING = moment("job outcome known", "a job begins an attempt, or its run has ended, and neither is noted")
_NOTED = moment("job noted", "the state of a job is noted in its folder")

_TABLES = (
    "CREATE TABLE IF NOT EXISTS job (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS records (key BLOB PRIMARY KEY, failed INTEGER NOT NULL, host TEXT NOT NULL, "
    "record TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS claims (claimed_by TEXT NOT NULL, key BLOB NOT NULL, "
    "PRIMARY KEY (claimed_by, key)) WITHOUT ROWID",
)


class JobError(InputError):
    """A job cannot be begun, continued or found."""


class JobState(StrEnum):
    """What became of a job so far; one that is running says so while its process lives."""

    RUNNING = "running"
    STOPPED = "stopped"
    FAILED = "failed"
    FINISHED = "finished"


class JobDescription(msgspec.Struct, frozen=True, kw_only=True):
    """What a job is, and how it is begun again. `fingerprint` tells the inputs of one job from another's."""

    plan: str
    arguments: Sequence[str] = ()  # of the command that began it
    folder: str = ""  # in which it was begun
    fingerprint: str = ""
    run_id: str = msgspec.field(default_factory=lambda: uuid4().hex)
    created: str = ""
    attempts: int = 0
    began: str = ""  # the latest attempt
    known: int = 0  # requests that were known before it
    state: JobState = JobState.RUNNING
    changed: str = ""
    error: str = ""
    process: int = 0
    offset: int | None = None  # of the file that -o appends to, when the job began


class JobStore:
    """One job that is open: this process alone works on it. An `Exchange`."""

    def __init__(self, folder: Path, worker: SqliteWorker, lock: sqlite3.Connection, is_new: bool) -> None:
        self.folder = folder
        self._worker = worker
        self._lock = lock
        self._unstored: dict[bytes, StageRecord] = {}
        self._storing: dict[bytes, StageRecord] = {}
        self._claimed: dict[str, int] = {}  # keys of each group, in all attempts
        self._unstored_claims: set[tuple[str, bytes]] = set()
        self._unstored_characters = 0
        self._latest_store = 0.0
        # Records of this attempt are not looked for: none of them is asked for twice, but by chance.
        self._has_earlier = not is_new

    @classmethod
    async def open(cls, folder: Path, lock_seconds: float = _LOCK_SECONDS) -> JobStore:
        """Open a job, and make it if there is none; a JobError if another process works on it."""
        lock = _locked(folder, lock_seconds)
        try:
            is_new = not (folder / _DATABASE).exists()
            worker = await SqliteWorker.open(lambda: _connected(folder / _DATABASE))
        except BaseException:
            lock.close()
            raise
        return cls(folder, worker, lock, is_new)

    async def close(self) -> None:
        """Store what waits, and let go of the job."""
        try:
            await self.flush()
        finally:
            await self._worker.close()
            self._lock.close()

    # --- the description ------------------------------------------------------------------------

    async def description(self) -> JobDescription | None:
        return await self._worker.call(_read_description, interruptible=False)

    async def describe(self, description: JobDescription) -> None:
        """Store the description of the job."""
        _NOTING()
        stamped = msgspec.structs.replace(description, changed=_now())
        await self._worker.call(
            lambda connection: _write_description(connection, stamped), interruptible=False
        )
        _NOTED()

    async def begin_attempt(self, description: JobDescription) -> JobDescription:
        """Note that an attempt begins, and what was known before it."""
        known = await self.statistics()
        begun = msgspec.structs.replace(
            description,
            attempts=description.attempts + 1,
            state=JobState.RUNNING,
            error="",
            began=_now(),
            known=known.done + known.failed,
        )
        await self.describe(begun)
        return begun

    async def clear(self) -> None:
        """Forget all records and claims, for a job that has become another one."""
        await self._worker.call(_clear, interruptible=False)

    # --- the exchange ---------------------------------------------------------------------------

    async def find(self, key: bytes) -> StageRecord | None:
        """Return the record of a key, if there is one."""
        if not self._has_earlier:
            return None
        waiting = self._unstored.get(key) or self._storing.get(key)
        if waiting is not None:
            return waiting
        text = await self._worker.call(lambda connection: _found(connection, key), interruptible=False)
        return None if text is None else StageRecord.decoded(text)

    async def put(self, key: bytes, record: StageRecord) -> None:
        """Store a record, unless the key has one."""
        self._unstored.setdefault(key, record)
        self._unstored_characters += record.characters
        _PUT()
        is_full = len(self._unstored) >= _GROUP_RECORDS or self._unstored_characters >= _GROUP_CHARACTERS
        if is_full or monotonic() - self._latest_store > _GROUP_SECONDS:
            await self.flush()

    async def flush(self) -> None:
        """Make everything durable that was put."""
        if not self._unstored and not self._unstored_claims:
            return
        self._latest_store = monotonic()
        group, self._unstored = self._unstored, {}
        self._unstored_characters = 0
        claims, self._unstored_claims = self._unstored_claims, set()
        self._storing |= group
        try:
            await self._worker.call(lambda connection: _store(connection, group, claims), interruptible=False)
        except sqlite3.Error as error:
            raise JobError(f"the records of the job {self.folder.name} cannot be stored: {error}") from error
        for key in group:
            self._storing.pop(key, None)
        _STORED()

    async def claim(self, group: str, keys: Sequence[bytes], most: int | None = None) -> list[bool]:
        """Claim keys for a group, at most so many in all; return of each whether the group has it."""
        if group not in self._claimed:
            self._claimed[group] = await self._worker.call(
                lambda connection: _count_claims(connection, group), interruptible=False
            )
        known: set[bytes] = set()
        if self._has_earlier:
            known = await self._worker.call(
                lambda connection: _known_claims(connection, group, keys), interruptible=False
            )
        return [key in known or self._claim_one(group, key, most) for key in keys]

    def _claim_one(self, group: str, key: bytes, most: int | None) -> bool:
        if (group, key) in self._unstored_claims:
            return True
        if most is not None and self._claimed[group] >= most:
            return False
        self._claimed[group] += 1
        self._unstored_claims.add((group, key))
        return True

    async def statistics(self) -> ExchangeStatistics:
        return await self._worker.call(_counted, interruptible=False)


# --- functions on the connection ----------------------------------------------------------------


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {_VERSION}")
    return connection


def _locked(folder: Path, seconds: float = _LOCK_SECONDS) -> sqlite3.Connection:
    """Return a connection that locks the job as long as it is open: the system ends that with the process."""
    folder.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(
        folder / _LOCK, timeout=seconds, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        connection.close()
        raise JobError(
            f"the job {folder.name} is being worked on by another process: wait for it, or "
            f"`aioflow job stop {folder.name}`"
        ) from error
    return connection


def is_worked_on(folder: Path) -> bool:
    """Return whether a process works on the job."""
    try:
        _locked(folder, 0).close()
    except JobError:
        return True
    return False


def _read_description(connection: sqlite3.Connection) -> JobDescription | None:
    found = connection.execute("SELECT value FROM job WHERE name = 'description'").fetchone()
    return None if found is None else msgspec.json.decode(found[0], type=JobDescription)


def _write_description(connection: sqlite3.Connection, description: JobDescription) -> None:
    text = msgspec.json.encode(description).decode()
    connection.execute("INSERT OR REPLACE INTO job VALUES ('description', ?)", (text,))


def _clear(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for table in ("job", "records", "claims"):
        connection.execute(f"DELETE FROM {table}")
    connection.execute("COMMIT")


def _found(connection: sqlite3.Connection, key: bytes) -> str | None:
    found = connection.execute("SELECT record FROM records WHERE key = ?", (key,)).fetchone()
    return None if found is None else str(found[0])


def _store(
    connection: sqlite3.Connection, group: Mapping[bytes, StageRecord], claims: Iterable[tuple[str, bytes]]
) -> None:
    # One after the other: a group may have hundreds of large pages.
    rows = (
        (key, int(record.failure is not None), record.host, record.encoded()) for key, record in group.items()
    )
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.executemany("INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?)", rows)
        connection.executemany("INSERT OR IGNORE INTO claims VALUES (?, ?)", claims)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _count_claims(connection: sqlite3.Connection, group: str) -> int:
    (count,) = connection.execute("SELECT count(*) FROM claims WHERE claimed_by = ?", (group,)).fetchone()
    return int(count)


def _known_claims(connection: sqlite3.Connection, group: str, keys: Sequence[bytes]) -> set[bytes]:
    query = "SELECT 1 FROM claims WHERE claimed_by = ? AND key = ?"
    return {key for key in keys if connection.execute(query, (group, key)).fetchone() is not None}


def _counted(connection: sqlite3.Connection) -> ExchangeStatistics:
    done, failed = connection.execute("SELECT count(*), ifnull(sum(failed), 0) FROM records").fetchone()
    hosts = connection.execute(
        "SELECT host, count(*) FROM records WHERE host <> '' GROUP BY host ORDER BY 2 DESC"
    )
    return ExchangeStatistics(done - failed, failed, dict(hosts.fetchall()))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# --- the folder of all jobs ---------------------------------------------------------------------


class JobFolder:
    """All jobs of a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    def of(self, name: str) -> Path:
        """Return the folder of a job; a JobError for a name that is none."""
        if not _NAME.fullmatch(name):
            raise JobError(f"{name!r} is no name of a job: letters, digits, '.', '-' and '_', at most 100")
        return self.path / name

    def names(self) -> list[str]:
        with suppress(OSError):
            return sorted(each.name for each in self.path.iterdir() if (each / _DATABASE).is_file())
        return []

    def look(self, name: str) -> tuple[JobDescription, ExchangeStatistics, bool]:
        """Return what a job is, what it has done, and whether a process works on it; without opening it."""
        folder = self.of(name)
        if not (folder / _DATABASE).is_file():
            known = ", ".join(self.names()) or "none"
            raise JobError(f"there is no job {name} in {shown_path(self.path)} (jobs: {known})")
        connection = sqlite3.connect(f"{(folder / _DATABASE).as_uri()}?mode=ro", uri=True)
        try:
            description = _read_description(connection)
            if description is None:
                raise JobError(f"the job {name} was never begun: `aioflow job forget {name}`")
            return description, _counted(connection), is_worked_on(folder)
        except sqlite3.Error as error:
            raise JobError(f"the job {name} cannot be read: {error}") from error
        finally:
            connection.close()

    def forget(self, name: str) -> None:
        """Delete a job and its records."""
        folder = self.of(name)
        if not folder.is_dir():
            raise JobError(f"there is no job {name} in {shown_path(self.path)}")
        _locked(folder).close()
        rmtree(folder)


def fingerprint_of(*parts: Any) -> str:
    """Return a text that tells these things from others."""
    from hashlib import blake2b

    return blake2b(json.dumps(parts, sort_keys=True, default=str).encode(), digest_size=8).hexdigest()
