"""Steps of operators in a call. Each step fires when its inputs and signals allow.

No step waits for a child: an arrival starts a step, and a call ends when its count of unfinished steps is
zero. Depth therefore costs neither stack nor forwarding.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from aioflow.authoring.context import DEAD, END, Context, Position, Release, To
from aioflow.authoring.operator import BatchFunction
from aioflow.compiler.fitting import FAILED_RELATION, FAILURE
from aioflow.compiler.step import Bound, Step
from aioflow.errors import ReleasedError, RunError, message_of
from aioflow.relation import UNTOLD, Batch, Relation, Row, Schema
from aioflow.runtime.activation import Activation
from aioflow.runtime.events import StepEnded, StepStarted, TupleFailed
from aioflow.runtime.failures import FailureSink, HeldResults, describe, failed_row, operator_error
from aioflow.runtime.outlet import Outlet, nobody_needs, rows_of
from aioflow.runtime.report import now
from aioflow.runtime.session import Session
from aioflow.runtime.signals import Completion
from aioflow.runtime.spill import RowBuffer
from aioflow.runtime.stream import Stream
from aioflow.wholeness import WHOLE, Marks, partial


class OperatorStep(Activation):
    """A statement on an operator in one call."""

    __slots__ = (
        "_held",
        "_new_context",
        "_recorded",
        "_release",
        "caller",
        "children",
        "failed",
        "first_failure",
        "has_failed",
        "has_news",
        "lacking",
        "ordered",
        "own_marks",
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
        caller: Position | None,
        sink: FailureSink | None,
        ordered: bool,
        urgent: bool,
        new_context: Callable[[OperatorStep], Context],
    ) -> None:
        super().__init__(session, step, iteration, completion)
        self.caller = caller
        self.sink = sink
        self.ordered = ordered or step.resolved.ordered
        self.urgent = urgent
        self.failed = 0
        self.has_failed = False  # as a whole
        self.lacking = 0  # failed tuples whose results are unknown
        self.first_failure = ""
        self.own_marks = WHOLE
        self.has_news = False  # marks of inputs have arrived since the results were marked
        self.task: asyncio.Task[None] | None = None
        self.totals = session.totals.of(step)
        self.running = False
        self.unneeded = False
        self.children: dict[asyncio.Task[Any], None] = {}
        self._recorded: RowBuffer | None = None
        self._held: HeldResults | None = None
        self._release: Release | None = None
        self._new_context = new_context

    def new_stream(self, port: int, capacity: int | None) -> Stream:
        return Stream(capacity or self.session.settings.capacity_rows, self.session.memory)

    def listen_for_marks(self) -> None:
        """Take note of marks of inputs from now on."""
        for stream in self.streams:
            stream.on_mark = self._note_news
            if stream.marks is not WHOLE:
                self.has_news = True

    def waited_for_input(self, seconds: float) -> None:
        self.totals.waiting_input_seconds += seconds

    @property
    def is_idle(self) -> bool:
        if not self.running:
            return False  # it has rows, and begins in a moment
        if not self.streams:
            return True  # a source: its rows pass a gate
        # A step that works on many tuples at once has one task that waits for the next, and one for each
        # tuple.
        return len(self.children) <= 1 and any(stream.is_awaited for stream in self.streams)

    @property
    def position(self) -> Position:
        return self.step.position(self.iteration, self.caller)

    # --- starting -------------------------------------------------------------------------------

    @property
    def text_order(self) -> tuple[int, int]:
        return self.step.order, self.iteration

    def begin(self) -> None:
        for stream in self.streams:
            stream.stop_holding()
        self.listen_for_marks()
        if self.session.baton is not None:
            self.session.baton.request(self)
        else:
            self.spawn_run()

    def spawn_run(self) -> None:
        self.session.totals.active[self] = None
        self.task = self.session.tasks.spawn(self._run())
        self.task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        """Fail the run if the task ended before the step did, whatever the cause."""
        error = None if task.cancelled() else task.exception()
        if not self.ended:
            cause = error or asyncio.CancelledError("cancelled by something it waited for")
            self.session.tasks.fail(operator_error(self.step.where, cause, None, None))

    async def _run(self) -> None:
        self.running = True
        session, totals = self.session, self.totals
        if self.unneeded:  # since it was spawned
            self.finish(well=True)
            self._release_resources()
            return
        if session.events.listeners:
            session.events.publish(StepStarted(*self.place()))
        totals.activations += 1
        well = True
        try:
            try:
                await self._operate()
            except (Exception, SystemExit) as error:
                well = await self._statement_failed(error)
        except asyncio.CancelledError:
            if not self.unneeded or session.tasks.stopping:
                raise
        finally:
            if self.children:
                await self._end_children()
            self._release_resources()
        if session.tasks.failure is None:  # a stream that fails does not end
            self.finish(well=well)

    def _release_resources(self) -> None:
        if self._recorded is not None:
            self._recorded.close()
        if self._held is not None:
            self._held.close()
        if self.session.baton is not None:
            self.session.baton.release()

    async def _operate(self) -> None:
        step = self.step
        operator = step.operator
        bound = step.bind(tuple([stream.known_schema() for stream in self.streams]))
        for stream, listed in zip(self.streams, bound.inputs, strict=True):
            stream.list_attributes(listed)
        for outlet, schema in zip(self.outlets, bound.schemas, strict=True):
            if schema is not None:
                outlet.open(schema)
        if self.takes_failures:
            self._prepare_errors(bound.inputs)
        if bound.function is not None:
            # Bound once more: the stream itself now adds the nulls that its rows lack.
            bound = step.bind(tuple([stream.schema for stream in self.streams]))
            assert bound.function is not None
            await self._map(bound, bound.function)
            return
        arguments = bound.arguments
        if operator.takes_context:
            arguments = {**arguments, "context": self._new_context(self)}
        generator = operator.function(*self.streams, **arguments)
        if self.session.checkpoints is not None and not self.streams:
            generator = self.session.checkpoints.gated(generator)
        try:
            await self._consume(generator)
        except BaseException:
            await generator.aclose()
            raise
        if self._held is not None:
            await self._hand_on(self._held)

    async def _map(self, bound: Bound, function: BatchFunction) -> None:
        """Do the work of the operator with its function of batches, and find the tuples that fail."""
        stream, outlet = self.streams[0], self.outlets[0]
        full = False
        try:
            async for batch in stream.batches():
                if full:
                    await self._drain()
                results = self._results(function, batch)
                if self.has_news:
                    self._mark_rows()
                full = outlet.push(results) if results else False
                if not self.has_fired and self.step.enable:
                    self.note_firing()
        finally:
            for counted in bound.counted:
                self.totals.counters.update(counted.take())

    def _results(self, function: BatchFunction, batch: Batch) -> Batch:
        try:
            return function(batch)
        except Exception:
            results: Batch = []  # the tuples that fail are found one by one
        for row in batch:
            try:
                results += function([row])
            except Exception as error:
                self.tuple_failed(row, error, 1)
        return results

    # --- wholeness ------------------------------------------------------------------------------

    def _note_news(self) -> None:
        self.has_news = True

    def marks_now(self) -> Marks:
        """Return the marks of the results; all of them when the step has ended."""
        return self._of_results(self.input_marks())

    def _of_results(self, given: Marks) -> Marks:
        """Return the marks of the results of inputs with these marks."""
        if self.step.vouched:
            return WHOLE
        marks = given.united(self.own_marks)
        if self.lacking:
            number = "a tuple" if self.lacking == 1 else f"{self.lacking:,} tuples"
            marks = marks.united(
                partial(f"{self.step.where}: {number} failed, the first: {self.first_failure}")
            )
        return marks

    def _mark_rows(self) -> None:
        """Say that rows may be wrong before they leave."""
        self.has_news = False
        marks = self.marks_now().of_rows_so_far
        for outlet in self.outlets:
            outlet.mark(marks)

    async def _consume(self, generator: AsyncGenerator[Any, None]) -> None:
        """Pass on the operator's items. It waits for room before the next rows, not after the last."""
        only = self.outlets[0] if len(self.outlets) == 1 and self._held is None else None
        full, width = False, -1
        async for item in generator:
            if full:
                await self._drain()
            if item.__class__ is Release:
                await self._stop_holding(item)
                continue
            if self.has_news:
                self._mark_rows()
            if width < 0 and only is not None and only.schema is not None:
                width = len(self._listed(only))
            kind = item.__class__
            if only is not None and kind is tuple and len(item) == width:
                full = only.push((item,))
            elif only is not None and kind is list and item and len(item[0]) == width:
                full = only.push(item) if item[0].__class__ is tuple else self._route(item)
            else:
                full = self._route(item)
            if not self.has_fired and self.step.enable and self._held is None:
                self.note_firing()

    async def _stop_holding(self, release: Release) -> None:
        """Hold the results no longer: a failure ends the run from now on."""
        self._release = release
        if self._held is not None:
            await self._hand_on(self._held)

    async def _hand_on(self, held: HeldResults) -> None:
        self._held = None
        try:
            for outlet, batches in held.outlets():
                async for batch in batches:
                    if outlet.push(batch):
                        await self._drain()
        finally:
            held.close()

    async def _drain(self) -> None:
        if self._held is not None:
            await asyncio.sleep(0)
        started = now() if self.session.settings.timing else 0.0
        for outlet in self.outlets:
            await outlet.drain()
        if self.errors is not None:
            await self.errors.drain()
        if self.session.settings.timing:
            waited = now() - started
            self.totals.waiting_output_seconds += waited

    def _route(self, item: Any) -> bool:
        """Pass on any item of an operator other than rows of a known schema."""
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
        held = self._held
        if item is DEAD or item is END:
            outlet.mark(self.marks_now())
            if held is None:
                outlet.end(dead=item is DEAD)
            else:
                held.end(outlet, dead=item is DEAD)
            return False
        if outlet.schema is not None and not outlet.sent:
            self._listed(outlet)
        rows = rows_of(item, outlet, self.step.name)
        if not rows:
            return False
        return outlet.push(rows) if held is None else held.add(outlet, rows)

    def _listed(self, outlet: Outlet) -> Schema:
        """Return the schema of an output, with attributes that the operator has asked of open inputs."""
        assert outlet.schema is not None
        if outlet.schema.open:
            bound = self.step.bind(tuple([stream.schema for stream in self.streams]))
            schema = bound.schemas[self.outlets.index(outlet)]
            if schema is not None:
                outlet.open(schema)
        return outlet.schema

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
        """End outputs and signals, and release the inputs."""
        self.ended = True
        if well and not dead and self.step.firing != "tuple" and not self.unneeded:
            self.note_end()
        given = self.dead_marks if dead else self.input_marks()
        marks = self._of_results(given)
        for outlet in self.outlets:
            outlet.mark(marks)
            outlet.end(dead)
        self.mark_failures(given, self.sink)
        if self.errors is not None:
            self.errors.end(dead)
        for stream in self.streams:
            if not stream.ended and not dead:
                stream.close()
            elif stream.has_rows:
                stream.release()
        if self.step.enable or self.step.done:
            self.settle_signals(well and not dead, marks)
        self._warn_of_doubt(marks)
        self._report_end(dead)
        self.completion.leave()

    def _warn_of_doubt(self, marks: Marks) -> None:
        """Warn once, at the statement at which rows begin to be doubtful."""
        new = [stream.marks for place, stream in enumerate(self.streams) if place in self.step.needs_whole]
        if marks.doubtful and any(each.partial for each in new) and not self.totals.doubtful:
            self.totals.doubtful = True
            self.session.report.warn(f"{self.step.where}: its results may be wrong: {marks.doubtful[0].text}")

    def note_end(self) -> None:
        if self.has_failed:
            return
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
        session.totals.active.pop(self, None)
        if session.events.listeners:
            session.events.publish(StepEnded(*self.place(), rows_in, rows_out, dead))

    @property
    def rows_out(self) -> int:
        return sum([outlet.sent for outlet in self.outlets])

    def unread(self) -> None:
        """Stop if all outputs have lost their readers and nothing else needs the step."""
        outlets = [*self.outlets, *([self.errors] if self.errors is not None else ())]
        if self.is_pinned or self.ended or not nobody_needs(outlets):
            return
        if not self.unneeded:
            self.unneeded = True
            self.session.tasks.settle(self._let_go)

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

    @property
    def takes_failures(self) -> bool:
        """True if ERRORS, of the statement or around the call, takes failures."""
        return self.errors is not None or self.sink is not None or self.step.resolved.skip_errors

    def _prepare_errors(self, schemas: Sequence[Schema | None]) -> None:
        """Hold results so that all leave or none; keep the input if the statement works on all of it."""
        by_tuple = self.step.fails_by_tuple
        if self.errors is not None:
            schema = (schemas[0] or UNTOLD) if schemas else Schema(())
            self.errors.open(schema.add(FAILURE) if by_tuple else FAILED_RELATION)
        if by_tuple and self.streams:
            return  # each firing holds its own results
        self._held = HeldResults(self.outlets, self.session.memory)
        if self.streams and not self.step.resolved.skip_errors:
            self._recorded = self.streams[0].recorder = RowBuffer(self.session.memory)

    def tuple_failed(self, row: Row, error: BaseException, attempts: int) -> None:
        schema = self.streams[0].schema if self.streams else None
        if not self.streams:  # without inputs, it was the only firing
            error = self._drop_results(error)
        self.failed += 1
        ends_run = isinstance(error, RunError) or not self.takes_failures
        self.totals.fail(error, ends_run=ends_run)
        self._note_failure(error)
        if self.session.events.listeners:
            self.session.events.publish(TupleFailed(*self.place(), str(error)))
        if ends_run:
            raise self._told(error, schema, row)
        if self.step.resolved.skip_errors:
            self.totals.skip(error)
        elif self.errors is not None:
            if not self.errors.was_read or self.errors.unread:
                self.totals.go_unasked(error)
            self.errors.push([failed_row(schema or Schema(()), row, error, attempts)])
        elif self.sink is not None:
            self.sink.take(self.step.where, Relation(schema or Schema(()), [row]), error, attempts)

    def _note_failure(self, error: BaseException) -> None:
        """Take note that rows are missing after a failure, unless it means that there are none."""
        if getattr(error, "means_absence", False):
            return
        if not self.lacking:
            self.first_failure = message_of(error) or type(error).__name__
            self.has_news = True
        self.lacking += 1

    def _drop_results(self, error: BaseException) -> BaseException:
        """Drop the results; return the error, or one that ends the run if some results have left."""
        if self._release is not None and not isinstance(error, RunError):
            return ReleasedError(error, self._release.why)
        if self._held is not None:
            self._held.close()
            self._held = HeldResults(self.outlets, self.session.memory)
        return error

    async def _statement_failed(self, failure: Exception | SystemExit) -> bool:
        """Handle a failure of the whole statement; return whether its ERRORS, or those around it, take it."""
        if self.session.tasks.stopping or self.unneeded:
            return False
        error = self._drop_results(failure)
        if isinstance(error, RunError) or not self._may_be_taken():
            self.session.tasks.fail(self._told(error, None, None))
            return False
        self.has_failed = True
        self.totals.fail(error)
        self.own_marks = self.own_marks.united(partial(f"{self.step.where}: failed: {message_of(error)}"))
        if self.step.resolved.skip_errors:
            self.totals.skip(error)
            return True
        packed = await self._packed_input()
        if self.errors is not None:
            if self.errors.schema is None:
                self.errors.open(FAILED_RELATION)
            self.errors.push([(packed, *describe(error, 1))])
        elif self.sink is not None:
            self.sink.take(self.step.where, packed, error, 1)
        return True

    def _told(self, error: BaseException, schema: Schema | None, row: Row | None) -> RunError:
        """Return the error that ends the run; some errors name a place of their own."""
        if isinstance(error, RunError) and not isinstance(error, ReleasedError):
            return error
        return operator_error(self.step.where, error, schema, row)

    def _may_be_taken(self) -> bool:
        """Return whether the failure of the statement as a whole is data.

        ERRORS of a statement whose tuples fail one by one has only tuples. A call around the statement takes
        such a failure as long as no result has left.
        """
        if not self.step.fails_by_tuple:
            return self.takes_failures
        own = self.errors is not None or self.step.resolved.skip_errors
        return self.sink is not None and not own and not self.rows_out

    async def _packed_input(self) -> Relation:
        """Return the whole first input, including rows that had not been read when the statement failed."""
        if not self.streams:
            return Relation(Schema(()))
        if self._recorded is None and not self.rows_in:  # it could not even begin
            self._recorded = self.streams[0].recorder = RowBuffer(self.session.memory)
        for stream in self.streams:
            while not stream.closed and await stream.receive() is not None:
                pass
        schema = self.streams[0].schema or UNTOLD
        recorded, self._recorded = self._recorded, None
        self.streams[0].recorder = None
        return recorded.relation(schema) if recorded is not None else Relation(schema)

    def place(self) -> tuple[float, str, str, str, int | None, int]:
        """Return the first arguments of every event of this step."""
        return self.session.events.place(self.step, self.iteration)
