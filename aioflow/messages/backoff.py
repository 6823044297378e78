"""What becomes of a message after an attempt that failed: when it is tried again, or why it is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from aioflow.dataclass import dataclass
from aioflow.messages.message import DeliveryError, Message
from aioflow.messages.outbox_settings import OutboxSettings
from aioflow.secrets import mask

MOST_RETRY_AFTER_SECONDS = 3600.0

_LONGEST_TEXT = 2000
# Doubling more often than that passes every limit, and one day what a float can hold.
_MOST_DOUBLINGS = 60


@dataclass(frozen=True)
class Verdict:
    """What is to be noted of a message: it waits for `seconds` more, or it is dead."""

    dead: bool
    reason: str
    seconds: float = 0.0
    progress: dict[str, Any] = field(default_factory=dict)


def judge(
    message: Message,
    error: DeliveryError,
    settings: OutboxSettings,
    random: Callable[[], float],
    *,
    is_whole: bool = True,
) -> Verdict:
    """What follows from a failed attempt, the last of `message.attempts`.

    One that was cut short before the receiver could have the message is not `is_whole`. It kills no message,
    however many there were: nobody knows whether the receiver would have taken it.
    """
    reason = shown(str(error))
    progress = dict(message.progress if error.progress is None else error.progress)
    if error.final:
        return Verdict(True, reason, progress=progress)
    if message.delivery == "at-most-once" and error.uncertain:
        return Verdict(
            True, f"{reason}; it may have been delivered, and is not to be sent twice", 0, progress
        )
    if message.attempts >= settings.most_attempts and (is_whole or error.uncertain):
        return Verdict(True, f"{reason} (given up after {message.attempts} attempts)", 0, progress)
    return Verdict(
        False, reason, wait_seconds(message.attempts, settings, random, error.retry_after_seconds), progress
    )


def wait_seconds(
    attempts: int,
    settings: OutboxSettings,
    random: Callable[[], float],
    retry_after_seconds: float | None = None,
) -> float:
    """How long to wait after so many attempts: twice as long each time, less up to half of it by chance.

    What the receiver asked for is the least, up to an hour.
    """
    doubled = settings.retry_base_seconds * 2.0 ** min(max(attempts - 1, 0), _MOST_DOUBLINGS)
    wait = min(doubled, settings.retry_most_seconds) * (1 - random() / 2)
    asked = retry_after_seconds or 0.0
    return max(wait, min(asked, MOST_RETRY_AFTER_SECONDS) if asked > 0 else 0.0)


def shown(text: str) -> str:
    """A text of a receiver as it may be kept: without secrets, not endless, on one line."""
    line = " ".join(mask(text).replace("\0", " ").split())
    return line if len(line) <= _LONGEST_TEXT else line[: _LONGEST_TEXT - 1] + "…"
