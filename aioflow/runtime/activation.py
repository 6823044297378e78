"""The firing rule, which decides when a step of a call begins, or ends dead instead."""

from __future__ import annotations

from collections.abc import Sequence

from aioflow.compiler.step import Step
from aioflow.runtime.failures import FailureSink
from aioflow.runtime.outlet import Outlet, Target
from aioflow.runtime.session import Session
from aioflow.runtime.signals import Completion, Signal, Watch
from aioflow.runtime.stream import Stream
from aioflow.wholeness import WHOLE, Marks


class Activation:
    """A step that has not begun: its inputs are held until a tuple and all its signals have arrived.

    Outside D+S+ it also waits for the end of every input. Each arrival calls `consider`; no task exists
    before the step has something to do.
    """

    __slots__ = (
        "begun",
        "completion",
        "ended",
        "errors",
        "has_fired",
        "iteration",
        "outlets",
        "session",
        "signals",
        "step",
        "streams",
        "waits",
    )

    def __init__(self, session: Session, step: Step, iteration: int, completion: Completion) -> None:
        self.session = session
        self.step = step
        self.iteration = iteration
        self.completion = completion
        self.begun = False
        self.ended = False
        self.has_fired = False
        self.streams: Sequence[Stream] = ()
        self.outlets: Sequence[Outlet] = ()
        self.errors: Outlet | None = None
        self.signals: Sequence[Signal] = ()
        self.waits: list[Signal] = []

    def wait_for(self, signal: Signal) -> None:
        self.waits.append(signal)
        signal.when_decided(self.consider)

    def watch(self) -> Watch:
        """Return a reader for a variable that the step WAITs for."""
        signal = Signal()
        self.wait_for(signal)
        return Watch(signal)

    @property
    def all_ended(self) -> bool:
        return all(stream.ended for stream in self.streams)

    def consider(self) -> None:
        """Begin, end dead, or go on waiting, after something has arrived."""
        if self.begun:
            return
        has_rows, ended, alive = False, True, not self.streams
        for stream in self.streams:
            if stream.has_rows:
                has_rows = alive = True
            if not stream.ended:
                ended = False
            elif not stream.dead:
                alive = True
        over = ended
        if self.step.recursive:
            # The call unfolds only for a tuple, and not for one that is merely handed down from level to
            # level.
            entries = [
                stream for port, stream in enumerate(self.streams) if port not in self.step.handed_down
            ]
            has_rows = alive = any(stream.has_rows for stream in entries)
            over = all(stream.ended for stream in entries)
        if (over and not alive) or (self.waits and any(signal.state == "never" for signal in self.waits)):
            self._let_begin()
            self.session.tasks.call_soon(self._end_dead)
        elif self._may_begin(has_rows, ended):
            self._let_begin()
            self.begin()

    def _may_begin(self, has_rows: bool, ended: bool) -> bool:
        if self.waits and any(signal.state == "pending" for signal in self.waits):
            return False
        if not self.session.settings.streaming:
            return ended
        if not (has_rows or ended):
            return False
        if self.step.is_call:
            return True
        return self._knows_schemas()

    def _knows_schemas(self) -> bool:
        """Return whether the schemas that the step is bound to are known; an open one may get more
        attributes.
        """
        unknown = [stream.schema is None and not stream.ended for stream in self.streams]
        if not any(unknown):
            return True
        told = [stream.schema is not None and not stream.schema.open for stream in self.streams]
        return self.step.operator.opens_late and not unknown[0] and any(told)

    def _let_begin(self) -> None:
        self.begun = True
        for stream in self.streams:
            stream.listener = None

    def _end_dead(self) -> None:
        # Later, not at once: ends pass through chains of statements of any length.
        if not self.ended and not self.session.tasks.stopping:
            self.end_dead()

    @property
    def is_pinned(self) -> bool:
        """True if the step must go on although its outputs have no reader."""
        if self.step.pinned or not self.step.pinned_until_enabled:
            return self.step.pinned
        return any(self.signals[number].state == "pending" for number in self.step.enable)

    def settle_signals(self, well: bool, marks: Marks = WHOLE) -> None:
        """Send DONE; signals that have not been sent by now never will be."""
        if well:
            for number in self.step.done:
                self.signals[number].send()
        for number in (*self.step.enable, *self.step.done):
            self.signals[number].give_up(marks)

    # --- wholeness ------------------------------------------------------------------------------

    def input_marks(self) -> Marks:
        """Return the marks of the results that follow from the inputs so far."""
        marks = WHOLE
        for place, stream in enumerate(self.streams):
            if stream.marks is WHOLE:
                continue
            if stream.was_read_out:
                found = stream.marks.as_doubt if place in self.step.needs_whole else stream.marks
                marks = marks.united(found.as_sorted if self.step.operator.orders else found)
            elif self.ended and not stream.closed:
                marks = marks.united(stream.marks.of_first_rows)
            elif not stream.closed:
                marks = marks.united(stream.marks.of_rows_so_far)
        return marks

    @property
    def dead_marks(self) -> Marks:
        """Return the marks of a step that does not fire: it might have fired if nothing had been missing."""
        marks = WHOLE
        never = [signal for signal in self.waits if signal.state == "never"]
        for source in never or self.streams:
            marks = marks.united(source.marks)
        return marks

    def mark_failures(self, marks: Marks, sink: FailureSink | None) -> None:
        """Mark the output of failures, in which some may be missing: WHOLE vouches for the results alone."""
        if self.errors is not None:
            self.errors.mark(marks)
        elif sink is not None and not self.step.resolved.skip_errors:
            sink.mark(marks)

    def new_outlet(self, targets: Sequence[Target]) -> Outlet:
        """Return the writer's end of one of the outputs."""
        return Outlet(targets, self.unread)

    def begin(self) -> None:
        """Begin the work; inputs and signals have arrived."""
        raise NotImplementedError

    def end_dead(self) -> None:
        """End without having fired: no effect, no signal, dead outputs."""
        raise NotImplementedError

    def unread(self) -> None:
        """Take note that one of the outputs has lost its last reader."""
        raise NotImplementedError
