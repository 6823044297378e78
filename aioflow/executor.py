"""Runs routines: calls as coloured groups of steps, each step firing when its inputs and signals allow.

Nothing here waits for a child: a step is started by what arrives, a call ends when its count of
unfinished steps is down to nothing. So depth costs neither stack nor forwarding.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aioflow.context import DEAD, END, Context, RunInfo, To
from aioflow.errors import RunError
from aioflow.events import FiringEnded, FiringStarted, StepEnded, StepStarted, TupleFailed
from aioflow.failures import FAILED_RELATION, FAILURE, FailureSink, describe, operator_error
from aioflow.gate import Gate
from aioflow.graph import Step
from aioflow.plan import Item
from aioflow.relation import Batch, Relation, Row, Schema
from aioflow.rows import row_of_mapping
from aioflow.session import Session
from aioflow.signals import Completion
from aioflow.spill import Memory, RowBuffer
from aioflow.stream import Outlet, Stream, Target


class OperatorStep(Gate):
    """A statement on an operator in one call."""

    __slots__ = (
        "_children",
        "_recorded",
        "failed",
        "ordered",
        "sink",
        "task",
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
        self.unneeded = False
        self._children: set[asyncio.Task[Any]] | None = None
        self._recorded: RowBuffer | None = None

    def new_stream(self, capacity: int | None) -> Stream:
        return Stream(capacity or self.session.capacity_rows, self.session.memory)

    def new_outlet(self, targets: Sequence[Target]) -> Outlet:
        return Outlet(targets, self.unread)

    def waited_for_input(self, seconds: float) -> None:
        self.session.totals_of(self.step).waiting_input_seconds += seconds

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
        self.task = self.session.spawn(self._run())

    async def _run(self) -> None:
        try:
            await self._work()
        except asyncio.CancelledError:
            if not self.unneeded or self.session.stopping:
                raise
            self.finish(well=True)
        finally:
            if self.session.baton is not None:
                self.session.baton.release()

    async def _work(self) -> None:
        if self.session.listeners:
            self.session.publish(StepStarted(*self._place()))
        totals = self.session.totals_of(self.step)
        totals.activations += 1
        self.session.active[self] = None
        well = True
        try:
            await self._operate()
        except Exception as error:
            well = False
            await self._statement_failed(error)
        finally:
            await self._end_children()
            if self._recorded is not None:
                self._recorded.close()
        self.finish(well=well)

    async def _operate(self) -> None:
        operator = self.step.operator
        schemas = tuple([stream.schema for stream in self.streams])
        bound = self.step.bind(schemas)
        for outlet, schema in zip(self.outlets, bound.schemas, strict=True):
            if schema is not None:
                outlet.open(schema)
        self._prepare_errors(schemas)
        arguments = bound.arguments
        if operator.takes_context:
            arguments = {**arguments, "context": Context(self)}
        generator = operator.function(*self.streams, **arguments)
        try:
            await self._consume(generator)
        finally:
            await generator.aclose()

    async def _consume(self, generator: AsyncIterator[Any]) -> None:
        outlet = self.outlets[0] if len(self.outlets) == 1 else None
        schema_known = outlet is not None and outlet.schema is not None
        async for item in generator:
            kind = item.__class__
            if schema_known and outlet is not None and kind is list:
                full = outlet.push(item) if item else False
            elif schema_known and outlet is not None and kind is tuple:
                full = outlet.push((item,))
            else:
                outlet, full = self._route(item, outlet)
                schema_known = outlet is not None and len(self.outlets) == 1 and outlet.schema is not None
            if not self.has_fired and self.step.enable:
                self.note_firing()
            if full:
                await self._drain()

    async def _drain(self) -> None:
        started = self.session.now() if self.session.timing else 0.0
        for outlet in self.outlets:
            await outlet.drain()
        if self.errors is not None:
            await self.errors.drain()
        if self.session.timing:
            waited = self.session.now() - started
            self.session.totals_of(self.step).waiting_output_seconds += waited

    def _route(self, item: Any, only: Outlet | None) -> tuple[Outlet | None, bool]:
        """Whatever an operator may yield beside rows of a known schema."""
        outlet = only
        if isinstance(item, To):
            outlet = self.outlets[self._output_number(item.output)]
            item = item.content
        if outlet is None:
            names = ", ".join(self.step.operator.outputs)
            raise TypeError(f"{self.step.name} has several outputs ({names}): yield To(name, rows)")
        if isinstance(item, Schema):
            outlet.open(item)
            return only or outlet, False
        if item is DEAD or item is END:
            outlet.end(dead=item is DEAD)
            return only or outlet, False
        rows = _rows_of(item, outlet, self.step)
        return only or outlet, outlet.push(rows) if rows else False

    def _output_number(self, name: str) -> int:
        try:
            return self.step.operator.outputs.index(name)
        except ValueError:
            raise TypeError(f"{self.step.name} has no output {name!r}") from None

    # --- firing ---------------------------------------------------------------------------------

    def note_firing(self) -> None:
        """Send ENABLE if a firing has succeeded; called as the operator goes on to its next one."""
        firing = self.step.operator.firing
        if firing == "tuple" or (firing == "end" and self.streams and not self.all_ended):
            return
        if firing == "end" or not self.streams or self.rows_in > self.failed:
            self.fired()

    def fired(self) -> None:
        if not self.has_fired:
            self.has_fired = True
            for number in self.step.enable:
                self.signals[number].send()

    @property
    def rows_in(self) -> int:
        return sum([stream.received for stream in self.streams])

    # --- ending ---------------------------------------------------------------------------------

    def finish(self, *, well: bool, dead: bool = False) -> None:
        """End outputs and signals, let go of the inputs."""
        self.ended = True
        if well and not dead and self.step.operator.firing != "tuple" and not self.unneeded:
            self.note_end()
        for outlet in self.outlets:
            outlet.end(dead)
        if self.errors is not None:
            self.errors.end(dead)
        for stream in self.streams:
            if not stream.ended:
                stream.close()
            stream.release()
        self.settle_signals(well and not dead)
        self._report_end(dead)
        self.completion.leave()

    def note_end(self) -> None:
        if self.step.operator.firing == "end" or not self.streams or self.rows_in > self.failed:
            self.fired()

    def end_dead(self) -> None:
        for stream in self.streams:
            stream.discard()
        self.session.totals_of(self.step).dead += 1
        self.finish(well=True, dead=True)

    def _report_end(self, dead: bool) -> None:
        session = self.session
        totals = session.totals_of(self.step)
        rows_in, rows_out = self.rows_in, self.rows_out
        totals.ended += 1
        totals.rows_in += rows_in
        totals.rows_out += rows_out
        session.active.pop(self, None)
        if session.listeners:
            session.publish(StepEnded(*self._place(), rows_in, rows_out, dead))

    @property
    def rows_out(self) -> int:
        return sum([outlet.sent for outlet in self.outlets])

    def unread(self) -> None:
        """Nobody reads an output any more: stop, if nobody reads any, and nothing else needs the step."""
        outlets = [*self.outlets, *([self.errors] if self.errors is not None else ())]
        if self.step.pinned or self.ended or not all(outlet.unread or not outlet.was_read for outlet in outlets):
            return
        self.unneeded = True
        if self.task is not None:
            self.task.cancel()
        elif not self.begun:
            self.begun = True
            self.finish(well=True)

    async def _end_children(self) -> None:
        children = self._children
        while children:
            for child in children:
                child.cancel()
            await asyncio.wait(children)

    # --- failing --------------------------------------------------------------------------------

    def _prepare_errors(self, schemas: Sequence[Schema | None]) -> None:
        per_tuple = self.step.operator.firing == "tuple"
        if self.errors is not None:
            schema = (schemas[0] if schemas else None) or Schema(())
            self.errors.open(schema.add(FAILURE) if per_tuple else FAILED_RELATION)
        if self.streams and not per_tuple and (self.errors is not None or self.sink is not None):
            self._recorded = self.streams[0].recorder = RowBuffer(self.session.memory)

    def tuple_failed(self, row: Row, error: BaseException, attempts: int) -> None:
        self.failed += 1
        self.session.totals_of(self.step).errors += 1
        if self.session.listeners:
            self.session.publish(TupleFailed(*self._place(), str(error)))
        schema = self.streams[0].schema if self.streams else None
        if self.step.resolved.skip_errors:
            return
        if self.errors is not None:
            schema = schema or Schema(())
            kept = [row[schema.position(name)] for name in schema.names if name not in FAILURE]
            self.errors.push([(*kept, *describe(error, attempts))])
        elif self.sink is not None:
            self.sink.take(self.step.where, Relation(schema or Schema(()), [row]), error, attempts)
        else:
            raise operator_error(self.step.where, error, schema, row)

    async def _statement_failed(self, error: Exception) -> None:
        """The statement as a whole failed: its ERRORS, or those of a call around it, take it."""
        taken = self.errors is not None or self.sink is not None or self.step.resolved.skip_errors
        if isinstance(error, RunError) or not taken:
            self.session.fail(error if isinstance(error, RunError) else operator_error(self.step.where, error, None, None))
            return
        self.session.totals_of(self.step).errors += 1
        packed = await self._packed_input()
        if self.step.resolved.skip_errors:
            return
        if self.errors is not None:
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

    # --- what a Context asks for ----------------------------------------------------------------

    @property
    def workers(self) -> int:
        return min(self.step.workers or self.session.workers, self.session.workers)

    @property
    def memory(self) -> Memory:
        return self.session.memory

    @property
    def run_info(self) -> RunInfo:
        return self.session.info

    @property
    def folder(self) -> Path:
        return self.session.folder

    @property
    def where(self) -> str:
        return self.step.where

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        if self._children is None:
            self._children = set()
        task = self.session.spawn(coroutine)
        self._children.add(task)
        task.add_done_callback(self._children.discard)
        return task

    @asynccontextmanager
    async def permit(self, source: str | None) -> AsyncIterator[None]:
        session = self.session
        permits = session.permits_of_run or session.budget.permits_for(source)
        limit = session.limit_of(self.step)
        started = session.now()
        if limit is not None:
            await limit.acquire(self.urgent)
        try:
            await permits.acquire(self.urgent)
            try:
                with self._firing(session.now() - started):
                    yield
            finally:
                permits.release()
        finally:
            if limit is not None:
                limit.release()

    def _firing(self, waited_seconds: float) -> _Firing:
        return _Firing(self, waited_seconds)

    def count(self, what: str, number: int) -> None:
        self.session.totals_of(self.step).counters[what] += number

    def warn(self, message: str) -> None:
        self.session.warn(f"{self.step.where}: {message}")

    def reads_output(self, name: str) -> bool:
        return bool(self.outlets[self._output_number(name)].targets)

    def item(self, kind: str, name: str) -> Item | None:
        return self.session.graph.program.item(kind, name)

    async def emit(self, name: str, schema: Schema, rows: Sequence[Row]) -> None:
        await self.session.emit(name, schema, rows)

    def _place(self) -> tuple[float, str, str, str, int | None, int]:
        session = self.session
        return (
            session.now(),
            session.info.run_id,
            self.step.plan.name,
            self.step.name,
            self.step.line,
            self.iteration,
        )


class _Firing:
    """Counts and reports one firing that waits on the outside world."""

    def __init__(self, step: OperatorStep, waited_seconds: float) -> None:
        self._step = step
        self._waited = waited_seconds
        self._number = 0

    def __enter__(self) -> None:
        session = self._step.session
        totals = session.totals_of(self._step.step)
        totals.firings += 1
        totals.waiting_permit_seconds += self._waited
        session.firings += 1
        self._number = session.firings
        if session.listeners:
            session.publish(FiringStarted(*self._step._place(), self._number, self._waited))

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        session = self._step.session
        if session.listeners:
            message = None if error is None else str(error) or type(error).__name__
            session.publish(FiringEnded(*self._step._place(), self._number, message))


def _rows_of(item: Any, outlet: Outlet, step: Step) -> Batch:
    """Rows from what an operator yielded: a row, a list of rows, or a mapping."""
    rows = item if isinstance(item, list) else [item]
    if rows and isinstance(rows[0], Mapping):
        if outlet.schema is None:
            outlet.open(Schema(tuple(rows[0])))
        assert outlet.schema is not None
        return [row_of_mapping(outlet.schema, mapping) for mapping in rows]
    if outlet.schema is None and rows:
        raise TypeError(
            f"{step.name} yields tuples without saying their attributes: give @operator a schema rule, "
            "or yield mappings or a Schema first"
        )
    return rows
