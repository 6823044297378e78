"""Calls of plans: each a group of steps with a colour of its own, wired straight to its caller's streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aioflow.context import Position
from aioflow.errors import DepthError
from aioflow.events import CallEnded, CallStarted
from aioflow.executor import OperatorStep
from aioflow.failures import CallFailures, FailureSink
from aioflow.gate import Gate
from aioflow.graph import Routine
from aioflow.handover import hand_over
from aioflow.inline import InlineStep
from aioflow.loop import Loop
from aioflow.once import OnceStream
from aioflow.outlet import Outlet, Target, has_readers
from aioflow.session import Session
from aioflow.signals import Completion, EndWatch, Signal, Watch
from aioflow.spill import KeySet
from aioflow.step import Step
from aioflow.stream import Stream
from aioflow.vouched import Vouched
from aioflow.wholeness import WHOLE, Marks


class Surroundings:
    """What a call inherits from where it is made."""

    __slots__ = ("depths", "once", "ordered", "sink", "urgent")

    def __init__(
        self,
        sink: FailureSink | None = None,
        ordered: bool = False,
        urgent: bool = False,
        depths: Mapping[str, int] | None = None,
        once: Mapping[str, KeySet] | None = None,
    ) -> None:
        self.sink = sink
        self.ordered = ordered
        self.urgent = urgent
        self.depths = depths or {}
        self.once = once or {}


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
        surroundings: Surroundings,
        caller: Position | None = None,
    ) -> None:
        self.session = session
        self.routine = routine
        self.caller = caller
        self.completion = completion
        self.surroundings = surroundings
        session.calls += 1
        self.iteration = session.calls
        self.signals = [Signal() for _ in range(routine.signals)]
        self.gates: list[Gate | InlineStep | None] = []
        # Who watches wants to see every step begin, wait and end.
        watched = session.timing or bool(session.listeners)
        self.may_inline = session.streaming and surroundings.sink is None and not watched

    def open(
        self,
        inputs: Sequence[Stream],
        outputs: Sequence[Sequence[Target]],
        closed: frozenset[int] = frozenset(),
    ) -> None:
        """Make the steps and connect them: inputs are the caller's streams, outputs its readers.

        `closed` are outputs whose readers have all left.
        """
        self.completion.enter()  # until all is connected
        adopted = self._make_gates(inputs)
        targets = self._targets(outputs)
        self._make_outlets(targets, closed)
        if closed:  # first: what nobody reads need not begin
            for gate in self.gates:
                if gate is not None:
                    gate.unread()
        for stream, variable in zip(inputs, self.routine.inputs, strict=True):
            if variable in self.routine.outputs:
                targets[variable].append(EndWatch(self.completion))
            if variable not in adopted:
                hand_over(stream, targets[variable])
        for gate in self.gates:
            # Streams that got rows or ended meanwhile have told their gates; the others have none.
            if isinstance(gate, Gate) and (not gate.streams or adopted):
                gate.consider()
        self.completion.leave()

    def _make_gates(self, inputs: Sequence[Stream]) -> set[int]:
        """The steps with their streams; the input variables whose stream a step could simply take over."""
        routine, session = self.routine, self.session
        told = [None if stream.schema is None or stream.schema.open else stream.schema for stream in inputs]
        schemas = routine.schemas(tuple(told))
        adopted: set[int] = set()
        taken: dict[tuple[int, int], Stream] = {}
        for stream, variable in zip(inputs, routine.inputs, strict=True):
            readers = routine.readers[variable]
            if len(readers) == 1 and readers[0].kind == "input" and stream.can_be_adopted:
                reading = routine.steps[readers[0].number]
                if reading.needs_no_task and self.may_inline:
                    continue
                if reading.is_call and reading.callee.once is not None:
                    continue  # its own stream must see every row
                adopted.add(variable)
                taken[readers[0].number, readers[0].port] = stream
        for number, step in enumerate(routine.steps):
            if number in routine.merged:
                self.gates.append(None)
                continue
            self.completion.enter()
            if step.needs_no_task and self.may_inline:
                self.gates.append(InlineStep(session, step, self.iteration, self.completion))
                continue
            gate = self._gate(step)
            streams = []
            for port, variable in enumerate(step.inputs):
                stream = taken.get((number, port)) or gate.new_stream(routine.buffers[variable])
                stream.listener = gate.consider
                stream.hold()  # who waits for space in one that was taken over need not wait any more
                if stream.schema is None:
                    stream.schema = schemas[variable]
                if session.timing:
                    stream.waited = gate.waited_for_input
                streams.append(stream)
            gate.streams = streams
            if len(streams) > 1:
                for stream in streams:
                    stream.siblings = streams
            self.gates.append(gate)
        return adopted

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
            )
        gate.signals = self.signals
        for number in step.signal_waits:
            gate.wait_for(self.signals[number])
        return gate

    def _targets(self, outputs: Sequence[Sequence[Target]]) -> list[list[Target]]:
        """For each variable everything that reads it."""
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
                outlet.was_read = True


class CallStep(Gate):
    """A statement that calls a plan."""

    __slots__ = ("_call", "_seen", "_watches", "ordered", "urgent")

    def __init__(self, call: Call, step: Step, urgent: bool) -> None:
        super().__init__(call.session, step, call.iteration, call.completion)
        self._call = call
        self._seen: KeySet | None = None
        self._watches: list[Watch] = []
        self.urgent = urgent
        self.ordered = call.surroundings.ordered or step.resolved.ordered

    def new_stream(self, capacity: int | None) -> Stream:
        session = self.session
        rows = capacity or session.capacity_rows
        plan = self.step.callee
        if plan.once is None:
            return Stream(rows, session.memory)
        known = self._call.surroundings.once.get(plan.key) if self.step.recursive else None
        if known is None:
            if self._seen is None:
                self._seen = KeySet(session.memory)
            return OnceStream(rows, session.memory, plan.once, self._seen, filters=False)
        return OnceStream(rows, session.memory, plan.once, known, filters=True)

    def new_outlet(self, targets: Sequence[Target]) -> Outlet:
        if not self.step.enable:
            return super().new_outlet(self._vouched(targets))
        # ENABLE goes out with the first result, on whichever output: one watch looks at all of them.
        if not self._watches:
            self._watches = [Watch(self.signals[number]) for number in self.step.enable]
        outlet = Outlet([*self._vouched(targets), *self._watches], self.unread)
        outlet.was_read = has_readers(targets)
        return outlet

    def _vouched(self, targets: Sequence[Target]) -> Sequence[Target]:
        """What the plan's steps write to; WHOLE keeps their marks away from it."""
        return [Vouched(target) for target in targets] if self.step.vouched else targets

    def waited_for_input(self, seconds: float) -> None:
        return

    def begin(self) -> None:
        for stream in self.streams:
            stream.holding = False
        # Not at once: a plan that hands its input to itself would unfold on the stack for ever.
        self.session.call_soon(self._unfold)

    def _unfold(self) -> None:
        if self.ended or self.session.stopping or self._end_unread():
            return
        inside = self._inside()
        if inside is None:
            self._too_deep()
            return
        for stream in self.streams:
            stream.dead = False  # beside a live input a dead one counts as empty
        session = self.session
        tail = self.step.tail is not None and not self.ordered
        routine = session.graph.callee(self.step, self._call.routine, tail)
        if tail and routine.is_loop and self._call.may_inline:
            self._loop(routine, inside)
            return
        completion = self.completion if tail else Completion(self._child_ended)
        caller = self._call.caller if tail else self.step.position(self.iteration, self._call.caller)
        child = Call(session, routine, completion, inside, caller)
        if session.listeners:
            place = (session.now(), session.info.run_id, routine.plan.name, child.iteration)
            session.publish(CallStarted(*place, self.iteration))
        closed = frozenset([number for number, outlet in enumerate(self.outlets) if outlet.unread])
        completion.enter()
        child.open(self.streams, [outlet.targets for outlet in self.outlets], closed)
        for outlet in self.outlets:
            outlet.end(dead=True)  # handed over: what the child's outlets say counts
        completion.leave()
        if tail:
            self.ended = True
            self.completion.leave()

    def _loop(self, routine: Routine, inside: Surroundings) -> None:
        """Leave this and all further levels to a work list."""
        plan = routine.plan
        outputs = [outlet.targets for outlet in self.outlets]
        seen = inside.once.get(plan.key)
        depth = inside.depths.get(plan.key, 1)
        loop = Loop(self.session, routine, self.completion, outputs, depth, seen, self.step.where)
        hand_over(self.streams[0], [loop])
        loop.mark_left(self.outlets)
        for outlet in self.outlets:
            outlet.end(dead=True)
        self.ended = True
        self.completion.leave()

    def _inside(self) -> Surroundings | None:
        """What the call's steps inherit; None if that would be too deep."""
        plan, around, recursive = self.step.callee, self._call.surroundings, self.step.recursive
        sink = self._sink()
        same = sink is around.sink and self.urgent == around.urgent and self.ordered == around.ordered
        if same and recursive and plan.max_depth is None and self._seen is None:
            return around
        depths = dict(around.depths) if recursive else {}
        if plan.max_depth is not None:
            depths[plan.key] = depths.get(plan.key, 0) + 1
            if depths[plan.key] > plan.max_depth:
                return None
        once = dict(around.once) if recursive else {}
        if self._seen is not None:
            once[plan.key] = self._seen
        return Surroundings(sink, self.ordered, self.urgent, depths, once)

    def _sink(self) -> FailureSink | None:
        if self.errors is not None or self.step.resolved.skip_errors:
            return CallFailures(self.errors)
        return self._call.surroundings.sink

    def _too_deep(self) -> None:
        plan = self.step.callee
        if plan.stop_at_max_depth:
            self.end_dead()
            return
        self.session.fail(
            DepthError(
                f"{self.step.where}: the recursion of {plan.name} went past MAX_DEPTH: {plan.max_depth}"
            )
        )

    def _child_ended(self) -> None:
        self.session.call_soon(self._end_call)

    def _end_call(self) -> None:
        if self.session.stopping or self.ended:
            return
        if self.session.listeners:
            place = (self.session.now(), self.session.info.run_id)
            self.session.publish(CallEnded(*place, self.step.name, self.iteration))
        self._finish()

    def _finish(self, *, dead: bool = False, marks: Marks = WHOLE) -> None:
        self.ended = True
        if self.errors is not None:
            self.errors.mark(marks)
            self.errors.end(dead)
        self.settle_signals(not dead, marks)
        if self._seen is not None:
            self._seen.close()
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
        """Nobody reads an output any more: if the call has not unfolded, it need not."""
        if not self.begun:
            self._end_unread()

    def _end_unread(self) -> bool:
        """End a call that has not unfolded if nobody reads its outputs any more."""
        left = [outlet.unread for outlet in self.outlets if outlet.was_read]
        if self.is_pinned or self.ended or not left or not all(left):
            return False
        self._let_begin()
        self.ended = True
        self.session.settle(self._let_go)
        return True

    def _let_go(self) -> None:
        for stream in self.streams:
            stream.close()
        for outlet in self.outlets:
            outlet.end()
        self._finish()
