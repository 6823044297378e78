"""The databases of the harness, as its oracle looks at them: from outside, and without aioflow."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from tests.clocks import PATIENCE_SECONDS
from tests.servers.postgres import Postgres

_EXPIRE = "update aioflow_outbox set leased_until = '2000-01-01T00:00:00.000000Z' where state = 'sending'"
_RELEASE = (
    "update aioflow_outbox set state = 'waiting', leased_by = null, leased_until = null "
    "where state = 'sending'"
)


class Store(Protocol):
    """A database that the plan writes to."""

    url: str

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What a query gives; nothing when there is no such table yet."""
        ...

    def settle(self) -> None:
        """Wait until nothing of a killed process is under way any more."""
        ...

    def expire_leases(self) -> None:
        """Let so much time pass that the leases of the dead have run out."""
        ...

    def release_leases(self) -> None:
        """Have the leases of the dead ended, without the seconds that taking each over needs."""
        ...

    def problems(self) -> list[str]:
        """What is not as it should be when nobody uses the database."""
        ...

    def close(self) -> None: ...


class SqliteStore:
    """A file in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self._path = folder / "state.db"
        self.url = f"sqlite:{self._path}"

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self._copy() as path, closing(sqlite3.connect(path)) as database:
            try:
                return database.execute(sql).fetchall()
            except sqlite3.OperationalError as error:
                if "no such table" not in str(error):
                    raise
                return []

    def settle(self) -> None:
        pass

    def expire_leases(self) -> None:
        self._change_leases(_EXPIRE)

    def release_leases(self) -> None:
        self._change_leases(_RELEASE)

    def _change_leases(self, sql: str) -> None:
        if self.rows("select 1 from aioflow_outbox where state = 'sending'"):
            with closing(sqlite3.connect(self._path)) as database, database:
                database.execute(sql)

    def problems(self) -> list[str]:
        found = [text for (text,) in self.rows("pragma integrity_check") if text != "ok"]
        names = {path.name for path in self._folder.iterdir()} - {self._path.name}
        left = sorted(name for name in names if ".version-" not in name)  # a copy before an upgrade stays
        with closing(sqlite3.connect(self._path, timeout=0)) as database:
            database.execute("begin immediate")  # no lock is left
        return found + [f"left beside the database: {name}" for name in left]

    def close(self) -> None:
        pass

    @contextmanager
    def _copy(self) -> Iterator[Path]:
        """To look at: opening the file itself would repair what a later run of aioflow must repair."""
        with tempfile.TemporaryDirectory() as folder:
            for path in self._folder.glob("state.db*"):
                if not path.name.endswith("-shm"):
                    shutil.copy(path, folder)
            yield Path(folder) / "state.db"


class PostgresStore:
    """A database of a server."""

    def __init__(self, server: Postgres) -> None:
        self._server = server
        self.url = server.create_database()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        import asyncpg

        try:
            return self._server.run(sql, url=self.url)
        except asyncpg.UndefinedTableError:
            return []

    def settle(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._sessions():
            assert time.monotonic() < deadline, f"sessions are left: {self._sessions()}"

    def expire_leases(self) -> None:
        self.rows(_EXPIRE)

    def release_leases(self) -> None:
        self.rows(_RELEASE)

    def problems(self) -> list[str]:
        return [f"a session is left: {session}" for session in self._sessions()]

    def close(self) -> None:
        self._server.drop_database(self.url)

    def _sessions(self) -> list[tuple[Any, ...]]:
        return self.rows(
            "select state, query from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid() and client_port is not null"
        )
