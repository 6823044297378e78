"""The file that keeps the health of wrappers from run to run: SQLite, shared by any number of processes.

It knows tables and versions; what a run's figures mean is for `health`.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aioflow.dataclass import dataclass

KEPT_RUNS = 200  # of each wrapper
_VERSION = 1
_BUSY_SECONDS = 5.0
_ATTEMPTS = 100  # to turn a new file to WAL, for which SQLite does not wait by itself
_PAUSE_SECONDS = 0.05

_TABLES = """
create table if not exists wrapper_runs (
    id integer primary key,
    wrapper text not null,
    run_id text not null,
    ended text not null,
    row_count integer not null,
    page_count integer not null,
    nulls text not null,
    is_good integer not null,
    unique (wrapper, run_id)
)
"""
_SELECT = "select run_id, row_count, page_count, nulls, is_good, ended from wrapper_runs where wrapper = ?"
_SAVE = """
insert into wrapper_runs (wrapper, run_id, row_count, page_count, nulls, is_good, ended)
values (?, ?, ?, ?, ?, ?, ?)
on conflict (wrapper, run_id) do update set
    row_count = excluded.row_count, page_count = excluded.page_count, nulls = excluded.nulls,
    is_good = excluded.is_good, ended = excluded.ended
"""
_LATEST = "select id from wrapper_runs where wrapper = ? order by id desc limit ?"
_PRUNE = f"delete from wrapper_runs where wrapper = ? and id not in ({_LATEST})"
_ACCEPT = f"update wrapper_runs set is_good = 1 where id in ({_LATEST})"


@dataclass(frozen=True)
class RunHealth:
    """What is kept of a run. It is good when nothing about it was to be told."""

    run_id: str
    rows: int
    pages: int = 0
    nulls: Mapping[str, int] = field(default_factory=dict)
    is_good: bool = True
    ended: datetime | None = None

    def share(self, column: str) -> float:
        """The share of nulls in a column."""
        return self.nulls[column] / self.rows


class UnusableFileError(Exception):
    """The file is not one that we can use."""


class HealthFile:
    """An open file; it blocks. Its methods raise `UnusableFileError`, `sqlite3.Error` or `OSError`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> HealthFile:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Its owner uses it on one thread after the other.
        file = cls(
            sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        )
        try:
            file._prepare()
        except BaseException:
            file.close()
            raise
        return file

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what happens inside, or nothing; other processes wait."""
        self._run("begin immediate")
        try:
            yield
        except BaseException:
            self._connection.rollback()
            raise
        self._run("commit")

    def good_runs(self, wrapper: str, before: str, most: int) -> list[RunHealth]:
        """The latest good runs of a wrapper, but for the one with the id `before`."""
        query = f"{_SELECT} and is_good and run_id <> ? order by id desc limit ?"
        return list(map(_run_of, self._run(query, wrapper, before, most)))

    def history(self, wrapper: str, most: int = KEPT_RUNS) -> list[RunHealth]:
        """The latest runs of a wrapper, the last one first."""
        return list(map(_run_of, self._run(f"{_SELECT} order by id desc limit ?", wrapper, most)))

    def wrappers(self) -> list[str]:
        """The wrappers that have a history."""
        return [name for (name,) in self._run("select distinct wrapper from wrapper_runs order by wrapper")]

    def save(self, wrapper: str, run: RunHealth) -> None:
        """Add a run, in place of one with its id, and let the oldest ones go."""
        ended = (run.ended or datetime.now(UTC)).isoformat(timespec="seconds")
        nulls = json.dumps(dict(run.nulls))
        self._run(_SAVE, wrapper, run.run_id, run.rows, run.pages, nulls, run.is_good, ended)
        self._run(_PRUNE, wrapper, wrapper, KEPT_RUNS)

    def accept_latest(self, wrapper: str, count: int) -> None:
        """Call the latest runs good."""
        self._run(_ACCEPT, wrapper, count)

    def forget(self, wrapper: str) -> None:
        self._run("delete from wrapper_runs where wrapper = ?", wrapper)

    def _run(self, statement: str, *values: Any) -> list[Any]:
        return self._connection.execute(statement, values).fetchall()

    def _prepare(self) -> None:
        version = self._run("pragma user_version")[0][0]
        if version > _VERSION:
            raise UnusableFileError("a newer version of aioflow made it")
        self._share()
        if version < _VERSION:
            with self.transaction():
                self._run(_TABLES)
                self._run(f"pragma user_version = {_VERSION}")

    def _share(self) -> None:
        """Readers and a writer at once; SQLite refuses the change at once while another process makes it."""
        for attempt in range(_ATTEMPTS):
            try:
                self._run("pragma journal_mode = wal")
                break
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or attempt == _ATTEMPTS - 1:
                    raise
                time.sleep(_PAUSE_SECONDS)
        self._run("pragma synchronous = normal")


def _run_of(row: Any) -> RunHealth:
    run_id, rows, pages, nulls, is_good, ended = row
    try:
        counts = {str(name): int(count) for name, count in json.loads(nulls).items()}
        return RunHealth(
            str(run_id), int(rows), int(pages), counts, bool(is_good), datetime.fromisoformat(ended)
        )
    except (ValueError, TypeError, AttributeError):
        raise UnusableFileError("it is damaged: it holds figures that nobody wrote") from None
