"""Calls of plans: each a group of steps with a colour of its own, wired straight to its caller's streams.

The steps of a called plan read the streams of its caller directly, without anything in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aioflow.authoring.context import Position
from aioflow.compiler.graph import Routine
from aioflow.compiler.step import Schemas, Step
from aioflow.errors import ClosedError
from aioflow.plan import Plan
from aioflow.runtime.activation import Activation
from aioflow.runtime.events import CallEnded, CallStarted
from aioflow.runtime.failures import CallFailures, FailureSink
from aioflow.runtime.inline_step import InlineStep
from aioflow.runtime.operator_step import OperatorStep
from aioflow.runtime.outlet import Outlet, Target, Vouched, has_readers, is_needed, nobody_needs
from aioflow.runtime.recursion import (
    CutOff,
    EntryStream,
    LevelShare,
    Once,
    Recursion,
    Turn,
    too_deep,
    unbounded,
)
from aioflow.runtime.session import Session
from aioflow.runtime.signals import Completion, EndWatch, Signal, Watch
from aioflow.runtime.step_context import StepContext
from aioflow.runtime.stream import Stream
from aioflow.runtime.tail_loop import TailLoop
from aioflow.wholeness import WHOLE, Marks


def hand_over(stream: Stream, targets: Sequence[Target], session: Session, completion: Completion) -> None:
    """Let other targets read in place of a stream, from its first row on."""
    stream.listener = None
    if not targets:
        stream.discard()
        return
    # A stream that must see every row stays in between. It leaves when all readers have left.
    relay = Outlet(targets)
    if not any(target.reads for target in targets):  # they have left before it began
        stream.close()
        relay.end()
        return
    if stream.schema is not None:
        relay.open(stream.schema)
    if stream.has_rows_on_disk:
        completion.enter()
        session.tasks.spawn(_hand_over_from_disk(stream, targets, relay, session, completion))
    else:
        _connect(stream, targets, relay)


def _connect(stream: Stream, targets: Sequence[Target], relay: Outlet) -> None:
    """Hand over a stream whose rows are all in memory."""
    if isinstance(stream, EntryStream):
        relay.on_unread = lambda: stream.let_go() if relay.unread else None
        stream.forward_to(relay)
        return
    relay.on_unread = None
    for source in tuple(stream.sources):
        source.replace(stream, targets)
    while (batch := stream.take()) is not None:
        relay.push(batch)
    relay.mark(stream.marks)
    relay.end(dead=stream.dead)
    stream.sources.clear()
    stream.release()


async def _hand_over_from_disk(
    stream: Stream, targets: Sequence[Target], relay: Outlet, session: Session, completion: Completion
) -> None:
    """Pass on the rows that are on disk, which takes time, and then hand over the stream."""
    relay.on_unread = lambda: stream.close() if relay.unread else None
    try:
        with session.tasks.at_work():
            while stream.has_rows_on_disk and (batch := await stream.receive()) is not None:
                if relay.push(batch):
                    await relay.drain()
            if not stream.closed:
                _connect(stream, targets, relay)
    except ClosedError:
        pass  # all readers that needed the rows have left
    except Exception as error:
        session.tasks.fail(error)
        return
    if stream.closed:
        relay.end()  # bystanders may be left
    completion.leave()


class CallScope:
    """The state that a call inherits from its caller."""

    __slots__ = ("depths", "level", "ordered", "recursion", "sink", "urgent")

    def __init__(
        self,
        sink: FailureSink | None = None,
        ordered: bool = False,
        urgent: bool = False,
        depths: Mapping[str, int] | None = None,
        recursion: Recursion | None = None,
        level: int = 1,
    ) -> None:
        self.sink = sink
        self.ordered = ordered
        self.urgent = urgent
        self.depths = depths or {}  # by plan: the number of its calls that lead here
        self.recursion = recursion
        self.level = (
            level  # the number of recursive calls that lead here, with the outermost, if it is needed
        )


class Entrance:
    """The way of tuples into a call; `around` is the scope that a recursive call inherits."""

    __slots__ = ("_handed_down", "_looks", "_plan", "_recursive", "_session", "level", "recursion", "share")

    def __init__(
        self,
        session: Session,
        plan: Plan,
        handed_down: frozenset[int] = frozenset(),
        around: CallScope | None = None,
    ) -> None:
        self._session = session
        self._plan = plan
        self._handed_down = handed_down
        self._recursive = around is not None
        if around is not None:
            self.recursion, self.level = around.recursion, around.level + 1
        else:
            recursive = plan.once is not None or session.graph.calls.recurs(plan)
            levelled = session.graph.calls.is_levelled(plan)
            self.recursion = Recursion(session.memory, levelled) if recursive else None
            self.level = 1
        levels = self.recursion.levels if self.recursion is not None else None
        self.share: LevelShare | None = None
        if levels is not None:
            self.share = LevelShare(levels, self.level, len(plan.inputs) - len(handed_down))
        self._looks = sees_every_row(session, plan, recursive=self._recursive)

    def new_stream(self, port: int, capacity: int | None) -> Stream:
        """Return an input of the call."""
        session = self._session
        rows = capacity or session.settings.capacity_rows
        if self.recursion is None or not self._looks or port in self._handed_down:
            return Stream(rows, session.memory)
        once = None
        if self._plan.once is not None:
            once = Once(session.graph.once_keys(self._plan), self.recursion.seen(self._plan))
        turn = None
        if self._recursive:
            turn = Turn(session, self.recursion.levels, self.level)
        on_over = self.share.one_known if self.share else None
        return EntryStream(rows, session.memory, session.tasks, once, turn, on_over)

    def unfolded(self) -> None:
        """Take note that the steps of the call are connected."""
        if self.share is not None:
            self.share.one_known()

    def close(self) -> None:
        """Take note that the call has ended."""
        if self.share is not None:
            self.share.give_up()
        if self.recursion is not None and not self._recursive:
            self.recursion.close()


def sees_every_row(session: Session, plan: Plan, *, recursive: bool) -> bool:
    """Return whether the tuples that enter a call of a plan are inspected on their way in."""
    if plan.once is not None or (recursive and session.checkpoints is not None):
        return True
    return session.graph.calls.is_levelled(plan)


class Call:
    """One call of a plan; `iteration` is its colour."""

    __slots__ = (
        "caller",
        "completion",
        "gates",
        "iteration",
        "may_inline",
        "routine",
        "session",
        "signals",
        "surroundings",
    )

    def __init__(
        self,
        session: Session,
        routine: Routine,
        completion: Completion,
        surroundings: CallScope,
        caller: Position | None = None,
    ) -> None:
        self.session = session
        self.routine = routine
        self.caller = caller
        self.completion = completion
        self.surroundings = surroundings
        session.totals.calls += 1
        self.iteration = session.totals.calls
        self.signals = [Signal() for _ in range(routine.signals)]
        self.gates: list[Activation | InlineStep | None] = []
        self.may_inline = session.settings.streaming and surroundings.sink is None

    def open(
        self,
        inputs: Sequence[Stream],
        outputs: Sequence[Sequence[Target]],
        closed: frozenset[int] = frozenset(),
        untaken: frozenset[int] = frozenset(),
    ) -> None:
        """Make the steps and connect them: inputs are the caller's streams, outputs its readers.

        `closed` are outputs whose readers have all left, `untaken` those that no reader ever needed.
        """
        self.completion.enter()  # until all is connected
        adopted = self._make_gates(inputs, self.routine.bystanders(untaken))
        targets = self._targets(outputs)
        self._make_outlets(targets, closed)
        if closed:  # first: a step without readers need not begin
            for gate in self.gates:
                if gate is not None:
                    gate.unread()
        for stream, variable in zip(inputs, self.routine.inputs, strict=True):
            if variable in self.routine.outputs:
                targets[variable].append(EndWatch(self.completion))
            if variable not in adopted:
                hand_over(stream, targets[variable], self.session, self.completion)
        for gate in self.gates:
            # Streams that got rows or ended meanwhile have notified their gates; the others have none.
            if isinstance(gate, Activation) and (not gate.streams or adopted):
                gate.consider()
        self.completion.leave()

    def _make_gates(self, inputs: Sequence[Stream], bystanders: frozenset[int]) -> set[int]:
        """Make the steps with their streams; return the input variables whose stream a step took over."""
        routine, session = self.routine, self.session
        told = [None if stream.schema is None or stream.schema.open else stream.schema for stream in inputs]
        schemas = routine.schemas(tuple(told))
        taken = self._adopted(inputs)
        for number, step in enumerate(routine.steps):
            if number in routine.merged:
                self.gates.append(None)
                continue
            self.completion.enter()
            if step.needs_no_task and self.may_inline:
                inline = InlineStep(session, step, self.iteration, self.completion)
                inline.is_bystander = number in bystanders
                self.gates.append(inline)
                continue
            gate = self._gate(step)
            streams = [
                taken.get((number, port)) or gate.new_stream(port, routine.buffers[variable])
                for port, variable in enumerate(step.inputs)
            ]
            self._connect(gate, streams, schemas, is_bystander=number in bystanders)
            self.gates.append(gate)
        for stream in taken.values():
            for source in stream.sources:
                source.readers_changed()
        return {routine.steps[number].inputs[port] for number, port in taken}

    def _connect(
        self, gate: CallStep | OperatorStep, streams: list[Stream], schemas: Schemas, *, is_bystander: bool
    ) -> None:
        """Make streams the inputs of a step that has not begun."""
        for stream, variable in zip(streams, gate.step.inputs, strict=True):
            stream.listener = gate.consider
            stream.is_bystander = is_bystander
            stream.hold()  # a writer that waits for room in a stream taken over may go on
            if stream.schema is None:
                stream.schema = schemas[variable]
            if self.session.settings.timing:
                stream.waited = gate.waited_for_input
            if len(streams) > 1:
                stream.siblings = streams
        gate.streams = streams

    def _adopted(self, inputs: Sequence[Stream]) -> dict[tuple[int, int], Stream]:
        """Return the caller's streams that a step can read instead of one of its own, by step and port."""
        routine = self.routine
        taken: dict[tuple[int, int], Stream] = {}
        for stream, variable in zip(inputs, routine.inputs, strict=True):
            readers = routine.readers[variable]
            if len(readers) != 1 or readers[0].kind != "input" or not stream.can_be_adopted:
                continue
            reading = routine.steps[readers[0].number]
            if reading.needs_no_task and self.may_inline:
                continue
            if reading.is_call and sees_every_row(self.session, reading.callee, recursive=reading.recursive):
                continue  # its own stream must see every row
            taken[readers[0].number, readers[0].port] = stream
        return taken

    def _gate(self, step: Step) -> CallStep | OperatorStep:
        around = self.surroundings
        urgent = step.urgent or (around.urgent and bool(step.urgent_if))
        gate: CallStep | OperatorStep
        if step.is_call:
            gate = CallStep(self, step, urgent)
        else:
            gate = OperatorStep(
                self.session,
                step,
                self.iteration,
                self.completion,
                self.caller,
                around.sink,
                around.ordered,
                urgent,
                StepContext,
            )
        gate.signals = self.signals
        for number in step.signal_waits:
            gate.wait_for(self.signals[number])
        return gate

    def _targets(self, outputs: Sequence[Sequence[Target]]) -> list[list[Target]]:
        """Return the targets that read each variable."""
        targets: list[list[Target]] = []
        for readers in self.routine.readers:
            found: list[Target] = []
            for reader in readers:
                if reader.kind == "output":
                    found.extend(outputs[reader.number])
                    continue
                gate = self.gates[reader.number]
                assert gate is not None
                if isinstance(gate, InlineStep):
                    found.append(gate)
                    continue
                found.append(gate.streams[reader.port] if reader.kind == "input" else gate.watch())
            targets.append(found)
        return targets

    def _make_outlets(self, targets: Sequence[Sequence[Target]], closed: frozenset[int]) -> None:
        for gate in self.gates:
            if gate is None:
                continue
            step = gate.step
            if isinstance(gate, InlineStep):
                variable = step.outputs[0]
                gate.outlet = Outlet(targets[variable] if variable is not None else (), gate.unread)
                if closed:
                    self._mark_left((gate.outlet,), step, closed)
                continue
            gate.outlets = [gate.new_outlet(targets[v] if v is not None else ()) for v in step.outputs]
            if step.errors is not None:
                gate.errors = Outlet(targets[step.errors], gate.unread)
            if closed:
                self._mark_left(gate.outlets, step, closed)

    def _mark_left(self, outlets: Sequence[Outlet], step: Step, closed: frozenset[int]) -> None:
        """An output that all readers have left is not one that never had any."""
        for outlet, variable in zip(outlets, step.outputs, strict=True):
            readers = self.routine.readers[variable] if variable is not None else ()
            if any(reader.kind == "output" and reader.number in closed for reader in readers):
                outlet.mark_left()


class CallStep(Activation):
    """A statement that calls a plan."""

    __slots__ = ("_call", "_child", "_entrance", "_watches", "ordered", "urgent")

    def __init__(self, call: Call, step: Step, urgent: bool) -> None:
        super().__init__(call.session, step, call.iteration, call.completion)
        self._call = call
        self._child = 0  # colour of the call that it has unfolded into
        around = call.surroundings if step.recursive else None
        self._entrance = Entrance(call.session, step.callee, step.handed_down, around)
        self._watches: list[Watch] = []
        self.urgent = urgent
        self.ordered = call.surroundings.ordered or step.resolved.ordered

    def new_stream(self, port: int, capacity: int | None) -> Stream:
        return self._entrance.new_stream(port, capacity)

    def new_outlet(self, targets: Sequence[Target]) -> Outlet:
        if not self.step.enable:
            return super().new_outlet(self._vouched(targets))
        # ENABLE goes out with the first result, on whichever output: one watch looks at all of them.
        if not self._watches:
            self._watches = [Watch(self.signals[number]) for number in self.step.enable]
        outlet = Outlet(self._vouched([*targets, *self._watches]), self.unread)
        outlet.was_read, outlet.was_needed = has_readers(targets), is_needed(targets)
        return outlet

    def _vouched(self, targets: Sequence[Target]) -> Sequence[Target]:
        """Return the targets of the plan's steps; WHOLE keeps marks away from them."""
        return [Vouched(target) for target in targets] if self.step.vouched else targets

    def waited_for_input(self, seconds: float) -> None:
        return

    def begin(self) -> None:
        for stream in self.streams:
            stream.stop_holding()
        # Not at once: a plan that passes its input to itself would unfold on the stack forever.
        self.session.tasks.call_soon(self._unfold)

    def _unfold(self) -> None:
        if self.ended or self.session.tasks.stopping or self._end_unread():
            return
        inside = self._inside()
        if self._is_too_deep(inside):
            return
        session = self.session
        tail = self.step.tail is not None and not self.ordered
        routine = session.graph.callee(self.step, self._call.routine, tail)
        if tail and routine.is_loop and self._call.may_inline:
            self._loop(routine, inside)
            return
        completion = self.completion if tail else Completion(self._child_ended)
        caller = self._call.caller if tail else self.step.position(self.iteration, self._call.caller)
        child = Call(session, routine, completion, inside, caller)
        self._child = child.iteration
        events = session.events
        if events.listeners:
            plan = routine.plan.name
            events.publish(CallStarted(*events.stamp(), plan, child.iteration, self.iteration))
        closed = frozenset([number for number, outlet in enumerate(self.outlets) if outlet.unread])
        completion.enter()
        child.open(self.streams, [outlet.targets for outlet in self.outlets], closed, self._untaken())
        for outlet in self.outlets:
            outlet.end(dead=True)  # handed over: the outlets of the child count
        completion.leave()
        self._entrance.unfolded()
        if tail:
            self.ended = True
            self.completion.leave()

    def _untaken(self) -> frozenset[int]:
        """Return the outputs without need; none for a call that is made for its signals or for no result."""
        if self.step.enable or self.step.done or not any(outlet.was_read for outlet in self.outlets):
            return frozenset()
        return frozenset([number for number, outlet in enumerate(self.outlets) if not outlet.was_needed])

    def _loop(self, routine: Routine, inside: CallScope) -> None:
        """Leave this and all further levels to a work list."""
        outputs = [outlet.targets for outlet in self.outlets]
        stream = self.streams[0]
        loop = TailLoop(
            self.session,
            routine,
            self.completion,
            outputs,
            self.step,
            inside.recursion,
            inside.level,
            stream.is_bystander,
            self.iteration,
        )
        hand_over(stream, [loop], self.session, self.completion)
        self._entrance.unfolded()
        loop.mark_left(self.outlets)
        for outlet in self.outlets:
            outlet.end(dead=True)
        self.ended = True
        self.completion.leave()

    def _inside(self) -> CallScope:
        """Return the scope that the call's steps inherit."""
        plan, around, recursive = self.step.callee, self._call.surroundings, self.step.recursive
        sink = self._sink()
        same = sink is around.sink and self.urgent == around.urgent and self.ordered == around.ordered
        if same and recursive and not self.step.counts_levels:
            return around
        depths = dict(around.depths) if recursive else {}
        if plan.max_depth is not None:
            depths[plan.key] = depths.get(plan.key, 0) + 1
        entrance = self._entrance
        return CallScope(sink, self.ordered, self.urgent, depths, entrance.recursion, entrance.level)

    def _sink(self) -> FailureSink | None:
        if self.errors is not None or self.step.resolved.skip_errors:
            return CallFailures(self.errors, self.session.totals.of(self.step).skip)
        return self._call.surroundings.sink

    def _is_too_deep(self, inside: CallScope) -> bool:
        """Return whether the call must not unfold; the recursion is then cut off, or the run fails."""
        plan, session = self.step.callee, self.session
        if plan.max_depth is not None and inside.depths[plan.key] > plan.max_depth:
            if plan.stop_at_max_depth:
                self._cut_off()
            else:
                session.tasks.fail(too_deep(self.step))
            return True
        if self.step.is_limited and inside.level > session.settings.max_depth:
            session.tasks.fail(unbounded(self.step, session.settings.max_depth))
            return True
        return False

    def _cut_off(self) -> None:
        for port, stream in enumerate(self.streams):
            if port in self.step.handed_down:
                stream.discard()
            else:
                hand_over(stream, [CutOff(self.session, self.step)], self.session, self.completion)
        for outlet in self.outlets:
            outlet.end(dead=True)
        self._finish(dead=True)

    def _child_ended(self) -> None:
        self.session.tasks.call_soon(self._end_call)

    def _end_call(self) -> None:
        if self.session.tasks.stopping or self.ended:
            return
        events = self.session.events
        if events.listeners:
            events.publish(CallEnded(*events.stamp(), self.step.callee.name, self._child))
        self._finish()

    def _finish(self, *, dead: bool = False, marks: Marks = WHOLE) -> None:
        self.ended = True
        self.mark_failures(marks, self._call.surroundings.sink)
        if self.errors is not None:
            self.errors.end(dead)
        self.settle_signals(not dead, WHOLE if self.step.vouched else marks)
        self._entrance.close()
        self.completion.leave()

    def end_dead(self) -> None:
        for stream in self.streams:
            stream.discard()
        marks = self.dead_marks
        for outlet in self.outlets:
            outlet.mark(marks)
            outlet.end(dead=True)
        self._finish(dead=True, marks=marks)

    def unread(self) -> None:
        """Take note that an output has lost its last reader: a call that has not unfolded need not."""
        if not self.begun:
            self._end_unread()

    def _end_unread(self) -> bool:
        """End a call that has not unfolded if its outputs have lost all readers."""
        was_read = any(outlet.was_read for outlet in self.outlets)
        if self.is_pinned or self.ended or not was_read or not nobody_needs(self.outlets):
            return False
        self._let_begin()
        self.ended = True
        self.session.tasks.settle(self._let_go)
        return True

    def _let_go(self) -> None:
        for stream in self.streams:
            stream.close()
        for outlet in self.outlets:
            outlet.end()
        self._finish()
