"""The further levels of a tail recursion whose steps keep no state: one work list instead of many calls.

When every step of a plan maps batches to batches, a level is a function from the rows of its input to
rows for the plan's outputs and rows for the next levels. No steps have to be connected then, and a level
costs a few microseconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice, takewhile

import msgspec

from aioflow.compiler.graph import Routine
from aioflow.compiler.step import Bound, Step
from aioflow.relation import Row, Schema
from aioflow.runtime.events import CallEnded, CallStarted, StepEnded, StepStarted
from aioflow.runtime.failures import batch_error, operator_error
from aioflow.runtime.outlet import Outlet, Reordered, Target, nobody_needs
from aioflow.runtime.recursion import Once, Recursion, too_deep
from aioflow.runtime.report import Totals
from aioflow.runtime.room import Room, when_freed
from aioflow.runtime.session import Session
from aioflow.runtime.signals import Completion
from aioflow.runtime.stream import Stream
from aioflow.wholeness import Marks

_LEVELS_AT_ONCE = 256
_WAITING_AT_MOST = 64


class _LoopStep:
    """A statement in all levels of a loop, as statistics see it. It has no queue and never waits."""

    __slots__ = ("iteration", "rows_in", "rows_out", "step", "totals")

    def __init__(self, step: Step, iteration: int, totals: Totals) -> None:
        self.step = step
        self.iteration = iteration
        self.totals = totals
        self.rows_in = 0
        self.rows_out = 0

    @property
    def streams(self) -> tuple[Stream, ...]:
        return ()

    @property
    def is_idle(self) -> bool:
        return True


class _Work(msgspec.Struct, frozen=True):
    """One step of a level: makes rows of one variable from those of another."""

    step: _LoopStep
    bound: Bound
    schema: Schema
    source: int
    result: int


class _Level(msgspec.Struct, frozen=True):
    """The work of a level on rows of a certain schema."""

    works: tuple[_Work, ...]
    outlets: tuple[tuple[int, Outlet], ...]  # variables that are outputs
    calls: tuple[tuple[int, Schema], ...]  # variables that the recursive calls read


class _Entry(msgspec.Struct, frozen=True):
    """Rows that are to enter a level."""

    schema: Schema
    rows: Sequence[Row]
    level: int
    is_looked_up: bool = False  # ONCE has let the rows pass


class TailLoop:
    """All levels of a recursion from the second on; it reads the input of its first call."""

    def __init__(
        self,
        session: Session,
        routine: Routine,
        completion: Completion,
        outputs: Sequence[Sequence[Target]],
        step: Step,
        recursion: Recursion | None,
        level: int,
        is_bystander: bool,
        parent: int,
    ) -> None:
        self.session = session
        self.sources: list[Outlet] = []
        self._routine = routine
        self._completion = completion
        self._step = step  # the call that it begins with
        self.is_bystander = is_bystander
        self._parent = parent  # colour of the call that the loop continues
        self._iteration = 0  # colour of the loop
        self._steps: dict[Step, _LoopStep] = {}  # from its first rows on
        self._level = level
        self._levels_in_turn = recursion.levels if recursion is not None else None
        plan, self._once = routine.plan, None
        if recursion is not None and plan.once is not None:
            self._once = Once(session.graph.once_keys(plan), recursion.seen(plan))
        self._schema: Schema | None = None
        self._producers = 0
        self._ended = False
        self._levels: dict[Schema, _Level] = {}
        self._queue: deque[_Entry] = deque()
        self._early: dict[int, list[_Entry]] = {}  # by level: rows that arrived before its turn
        self._scheduled = False
        self._room = Room()
        # These hold the readers while levels of other schemas may still come.
        self._anchors = [Outlet(targets, self._unread) for targets in outputs]
        completion.enter()

    # --- as a target ----------------------------------------------------------------------------

    @property
    def reads(self) -> bool:
        return not self._ended

    def attach(self, outlet: Outlet) -> None:
        self._producers += 1
        self.sources.append(outlet)

    def accept(self, outlet: Outlet, schema: Schema) -> Target:
        if self._schema is None:
            self._schema = schema
        return self if self._schema.names == schema.names else Reordered(self, schema, self._schema)

    def push(self, rows: Sequence[Row], full: list[Room]) -> None:
        if self._ended:
            return
        assert self._schema is not None
        self._add(_Entry(self._schema, rows, self._level))
        self._schedule()
        if len(self._queue) >= _WAITING_AT_MOST:
            self._room.is_full = True
            full.append(self._room)

    def serves(self, reader: object) -> bool:
        return reader is self

    def mark(self, marks: Marks) -> None:
        for anchor in self._anchors:
            anchor.mark(marks)

    def end(self, outlet: Outlet, dead: bool) -> None:
        if outlet in self.sources:
            self.sources.remove(outlet)
        self._producers -= 1
        if not self._producers:
            self._schedule()

    # --- the work -------------------------------------------------------------------------------

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self.session.tasks.call_soon(self._run)

    def _run(self) -> None:
        """Work on some levels, then let other tasks run."""
        self._scheduled = False
        if self._ended or self.session.tasks.stopping:
            return
        checkpoints = self.session.checkpoints
        if checkpoints is not None and not checkpoints.is_open:
            checkpoints.when_open(self._schedule)  # rows that wait here rest as they would before a call
            return
        full: list[Room] = []
        self._scheduled = True  # a level that opens meanwhile is worked on in this very loop
        for _ in range(_LEVELS_AT_ONCE):
            if not self._queue or full or self._needs_disk or self.session.tasks.failure is not None:
                break
            self._run_level(full)
        self._scheduled = False
        if self.session.tasks.failure is None:
            self._go_on(full)

    def _go_on(self, full: list[Room]) -> None:
        """Arrange for the work that is left, or finish."""
        if full:
            self._scheduled = True
            when_freed(full, lambda: self.session.tasks.guard(self._run))
        elif self._needs_disk:
            self._scheduled = True
            self.session.tasks.spawn(self._look_up())
        elif self._queue:
            self._schedule()
        elif not self._producers and not self._early:
            self._finish()
            return
        if len(self._queue) < _WAITING_AT_MOST:
            self._room.free()

    @property
    def _needs_disk(self) -> bool:
        """Return whether the disk thread must look up the values of ONCE before the work on the next rows."""
        return bool(self._queue) and self._is_unknown(self._queue[0])

    def _is_unknown(self, entry: _Entry) -> bool:
        if self._once is None or entry.level == self._level or entry.is_looked_up:
            return False
        return self._once.is_on_disk

    async def _look_up(self) -> None:
        """Have the disk thread look up the values of the rows that are next, and work on them."""
        assert self._once is not None
        try:
            with self.session.tasks.at_work():
                # They stay in the queue meanwhile, where they are released if all readers leave.
                entries = list(takewhile(self._is_unknown, islice(self._queue, _WAITING_AT_MOST)))
                found = await self._once.look_up([(entry.schema, entry.rows) for entry in entries])
                if self._ended:
                    return
                for _ in entries:
                    self._queue.popleft()
                self._queue.extendleft(
                    _Entry(entry.schema, rows, entry.level, True)
                    for entry, rows in zip(reversed(entries), reversed(found), strict=True)
                )
                self._run()
        except Exception as error:
            self.session.tasks.fail(error)

    def _add(self, entry: _Entry) -> None:
        """Put rows where they wait for their level."""
        levels = self._levels_in_turn
        if levels is not None:
            levels.enter(entry.level)
            if not levels.is_open(entry.level):
                if entry.level not in self._early:
                    levels.when_open(entry.level, lambda: self._take_up(entry.level))
                self._early.setdefault(entry.level, []).append(entry)
                return
        self._queue.append(entry)

    def _take_up(self, level: int) -> None:
        self._queue.extend(self._early.pop(level, ()))
        self._schedule()

    def _run_level(self, full: list[Room]) -> None:
        entry = self._queue.popleft()
        rows = entry.rows
        if entry.level > self._level:  # the rows of the first call were inspected on their way here
            rows = self._entering(entry)
        if rows:
            self._work(entry.schema, rows, entry.level, full)
        if self._levels_in_turn is not None:
            self._levels_in_turn.leave(entry.level)

    def _entering(self, entry: _Entry) -> Sequence[Row]:
        """Return the rows that a level works on: values that are new, and none past MAX_DEPTH."""
        plan, rows = self._routine.plan, entry.rows
        if self._once is not None and not entry.is_looked_up:
            rows = self._once.fresh(entry.schema, rows)
        if not rows or plan.max_depth is None or entry.level <= plan.max_depth:
            return rows
        if plan.stop_at_max_depth:
            self.session.report.cut_off(self._step, len(rows))
        else:
            self.session.tasks.fail(too_deep(self._step))
        return ()

    def _work(self, schema: Schema, rows: Sequence[Row], number: int, full: list[Room]) -> None:
        self.session.totals.calls += 1
        if not self._iteration:
            self._begin()
        level = self._levels.get(schema) or self._prepare(schema)
        if level is None:
            return
        values: list[Sequence[Row]] = [()] * len(self._routine.variables)
        values[self._routine.inputs[0]] = rows
        for work in level.works:
            given = values[work.source]
            step = work.step
            step.totals.activations += 1
            if given:
                function = work.bound.function
                assert function is not None
                try:
                    results = function(given)
                except Exception as error:
                    failure = batch_error(step.step.where, error, work.schema, function, given)
                    self.session.fail_step(step.step, self._iteration, failure)
                    return
                values[work.result] = results
                step.rows_in += len(given)
                step.rows_out += len(results)
        for variable, outlet in level.outlets:
            if values[variable]:
                outlet.pass_on(values[variable], full)
        for variable, next_schema in level.calls:
            if values[variable]:
                self._add(_Entry(next_schema, values[variable], number + 1))

    def _begin(self) -> None:
        """Count the loop's statements from now on, and notify listeners that they have begun."""
        totals, events = self.session.totals, self.session.events
        self._iteration = totals.calls
        for number in self._routine.order:
            step = self._routine.steps[number]
            if step.outputs[0] is not None:
                self._steps[step] = _LoopStep(step, self._iteration, totals.of(step))
                totals.active[self._steps[step]] = None
        if events.listeners:
            plan = self._routine.plan.name
            events.publish(CallStarted(*events.stamp(), plan, self._iteration, self._parent))
            for step in self._steps:
                events.publish(StepStarted(*events.place(step, self._iteration)))

    def _prepare(self, schema: Schema) -> _Level | None:
        """Bind the steps of a level to the schema of its input."""
        routine = self._routine
        schemas: dict[int, Schema] = {routine.inputs[0]: schema}
        works = []
        try:
            for number in routine.order:
                step = routine.steps[number]
                given = schemas[step.inputs[0]]
                bound = step.bind((given,))
                result = step.outputs[0]
                if result is None:
                    continue
                opened = bound.schemas[0]
                assert opened is not None
                schemas[result] = opened
                works.append(_Work(self._steps[step], bound, given, step.inputs[0], result))
            level = _Level(tuple(works), self._outlets(schemas), self._calls(schemas))
        except Exception as error:
            self.session.tasks.fail(operator_error(self._step.where, error, None, None))
            return None
        self._levels[schema] = level
        return level

    def _outlets(self, schemas: dict[int, Schema]) -> tuple[tuple[int, Outlet], ...]:
        outlets = []
        for variable, schema in schemas.items():
            for reader in self._routine.readers[variable]:
                if reader.kind == "output":
                    outlet = Outlet(self._anchors[reader.number].targets)
                    outlet.open(schema)
                    outlets.append((variable, outlet))
        return tuple(outlets)

    def _calls(self, schemas: dict[int, Schema]) -> tuple[tuple[int, Schema], ...]:
        calls = [step for step in self._routine.steps if step.is_call and not step.handed_down]
        return tuple((step.inputs[0], schemas[step.inputs[0]]) for step in calls)

    # --- ending ---------------------------------------------------------------------------------

    def _finish(self) -> None:
        self._ended = True
        self._room.free()
        for level in self._levels.values():
            for _, outlet in level.outlets:
                outlet.end()
        for anchor in self._anchors:
            # Like the last call, which does not unfold; the results of levels ended above.
            anchor.end(dead=True)
        for step in self._routine.steps:
            if not step.is_call:
                totals = self.session.totals.of(step)
                totals.ended = max(totals.ended, 1)
        self._report()
        self._completion.leave()

    def _report(self) -> None:
        totals, events = self.session.totals, self.session.events
        for level in self._levels.values():
            for work in level.works:
                for counted in work.bound.counted:
                    work.step.totals.counters.update(counted.take())
        for step in self._steps.values():
            step.totals.rows_in += step.rows_in
            step.totals.rows_out += step.rows_out
            totals.active.pop(step, None)
            if events.listeners:
                place = events.place(step.step, self._iteration)
                events.publish(StepEnded(*place, step.rows_in, step.rows_out))
        if events.listeners and self._iteration:
            events.publish(CallEnded(*events.stamp(), self._routine.plan.name, self._iteration))

    def mark_left(self, outlets: Sequence[Outlet]) -> None:
        """Take note of readers that left between the beginning of the call and its unfolding."""
        for anchor, outlet in zip(self._anchors, outlets, strict=True):
            anchor.was_read, anchor.was_needed = outlet.was_read, outlet.was_needed
        if any(anchor.unread for anchor in self._anchors):
            self._unread()

    def _unread(self) -> None:
        """Close the input if all outputs have lost their readers."""
        if self._ended or not nobody_needs(self._anchors):
            return
        self._forget()
        for source in tuple(self.sources):
            source.drop(self)
        self._finish()

    def _forget(self) -> None:
        """Release rows that are not needed; other work lists of the recursion may wait for its level."""
        waiting = [*self._queue, *(entry for entries in self._early.values() for entry in entries)]
        self._queue.clear()
        self._early.clear()
        if self._levels_in_turn is not None:
            for entry in waiting:
                self._levels_in_turn.leave(entry.level)
