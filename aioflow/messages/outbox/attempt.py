"""One attempt to deliver a message that was claimed: the call of its channel, and the note of its outcome.

After a failed attempt it is decided here when the message is tried again, or why it is not.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from aioflow.config.masking import mask
from aioflow.errors import AioflowError
from aioflow.messages.outbox.message import Channel, Cutoff, DeliveryError, Message, told
from aioflow.messages.outbox.rows import DAMAGED, DamageError
from aioflow.messages.outbox.settings import OutboxSettings
from aioflow.messages.outbox.table import OutboxTable
from aioflow.messages.timing import read_quiet
from aioflow.state.crash_points import moment
from aioflow.state.driver import Address
from aioflow.state.errors import BusyError, StateError
from aioflow.state.lock_wait import LockWait
from aioflow.values.quantities import duration_text

MOST_RETRY_AFTER_SECONDS = 3600.0

_LONGEST_TEXT = 2000
# Doubling more often than that passes every limit, and one day what a float can hold.
_MOST_DOUBLINGS = 60


class Verdict(msgspec.Struct, frozen=True):
    """The verdict on a message: it waits for `seconds` more, or it is dead."""

    dead: bool
    reason: str
    seconds: float = 0.0
    progress: dict[str, Any] = msgspec.field(default_factory=dict)


def judge(
    message: Message,
    error: DeliveryError,
    settings: OutboxSettings,
    random: Callable[[], float],
    *,
    is_whole: bool = True,
) -> Verdict:
    """Return the verdict on a failed attempt, the last of `message.attempts`.

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
    """Return the wait after so many attempts: twice as long each time, less up to half of it by chance.

    It is at least as long as the receiver asked for, up to an hour.
    """
    doubled = settings.retry_base_seconds * 2.0 ** min(max(attempts - 1, 0), _MOST_DOUBLINGS)
    wait = min(doubled, settings.retry_most_seconds) * (1 - random() / 2)
    asked = retry_after_seconds or 0.0
    return max(wait, min(asked, MOST_RETRY_AFTER_SECONDS) if asked > 0 else 0.0)


def shown(text: str) -> str:
    """A text of a receiver as it may be kept: without secrets, not endless, on one line."""
    line = " ".join(mask(text).replace("\0", " ").split())
    return line if len(line) <= _LONGEST_TEXT else line[: _LONGEST_TEXT - 1] + "…"


_LOG = logging.getLogger("aioflow.messages")
# A caller that cancels does not wait long.
_LAST_NOTE_SECONDS = 2.0

_CALLED = moment("message handed over", "the channel has delivered the message or failed, nothing is noted")
_NOTED = moment("message noted", "the outcome of the message is durable")


class DeliveryOutcome(msgspec.Struct, frozen=True):
    """The outcome of an attempt, as the table gets it."""

    state: Literal["sent", "waiting", "dead", "quiet"]  # quiet: it was not tried, and is put off
    due: datetime
    error: str = ""
    answer: str = ""
    progress: dict[str, Any] | None = None  # None: as it was
    is_unreachable: bool = False  # no other message of the account would have arrived either


class DeliveryContext(msgspec.Struct, frozen=True):
    """The things that all attempts of one courier share. `owner` is its name in leases."""

    table: OutboxTable
    settings: OutboxSettings
    address: Address
    warn: Callable[[str], None]
    owner: str
    now: Callable[[], datetime]
    random: Callable[[], float]
    cutoff: Cutoff
    early: bool = False  # whether messages are delivered in their quiet hours, too


def _tell(message: Message, outcome: DeliveryOutcome) -> None:
    """Log what became of a message."""
    became = f"sent: {outcome.answer}" if outcome.state == "sent" else f"{outcome.state}: {outcome.error}"
    where = f"{message.channel} {message.account or ''}".rstrip()
    _LOG.debug("message %s to %s, attempt %d, %s", message.key, where, message.attempts, became)


class Attempt:
    """An attempt for one message. The outcome is noted in any case, also when it is cut short."""

    def __init__(self, context: DeliveryContext, key: str) -> None:
        self._context = context
        self._key = key
        self._message: Message | None = None  # once the channel is called with it
        self._outcome: DeliveryOutcome | None = None
        self._is_cut_short = False

    async def make(self, channel: Channel) -> DeliveryOutcome | None:
        """Deliver, and note the outcome. Return None if it could not be noted."""
        try:
            message = await self._context.table.read(self._key, self._context.owner)
        except DamageError as error:
            self._outcome = DeliveryOutcome("dead", self._context.now(), shown(f"{DAMAGED}: {error}"))
            return await self._note(self._outcome)
        if message is None:
            return None  # the lease has expired already
        until = self._quiet_end(message)
        if until is not None:
            outcome = DeliveryOutcome("quiet", until)
            return (
                outcome if await self._context.table.put_off(self._key, self._context.owner, until) else None
            )
        self._message = message
        self._outcome = await self._deliver(channel, message)
        _tell(message, self._outcome)
        _CALLED()
        if self._is_cut_short:
            noted = await self._note_at_once(self._outcome)
        else:
            noted = await self._note(self._outcome)
        _NOTED()
        return noted

    async def abandon(self, error: BaseException) -> None:
        """After a cancellation or an error: say what is known, if the database takes it at once."""
        if self._outcome is not None:
            await self._note_at_once(self._outcome)
        elif self._message is not None:
            await self._note_at_once(self._cut_short(error, "interrupted", 0.0))
        else:
            with suppress(StateError, TimeoutError):
                async with asyncio.timeout(_LAST_NOTE_SECONDS):
                    await self._context.table.release(self._key, self._context.owner)

    def _quiet_end(self, message: Message) -> datetime | None:
        """Return the end of the quiet hours that a message is in now, if it is in some."""
        if message.quiet is None or self._context.early:
            return None
        now = self._context.now()
        try:
            end = read_quiet(message.quiet).end_after(now)
        except AioflowError:  # it is damaged: a message that comes at night is better than none
            return None
        return end if end > now else None

    # --- the channel ------------------------------------------------------------------------------

    async def _deliver(self, channel: Channel, message: Message) -> DeliveryOutcome:
        error = DeliveryError("", uncertain=True)
        seconds = self._context.settings.delivery_seconds
        cutoff = self._context.cutoff
        try:
            async with cutoff.within(seconds) as bound:
                return DeliveryOutcome(
                    "sent", self._context.now(), answer=shown(await channel.deliver(message))
                )
        except DeliveryError as failure:
            error = failure
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            error.args = (f"the {message.channel} channel was cancelled from inside",)
        except Exception as failure:
            if bound.expired() and cutoff.is_past:
                return self._cut_short(failure.__cause__, cutoff.reason, cutoff.retry_seconds)
            if bound.expired():
                took = f"the delivery took longer than {duration_text(seconds)}"
                return self._of_cut(failure.__cause__, took)
            error.args = (f"{type(failure).__name__}: {failure}",)
        return self._judged(error)

    def _cut_short(self, cut: BaseException | None, reason: str, seconds: float | None) -> DeliveryOutcome:
        self._is_cut_short = not isinstance(told(cut), str)
        return self._of_cut(cut, reason, seconds)

    def _of_cut(
        self, cut: BaseException | None, reason: str, seconds: float | None = None
    ) -> DeliveryOutcome:
        said = told(cut)
        if isinstance(said, str):
            return DeliveryOutcome("sent", self._context.now(), answer=shown(said))
        return self._judged(_cut_error(said, reason), seconds)

    def _judged(self, error: DeliveryError, seconds: float | None = None) -> DeliveryOutcome:
        assert self._message is not None
        verdict = judge(
            self._message,
            error,
            self._context.settings,
            self._context.random,
            is_whole=not self._is_cut_short,
        )
        wait = verdict.seconds if seconds is None or error.retry_after_seconds else seconds
        due = self._context.now() + timedelta(seconds=wait)
        state: Literal["dead", "waiting"] = "dead" if verdict.dead else "waiting"
        unreachable = error.unreachable
        return DeliveryOutcome(
            state, due, verdict.reason, progress=verdict.progress, is_unreachable=unreachable
        )

    # --- the table --------------------------------------------------------------------------------

    async def _note(self, outcome: DeliveryOutcome) -> DeliveryOutcome | None:
        """Mark the message. While another run writes this waits: a delivery that is not noted is repeated.

        A database that fails is tried for as long as the lease lasts.
        """
        patience = LockWait(self._context.address, math.inf, self._context.warn)
        expires = self._context.now() + timedelta(
            seconds=self._context.settings.lease_seconds - self._context.settings.delivery_seconds
        )
        while True:
            try:
                return outcome if await self._mark(outcome) else None
            except BusyError as error:
                await patience.pause(error)
            except StateError as error:
                if self._context.now() >= expires:
                    self._context.warn(self._unnoted(outcome, error))
                    return None
                await patience.pause(error)

    async def _note_at_once(self, outcome: DeliveryOutcome) -> DeliveryOutcome | None:
        """Mark the message if the database takes it. Else the lease ends some time, and it is tried again."""
        with suppress(StateError, TimeoutError):
            async with asyncio.timeout(_LAST_NOTE_SECONDS):
                return outcome if await self._mark(outcome) else None
        return None

    def _unnoted(self, outcome: DeliveryOutcome, error: StateError) -> str:
        if outcome.state == "sent":
            what = "was delivered, and may be again, with the same key"
        else:
            what = "was not delivered, and will be tried again"
        return f"message {self._key} {what}: its outcome could not be noted: {error}"

    async def _mark(self, outcome: DeliveryOutcome) -> bool:
        if outcome.state == "sent":
            return await self._context.table.mark_sent(
                self._key, self._context.owner, outcome.answer, self._context.now()
            )
        if outcome.state == "dead":
            return await self._context.table.mark_dead(
                self._key, self._context.owner, outcome.error, outcome.progress
            )
        return await self._context.table.mark_waiting(
            self._key, self._context.owner, outcome.due, outcome.error, outcome.progress or {}
        )


def _cut_error(said: DeliveryError | None, reason: str) -> DeliveryError:
    """The error of a delivery that was cut short; without a word of its channel nothing is certain."""
    if said is None:
        return DeliveryError(reason, uncertain=True)
    return DeliveryError(
        f"{reason}: {said}",
        final=said.final,
        uncertain=said.uncertain,
        retry_after_seconds=said.retry_after_seconds,
        progress=said.progress,
    )
