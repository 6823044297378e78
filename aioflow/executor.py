"""Runs routines: calls as coloured groups of steps, each step firing when its inputs and signals allow.

Nothing here waits for a child: a step is started by what arrives, a call ends when its count of
unfinished steps is down to nothing. So depth costs neither stack nor forwarding.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from aioflow.analysis.fitting import FAILED_RELATION, FAILURE
from aioflow.context import DEAD, END, Context, To
from aioflow.errors import RunError
from aioflow.events import StepEnded, StepStarted, TupleFailed
from aioflow.failures import FailureSink, describe, failed_row, operator_error
from aioflow.gate import Gate
from aioflow.host import Host
from aioflow.outlet import nobody_needs
from aioflow.relation import Relation, Row, Schema
from aioflow.session import Session
from aioflow.signals import Completion
from aioflow.spill import RowBuffer
from aioflow.step import Step
from aioflow.stream import Stream
from aioflow.yielded import rows_of


class OperatorStep(Gate):
    """A statement on an operator in one call."""

    __slots__ = (
        "_recorded",
        "children",
        "failed",
        "ordered",
        "running",
        "sink",
        "task",
        "totals",
        "unneeded",
        "urgent",
    )

    def __init__(
        self,
        session: Session,
        step: Step,
        iteration: int,
        completion: Completion,
        sink: FailureSink | None,
        ordered: bool,
        urgent: bool,
    ) -> None:
        super().__init__(session, step, iteration, completion)
        self.sink = sink
        self.ordered = ordered or step.resolved.ordered
        self.urgent = urgent
        self.failed = 0
        self.task: asyncio.Task[None] | None = None
        self.totals = session.totals_of(step)
        self.running = False
        self.unneeded = False
        self.children: dict[asyncio.Task[Any], None] = {}
        self._recorded: RowBuffer | None = None

    def new_stream(self, port: int, capacity: int | None) -> Stream:
        return Stream(capacity or self.session.capacity_rows, self.session.memory)

    def waited_for_input(self, seconds: float) -> None:
        self.totals.waiting_input_seconds += seconds

    @property
    def is_idle(self) -> bool:
        if not self.running:
            return False  # it has rows, and begins in a moment
        if not self.streams:
            return True  # a source: whatever it brings passes a gate
        # Who works on many tuples at once has one task that waits for the next, and one for each tuple.
        return len(self.children) <= 1 and any(stream.is_awaited for stream in self.streams)

    # --- starting -------------------------------------------------------------------------------

    @property
    def text_order(self) -> tuple[int, int]:
        return self.step.order, self.iteration

    def begin(self) -> None:
        for stream in self.streams:
            stream.holding = False
        if self.session.baton is not None:
            self.session.baton.request(self)
        else:
            self.spawn_run()

    def spawn_run(self) -> None:
        self.session.active[self] = None
        self.task = self.session.spawn(self._run())
        self.task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        """Whatever it was that ended the task, somebody learns of it."""
        error = None if task.cancelled() else task.exception()
        if not self.ended:
            cause = error or asyncio.CancelledError("cancelled by something it waited for")
            self.session.fail(operator_error(self.step.where, cause, None, None))

    async def _run(self) -> None:
        self.running = True
        session, totals = self.session, self.totals
        if self.unneeded:  # since it was spawned
            self.finish(well=True)
            if session.baton is not None:
                session.baton.release()
            return
        if session.listeners:
            session.publish(StepStarted(*self.place()))
        totals.activations += 1
        well = True
        try:
            try:
                await self._operate()
            except (Exception, SystemExit) as error:
                well = False
                await self._statement_failed(error)
        except asyncio.CancelledError:
            if not self.unneeded or session.stopping:
                raise
        finally:
            if self.children:
                await self._end_children()
            if self._recorded is not None:
                self._recorded.close()
            if session.baton is not None:
                session.baton.release()
        if session.failure is None:  # a stream that fails does not end
            self.finish(well=well)

    async def _operate(self) -> None:
        step = self.step
        operator = step.operator
        schemas = tuple([stream.schema for stream in self.streams])
        bound = step.bind(schemas)
        for outlet, schema in zip(self.outlets, bound.schemas, strict=True):
            if schema is not None:
                outlet.open(schema)
        if self.errors is not None or self.sink is not None:
            self._prepare_errors(schemas)
        arguments = bound.arguments
        if operator.takes_context:
            arguments = {**arguments, "context": Context(Host(self))}
        generator = operator.function(*self.streams, **arguments)
        if self.session.checkpoints is not None and not self.streams:
            generator = self.session.checkpoints.gated(generator)
        try:
            await self._consume(generator)
        except BaseException:
            await generator.aclose()
            raise

    async def _consume(self, generator: AsyncGenerator[Any, None]) -> None:
        """Hand on what the operator yields. Space is waited for before the next rows, not after the last."""
        only = self.outlets[0] if len(self.outlets) == 1 else None
        full, width = False, -1
        async for item in generator:
            if full:
                await self._drain()
            if width < 0 and only is not None and only.schema is not None:
                width = len(only.schema)
            kind = item.__class__
            if only is not None and kind is tuple and len(item) == width:
                full = only.push((item,))
            elif only is not None and kind is list and item and len(item[0]) == width:
                full = only.push(item) if item[0].__class__ is tuple else self._route(item)
            else:
                full = self._route(item)
            if not self.has_fired and self.step.enable:
                self.note_firing()

    async def _drain(self) -> None:
        started = self.session.now() if self.session.timing else 0.0
        for outlet in self.outlets:
            await outlet.drain()
        if self.errors is not None:
            await self.errors.drain()
        if self.session.timing:
            waited = self.session.now() - started
            self.totals.waiting_output_seconds += waited

    def _route(self, item: Any) -> bool:
        """Whatever an operator may yield beside rows of a known schema."""
        if isinstance(item, To):
            outlet = self.outlets[self.output_number(item.output)]
            item = item.content
        elif len(self.outlets) == 1:
            outlet = self.outlets[0]
        else:
            names = ", ".join(self.step.operator.outputs)
            raise TypeError(f"{self.step.name} has several outputs ({names}): yield To(name, rows)")
        if isinstance(item, Schema):
            outlet.open(item)
            return False
        if item is DEAD or item is END:
            outlet.end(dead=item is DEAD)
            return False
        rows = rows_of(item, outlet, self.step.name)
        return outlet.push(rows) if rows else False

    def output_number(self, name: str) -> int:
        try:
            return self.step.operator.outputs.index(name)
        except ValueError:
            raise TypeError(f"{self.step.name} has no output {name!r}") from None

    # --- firing ---------------------------------------------------------------------------------

    def note_firing(self) -> None:
        """Send ENABLE if a firing has succeeded; called as the operator goes on to its next one."""
        firing = self.step.firing
        if firing == "tuple" or (firing == "end" and self.streams and not self.all_ended):
            return
        if firing == "end" or not self.streams or self.rows_in > self.failed:
            self.fired()

    def fired(self) -> None:
        if not self.has_fired:
            self.has_fired = True
            for number in self.step.enable:
                self.signals[number].send()
            if self.step.pinned_until_enabled and any(outlet.unread for outlet in self.outlets):
                self.unread()

    @property
    def rows_in(self) -> int:
        return sum([stream.received for stream in self.streams])

    # --- ending ---------------------------------------------------------------------------------

    def finish(self, *, well: bool, dead: bool = False) -> None:
        """End outputs and signals, let go of the inputs."""
        self.ended = True
        if well and not dead and self.step.firing != "tuple" and not self.unneeded:
            self.note_end()
        for outlet in self.outlets:
            outlet.end(dead)
        if self.errors is not None:
            self.errors.end(dead)
        for stream in self.streams:
            if not stream.ended and not dead:
                stream.close()
            elif stream.has_rows:
                stream.release()
        if self.step.enable or self.step.done:
            self.settle_signals(well and not dead)
        self._report_end(dead)
        self.completion.leave()

    def note_end(self) -> None:
        if self.step.firing == "end" or not self.streams or self.rows_in > self.failed:
            self.fired()

    def end_dead(self) -> None:
        for stream in self.streams:
            stream.discard()
        self.totals.dead += 1
        self.finish(well=True, dead=True)

    def _report_end(self, dead: bool) -> None:
        session = self.session
        totals = self.totals
        rows_in, rows_out = self.rows_in, self.rows_out
        totals.ended += 1
        totals.rows_in += rows_in
        totals.rows_out += rows_out
        session.active.pop(self, None)
        if session.listeners:
            session.publish(StepEnded(*self.place(), rows_in, rows_out, dead))

    @property
    def rows_out(self) -> int:
        return sum([outlet.sent for outlet in self.outlets])

    def unread(self) -> None:
        """Nobody reads an output any more: stop, if nobody reads any, and nothing else needs the step."""
        outlets = [*self.outlets, *([self.errors] if self.errors is not None else ())]
        if self.is_pinned or self.ended or not nobody_needs(outlets):
            return
        if not self.unneeded:
            self.unneeded = True
            self.session.settle(self._let_go)

    def _let_go(self) -> None:
        for stream in self.streams:
            stream.close()
        if self.running and self.task is not None:
            self.task.cancel()
        elif not self.begun:
            self.begun = True
            self.finish(well=True)

    async def _end_children(self) -> None:
        children = self.children
        while children:
            for child in tuple(children):
                child.cancel()
            try:
                await asyncio.wait(tuple(children))
            except asyncio.CancelledError:
                continue  # cancelled again, being unneeded or stopped: it ends anyway

    # --- failing --------------------------------------------------------------------------------

    def _prepare_errors(self, schemas: Sequence[Schema | None]) -> None:
        per_tuple = self.step.firing == "tuple"
        if self.errors is not None:
            schema = (schemas[0] if schemas else None) or Schema(())
            self.errors.open(schema.add(FAILURE) if per_tuple else FAILED_RELATION)
        if self.streams and not per_tuple and (self.errors is not None or self.sink is not None):
            self._recorded = self.streams[0].recorder = RowBuffer(self.session.memory)

    def tuple_failed(self, row: Row, error: BaseException, attempts: int) -> None:
        self.failed += 1
        self.totals.errors += 1
        if self.session.listeners:
            self.session.publish(TupleFailed(*self.place(), str(error)))
        schema = self.streams[0].schema if self.streams else None
        if self.step.resolved.skip_errors:
            self.totals.skip(error)
            return
        if self.errors is not None:
            self.errors.push([failed_row(schema or Schema(()), row, error, attempts)])
        elif self.sink is not None:
            self.sink.take(self.step.where, Relation(schema or Schema(()), [row]), error, attempts)
        else:
            raise operator_error(self.step.where, error, schema, row)

    async def _statement_failed(self, error: Exception | SystemExit) -> None:
        """The statement as a whole failed: its ERRORS, or those of a call around it, take it."""
        if self.session.stopping or self.unneeded:
            return
        # Of a statement that fires for tuples, ERRORS carries tuples: a failure of another kind is no data.
        own = self.errors is not None and self.step.firing != "tuple"
        taken = own or self.sink is not None or self.step.resolved.skip_errors
        if isinstance(error, RunError) or not taken:
            self.session.fail(
                error if isinstance(error, RunError) else operator_error(self.step.where, error, None, None)
            )
            return
        self.totals.errors += 1
        if self.step.resolved.skip_errors:
            self.totals.skip(error)
            return
        packed = await self._packed_input()
        if own and self.errors is not None:
            if self.errors.schema is None:
                self.errors.open(FAILED_RELATION)
            self.errors.push([(packed, *describe(error, 1))])
        elif self.sink is not None:
            self.completion.failed = True
            self.sink.take(self.step.where, packed, error, 1)

    async def _packed_input(self) -> Relation:
        """The whole first input, also what had not been read when the statement failed."""
        if not self.streams:
            return Relation(Schema(()))
        for stream in self.streams:
            while await stream.receive() is not None:
                pass
        schema = self.streams[0].schema or Schema(())
        recorded, self._recorded = self._recorded, None
        self.streams[0].recorder = None
        return recorded.relation(schema) if recorded is not None else Relation(schema)

    def place(self) -> tuple[float, str, str, str, int | None, int]:
        session = self.session
        return (
            session.now(),
            session.info.run_id,
            self.step.plan.name,
            self.step.name,
            self.step.line,
            self.iteration,
        )
