"""The service: it plans the occurrences of tasks, claims those that are due, runs them, and notes their ends.

Several services may share one task database. A lease makes a run belong to one of them; a service that does
not renew its leases is taken to be dead, and its runs pass on.
"""

from __future__ import annotations

import asyncio
import math
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from aioflow.authoring.operator import load_operators
from aioflow.config.configuration import Configuration
from aioflow.config.masking import masked_logger
from aioflow.engine import Engine
from aioflow.errors import AioflowError, InputError
from aioflow.service.alerts import Alerts, end_alerts
from aioflow.service.clockwork import Clockwork
from aioflow.service.events import EventHub, ServiceEvent
from aioflow.service.home import open_service_database
from aioflow.service.housekeeping import Housekeeping
from aioflow.service.planning import PlannedOccurrence, next_due, plan_occurrences
from aioflow.service.programs import find_newer_plan, read_plan
from aioflow.service.runner import Runner, retry_pause
from aioflow.service.settings import SERVICE
from aioflow.service.store.database import Statements
from aioflow.service.store.occurrences import (
    CANCEL_REASONS,
    CANCELLED_BY_LATER_TIME,
    Occurrence,
    RunOutcome,
    add_manual,
    add_planned,
    claim,
    claim_expired,
    claimable,
    finish,
    give_back,
    pending_of,
    put_back,
    read_occurrence,
    read_outlook,
    renew,
    request_cancel,
    skip_waiting,
)
from aioflow.service.store.services import forget_service, note_service
from aioflow.service.store.tasks import (
    find_task,
    note_outcome,
    read_revision,
    read_task,
    read_tasks,
    set_scheduled_until,
    set_state,
    store_task,
)
from aioflow.service.task import Task
from aioflow.service.task_jobs import TaskJobs
from aioflow.service.watched_databases import WatchedDatabases
from aioflow.state.crash_points import moment
from aioflow.state.databases import Databases
from aioflow.state.errors import StateError
from aioflow.telemetry import trace_runs
from aioflow.values.quantities import count_text

_LOG = masked_logger("aioflow.service")
# Changes that commands make are noticed within this time.
POLL_SECONDS = 0.5
# A run whose service ended so often is not begun again: it may be the cause.
LOST_AT_MOST = 3
_TROUBLE_PAUSE_SECONDS = 2.0

_PLANNED = moment("occurrences planned", "due times have their occurrences, no run was claimed")
_CLAIMED = moment("run claimed", "the lease of a run is durable, the run has not begun")
_RAN = moment("run ended", "a run has committed or failed, the task database does not know it yet")
_FINISHED = moment("run noted", "the end of a run is in the task database")
_TAKEN_OVER = moment("run taken over", "the lease of a dead service's run has passed on")


class _RunUnderWay(msgspec.Struct):
    occurrence: Occurrence
    work: asyncio.Task[None]
    end_reason: str = ""  # why it is ended early
    is_lost: bool = False  # its lease has passed on
    is_cancelled: bool = False  # it is not to run again


class MonitorService:
    """One service process. `serve` works until `stop` is called, and then until its runs have ended."""

    def __init__(
        self,
        home: Path,
        configuration: Configuration,
        *,
        clock: Callable[[], datetime] | None = None,
        engine: Engine | None = None,
        service_id: str | None = None,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self.home = home
        self.configuration = configuration
        self.settings = configuration.section(SERVICE)
        self.service_id = service_id or f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        self.clock = clock or _now
        self.engine = engine or Engine(
            configuration=configuration,
            registry=load_operators(configuration.ops),
            clock=self.clock,
            **configuration.engine_arguments(),
        )
        databases = self.engine.services.service(Databases)
        self.database = open_service_database(
            configuration, home, databases=databases, clock=self.clock, warn=_LOG.warning
        )
        self.jobs = TaskJobs(home, self.database, _LOG.warning)
        self.runner = Runner(self.engine, self.database, self.settings, _LOG.warning, self.jobs)
        self.events = EventHub()
        self.alerts = Alerts(self.settings, configuration, self.database, self.events)
        self.databases = WatchedDatabases(
            self.runner, self.database, configuration, home, clock=clock, poll_seconds=2 * poll_seconds
        )
        self.housekeeping = Housekeeping(self.database, self.settings, self.alerts, self.databases, self.jobs)
        self._poll_seconds = poll_seconds
        self.address = ""  # under which its REST interface is reached
        self.started: datetime | None = None
        self.tasks: dict[str, Task] = {}
        self._clockwork = Clockwork(self._task_due)
        self._due: set[str] = set()
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()
        self._look_at_leases = asyncio.Event()
        self._running: dict[str, _RunUnderWay] = {}
        self._revision = -1
        self._recovering: dict[str, _RunUnderWay] = {}

    # --- the life of a service ----------------------------------------------------------------------

    def stop(self) -> None:
        """Begin no more runs, give those under way some time, and then end."""
        self._stopping.set()
        self._wake.set()

    @property
    def is_ready(self) -> bool:
        return self.started is not None and not self._stopping.is_set()

    @property
    def running(self) -> int:
        """The number of runs under way."""
        return len(self._running)

    async def serve(self, when_ready: Callable[[], None] = lambda: None) -> None:
        """Work until the service is stopped."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.database.close)
            await stack.enter_async_context(self.engine)
            stack.enter_context(self.runner.logs.attached())
            stack.callback(trace_runs(self.engine))
            stack.callback(self.runner.watch())
            self.runner.logs.listeners.append(self._publish_line)
            await self._note_service()
            for problem in await self.alerts.problems():
                _LOG.warning("alerts cannot be sent: %s", problem)
            await self._reload()
            self._due |= self.tasks.keys()
            self._clockwork.start()
            stack.callback(self._clockwork.stop)
            self.started = self.clock()
            when_ready()
            keepers = [
                asyncio.create_task(self._keep(each))
                for each in (self._keep_leases, self.housekeeping.keep, self.databases.keep)
            ]
            try:
                await self._work()
                await self._let_runs_end()
            finally:
                await self._end(keepers)

    async def run_here(self, name: str) -> Occurrence:
        """Run a task once in this process, for a home without a service; return how it ended.

        Tasks that its plan adds or removes are taken over too.
        """
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.database.close)
            await stack.enter_async_context(self.engine)
            stack.enter_context(self.runner.logs.attached())
            stack.callback(self.runner.watch())
            async with self.database.writing() as statements:
                task = await find_task(statements, name)
                if (await pending_of(statements, task.task_id)).running:
                    raise InputError(f"a run of {task.name!r} is under way already")
                wanted = await read_occurrence(statements, await add_manual(statements, task))
                assert wanted is not None
                until = statements.now + timedelta(seconds=self.settings.lease_seconds)
                occurrence = await claim(statements, wanted, self.service_id, until, task.version)
            keeper = asyncio.create_task(self._keep(self._keep_leases))
            try:
                self._begin(task, occurrence)
                await asyncio.wait([self._running[occurrence.occurrence].work])
            finally:
                for under_way in self._running.values():  # interrupted: no service is to run it later
                    under_way.is_cancelled = True
                    under_way.end_reason = "it was interrupted"
                await self._end([keeper])
            await self.databases.take_over(task)
            async with self.database.reading() as statements:
                found = await read_occurrence(statements, occurrence.occurrence)
        assert found is not None
        return found

    async def _end(self, keepers: list[asyncio.Task[None]]) -> None:
        under_way = (*self._running.values(), *self._recovering.values())
        tasks = [*(each.work for each in under_way), *keepers]
        for each in self._running.values():
            each.end_reason = each.end_reason or "the service ended"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            async with self.database.writing() as statements:
                await forget_service(statements, self.service_id)
        except StateError as error:
            _LOG.warning("the service could not take leave of the task database: %s", error)

    async def _keep(self, work: Callable[[], Any]) -> None:
        """Do recurrent work until the service ends; trouble with a database is waited out.

        A defect is logged, and the work goes on: a service without leases or deliveries would be of no use.
        """
        while True:
            try:
                await work()
            except (AioflowError, OSError) as error:
                _LOG.warning("%s: %s", type(error).__name__, error)
                await asyncio.sleep(_TROUBLE_PAUSE_SECONDS)
            except Exception:
                _LOG.exception("a defect of aioflow")
                await asyncio.sleep(_TROUBLE_PAUSE_SECONDS)

    async def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                pause = await self._cycle()
            except AioflowError as error:
                _LOG.warning("%s", error)
                pause = _TROUBLE_PAUSE_SECONDS
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()

    async def _let_runs_end(self) -> None:
        """Wait for the runs under way, as long as the settings allow."""
        if self._running:
            _LOG.info("stopping: runs under way: %d", len(self._running))
            works = [each.work for each in self._running.values()]
            await asyncio.wait(works, timeout=self.settings.grace_seconds)

    # --- planning and claiming ----------------------------------------------------------------------

    def _task_due(self, task_id: str) -> None:
        self._due.add(task_id)
        self._wake.set()

    async def _cycle(self) -> float:
        """Plan and begin what is due; return the seconds until it is worth to look again."""
        self._clockwork.check_clock()
        async with self.database.reading() as statements:
            outlook, now = await read_outlook(statements), statements.now
        if outlook.revision != self._revision:
            await self._reload()
        if outlook.has_cancelled:
            self._look_at_leases.set()
        if outlook.next_expiry is not None and outlook.next_expiry < now:
            await self._take_over()
        waiting = outlook.next_start
        if self._due or (waiting is not None and waiting <= now and self._room):
            waiting = await self._plan_and_claim()
        if waiting is None or waiting <= now or not self._room:
            return self._poll_seconds  # runs that wait for others of their task begin when those have ended
        return min(self._poll_seconds, (waiting - now).total_seconds())

    @property
    def _room(self) -> int:
        """The number of runs that may begin."""
        return self.settings.runs - len(self._running)

    async def _reload(self) -> None:
        async with self.database.reading() as statements:
            self._revision = await read_revision(statements)
            found = await read_tasks(statements)
        before = self.tasks
        self.tasks = {task.task_id: task for task in found}
        self._clockwork.set_tasks(found)
        self.databases.set_tasks(found)
        # A task that was changed may have been due while nobody looked at its new schedule.
        self._due |= {each for each in self.tasks if each not in before}
        for task_id in self.tasks.keys() | before.keys():
            if before.get(task_id) != self.tasks.get(task_id) and self.started is not None:
                self._publish("task", task_id, "")

    async def _plan_and_claim(self) -> datetime | None:
        """Give due times their occurrences, and begin what may begin; return when more may."""
        due, self._due = self._due, set()
        begun: list[tuple[Task, Occurrence]] = []
        try:
            async with self.database.writing() as statements:
                for task_id in due:
                    await self._plan(statements, task_id)
                _PLANNED()
                begun = await self._claim(statements)
                waiting = (await read_outlook(statements)).next_start
            if begun:
                _CLAIMED()
        except BaseException:
            self._due |= due
            raise
        for task, occurrence in begun:
            self._begin(task, occurrence)
        return waiting

    async def _plan(self, statements: Statements, task_id: str) -> None:
        task = await read_task(statements, task_id)
        if task is None or task.state != "active":
            return
        pending = await pending_of(statements, task_id)
        plan = plan_occurrences(
            task, statements.now, pending, late_spread_seconds=self.settings.late_spread_seconds
        )
        due = next_due(task)
        if not plan.occurrences and due is not None and due <= self.clock():
            self._due.add(task_id)  # the clock of the database is behind
        if plan.occurrences and await set_scheduled_until(statements, task, statements.now):
            await add_planned(statements, task, plan.occurrences)
            if plan.cancels_others:
                await request_cancel(statements, task_id, CANCELLED_BY_LATER_TIME)
            self._log_planned(task, plan.occurrences)
        if plan.is_over:
            await set_state(statements, task, "ended", "its schedule has no further times")
            await end_alerts(statements, task_id, "the task has ended")

    def _log_planned(self, task: Task, planned: Sequence[PlannedOccurrence]) -> None:
        """Log the times that do not run, in one line for all that were missed."""
        for each in planned:
            if each.state == "skipped":
                _LOG.info("task %s: %s skipped: %s", task.name, each.due.isoformat(), each.reason)
        missed = sum(each.number for each in planned if each.state == "missed")
        if missed:
            _LOG.warning("task %s: no service ran at %s", task.name, count_text(missed, "time"))

    async def _claim(self, statements: Statements) -> list[tuple[Task, Occurrence]]:
        begun: list[tuple[Task, Occurrence]] = []
        if self._room <= 0 or self._stopping.is_set():
            return begun
        until = statements.now + timedelta(seconds=self.settings.lease_seconds)
        for occurrence in await claimable(statements, self._room):
            task = await self._ready_task(statements, occurrence)
            if task is None:
                await skip_waiting(
                    statements, occurrence.task_id, "the task was removed", scheduled_only=False
                )
                continue
            begun.append((task, await claim(statements, occurrence, self.service_id, until, task.version)))
        return begun

    async def _ready_task(self, statements: Statements, occurrence: Occurrence) -> Task | None:
        """Return the task of an occurrence, with the plan as it is on disk if it takes that over itself."""
        task = await read_task(statements, occurrence.task_id)
        if task is None or task.definition.reload != "automatic":
            return task
        newer = find_newer_plan(task, self.engine.registry)
        if newer is None:
            return task
        if newer.problem:
            _LOG.warning("task %s: the plan on disk is not taken over: %s", task.name, newer.problem)
            return task
        _, snapshot = read_plan(task.definition, self.engine.registry)
        return await store_task(statements, task.definition, snapshot)

    # --- running ------------------------------------------------------------------------------------

    def _begin(self, task: Task, occurrence: Occurrence) -> None:
        work = asyncio.create_task(self._run(task, occurrence), name=occurrence.occurrence)
        self._running[occurrence.occurrence] = _RunUnderWay(occurrence, work)
        if len(self._running) == 1:
            self._look_at_leases.set()  # from now on they are renewed more often
        self._publish("run", task.task_id, occurrence.run_id or "", state="running")

    async def _run(self, task: Task, occurrence: Occurrence) -> None:
        try:
            outcome = await self.runner.run(task, occurrence)
            _RAN()
        except asyncio.CancelledError:
            under_way = self._running[occurrence.occurrence]
            if under_way.is_lost:
                _LOG.warning("task %s: %s", task.name, under_way.end_reason)
                return
            await asyncio.shield(self._note_cancelled(task, under_way))
            return
        else:
            await self._note_until_done(task, occurrence, outcome)
        finally:
            self._running.pop(occurrence.occurrence, None)
            self._wake.set()

    async def _note_until_done(self, task: Task, occurrence: Occurrence, outcome: RunOutcome) -> None:
        """Note the end of a run. A database that is away is waited for as long as the lease lasts."""
        while True:
            try:
                await self._note_end(task, occurrence, outcome)
            except StateError as error:
                _LOG.warning("task %s: the end of a run cannot be noted yet: %s", task.name, error)
                await asyncio.sleep(_TROUBLE_PAUSE_SECONDS)
            else:
                await self.jobs.forget_ended()
                return

    async def _note_end(self, task: Task, occurrence: Occurrence, outcome: RunOutcome) -> None:
        definition = task.definition
        retries = outcome.state == "failed" and occurrence.attempts <= definition.retries
        async with self.database.writing() as statements:
            if retries:
                pause = retry_pause(definition, occurrence.attempts)
                reason = f"attempt {occurrence.attempts} failed, the next follows: {outcome.reason}"
                await put_back(statements, occurrence, statements.now + pause, reason, outcome=outcome)
            elif await finish(statements, occurrence, outcome):
                await self._count(statements, task, outcome)
        _FINISHED()
        state = "waiting" if retries else outcome.state
        self._publish("run", task.task_id, occurrence.run_id or "", state=state, reason=outcome.reason)
        self._log_end(task, outcome, state)
        self._look_at_databases(task)

    def _look_at_databases(self, task: Task) -> None:
        """Have messages leave that a run has left, and alerts about it."""
        has_posted, self.alerts.has_posted = self.alerts.has_posted, False
        self.databases.look_at(task, own_too=has_posted)

    def _log_end(self, task: Task, outcome: RunOutcome, state: str) -> None:
        account = outcome.account or {}
        elapsed = account.get("elapsed-seconds")
        time = "" if elapsed is None else f" in {elapsed:.2f} s"
        reason = f": {outcome.reason}" if outcome.reason else ""
        again = " and is tried again" if state == "waiting" else ""
        _LOG.info("task %s %s%s%s%s", task.name, outcome.state, time, again, reason)

    async def _count(self, statements: Statements, task: Task, outcome: RunOutcome) -> None:
        """Count failures in a row, pause the task after too many, and alert its owner."""
        if outcome.state == "cancelled":
            return
        failures = await note_outcome(statements, task.task_id, succeeded=outcome.state == "succeeded")
        now = await read_task(statements, task.task_id)
        if failures is None or now is None:
            return
        most = now.definition.pause_after_failures
        pauses = most is not None and failures >= most and now.state == "active"
        if pauses:
            reason = f"{count_text(failures, 'run')} in a row {'has' if failures == 1 else 'have'} failed"
            now = await set_state(statements, now, "paused", reason)
            _LOG.warning("task %s is paused: %s", now.name, reason)
        await self.alerts.after_run(statements, now, outcome, pauses=pauses)

    async def _note_cancelled(self, task: Task, under_way: _RunUnderWay) -> None:
        occurrence = under_way.occurrence
        async with self.database.writing() as statements:
            if under_way.is_cancelled:
                log = self.runner.logs.text(occurrence.run_id or "")
                outcome = RunOutcome("cancelled", under_way.end_reason, log=log)
                await finish(statements, occurrence, outcome)
            else:
                await give_back(statements, occurrence, "the service was stopped; it runs again")
        await self.jobs.forget_ended()
        self._publish("run", task.task_id, occurrence.run_id or "", state="cancelled")

    # --- leases -------------------------------------------------------------------------------------

    async def _keep_leases(self) -> None:
        """Renew the leases, and end runs that have lost theirs or are to be cancelled."""
        last_seen = -math.inf
        while True:
            try:
                async with asyncio.timeout(self.settings.lease_seconds / 3):
                    await self._look_at_leases.wait()
            except TimeoutError:
                pass
            self._look_at_leases.clear()
            time = asyncio.get_running_loop().time()
            if not self._fences() and time - last_seen < self.settings.lease_seconds:
                continue  # an idle service only shows that it is alive
            last_seen = time
            async with self.database.writing() as statements:
                until = statements.now + timedelta(seconds=self.settings.lease_seconds)
                mine = await renew(statements, self.service_id, until, self._fences())
                await note_service(statements, self.service_id, self.address, self.started or statements.now)
            for name, under_way in list(self._running.items()):
                self._check_lease(under_way, mine.get(name))

    def _fences(self) -> dict[str, int]:
        """Return the fences of the occurrences that this service runs or settles, by name."""
        return {
            name: each.occurrence.fence for name, each in (*self._running.items(), *self._recovering.items())
        }

    def _check_lease(self, under_way: _RunUnderWay, cancel_cause: int | None) -> None:
        """End a run that is to be cancelled, or that is not the service's own any more (None)."""
        if under_way.end_reason or under_way.work.done():
            return
        if cancel_cause is None:
            under_way.is_lost = True
            under_way.end_reason = "its lease has ended and passed on: this service was held up"
            under_way.work.cancel()
        elif cancel_cause:
            under_way.is_cancelled = True
            under_way.end_reason = CANCEL_REASONS[cancel_cause]
            under_way.work.cancel()

    async def _take_over(self) -> None:
        """Take over the runs of dead services."""
        async with self.database.writing() as statements:
            until = statements.now + timedelta(seconds=self.settings.lease_seconds)
            found = await claim_expired(statements, self.service_id, until, but=self._fences())
        if found:
            _TAKEN_OVER()
        for occurrence in found:
            work = asyncio.create_task(self._recover(occurrence))
            self._recovering[occurrence.occurrence] = _RunUnderWay(occurrence, work)

    async def _recover(self, occurrence: Occurrence) -> None:
        """Find out whether a lost run has committed; if not, have it run again."""
        try:
            await self._settle_lost(occurrence)
        except AioflowError as error:  # the lease is not renewed any more: when it ends, this is tried again
            _LOG.warning("a run of a dead service cannot be settled yet: %s", error)
        finally:
            del self._recovering[occurrence.occurrence]
            self._wake.set()

    async def _settle_lost(self, occurrence: Occurrence) -> None:
        async with self.database.reading() as statements:
            task = await read_task(statements, occurrence.task_id)
        committed = task is not None and await self.runner.has_committed(task, occurrence)
        async with self.database.writing() as statements:
            if committed and task is not None:
                reason = "its service ended after the run had committed; its figures are not known"
                outcome = RunOutcome("succeeded", reason)
                if await finish(statements, occurrence, outcome):
                    await self._count(statements, task, outcome)
            elif task is None or occurrence.cancel_requested:
                reason = "the task was removed" if task is None else "it was cancelled"
                await finish(statements, occurrence, RunOutcome("cancelled", reason))
            elif occurrence.lost + 1 >= LOST_AT_MOST:
                reason = f"its service ended {LOST_AT_MOST} times while it ran"
                outcome = RunOutcome("failed", reason)
                if await finish(statements, occurrence, outcome):
                    await self._count(statements, task, outcome)
            else:
                reason = "its service ended before the run had committed; it runs again"
                await put_back(statements, occurrence, statements.now, reason, lost=1)
        await self.jobs.forget_ended()
        if task is not None:
            self._look_at_databases(task)  # its messages and requests may have been left

    async def _note_service(self) -> None:
        async with self.database.writing() as statements:
            await note_service(statements, self.service_id, self.address, statements.now)

    # --- events -------------------------------------------------------------------------------------

    def _publish(self, kind: Any, task_id: str, run_id: str, **data: Any) -> None:
        if self.events.is_wanted:
            self.events.publish(ServiceEvent(kind, self.clock(), task_id, run_id, data))

    def _publish_line(self, run_id: str, line: str) -> None:
        self._publish("log", self.runner.tasks.get(run_id, ""), run_id, line=line)


def _now() -> datetime:
    return datetime.now(UTC)
