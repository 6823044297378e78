"""A run from its first step to the release of everything that it held."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from aioflow.calls import Call, Entrance, Surroundings
from aioflow.checkpoints import Checkpoints
from aioflow.errors import DeadlineError, InputError, declared_output
from aioflow.events import RunEnded, RunStarted
from aioflow.feed import Feed
from aioflow.outlet import Outlet, Space, Target
from aioflow.outputs import Mailbox, Port
from aioflow.relation import Row, Schema
from aioflow.rows import RowsIn
from aioflow.session import Session
from aioflow.signals import Completion
from aioflow.statistics import RunStatistics, channel_statistics, step_statistics


class Run:
    """One run of a program; `output` is the only one that is wanted, if not all are."""

    def __init__(
        self,
        session: Session,
        inputs: Mapping[str, RowsIn],
        output: str | None,
        timeout_seconds: float | None,
        under_way: set[Run],
    ) -> None:
        self.session = session
        self.output = output
        self.outputs = [variable.name for variable in session.graph.program.main.outputs]
        self.mailbox = Mailbox(session.capacity_rows)
        self.is_over = False
        self._inputs = inputs
        self._timeout = timeout_seconds
        self._under_way = under_way
        self._ports: list[Port] = []
        self._emitted: dict[str, Port] = {}
        self._started_at: float | None = None
        self._ended_at: float | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Task[None] | None = None

    @property
    def has_started(self) -> bool:
        return self._started_at is not None

    @property
    def is_ending(self) -> bool:
        return self.is_over or self._stopping is not None

    @property
    def is_complete(self) -> bool:
        """Whether the run has ended well, and its reader has had everything."""
        session = self.session
        return (
            self.is_over and session.services.ended_well and session.failure is None and not self.mailbox.rows
        )

    # --- starting -------------------------------------------------------------------------------

    def start(self) -> None:
        """Connect the steps of the main plan and feed its inputs."""
        session = self.session
        self._loop = asyncio.get_running_loop()
        self._started_at = session.now()
        self._under_way.add(self)
        session.on_failure = self._failed
        session.emit = self._emit
        if self._timeout is not None:
            error = DeadlineError(f"the run took longer than its timeout of {self._timeout:g} s")
            self._deadline = self._loop.call_later(self._timeout, session.fail, error)
        if session.listeners:
            session.publish(RunStarted(self._started_at, session.info.run_id, session.graph.program.name))
        if session.graph.program.main.commits_in_batches:
            checkpoints = Checkpoints(session)
            session.checkpoints = checkpoints
            session.spawn(checkpoints.keep())
        self._open_main_plan()

    def _open_main_plan(self) -> None:
        session = self.session
        routine = session.graph.routine(session.graph.root)
        plan = routine.plan
        calls = session.graph.calls
        handed_down = [place for place in range(len(plan.inputs)) if calls.is_handed_down(plan, place)]
        entrance = Entrance(session, plan, frozenset(handed_down))
        depths = {plan.key: 1} if plan.max_depth is not None else {}
        around = Surroundings(depths=depths, recursion=entrance.recursion)
        call = Call(session, routine, Completion(self._completed), around)
        streams = [entrance.new_stream(place, None) for place in range(len(plan.inputs))]
        feeds = [
            Feed(session, declared, self._inputs[declared.name], stream)
            for declared, stream in zip(plan.inputs, streams, strict=True)
        ]
        targets = [self._targets(name) for name in self.outputs]
        call.open(streams, targets, self._left_out())
        entrance.unfolded()
        for feed in feeds:
            feed.start()

    def _targets(self, name: str) -> list[Target]:
        if self.output is not None and name != self.output:
            return []
        port = Port(name, self.mailbox, self.session.streaming, self.session.memory)
        self._ports.append(port)
        return [port]

    def _left_out(self) -> frozenset[int]:
        """The outputs that nobody wants, because one of the others was picked."""
        if self.output not in self.outputs:
            return frozenset()
        return frozenset(number for number, name in enumerate(self.outputs) if name != self.output)

    async def _emit(self, name: str, schema: Schema, rows: Sequence[Row]) -> None:
        if name in self.outputs:
            raise InputError(declared_output(name, self.session.graph.program.main.name))
        if self.output is not None and name != self.output:
            return
        port = self._emitted.setdefault(name, Port(name, self.mailbox, True, self.session.memory))
        full: list[Space] = []
        port.accept(Outlet(()), schema).push(rows, full)
        for place in full:
            await place.space()

    # --- ending ---------------------------------------------------------------------------------

    async def stop(self, *, interrupted: bool = False) -> None:
        """End what is still under way and release everything that the run holds.

        Whoever is `interrupted`, or cancels this, does not wait for what services can leave to others.
        """
        if self._loop is None:
            self.is_over = True
            return
        self._begin_stop()
        assert self._stopping is not None
        if interrupted:
            self.session.services.interrupt()
        cancellation: asyncio.CancelledError | None = None
        while not self._stopping.done():
            try:
                await asyncio.wait([self._stopping])
            except asyncio.CancelledError as error:
                cancellation = error
                self.session.services.interrupt()
        self._stopping.result()
        if cancellation is not None:
            raise cancellation

    def _failed(self) -> None:
        """A run that failed stops at once, not when somebody reads on."""
        self.mailbox.close(discard=True)
        assert self._loop is not None
        self._loop.call_soon(self._begin_stop)

    def _begin_stop(self) -> None:
        if self._stopping is None and self._loop is not None:
            self.session.stopping = True
            self._stopping = self._loop.create_task(self._stop())

    def _completed(self) -> None:
        """Every statement has ended."""
        self.session.services.ended_well = self.session.failure is None
        self.mailbox.close()

    async def _stop(self) -> None:
        session = self.session
        try:
            await session.stop()
            session.warn_of_skipped()
            session.warn_of_cuts()
            self._warn_of_marks()
            if session.failure is None:
                session.look_for_silence()
            session.services.ended_well &= session.failure is None
            await session.services.close()
        except Exception as error:
            session.failure = session.failure or error
        finally:
            self.is_over = True
            self._under_way.discard(self)
            self._release()

    def _warn_of_marks(self) -> None:
        """Nobody is to take an output for more than it is."""
        names: dict[str, list[str]] = {}
        for port in self._ports:
            if port.marks.doubtful:
                names.setdefault(f"may be wrong: {port.marks.doubtful[0].text}", []).append(port.name)
            elif port.marks.partial:
                names.setdefault(f"may lack rows: {port.marks.partial[0].text}", []).append(port.name)
        for what, outputs in names.items():
            noun = "output" if len(outputs) == 1 else "outputs"
            self.session.warn(f"{noun} {', '.join(outputs)} {what}")

    def abandon(self) -> None:
        """Nobody reads the results any more: stop in the background. A closing engine waits for it."""
        if self.is_over or self._loop is None or self._loop.is_closed() or self._stopping is not None:
            return
        with suppress(RuntimeError):  # the loop was closed in this moment
            self._loop.call_soon_threadsafe(self._begin_stop)  # objects are forgotten in any thread

    def raise_failure(self) -> None:
        """Raise what the run failed with, if it did."""
        if self.session.failure is not None:
            raise self.session.failure
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
        session.active.clear()
        session.memory.close()
        if self._started_at is None:
            return
        self._ended_at = session.now()
        if session.listeners:
            message = None if session.failure is None else str(session.failure)
            name = session.graph.program.name
            session.publish(RunEnded(self._ended_at, session.info.run_id, name, message))

    # --- looking at it --------------------------------------------------------------------------

    def statistics(self) -> RunStatistics:
        session, mailbox = self.session, self.mailbox
        start = self._started_at
        now = self._ended_at if self._ended_at is not None or start is None else session.now()

        def since(moment: float | None) -> float | None:
            return None if moment is None or start is None else moment - start

        return RunStatistics(
            since(now) or 0.0,
            since(mailbox.first_arrival),
            since(mailbox.last_arrival),
            mailbox.total_rows,
            session.calls,
            session.budget.used,
            session.budget.common.waiting,
            session.memory.spilled_rows,
            step_statistics(session),
            channel_statistics(session),
            tuple(session.warnings),
            {port.name: port.marks for port in self._ports if not port.marks.is_whole},
            tuple(session.nothing_found),
            tuple(session.notes),
        )
