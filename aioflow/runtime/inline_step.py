"""Steps that need no task: an operator that maps batches to batches works where its input is written.

Chains of such steps call one another. Past a certain depth the work is deferred to the loop, so that neither
long plans nor deep recursions grow the stack.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from aioflow.compiler.step import Counted, Step
from aioflow.relation import UNTOLD, Batch, Row, Schema
from aioflow.runtime.events import StepEnded, StepEvent, StepStarted
from aioflow.runtime.failures import batch_error, operator_error
from aioflow.runtime.outlet import Outlet, Target
from aioflow.runtime.room import Room, when_freed
from aioflow.runtime.session import Session
from aioflow.runtime.signals import Completion
from aioflow.runtime.stream import Stream
from aioflow.wholeness import Marks

_DEEPEST = 12


class InlineStep:
    """A statement without clauses whose operator is a function of batches; it is its own input."""

    __slots__ = (
        "_counted",
        "_function",
        "_late",
        "_offered",
        "_producers",
        "_scheduled",
        "_schema",
        "completion",
        "dead",
        "ended",
        "is_bystander",
        "iteration",
        "outlet",
        "received",
        "room",
        "session",
        "sources",
        "step",
        "totals",
    )

    outlet: Outlet  # set when the call is connected

    def __init__(self, session: Session, step: Step, iteration: int, completion: Completion) -> None:
        self.session = session
        self.step = step
        self.iteration = iteration
        self.completion = completion
        self.totals = session.totals.of(step)
        self.sources: list[Outlet] = []
        self.received = 0
        self.ended = False
        self.is_bystander = False
        self.dead = True
        self._function: Callable[[Sequence[Row]], Batch] | None = None
        self._schema: Schema | None = None
        self._producers = 0
        self._offered = UNTOLD  # the schema of writers that ended without rows
        self._counted: Sequence[Counted] = ()
        self._late: deque[Callable[[], None]] = deque()
        self._scheduled = False
        self.room = Room()

    @property
    def streams(self) -> tuple[Stream, ...]:
        """None: rows are processed as they arrive, without a queue."""
        return ()

    @property
    def is_idle(self) -> bool:
        return not self._late

    @property
    def rows_in(self) -> int:
        return self.received

    @property
    def rows_out(self) -> int:
        return self.outlet.sent

    # --- as a target ----------------------------------------------------------------------------

    def attach(self, outlet: Outlet) -> None:
        self._producers += 1
        self.sources.append(outlet)

    def accept(self, outlet: Outlet, schema: Schema) -> Target:
        if self._late or self.session.inline_depth >= _DEEPEST:
            self._put_off(lambda: self._open(schema))
        else:
            self.session.inline_depth += 1
            try:
                self._open(schema)
            finally:
                self.session.inline_depth -= 1
        return self

    def push(self, rows: Sequence[Row], full: list[Room]) -> None:
        if self.ended:
            return
        session = self.session
        if self._late or session.inline_depth >= _DEEPEST:
            self._put_off(lambda: self._pass_on(rows))
            self.room.is_full = True
            full.append(self.room)
            return
        session.inline_depth += 1
        try:
            self._work(rows, full)
        finally:
            session.inline_depth -= 1

    @property
    def reads(self) -> bool:
        return not self.ended

    def serves(self, reader: object) -> bool:
        return reader is self

    def mark(self, marks: Marks) -> None:
        if self._late or self.session.inline_depth >= _DEEPEST:
            self._put_off(lambda: self.outlet.mark(marks))
            return
        self.session.inline_depth += 1
        try:
            self.outlet.mark(marks)
        finally:
            self.session.inline_depth -= 1

    def end(self, outlet: Outlet, dead: bool) -> None:
        if outlet in self.sources:
            self.sources.remove(outlet)
        self._producers -= 1
        if not dead:
            self.dead = False
        if outlet.schema is not None and outlet.schema.open and not outlet.sent:
            self._offered = self._offered.add(outlet.schema)
        if self._producers:
            return
        if self._late or self.session.inline_depth >= _DEEPEST:
            self._put_off(self._finish)
        else:
            self.session.inline_depth += 1
            try:
                self._finish()
            finally:
                self.session.inline_depth -= 1

    # --- the work -------------------------------------------------------------------------------

    def _open(self, schema: Schema) -> None:
        if self._function is not None or self.ended:
            return
        try:
            bound = self.step.bind((schema,))
            self._schema = schema
            self._function, self._counted = bound.function, bound.counted
            self.totals.activations += 1
            self.session.totals.active[self] = None
            if bound.schemas[0] is not None:
                self.outlet.open(bound.schemas[0])
        except Exception as error:
            self.session.tasks.fail(operator_error(self.step.where, error, None, None))

    def _work(self, rows: Sequence[Row], full: list[Room]) -> None:
        if not self.received and self.session.events.listeners:
            self._publish(StepStarted)
        self.received += len(rows)
        if self._function is None:
            return  # it could not be bound, so the run fails
        try:
            results = self._function(rows)
        except Exception as error:
            failure = batch_error(self.step.where, error, self._schema, self._function, rows)
            self.session.fail_step(self.step, self.iteration, failure)
            return
        if results:
            self.outlet.pass_on(results, full)

    def _finish(self) -> None:
        if self.ended or self.session.tasks.failure is not None:
            return  # a stream that fails does not end
        if self._function is None and not self.dead:
            self._open(self._offered)
        if not self.received and not self.dead and self.session.events.listeners:
            self._publish(StepStarted)
        self.ended = True
        self._report(self.dead)
        self.outlet.end(self.dead)
        self.completion.leave()

    def _publish(self, kind: Callable[..., StepEvent], *details: Any) -> None:
        events = self.session.events
        events.publish(kind(*events.place(self.step, self.iteration), *details))

    def _report(self, dead: bool) -> None:
        totals = self.totals
        totals.ended += 1
        totals.dead += dead
        totals.rows_in += self.received
        totals.rows_out += self.outlet.sent
        for counted in self._counted:
            totals.counters.update(counted.take())
        self.session.totals.active.pop(self, None)
        if self.session.events.listeners:
            self._publish(StepEnded, self.received, self.outlet.sent, dead)

    def unread(self) -> None:
        """Close the input if the output has lost all readers."""
        if not self.ended and self.outlet.unread:
            self.ended = True
            self.session.tasks.settle(self._let_go)

    def _let_go(self) -> None:
        self._late.clear()
        self.room.free()
        for source in tuple(self.sources):
            source.drop(self)
        self.outlet.end()  # bystanders may be left
        self._report(dead=False)
        self.completion.leave()

    # --- putting off ----------------------------------------------------------------------------

    def _put_off(self, work: Callable[[], None]) -> None:
        self._late.append(work)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self.session.tasks.call_soon(self._catch_up)

    def _catch_up(self) -> None:
        self._scheduled = False
        if self.session.tasks.stopping:
            return
        while self._late and not self._scheduled:
            self._late[0]()
            if self._late:
                self._late.popleft()
        if not self._late:
            self.room.free()

    def _pass_on(self, rows: Sequence[Row]) -> None:
        """Pass on rows. Deferred work cannot wait in a coroutine, so a full reader calls back when it has
        room.
        """
        full: list[Room] = []
        self._work(rows, full)
        if full:
            self._scheduled = True
            when_freed(full, lambda: self.session.tasks.guard(self._catch_up))
