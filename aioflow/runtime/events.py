"""The events of a run, as values for a progress display, a trace or a console.

No event is built while there is no listener.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

# A run is stopped when its results have lost their reader, and interrupted when the reader was cancelled, as
# by Ctrl-C. A program that runs plans for others may refuse a run, which then never begins.
Outcome: TypeAlias = Literal["not started", "running", "ended", "failed", "stopped", "interrupted", "refused"]


class Event(msgspec.Struct, frozen=True):
    """Something that happened at a time of the loop's clock, in seconds, in one run."""

    time: float
    run_id: str


class RunStarted(Event, frozen=True):
    plan: str


class RunEnded(Event, frozen=True):
    plan: str
    error: str | None = None
    outcome: Outcome = "ended"


class RunCommitted(Event, frozen=True):
    """Writes and messages of a run became durable, for the first, second, … time; nothing is delivered yet.

    A successful run commits once, and before that at each of its checkpoints if its plan says COMMIT: batch.
    A run that fails, or has nothing to make durable, does not commit at its end.
    """

    plan: str
    number: int = 1


class MessagesDelivered(Event, frozen=True):
    """Messages of the outbox were delivered after a commit. The figures include those of earlier runs."""

    plan: str
    sent: int = 0
    failed: int = 0  # given up: they are not tried again
    waiting: int = 0  # tried again later


class CallStarted(Event, frozen=True):
    """A call of a plan unfolded; `iteration` is its colour, `parent` its caller's.

    The further levels of a tail recursion whose steps keep no state are one call.
    """

    plan: str
    iteration: int
    parent: int | None


class CallEnded(Event, frozen=True):
    plan: str
    iteration: int


class StepEvent(Event, frozen=True):
    """Something about one statement in one call."""

    plan: str
    operator: str
    line: int | None
    iteration: int


class StepStarted(StepEvent, frozen=True):
    pass


class StepEnded(StepEvent, frozen=True):
    rows_in: int = 0
    rows_out: int = 0
    dead: bool = False


class FiringStarted(StepEvent, frozen=True):
    """A firing got its permit; `firing` pairs it with its end."""

    firing: int = 0
    waited_seconds: float = 0.0
    label: str = ""  # the subject of the firing, such as an address


class FiringEnded(StepEvent, frozen=True):
    firing: int = 0
    error: str | None = None


class TupleFailed(StepEvent, frozen=True):
    error: str = ""


class Warned(Event, frozen=True):
    message: str


Listener: TypeAlias = Callable[[Event], None]
