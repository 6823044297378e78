"""The databases of tasks between their runs: messages that are due leave, requests of plans are taken over.

A database is looked at after each run of its tasks, and from time to time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from aioflow.config.configuration import Configuration
from aioflow.config.masking import masked_logger
from aioflow.errors import AioflowError
from aioflow.messages.outbox.courier import Report, deliver_due, next_due, stuck_messages
from aioflow.messages.outbox.rows import StuckMessages
from aioflow.messages.outbox.settings import OUTBOX
from aioflow.service.requests import take_over_requests
from aioflow.service.runner import Runner
from aioflow.service.store.database import ServiceDatabase
from aioflow.service.task import Task
from aioflow.state.databases import Databases
from aioflow.state.driver import Address
from aioflow.state.system_tables import are_there
from aioflow.values.quantities import count_text, duration_text

_LOG = masked_logger("aioflow.service")
# A database is looked at again after this time, even if no task of it ran: other processes write to it too.
_EACH_SECONDS = 20.0
_DELIVER_SECONDS = 30.0
_DATABASES_AT_ONCE = 8


class _WatchedDatabase(msgspec.Struct):
    address: Address
    next_look: datetime
    stuck: list[StuckMessages] | None = None  # None: not looked at yet


class WatchedDatabases:
    """Every database that tasks write to, those of the configuration, and the task database itself."""

    def __init__(
        self,
        runner: Runner,
        database: ServiceDatabase,
        configuration: Configuration,
        home: Path,
        *,
        clock: Callable[[], datetime] | None,
        poll_seconds: float,
    ) -> None:
        self._runner = runner
        self._database = database
        self._configuration = configuration
        self._home = home
        self._clock = clock
        self._poll_seconds = poll_seconds
        self._watched: dict[str, _WatchedDatabase] = {}
        self._known: dict[str, Address | None] = {}  # by the parts of tasks that decide on it
        self._tasks: Sequence[Task] = ()
        self._are_new = True
        self._changed = asyncio.Event()
        self._looking = asyncio.Semaphore(_DATABASES_AT_ONCE)

    def look_at(self, task: Task, *, own_too: bool) -> None:
        """Look soon at the database of a task, of which a run has ended, and perhaps at the task database."""
        address = self._known.get(_kind(task))
        urls = [None if address is None else address.url, self._database.address.url if own_too else None]
        for watched in map(self._watched.get, filter(None, urls)):
            if watched is not None:
                watched.next_look = self._now()
        self._changed.set()

    def addresses(self) -> list[Address]:
        return [each.address for each in self._watched.values()]

    async def keep(self) -> None:
        """Look at the databases whose time has come, and wait for the next."""
        await self._find_databases()
        due = [each for each in self._watched.values() if each.next_look <= self._now()]
        async with asyncio.TaskGroup() as group:
            for watched in due:
                watched.next_look = self._now() + timedelta(seconds=_EACH_SECONDS)
                group.create_task(self._look_in_turn(watched))
        self._changed.clear()
        try:
            async with asyncio.timeout(self._poll_seconds):
                await self._changed.wait()
        except TimeoutError:
            pass

    async def _look_in_turn(self, watched: _WatchedDatabase) -> None:
        async with self._looking:
            try:
                await self._look(watched)
            except (AioflowError, OSError) as error:
                _LOG.warning("%s: %s", watched.address.shown, error)

    def set_tasks(self, tasks: Sequence[Task]) -> None:
        """Watch the databases of these tasks from now on."""
        self._tasks = tasks
        self._are_new = True
        kinds = set(map(_kind, tasks))
        self._known = {kind: address for kind, address in self._known.items() if kind in kinds}

    async def _find_databases(self) -> None:
        """Add the databases of new tasks and of the configuration."""
        if not self._are_new:
            return
        self._are_new = False
        self._add(self._database.address)
        for name in self._databases.names:
            self._add(self._databases.address(name, self._home))
        for task in self._tasks:
            kind = _kind(task)
            if kind not in self._known:
                self._known[kind] = await self._address_of(task)
            address = self._known[kind]
            if address is not None:
                self._add(address)

    async def _address_of(self, task: Task) -> Address | None:
        try:
            program = await self._runner.program_of(task.definition, task.version)
            return await self._runner.address_of(program, task.definition)
        except AioflowError as error:
            _LOG.warning("task %s: %s", task.name, error)
            return None

    def _add(self, address: Address) -> None:
        if address.url not in self._watched:
            self._watched[address.url] = _WatchedDatabase(address, self._now())

    async def take_over(self, task: Task) -> None:
        """Take over the requests for tasks that a run of a task has stored."""
        address = await self._address_of(task)
        if address is not None:
            await self._take_over(_WatchedDatabase(address, self._now()))

    async def _take_over(self, watched: _WatchedDatabase) -> datetime | None:
        """Take over the requests in a database; return when its next message is due, or None without any."""
        address = watched.address
        if address.is_missing:
            watched.stuck = []
            return None
        connection = await self._databases.connect(address)
        try:
            if not await are_there(connection, address):
                watched.stuck = []
                return None
            await take_over_requests(connection, address, self._database, self._runner)
            watched.stuck = await stuck_messages(connection)
            settings = self._configuration.section(OUTBOX)
            return await next_due(connection, settings, now=None if self._clock is None else self._clock())
        finally:
            await connection.close()

    async def _look(self, watched: _WatchedDatabase) -> None:
        address = watched.address
        due = await self._take_over(watched)
        now = self._now()
        if due is None:
            return
        if due > now:
            watched.next_look = min(watched.next_look, due)
            return
        # A message that was handed over is noted, also if the service ends: else it would go twice.
        report = await deliver_due(
            *(self._databases, address, self._configuration, _LOG.warning, _DELIVER_SECONDS),
            clock=self._clock,
        )
        self._log_report(address, report)

    def _log_report(self, address: Address, report: Report) -> None:
        if report.sent or report.dead:
            sent = count_text(report.sent, "message")
            _LOG.info("%s: %s delivered, %d given up", address.shown, sent, report.dead)

    @property
    def _databases(self) -> Databases:
        return self._runner.engine.services.service(Databases)

    def _now(self) -> datetime:
        return datetime.now(UTC) if self._clock is None else self._clock()

    @property
    def are_all_known(self) -> bool:
        """Whether every database was looked at since the service began."""
        return not self._are_new and all(each.stuck is not None for each in self._watched.values())

    def stuck_messages(self) -> str | None:
        """Return the reason for an alert about messages that wait for long or were given up, or None.

        The outboxes tell how long they wait: the service may have begun since, or another one may have tried.
        """
        found = (
            _stuck_text(watched.address, each, waited)
            for watched in self._watched.values()
            for each in watched.stuck or ()
            if (waited := self._waited(each)) > self._runner.settings.outbox_stuck_seconds or each.is_dead
        )
        return "; ".join(found) or None

    def _waited(self, stuck: StuckMessages) -> float:
        return 0.0 if stuck.since is None else (self._now() - stuck.since).total_seconds()


def _stuck_text(address: Address, stuck: StuckMessages, waited: float) -> str:
    number = f"{count_text(stuck.count, 'message')} in the outbox of {address.shown}"
    reason = f": {stuck.reason}" if stuck.reason else ""
    if stuck.is_dead:
        return f"{number} {'was' if stuck.count == 1 else 'were'} given up{reason}"
    return f"{number} could not leave for {duration_text(waited)}{reason}"


def _kind(task: Task) -> str:
    """Return the parts of a task that decide which database its runs write to."""
    definition = task.definition
    parameters = json.dumps(definition.parameters, sort_keys=True, default=str)
    return f"{task.version} {definition.plan_name} {definition.database} {parameters}"
