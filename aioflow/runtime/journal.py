"""The events of runs as lines of the log `aioflow.engine`, at the level DEBUG."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from aioflow.config.masking import mask
from aioflow.runtime.events import (
    CallEnded,
    CallStarted,
    Event,
    FiringEnded,
    FiringStarted,
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
from aioflow.values.quantities import count_text, duration_text

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
