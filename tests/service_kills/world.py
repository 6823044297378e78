"""The home of services that are killed: configuration, tasks, source, databases, and those who are told."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal, TypeAlias, TypeVar

from aioflow.config.configuration import read_configuration
from aioflow.service.actions import LocalActions
from aioflow.service.home import open_service_database
from tests.cli.program import environment, own_folders
from tests.clocks import PATIENCE_SECONDS
from tests.kills.receivers import PASSWORD, USER, Receipt, Receivers
from tests.kills.source import Source
from tests.kills.stores import PostgresStore, SqliteStore, Store
from tests.servers.postgres import Postgres
from tests.servers.smtp import CA_FILE

T = TypeVar("T")
Kind: TypeAlias = Literal["sqlite", "postgresql"]

WATCH, TICK = "watch", "tick"
# The tasks are due at every multiple of so many seconds.
STEPS: Mapping[str, int] = {WATCH: 1, TICK: 2}
STOP_AT = "AIOFLOW_TEST_STOP_AT"  # read by tests/service_kills/process.py

_HERE = Path(__file__).parent
_LOOK_SECONDS = 0.05
_LOCKED_SECONDS = 5.0
_CONFIGURATION = """
[service]
database = "tasks"
lease_seconds = 2
late_spread_seconds = 0

[database.default]
url = "{url}"

[database.tasks]
url = "{tasks_url}"

[outbox]
lease_seconds = 5
retry_base_seconds = 0.5

[email.default]
url = "smtp+starttls://{user}@localhost:{smtp}"
from = "watcher@example.org"
password = "secret:MAIL"
ca = "{ca}"
"""


@dataclass
class World:
    """A home with two tasks, which any number of services may serve."""

    folder: Path
    kind: Kind
    receivers: Receivers
    random: Random
    postgres: Callable[[], Postgres]
    services: list[Service] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.home = self.folder / "home"
        plans = self.home / "plans"
        plans.mkdir(parents=True)
        for path in _HERE.glob("*.plan"):
            shutil.copy(path, plans)
        self.source = Source(plans / "houses.jsonl", self.random)
        self.source.advance(3)
        self.log = self.folder / "services.log"
        self._open_stores()
        self._before = len(self.receivers.mails())

    def _open_stores(self) -> None:
        """The tasks have a file of their own; on a server they share the database of the plans."""
        if self.kind == "sqlite":
            self.plans: Store = SqliteStore(self.folder / "plans-db")
            self.tasks: Store = SqliteStore(self.folder / "tasks-db")
        else:
            self.plans = self.tasks = PostgresStore(self.postgres())
        (self.home / "aioflow.toml").write_text(
            _CONFIGURATION.format(
                url=self.plans.url,
                tasks_url=self.tasks.url,
                user=USER,
                smtp=self.receivers.smtp_port,
                ca=CA_FILE,
            )
        )

    def close(self) -> None:
        for service in self.services:
            service.kill()
        self.plans.close()

    # --- services -------------------------------------------------------------------------------

    def start(self, *, kill_at: str | None = None, stop_at: str | None = None) -> Service:
        """Start a service as people do, and have it end or stop itself at a moment."""
        variables = {
            **own_folders(self.folder),
            "AIOFLOW_SECRET_MAIL": PASSWORD,
            **({"AIOFLOW_KILL_AT": kill_at} if kill_at else {}),
            **({STOP_AT: stop_at} if stop_at else {}),
        }
        module = "tests.service_kills.process" if stop_at else "aioflow"
        with self.log.open("ab") as output:
            service = Service(
                subprocess.Popen(
                    [sys.executable, "-m", module, "serve", "--home", str(self.home), "--port", "0", "-v"],
                    env=environment(**variables),
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
            )
        self.services.append(service)
        return service

    def last_words(self) -> str:
        """The last lines of the services."""
        return self.log.read_text(errors="replace")[-2000:] if self.log.exists() else ""

    # --- tasks ----------------------------------------------------------------------------------

    def add_tasks(self) -> None:
        """Add the tasks; both are due from now on."""

        async def add(actions: LocalActions) -> None:
            inputs = {"ticks": [{"number": 1}]}
            for name, more in ((WATCH, {}), (TICK, {"inputs": inputs})):
                task: dict[str, Any] = {
                    "name": name,
                    "plan": f"{name}.plan",
                    "schedule": f"every {STEPS[name]}s",
                }
                await actions.add_task(task | more)

        self._act(add)

    def pause_tasks(self) -> None:
        """Have no more times come due."""

        async def pause(actions: LocalActions) -> None:
            for name in STEPS:
                await actions.pause_task(name)

        self._act(pause)

    def _act(self, work: Callable[[LocalActions], Awaitable[T]]) -> T:
        async def main() -> T:
            configuration = read_configuration(self.home, {})
            actions = LocalActions(self.home, configuration, open_service_database(configuration, self.home))
            try:
                return await work(actions)
            finally:
                await actions.close()

        return asyncio.run(main())

    # --- changes and their effects --------------------------------------------------------------

    def advance(self) -> None:
        """Change the source. A house changes or goes only after its last change was seen."""
        seen = set(rows_now(self.plans, "select url, price from houses") or ())
        settled = [url for url, price in self.source.houses.items() if (url, price) in seen]
        self.source.advance(2, 1, int(self.random.random() < 0.5), among=settled)

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for services to do something."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"it takes too long: {what}\n{self.last_words()}"
            time.sleep(_LOOK_SECONDS)

    def is_all_told(self) -> bool:
        """Whether the table shows the source, and neither a message nor a request waits any more."""
        stored = dict(rows_now(self.plans, "select url, price from houses") or ())
        waiting = rows_now(
            self.plans,
            "select key from aioflow_outbox where state in ('waiting', 'sending') "
            "union all select request_id from aioflow_task_requests limit 1",
        )
        return stored == self.source.houses and waiting == []

    def is_idle(self) -> bool:
        """Whether no run is under way and none waits."""
        open_states = "('waiting', 'running')"
        found = rows_now(
            self.tasks, f"select 1 from aioflow_occurrences where state in {open_states} limit 1"
        )
        return found == []

    def receipts(self) -> list[Receipt]:
        """The messages that this world's services have sent, in order."""
        return self.receivers.mails()[self._before :]


@dataclass
class Service:
    """A process of `aioflow serve`."""

    process: subprocess.Popen[bytes]

    def ended(self) -> int | None:
        """Return the exit code, -9 for a process that was killed, or None while it runs."""
        return self.process.poll()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Stop it in order; return its exit code."""
        self.process.terminate()
        return self.process.wait(PATIENCE_SECONDS)

    def suspend(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    @property
    def is_suspended(self) -> bool:
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"


def rows_now(store: Store, sql: str) -> list[tuple[Any, ...]] | None:
    """Return what a query gives while services work on a database; nothing if there is no such table yet.

    Return None if the file stays locked: a service that is stopped while it recovers the file's journal
    keeps everybody out until it goes on.
    """
    if not store.url.startswith("sqlite:"):
        return store.rows(sql)
    path = store.url.partition(":")[2]
    deadline = time.monotonic() + _LOCKED_SECONDS
    while Path(path).exists():
        try:
            with closing(sqlite3.connect(f"file:{path}?mode=rw", uri=True)) as database:
                return database.execute(sql).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return []
            if time.monotonic() > deadline:
                return None
            # A service has it locked, or is about to make it.
            time.sleep(_LOOK_SECONDS)
    return []
