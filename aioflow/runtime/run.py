"""A run: it feeds its inputs, connects its steps, and reaches its end state by state.

A successful run has its services commit, and delivers its messages, before everything is released.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from enum import StrEnum
from itertools import islice
from typing import Any

from aioflow.errors import (
    CLOSED_EARLY,
    AioflowError,
    ClosedError,
    DeadlineError,
    InputError,
    RunError,
    declared_output,
)
from aioflow.plan import InputDeclaration
from aioflow.relation import Relation, Row, Schema
from aioflow.runtime.account import OutputAccount, RunAccount
from aioflow.runtime.budget import current_run
from aioflow.runtime.calls import Call, CallScope, Entrance
from aioflow.runtime.checkpoints import Checkpoints, CommitPoints
from aioflow.runtime.events import Outcome, RunEnded, RunStarted
from aioflow.runtime.outlet import Outlet, Target
from aioflow.runtime.outputs import OutputQueue, Port
from aioflow.runtime.report import now
from aioflow.runtime.room import Room
from aioflow.runtime.session import Session
from aioflow.runtime.signals import Completion
from aioflow.runtime.statistics import (
    EdgeSample,
    RunStatistics,
    channel_statistics,
    edge_samples,
    step_statistics,
)
from aioflow.runtime.stream import Stream
from aioflow.values.coercion import Intake, RowsIn, batches_of

_BATCH_ROWS = 256


class RunState(StrEnum):
    """The states of a run, in order. Only a successful run passes COMMITTING and DELIVERING."""

    NOT_STARTED = "not started"
    RUNNING = "running"
    STOPPING = "stopping"  # its tasks are cancelled, if any are left
    COMMITTING = "committing"  # its writes and messages become durable
    DELIVERING = "delivering"  # the commit is certain; messages leave
    CLOSING = "closing"  # its services release their resources
    CLOSED = "closed"


class Feed:
    """One input of a run, which feeds the stream that the plan reads."""

    def __init__(self, session: Session, declaration: InputDeclaration, rows: RowsIn, stream: Stream) -> None:
        self._session = session
        self._name = declaration.name
        self._rows = rows
        self._intake = Intake(declaration.name, declaration.schema)
        self._task: asyncio.Task[None] | None = None
        self._outlet = Outlet([stream], self._unread)
        schema = self._intake.peek(rows)
        if schema is not None:
            self._outlet.open(schema)

    @property
    def name(self) -> str:
        return self._name

    @property
    def rows(self) -> int:
        """The number of rows that were taken."""
        return self._outlet.sent

    def start(self) -> None:
        if self._outlet.unread:
            self._outlet.end()
            return
        self._task = self._session.tasks.spawn(self._feed())
        self._task.add_done_callback(self._feed_ended)

    def _feed_ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None or (task.cancelled() and not self._outlet.ended):
            failure = InputError(f"input {self._name!r}: its source failed: {error or 'cancelled'}")
            self._session.tasks.fail(failure)

    def _unread(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._outlet.end()

    async def _feed(self) -> None:
        intake = self._intake
        relation = intake.whole(self._rows)
        try:
            if relation is not None:
                await self._feed_relation(relation)
            else:
                await self._feed_mappings()
        except AioflowError as error:
            self._session.tasks.fail(error)
        except Exception as error:
            failure = InputError(f"input {self._name!r}: its source failed: {type(error).__name__}: {error}")
            failure.__cause__ = error
            self._session.tasks.fail(failure)
        else:
            self._outlet.end()

    async def _pass_gate(self) -> None:
        if self._session.checkpoints is not None:
            await self._session.checkpoints.gate()

    async def _feed_relation(self, relation: Relation) -> None:
        rows = iter(relation.rows)
        while batch := list(islice(rows, _BATCH_ROWS)):
            await self._pass_gate()
            if self._outlet.push(batch):
                await self._outlet.drain()

    async def _feed_mappings(self) -> None:
        outlet, intake = self._outlet, self._intake
        async with aclosing(batches_of(self._rows)) as batches:
            async for mappings in batches:
                rows = intake.batch(mappings)
                if outlet.schema is None and intake.schema is not None:
                    outlet.open(intake.schema)
                await self._pass_gate()
                if rows and outlet.push(rows):
                    await outlet.drain()


class RunsUnderWay:
    """The runs of an engine that have begun and not ended. A closed engine begins no more."""

    def __init__(self) -> None:
        self._runs: set[Run] = set()
        self.is_closed = False

    def __len__(self) -> int:
        return len(self._runs)

    def check_open(self) -> None:
        if self.is_closed:
            raise ClosedError("the engine is closed: make another one")

    def add(self, run: Run) -> None:
        self.check_open()
        self._runs.add(run)

    def discard(self, run: Run) -> None:
        self._runs.discard(run)

    async def close(self) -> None:
        """Stop all, and wait for each."""
        self.is_closed = True
        for run in tuple(self._runs):
            run.break_off(RunError("the engine was closed before the run had ended"))
        await asyncio.gather(*(run.stop() for run in tuple(self._runs)), return_exceptions=True)

    def have(self, task: asyncio.Task[Any] | None) -> bool:
        """Return whether a task belongs to one of the runs."""
        return any(task in run.session.tasks for run in self._runs)


async def wait_through(
    ending: asyncio.Task[None], is_ours: bool, *, if_cancelled: Callable[[], None] = lambda: None
) -> None:
    """Wait for a task to end even if this is cancelled; the cancellation is raised afterwards.

    When cancelled, `if_cancelled` is called, which may hasten the end. If the caller `is_ours`, the ending
    waits for it, so it stops at once when it is cancelled.
    """
    interrupted: asyncio.CancelledError | None = None
    while not ending.done():
        try:
            await asyncio.wait([ending])
        except asyncio.CancelledError as error:
            if is_ours:
                raise
            interrupted = error
            if_cancelled()
    if interrupted is not None:
        raise interrupted


class Run:
    """One run of a program; `output` names the only output that is read, None if all are."""

    def __init__(
        self,
        session: Session,
        inputs: Mapping[str, RowsIn],
        output: str | None,
        timeout_seconds: float | None,
        under_way: RunsUnderWay,
    ) -> None:
        self.session = session
        self.output = output
        self.outputs = [variable.name for variable in session.graph.program.main.outputs]
        self.output_queue = OutputQueue(session.settings.capacity_rows)
        self.state = RunState.NOT_STARTED
        self._inputs = inputs
        self._timeout = timeout_seconds
        self._under_way = under_way
        self._ports: list[Port] = []
        self._emitted: dict[str, Port] = {}
        self._feeds: list[Feed] = []
        self._started_at: float | None = None
        self._ended_at: float | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._was_interrupted = False
        self._ended_well = False
        self._commit_points = CommitPoints(session)
        self._checkpoints: Checkpoints | None = None  # for a plan that commits as it streams

    @property
    def has_started(self) -> bool:
        return self._started_at is not None

    @property
    def is_ending(self) -> bool:
        return self.state not in (RunState.NOT_STARTED, RunState.RUNNING)

    @property
    def is_over(self) -> bool:
        return self.state is RunState.CLOSED

    @property
    def is_complete(self) -> bool:
        """True if the run has ended successfully, and its reader got all rows."""
        session = self.session
        return (
            self.is_over
            and self._ended_well
            and session.tasks.failure is None
            and not (self.output_queue.rows or self.output_queue.was_cut)
        )

    # --- starting -------------------------------------------------------------------------------

    def start(self) -> None:
        """Connect the steps of the main plan and feed its inputs."""
        session = self.session
        self._under_way.add(self)
        self._loop = asyncio.get_running_loop()
        self._started_at = now()
        self.state = RunState.RUNNING
        session.tasks.on_failure = self._failed
        session.emit = self._emit
        if self._timeout is not None:
            error = DeadlineError(f"the run took longer than its timeout of {self._timeout:g} s")
            self._deadline = self._loop.call_later(self._timeout, session.tasks.fail, error)
        if session.events.listeners:
            started = RunStarted(self._started_at, session.info.run_id, session.graph.program.name)
            session.events.publish(started)
        if session.graph.program.main.commits_in_batches:
            self._checkpoints = session.checkpoints = Checkpoints(session, self._commit_points)
            session.tasks.spawn(self._checkpoints.keep())
        # Every task of the run comes from here, and has this in its context.
        token = current_run.set(session.info.run_id)
        try:
            self._open_main_plan()
        finally:
            current_run.reset(token)

    def _open_main_plan(self) -> None:
        session = self.session
        routine = session.graph.routine(session.graph.root)
        plan = routine.plan
        calls = session.graph.calls
        handed_down = [place for place in range(len(plan.inputs)) if calls.is_handed_down(plan, place)]
        entrance = Entrance(session, plan, frozenset(handed_down))
        depths = {plan.key: 1} if plan.max_depth is not None else {}
        around = CallScope(depths=depths, recursion=entrance.recursion)
        call = Call(session, routine, Completion(self._completed), around)
        streams = [entrance.new_stream(place, None) for place in range(len(plan.inputs))]
        self._feeds = [
            Feed(session, declared, self._inputs[declared.name], stream)
            for declared, stream in zip(plan.inputs, streams, strict=True)
        ]
        targets = [self._targets(name) for name in self.outputs]
        call.open(streams, targets, self._left_out())
        entrance.unfolded()
        for feed in self._feeds:
            feed.start()

    def _targets(self, name: str) -> list[Target]:
        if self.output is not None and name != self.output:
            return []
        port = Port(name, self.output_queue, self.session.settings.streaming, self.session.memory)
        self._ports.append(port)
        return [port]

    def schema_of(self, output: str) -> Schema | None:
        """Return the attributes of an output; None as long as they are unknown."""
        ports = (*self._ports, *self._emitted.values())
        return next((port.schema for port in ports if port.name == output), None)

    def _left_out(self) -> frozenset[int]:
        """Return the outputs that are not read, because another was picked."""
        if self.output not in self.outputs:
            return frozenset()
        return frozenset(number for number, name in enumerate(self.outputs) if name != self.output)

    async def _emit(self, name: str, schema: Schema, rows: Sequence[Row]) -> None:
        if name in self.outputs:
            raise InputError(declared_output(name, self.session.graph.program.main.name))
        if self.output is not None and name != self.output:
            return
        port = self._emitted.setdefault(name, Port(name, self.output_queue, True, self.session.memory))
        if port.schema is not None and set(port.schema.names) != set(schema.names):
            known, given = ", ".join(port.schema.names), ", ".join(schema.names)
            raise InputError(
                f"the output {name!r} has the attributes {known} of another statement, and not {given}: "
                "emit to another name, or project them alike"
            )
        full: list[Room] = []
        port.accept(Outlet(()), schema).push(rows, full)
        for room in full:
            await room.wait()

    # --- ending ---------------------------------------------------------------------------------

    async def stop(self, *, interrupted: bool = False) -> None:
        """End all statements that are under way, and release everything that the run holds.

        If the reader is `interrupted`, or this is cancelled, services leave work for later if it can be done
        later.
        """
        self._begin_stop()
        interrupt = self.session.services.interrupt
        if interrupted:
            self._was_interrupted |= not self.is_over
            interrupt()
        if self._stopping is not None:
            is_ours = asyncio.current_task() in self.session.tasks
            await wait_through(self._stopping, is_ours, if_cancelled=interrupt)
            self._stopping.result()

    def break_off(self, error: RunError) -> None:
        """Have the run fail with this error, unless it is ending already."""
        if self._loop is not None and self._loop.is_closed():
            self._bury()
        else:
            self.session.tasks.fail(error)

    def _bury(self) -> None:
        """Release a run that never began, or whose loop was closed before it, as far as possible."""
        self.state = RunState.CLOSED
        self.output_queue.close(discard=True)
        self._under_way.discard(self)
        self.session.memory.close()

    def _failed(self) -> None:
        """Stop a run that failed at once, not when its reader reads on."""
        self.output_queue.close(discard=True)
        assert self._loop is not None
        self._loop.call_soon(self._begin_stop)

    def _begin_stop(self) -> None:
        if self._loop is None:
            self._bury()
        elif self._stopping is None:
            self.state = RunState.STOPPING
            # A run that its reader leaves never commits. Otherwise it would depend on timing, on whether its
            # statements have ended by then.
            self._ended_well &= self.output_queue.was_read_out
            self.session.tasks.stopping = True
            self.output_queue.close(discard=True)
            self._stopping = self._loop.create_task(self._stop())

    def _completed(self) -> None:
        """Take note that every statement has ended."""
        self._ended_well = self.session.tasks.failure is None
        self.output_queue.close()

    async def _stop(self) -> None:
        """Go through the states of the end. An error fails the run; everything is released in any case."""
        try:
            with self._failing():
                await self._stop_tasks()
                if self._ended_well:
                    await self._commit()
                    await self._deliver()
        finally:
            try:
                with self._failing():
                    await self._close_services()
            finally:
                self._close()
                await self.session.memory.disk.settle()  # its files are closed before control returns

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Have the run fail with an error of this block, unless it has failed before."""
        try:
            yield
        except Exception as error:
            self.session.tasks.failure = self.session.tasks.failure or error

    async def _stop_tasks(self) -> None:
        session = self.session
        try:
            if self._ended_well and self._checkpoints is not None:
                await self._checkpoints.finish()
        finally:
            await session.tasks.stop()
        session.report.warn_of_skipped(session.totals)
        session.report.warn_of_cuts()
        self._warn_of_marks()
        if session.tasks.failure is None:
            session.report.find_silent_failures(session.totals)
        self._ended_well &= session.tasks.failure is None

    async def _commit(self) -> None:
        self.state = RunState.COMMITTING
        await self._commit_points.commit_end()

    async def _deliver(self) -> None:
        self.state = RunState.DELIVERING
        await self._commit_points.deliver()

    async def _close_services(self) -> None:
        self.state = RunState.CLOSING
        await self.session.services.close()

    def _close(self) -> None:
        self.state = RunState.CLOSED
        self._under_way.discard(self)
        self._release()

    def _warn_of_marks(self) -> None:
        """Warn about outputs that may lack rows, or have wrong ones."""
        names: dict[str, list[str]] = {}
        for port in self._ports:
            if port.marks.doubtful:
                names.setdefault(f"may be wrong: {port.marks.doubtful[0].text}", []).append(port.name)
            elif port.marks.partial:
                names.setdefault(f"may lack rows: {port.marks.partial[0].text}", []).append(port.name)
        for what, outputs in names.items():
            noun = "output" if len(outputs) == 1 else "outputs"
            self.session.report.warn(f"{noun} {', '.join(outputs)} {what}")

    def abandon(self) -> None:
        """Stop in the background, since the results have lost their reader. A closing engine waits for it."""
        if self.is_over or self._loop is None or self._loop.is_closed() or self._stopping is not None:
            return
        with suppress(RuntimeError):  # the loop was closed in this moment
            self._loop.call_soon_threadsafe(self._begin_stop)  # objects are garbage-collected in any thread

    def raise_failure(self) -> None:
        """Raise the error that the run failed with, if it did."""
        if self.session.tasks.failure is not None:
            raise self.session.tasks.failure
        if self.output_queue.was_cut:
            raise ClosedError(CLOSED_EARLY)
        if self.output is not None and self.output not in (*self.outputs, *self._emitted):
            names = ", ".join((*self.outputs, *self._emitted)) or "none"
            raise InputError(
                f"plan {self.session.graph.program.name} has no output {self.output!r} "
                f"and emitted to none of that name (outputs: {names})"
            )

    def _release(self) -> None:
        session = self.session
        if self._deadline is not None:
            self._deadline.cancel()
        session.totals.active.clear()
        session.memory.close()
        if self._started_at is None:
            return
        self._ended_at = now()
        if session.events.listeners:
            message = None if session.tasks.failure is None else str(session.tasks.failure)
            place = (self._ended_at, session.info.run_id, session.graph.program.name)
            session.events.publish(RunEnded(*place, message, self._outcome))

    # --- statistics --------------------------------------------------------------------------

    @property
    def _outcome(self) -> Outcome:
        if not self.is_over:
            return "running" if self.has_started else "not started"
        if self.session.tasks.failure is not None:
            return "failed"
        if self._ended_well:
            return "ended"
        return "interrupted" if self._was_interrupted else "stopped"

    def account(self) -> RunAccount:
        session, info = self.session, self.session.info
        errors: Counter[str] = Counter()
        counters: Counter[str] = Counter()
        for totals in session.totals:
            errors += totals.kinds
            counters += totals.counters
        ports = (*self._ports, *self._emitted.values())
        account = RunAccount(
            info.run_id,
            info.plan,
            self._outcome,
            info.started,
            self._elapsed,
            {feed.name: feed.rows for feed in self._feeds},
            {port.name: OutputAccount(port.rows, port.marks) for port in ports},
            errors,
            counters,
            tuple(session.report.warnings),
            tuple(session.report.notes),
            tuple(session.report.nothing_found),
            None,
            session.services.account(),
        )
        return account if session.tasks.failure is None else account.failed_with(session.tasks.failure)

    @property
    def _elapsed(self) -> float:
        if self._started_at is None:
            return 0.0
        return (now() if self._ended_at is None else self._ended_at) - self._started_at

    def edge_samples(self) -> tuple[EdgeSample, ...]:
        return edge_samples(self.session.totals)

    def statistics(self) -> RunStatistics:
        session, queue = self.session, self.output_queue
        start = self._started_at

        def since(moment: float | None) -> float | None:
            return None if moment is None or start is None else moment - start

        return RunStatistics(
            self._elapsed,
            since(queue.first_arrival),
            since(queue.last_arrival),
            queue.total_rows,
            session.totals.calls,
            session.permits.budget.used,
            session.permits.budget.common.waiting,
            session.memory.spilled_rows,
            step_statistics(session.totals),
            channel_statistics(session.totals),
            tuple(session.report.warnings),
            {port.name: port.marks for port in self._ports if not port.marks.is_whole},
            tuple(session.report.nothing_found),
            tuple(session.report.notes),
        )
