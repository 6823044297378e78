"""The report of a run while it goes on: its events, its figures, its warnings and notes, and its log."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from aioflow.compiler.step import Step
from aioflow.config.masking import mask
from aioflow.runtime.budget import Permits
from aioflow.runtime.events import (
    CallEnded,
    CallStarted,
    Event,
    FiringEnded,
    FiringStarted,
    Listener,
    MessagesDelivered,
    RunCommitted,
    RunEnded,
    RunStarted,
    StepEnded,
    StepEvent,
    StepStarted,
    TupleFailed,
    Warned,
)
from aioflow.runtime.stream import Stream
from aioflow.values.quantities import count_text, duration_text


def now() -> float:
    """Return the time of the loop's clock in seconds, as events carry it."""
    return asyncio.get_running_loop().time()


class EventPublisher:
    """Calls the listeners of one run with its events. An event is made only if there are `listeners`."""

    def __init__(
        self, run_id: str, listeners: Sequence[Listener], fail: Callable[[BaseException], None]
    ) -> None:
        self.listeners = listeners
        self._run_id = run_id
        self._fail = fail

    def publish(self, event: Event) -> None:
        """Call every listener. An error that one of them raises fails the run."""
        for listener in self.listeners:
            try:
                listener(event)
            except Exception as error:
                self._fail(error)

    def stamp(self) -> tuple[float, str]:
        """Return the first fields of every event: the time and the run."""
        return now(), self._run_id

    def place(self, step: Step, iteration: int) -> tuple[float, str, str, str, int | None, int]:
        """Return the first fields of every event of a statement in one call."""
        return now(), self._run_id, step.plan.name, step.name, step.line, iteration


class Totals(msgspec.Struct):
    """The work of all calls of one statement so far."""

    step: Step
    rows_in: int = 0
    rows_out: int = 0
    errors: int = 0
    unasked: int = 0  # failures without a reader: ERRORS: skip, or an output that is not read
    skipped: int = 0  # failures that ERRORS: skip dropped
    first_skipped: str = ""
    first_unasked: str = ""
    firings: int = 0
    activations: int = 0
    ended: int = 0
    dead: int = 0
    doubtful: bool = False  # True if the run has warned of it
    waiting_input_seconds: float = 0.0
    waiting_output_seconds: float = 0.0
    waiting_permit_seconds: float = 0.0
    counters: Counter[str] = msgspec.field(default_factory=Counter)
    kinds: Counter[str] = msgspec.field(default_factory=Counter)  # of the errors that were taken

    def fail(self, error: BaseException, *, ends_run: bool = False) -> None:
        """Count a firing that failed, wherever its failure goes."""
        self.errors += 1
        if not ends_run:
            self.kinds[type(error).__name__] += 1

    def go_unasked(self, error: BaseException) -> None:
        """Count a failure that has no reader."""
        if not self.unasked:
            self.first_unasked = f"{type(error).__name__}: {error}".removesuffix(": ")
        self.unasked += 1

    def skip(self, error: BaseException) -> None:
        """Count a failure that the statement drops, as its ERRORS: skip says."""
        self.go_unasked(error)
        if not self.skipped:
            self.first_skipped = f"{type(error).__name__}: {error}".removesuffix(": ")
        self.skipped += 1


class Active(Protocol):
    """A step that is under way, as statistics see it."""

    step: Step
    iteration: int

    @property
    def streams(self) -> Sequence[Stream]: ...
    @property
    def is_idle(self) -> bool:
        """Return whether it has nothing to work on until more rows come."""
        ...

    @property
    def rows_in(self) -> int: ...
    @property
    def rows_out(self) -> int: ...


class RunTotals:
    """Counts the work of one run. A step adds its rows to the totals of its statement when it ends."""

    def __init__(self) -> None:
        self.calls = 0
        self.firings = 0
        self.active: dict[Active, None] = {}  # steps that are under way, in the order of their start
        self._by_statement: dict[tuple[str, int], Totals] = {}
        self._by_step: dict[Step, Totals] = {}

    def __iter__(self) -> Iterator[Totals]:
        """Yield the totals of every statement that has a step."""
        return iter(self._by_statement.values())

    def of(self, step: Step) -> Totals:
        """Return the totals of a step's statement."""
        totals = self._by_step.get(step)
        if totals is None:
            # Routines of one plan with other parameters, or merged, share the statement's totals.
            totals = self._by_statement.setdefault(step.statement_key, Totals(step))
            self._by_step[step] = totals
        return totals


class RunReport:
    """Collects the warnings and notes of one run, and publishes warnings as they come."""

    def __init__(self, events: EventPublisher) -> None:
        self.warnings: list[str] = []
        self.nothing_found: list[str] = []
        self.notes: list[str] = []
        self._events = events
        self._cut_off: dict[str, tuple[Step, int]] = {}  # by plan: the first call, and the number of tuples
        self._warned_of_outlasting = False

    def warn(self, message: str) -> None:
        """Add a warning, with its secrets masked."""
        message = mask(message)
        self.warnings.append(message)
        if self._events.listeners:
            self._events.publish(Warned(*self._events.stamp(), message))

    def find_nothing(self, message: str) -> None:
        """Warn, once for each message, that something which ended well has brought nothing."""
        if message not in self.nothing_found:
            self.nothing_found.append(message)
            self.warn(message)

    def cut_off(self, step: Step, tuples: int) -> None:
        """Count tuples of a recursive call that are not followed, because of MAX_DEPTH."""
        first, count = self._cut_off.get(step.callee.key, (step, 0))
        self._cut_off[step.callee.key] = first, count + tuples

    def warn_of_cuts(self) -> None:
        """Warn of each recursion that was cut off, since its results look whole."""
        for step, count in self._cut_off.values():
            plan = step.callee
            number = "1 tuple was" if count == 1 else f"{count:,} tuples were"
            cut = f"MAX_DEPTH: {plan.max_depth} cut the recursion of {plan.name} off"
            self.warn(f"{step.where}: {cut}: {number} not followed")

    def warn_of_skipped(self, statements: Iterable[Totals]) -> None:
        """Warn of each statement that dropped failures."""
        for totals in statements:
            if totals.skipped:
                number = "1 failure was" if totals.skipped == 1 else f"{totals.skipped:,} failures were"
                self.warn(f"{totals.step.where}: {number} skipped, the first: {totals.first_skipped}")

    def warn_of_outlasting(self, step: Step, permits: Permits) -> None:
        """Warn once that a step waits because its permits are with functions that cannot be interrupted."""
        if self._warned_of_outlasting:
            return
        self._warned_of_outlasting = True
        number = permits.outlasting
        holders = (
            "a blocking function that was cancelled and has not returned holds"
            if number == 1
            else "blocking functions that were cancelled and have not returned hold"
        )
        self.warn(f"{step.where}: waits for a permit: {holders} {number:,} of {permits.count:,}")

    def find_silent_failures(self, statements: Iterable[Totals]) -> None:
        """Report each statement of which every tuple failed, if the failures have no reader."""
        for totals in statements:
            firings = totals.rows_in if totals.step.inputs else totals.activations
            if totals.unasked and totals.unasked == firings:
                number = "all there was to do" if firings == 1 else f"all {firings:,} tuples"
                self.find_nothing(f"{totals.step.where}: {number} failed, the first: {totals.first_unasked}")


_LOG: Final = logging.getLogger("aioflow.engine")
# Warnings have a logger of their own, for programs that show them in another way.
_WARNINGS: Final = logging.getLogger("aioflow.engine.warnings")


def is_wanted() -> bool:
    """Return whether the log shows events."""
    return _LOG.isEnabledFor(logging.DEBUG)


def log_event(event: Event) -> None:
    """Write an event to the log; a listener of an engine."""
    if isinstance(event, Warned):
        _WARNINGS.warning("%s", mask(event.message))
        return
    words = _WORDS.get(type(event))
    if words is not None and (text := words(event)):
        place = _place(event) if isinstance(event, StepEvent) else ""
        _LOG.debug("%s", mask(f"{place}{text}"))


def _place(event: StepEvent) -> str:
    """Return `plan:line operator `, with the call if it is not the first."""
    line = "" if event.line is None else f":{event.line}"
    call = f" (call {event.iteration})" if event.iteration > 1 else ""
    return f"{event.plan}{line} {event.operator}{call} "


def _step_ended(event: StepEnded) -> str:
    if event.dead:
        return "did not fire"
    return f"has ended: {count_text(event.rows_in, 'row')} in, {count_text(event.rows_out, 'row')} out"


def _firing_started(event: FiringStarted) -> str:
    waited = f", after {duration_text(event.waited_seconds)} in the queue" if event.waited_seconds else ""
    return f"fires{': ' if event.label else ''}{event.label}{waited}"


def _firing_ended(event: FiringEnded) -> str:
    return f"failed: {event.error}" if event.error else ""


def _run_committed(event: RunCommitted) -> str:
    again = f" (commit {event.number})" if event.number > 1 else ""
    return f"run {event.run_id} of {event.plan} has committed{again}"


def _messages_delivered(event: MessagesDelivered) -> str:
    figures = (
        f"{count_text(event.sent, 'message')} sent, {event.failed:,} given up, {event.waiting:,} waiting"
    )
    return f"run {event.run_id} of {event.plan} has delivered: {figures}"


def _run_ended(event: RunEnded) -> str:
    verb = "was" if event.outcome in ("interrupted", "stopped") else "has"
    why = f": {event.error}" if event.error else ""
    return f"run {event.run_id} of {event.plan} {verb} {event.outcome}{why}"


_WORDS: Final[Mapping[type[Event], Callable[[Any], str]]] = {
    RunStarted: lambda event: f"run {event.run_id} of {event.plan} begins",
    RunCommitted: _run_committed,
    MessagesDelivered: _messages_delivered,
    RunEnded: _run_ended,
    CallStarted: lambda event: f"call {event.iteration} of {event.plan}, from call {event.parent}",
    CallEnded: lambda event: f"call {event.iteration} of {event.plan} has ended",
    StepStarted: lambda event: "begins",
    StepEnded: _step_ended,
    FiringStarted: _firing_started,
    FiringEnded: _firing_ended,
    TupleFailed: lambda event: f"failed on a tuple: {event.error}",
}
