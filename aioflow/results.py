"""A run that somebody reads: it begins with the first read and ends, whole, with the last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType

from aioflow.calls import Call, Surroundings
from aioflow.errors import DeadlineError, InputError
from aioflow.events import RunEnded, RunStarted
from aioflow.feed import Feed
from aioflow.outlet import Outlet, Space, Target
from aioflow.outputs import Mailbox, Port
from aioflow.relation import Batch, Record, Row, Schema
from aioflow.rows import RowsIn
from aioflow.session import Session
from aioflow.signals import Completion
from aioflow.spill import KeySet
from aioflow.statistics import RunStatistics, channel_statistics, step_statistics


class RunStream:
    """The results of one run: `async for row in stream`. Leaving it early stops the run.

    Use it as `async with` (or call `aclose`) when the loop may be left before its end.
    """

    def __init__(
        self,
        session: Session,
        inputs: Mapping[str, RowsIn],
        output: str | None,
        timeout_seconds: float | None,
        runs: set[RunStream],
    ) -> None:
        self._session = session
        self._inputs = inputs
        self._output = output
        self._timeout = timeout_seconds
        self._runs = runs
        self._mailbox = Mailbox(session.capacity_rows)
        self._extra: dict[str, Port] = {}
        self._started_at: float | None = None
        self._ended_at: float | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._rows: Batch = []
        self._next = 0
        self._schema = Schema(())
        self._finished = False

    # --- reading --------------------------------------------------------------------------------

    def __aiter__(self) -> RunStream:
        declared = self._session.graph.program.main.outputs
        if self._output is None and len(declared) > 1:
            names = ", ".join(output.name for output in declared)
            raise InputError(
                f"the plan has several outputs ({names}): pick one with output=…, or use .named()"
            )
        return self

    async def __anext__(self) -> Record:
        while self._next >= len(self._rows):
            letter = await self._receive()
            if letter is None:
                raise StopAsyncIteration
            port, rows = letter
            if port.name == self._wanted:
                assert port.schema is not None
                self._rows, self._schema, self._next = rows, port.schema, 0
        row = self._rows[self._next]
        self._next += 1
        return Record(self._schema, row)

    async def named(self) -> AsyncIterator[tuple[str, Record]]:
        """(output, row) of all outputs as they come, also of those that the plan emits to."""
        async for name, records in self.batches():
            for record in records:
                yield name, record

    async def batches(self) -> AsyncIterator[tuple[str, list[Record]]]:
        """(output, rows) of all outputs, batch by batch."""
        while (letter := await self._receive()) is not None:
            port, rows = letter
            schema = port.schema
            assert schema is not None
            yield port.name, [Record(schema, row) for row in rows]

    @property
    def _wanted(self) -> str | None:
        if self._output is not None:
            return self._output
        declared = self._session.graph.program.main.outputs
        return declared[0].name if declared else None

    async def _receive(self) -> tuple[Port, Batch] | None:
        if self._finished:
            return None
        if self._started_at is None:
            self._start()
        try:
            letter = await self._mailbox.take()
        except BaseException:
            await self.aclose()
            raise
        if letter is None:
            await self.aclose()
            if self._session.failure is not None:
                raise self._session.failure
        return letter

    # --- the life of the run --------------------------------------------------------------------

    def _start(self) -> None:
        session = self._session
        self._started_at = session.now()
        self._runs.add(self)
        session.on_failure = lambda: self._mailbox.close(discard=True)
        session.emit = self._emit
        if self._timeout is not None:
            loop = asyncio.get_running_loop()
            error = DeadlineError(f"the run took longer than its timeout of {self._timeout:g} s")
            self._deadline = loop.call_later(self._timeout, session.fail, error)
        if session.listeners:
            session.publish(RunStarted(self._started_at, session.info.run_id, session.graph.program.name))
        routine = session.graph.routine(session.graph.root)
        completion = Completion(lambda: self._mailbox.close())
        plan = routine.plan
        seen = KeySet(session.memory) if plan.once is not None else None
        around = Surroundings(
            depths={plan.key: 1} if plan.max_depth is not None else {},
            once={plan.key: seen} if seen is not None else {},
        )
        call = Call(session, routine, completion, around)
        feeds = [Feed(session, declared, self._inputs[declared.name], seen) for declared in plan.inputs]
        call.open(
            [feed.stream for feed in feeds],
            [self._targets(each.name) for each in plan.outputs],
            self._closed(),
        )
        for feed in feeds:
            feed.start()

    def _targets(self, name: str) -> list[Target]:
        if self._output is not None and name != self._output:
            return []
        return [Port(name, self._mailbox, self._session.streaming, self._session.memory)]

    def _closed(self) -> frozenset[int]:
        outputs = self._session.graph.program.main.outputs
        if self._output is None or self._output not in [output.name for output in outputs]:
            return frozenset()
        return frozenset(number for number, output in enumerate(outputs) if output.name != self._output)

    async def _emit(self, name: str, schema: Schema, rows: Sequence[Row]) -> None:
        if self._output is not None and name != self._output:
            return
        port = self._extra.setdefault(name, Port(name, self._mailbox, True, self._session.memory))
        full: list[Space] = []
        port.accept(Outlet(()), schema).push(rows, full)
        for place in full:
            await place.space()

    async def aclose(self) -> None:
        """Stop the run, if it still runs, and release everything it holds."""
        if self._finished:
            return
        self._finished = True
        session = self._session
        try:
            await session.stop()
        finally:
            self._runs.discard(self)
            self._release()

    def _release(self) -> None:
        session = self._session
        if self._deadline is not None:
            self._deadline.cancel()
        for gate in tuple(session.active):
            for stream in gate.streams:
                stream.release()
        session.active.clear()
        session.memory.close()
        if self._started_at is not None:
            self._ended_at = session.now()
            if session.listeners:
                message = None if session.failure is None else str(session.failure)
                session.publish(
                    RunEnded(self._ended_at, session.info.run_id, session.graph.program.name, message)
                )

    async def __aenter__(self) -> RunStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    # --- looking at it --------------------------------------------------------------------------

    def statistics(self) -> RunStatistics:
        """What the run has done so far."""
        session, mailbox = self._session, self._mailbox
        start = self._started_at
        end = self._ended_at
        now = end if end is not None else session.now() if start is not None else 0.0

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
        )
