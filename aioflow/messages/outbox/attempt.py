"""One attempt to deliver a message that was claimed: the call of its channel, and the note of its outcome."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Literal

from aioflow.dataclass import dataclass
from aioflow.messages.backoff import judge, shown
from aioflow.messages.cutoff import Cutoff, told
from aioflow.messages.message import Channel, DeliveryError, Message
from aioflow.messages.outbox_rows import DAMAGED, DamageError
from aioflow.messages.outbox_settings import OutboxSettings
from aioflow.messages.outbox_table import OutboxTable
from aioflow.quantities import duration_text
from aioflow.state.driver import Address
from aioflow.state.errors import BusyError, StateError
from aioflow.state.moments import moment
from aioflow.state.patience import Patience

_LOG = logging.getLogger("aioflow.messages")
# Whoever cancels does not wait long.
_LAST_NOTE_SECONDS = 2.0

_CALLED = moment("message handed over", "the channel has delivered the message or failed, nothing is noted")
_NOTED = moment("message noted", "what became of the message is durable")


@dataclass(frozen=True)
class Outcome:
    """What became of a message, as the table is told."""

    state: Literal["sent", "waiting", "dead"]
    due: datetime
    error: str = ""
    answer: str = ""
    progress: dict[str, Any] | None = None  # None: as it was
    is_unreachable: bool = False  # no other message of the account would have arrived either


@dataclass(frozen=True)
class Desk:
    """What all attempts of one courier share; `owner` is its name in leases."""

    table: OutboxTable
    settings: OutboxSettings
    address: Address
    warn: Callable[[str], None]
    owner: str
    now: Callable[[], datetime]
    random: Callable[[], float]
    cutoff: Cutoff


def _tell(message: Message, outcome: Outcome) -> None:
    """Log what became of a message."""
    became = f"sent: {outcome.answer}" if outcome.state == "sent" else f"{outcome.state}: {outcome.error}"
    where = f"{message.channel} {message.account or ''}".rstrip()
    _LOG.debug("message %s to %s, attempt %d, %s", message.key, where, message.attempts, became)


class Attempt:
    """An attempt for one message. The outcome is noted in any case, also when it is cut short."""

    def __init__(self, desk: Desk, key: str) -> None:
        self._desk = desk
        self._key = key
        self._message: Message | None = None  # once the channel is called with it
        self._outcome: Outcome | None = None
        self._is_cut_short = False

    async def make(self, channel: Channel) -> Outcome | None:
        """Deliver, and note what became of it; None when it could not be noted."""
        try:
            message = await self._desk.table.read(self._key, self._desk.owner)
        except DamageError as error:
            self._outcome = Outcome("dead", self._desk.now(), shown(f"{DAMAGED}: {error}"))
            return await self._note(self._outcome)
        if message is None:
            return None  # the lease has expired already
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
                    await self._desk.table.release(self._key, self._desk.owner)

    # --- the channel ------------------------------------------------------------------------------

    async def _deliver(self, channel: Channel, message: Message) -> Outcome:
        error = DeliveryError("", uncertain=True)
        seconds = self._desk.settings.delivery_seconds
        cutoff = self._desk.cutoff
        try:
            async with cutoff.within(seconds) as bound:
                return Outcome("sent", self._desk.now(), answer=shown(await channel.deliver(message)))
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

    def _cut_short(self, cut: BaseException | None, reason: str, seconds: float | None) -> Outcome:
        self._is_cut_short = not isinstance(told(cut), str)
        return self._of_cut(cut, reason, seconds)

    def _of_cut(self, cut: BaseException | None, reason: str, seconds: float | None = None) -> Outcome:
        said = told(cut)
        if isinstance(said, str):
            return Outcome("sent", self._desk.now(), answer=shown(said))
        return self._judged(_cut_error(said, reason), seconds)

    def _judged(self, error: DeliveryError, seconds: float | None = None) -> Outcome:
        assert self._message is not None
        verdict = judge(
            self._message, error, self._desk.settings, self._desk.random, is_whole=not self._is_cut_short
        )
        wait = verdict.seconds if seconds is None or error.retry_after_seconds else seconds
        due = self._desk.now() + timedelta(seconds=wait)
        state: Literal["dead", "waiting"] = "dead" if verdict.dead else "waiting"
        unreachable = error.unreachable
        return Outcome(state, due, verdict.reason, progress=verdict.progress, is_unreachable=unreachable)

    # --- the table --------------------------------------------------------------------------------

    async def _note(self, outcome: Outcome) -> Outcome | None:
        """Mark the message. While another run writes this waits: a delivery that is not noted is repeated.

        A database that fails is tried for as long as the lease lasts.
        """
        patience = Patience(self._desk.address, math.inf, self._desk.warn)
        expires = self._desk.now() + timedelta(
            seconds=self._desk.settings.lease_seconds - self._desk.settings.delivery_seconds
        )
        while True:
            try:
                return outcome if await self._mark(outcome) else None
            except BusyError as error:
                await patience.pause(error)
            except StateError as error:
                if self._desk.now() >= expires:
                    self._desk.warn(self._unnoted(outcome, error))
                    return None
                await patience.pause(error)

    async def _note_at_once(self, outcome: Outcome) -> Outcome | None:
        """Mark the message if the database takes it. Else the lease ends some time, and it is tried again."""
        with suppress(StateError, TimeoutError):
            async with asyncio.timeout(_LAST_NOTE_SECONDS):
                return outcome if await self._mark(outcome) else None
        return None

    def _unnoted(self, outcome: Outcome, error: StateError) -> str:
        if outcome.state == "sent":
            what = "was delivered, and may be again, with the same key"
        else:
            what = "was not delivered, and will be tried again"
        return f"message {self._key} {what}: what became of it could not be noted: {error}"

    async def _mark(self, outcome: Outcome) -> bool:
        if outcome.state == "sent":
            return await self._desk.table.mark_sent(
                self._key, self._desk.owner, outcome.answer, self._desk.now()
            )
        if outcome.state == "dead":
            return await self._desk.table.mark_dead(
                self._key, self._desk.owner, outcome.error, outcome.progress
            )
        return await self._desk.table.mark_waiting(
            self._key, self._desk.owner, outcome.due, outcome.error, outcome.progress or {}
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
