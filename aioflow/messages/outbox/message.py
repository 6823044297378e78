"""A message as the outbox holds it, the protocol of channels, and deliveries that are cut short.

A delivery is cut short when its time is over or the run is interrupted while a receiver hangs. If the
receiver may have the message nevertheless, another attempt may make a copy. Only the channel can tell.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from aioflow.errors import AioflowError
from aioflow.relation import Relation

_HALF_A_CHARACTER = re.compile("[\ud800-\udfff]")

Delivery: TypeAlias = Literal["at-least-once", "at-most-once"]
State: TypeAlias = Literal["waiting", "sending", "sent", "dead", "dropped"]


class Message(msgspec.Struct, frozen=True):
    """A message for one channel. `key` never changes: every copy of one message carries it.

    `content` is plain JSON, made when the message was staged: nothing is looked up in data or templates
    later. `progress` is what the channel wants to know in its next attempt, such as who has it already.
    """

    key: str
    channel: str  # the kind: "email", "notify", "phone"
    account: str  # which of the configured ones: [email.ACCOUNT]
    content: Mapping[str, Any]
    delivery: Delivery = "at-least-once"
    run_id: str = ""
    statement: str = ""
    created: datetime | None = None
    attempts: int = 0
    progress: Mapping[str, Any] = msgspec.field(default_factory=dict)
    quiet: str | None = None  # the hours in which it is not delivered

    @property
    def summary(self) -> str:
        """The receiver and the subject, for lists."""
        return summary_of(self.content)


def summary_of(content: Mapping[str, Any]) -> str:
    """Return the receiver and the subject of a content, for lists."""
    to, about = content.get("to") or "", content.get("subject") or ""
    return " · ".join(filter(None, (", ".join(to) if isinstance(to, list) else str(to), str(about))))


class DeliveryError(AioflowError):
    """A message was not delivered. When it is `final`, trying again cannot help.

    `uncertain` means that the receiver may have it nevertheless, `unreachable` that no message would arrive
    there now. `progress` replaces the message's own.
    """

    def __init__(
        self,
        message: str,
        *,
        final: bool = False,
        uncertain: bool = False,
        unreachable: bool = False,
        retry_after_seconds: float | None = None,
        progress: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.final = final
        self.uncertain = uncertain
        self.unreachable = unreachable
        self.retry_after_seconds = retry_after_seconds
        self.progress = progress


def text_of(message: Message, name: str) -> str:
    """Return a text of a message's content; a DeliveryError when there is none that can be sent."""
    text = message.content.get(name)
    if not isinstance(text, str) or _HALF_A_CHARACTER.search(text):
        raise DeliveryError(f"the message cannot be sent as it is: its {name} is no text", final=True)
    return text


class Channel(Protocol):
    """Delivers messages of one kind; found among the entry points `aioflow.channels`, by that kind.

    A channel is made for one round of deliveries with the tables of the configuration, and closed after it.
    """

    def problems(self, account: str | None) -> list[str]:
        """Return the problems of the configuration that keep this account (None for the default) from being
        used.
        """
        ...

    async def deliver(self, message: Message) -> str:
        """Hand the message over; returns the receiver's answer. Raises DeliveryError.

        It is cancelled when it is cut short; `if_cut_short` says what that means for the message.
        """
        ...

    async def close(self) -> None: ...


SAMPLE_TITLE = "A test of aioflow"
SAMPLE_TEXT = "This is a test of aioflow: whatever plans tell through this account arrives here."


@runtime_checkable
class Sampling(Protocol):
    """A channel of which accounts can be tried out, by `aioflow notify test`."""

    def samples(self, account: str, to: str | None) -> list[dict[str, Any]]:
        """Return the contents of sample messages. `to` is a recipient, if one was named.

        An InputError says what is wrong with `to`, or that it is missing.
        """
        ...


class ComposedContents(msgspec.Struct, frozen=True):
    """The contents of the messages that a channel has composed, and its warnings about them."""

    contents: list[dict[str, Any]]
    warnings: list[str]


@runtime_checkable
class Composing(Protocol):
    """A channel that composes digests: messages about rows that several runs have gathered."""

    def compose(
        self, account: str, recipe: Mapping[str, Any], relations: Sequence[Relation], doubt: str
    ) -> ComposedContents:
        """Return the contents of the messages about relations; on a worker thread.

        `recipe` is plain JSON: all that the statement says of its messages. `doubt` is the reason why rows
        may be wrong, if there is one. An AioflowError says why there can be no message.
        """
        ...


class Cutoff:
    """The moment at which all deliveries of a courier are cut short. It can be brought forward."""

    def __init__(self) -> None:
        self._at = math.inf
        self._under_way: set[asyncio.Timeout] = set()
        self.reason = ""
        self.retry_seconds: float | None = None  # None: as after any failure

    @property
    def is_past(self) -> bool:
        return asyncio.get_running_loop().time() >= self._at

    def bring_forward(self, at: float, reason: str, retry_seconds: float | None = None) -> None:
        """Cut deliveries short at this time of the loop, unless that happens sooner."""
        if at >= self._at:
            return
        self._at, self.reason, self.retry_seconds = at, reason, retry_seconds
        for timeout in self._under_way:
            if not timeout.expired():
                timeout.reschedule(min(at, timeout.when() or math.inf))

    @asynccontextmanager
    async def within(self, seconds: float) -> AsyncIterator[asyncio.Timeout]:
        """Cut what happens in the block short by a TimeoutError, after so many seconds at the latest."""
        own = asyncio.get_running_loop().time() + seconds
        async with asyncio.timeout_at(min(own, self._at)) as timeout:
            self._under_way.add(timeout)
            try:
                yield timeout
            finally:
                self._under_way.discard(timeout)


@contextmanager
def if_cut_short(tell: Callable[[], DeliveryError | str]) -> Iterator[None]:
    """Note the outcome of a delivery that is cancelled in this block; the innermost note counts.

    A text is the answer of a receiver that has taken the message.
    """
    try:
        yield
    except asyncio.CancelledError as cut:
        if told(cut) is None:
            cut.args = (_Told(tell()),)
        raise


def told(cut: BaseException | None) -> DeliveryError | str | None:
    """Return the word of a channel about the delivery that this exception has ended, if there is one."""
    said = cut.args[0] if isinstance(cut, asyncio.CancelledError) and cut.args else None
    return said.said if isinstance(said, _Told) else None


class _Told(msgspec.Struct, frozen=True):
    """Wraps the word of a channel, since a cancellation may have a text of its own."""

    said: DeliveryError | str
