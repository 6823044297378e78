"""Deliveries that are cut short: the moment when that happens, and what a channel can say of one.

Time is over or somebody interrupts, and a receiver hangs. Whether it may have the message nevertheless
decides whether a copy can come of it, and only the channel knows.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from aioflow.dataclass import dataclass
from aioflow.messages.message import DeliveryError


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
    """Say how a delivery has failed that is cancelled in this block; what is said furthest inside counts.

    A text is the answer of a receiver that has taken the message.
    """
    try:
        yield
    except asyncio.CancelledError as cut:
        if told(cut) is None:
            cut.args = (_Told(tell()),)
        raise


def told(cut: BaseException | None) -> DeliveryError | str | None:
    """What a channel said of the delivery that this exception has ended, if anything."""
    said = cut.args[0] if isinstance(cut, asyncio.CancelledError) and cut.args else None
    return said.said if isinstance(said, _Told) else None


@dataclass(frozen=True)
class _Told:
    """Wraps what a channel said: whoever cancels may give texts of their own."""

    said: DeliveryError | str
