"""The pace of one host: how soon the next request may be sent, and who waits for that.

Knows nothing of slots and permits: between a turn and the sending others may have to be waited for.
"""

from __future__ import annotations

import asyncio
import heapq
from asyncio import Future, TimerHandle
from itertools import count
from math import inf
from typing import TypeAlias

# Urgent first (False sorts before True), then in the order of arrival.
Place: TypeAlias = tuple[bool, int]


class Pace:
    """At most `burst` requests at once and `rate` a second after that, and none during a pause.

    Some pauses are too long to be waited for: while it `refuses`, nobody should ask for a turn.

    Two clocks say when the bucket would be full again. The one of requests sent is the limit itself: in
    any second there are at most rate + burst. The one of turns given only spaces those who go on to ask
    for slots and permits, so that no more ask than may be sent; where it is wrong, somebody asks twice.
    """

    __slots__ = (
        "_given_until",
        "_interval",
        "_numbers",
        "_sent_until",
        "_timer",
        "_tolerance",
        "_waiting",
        "paused_until",
        "refusing_until",
    )

    def __init__(self, rate: float | None, burst: int) -> None:
        self._interval = 1 / rate if rate else 0.0
        self._tolerance = (max(burst, 1) - 1) * self._interval
        self._sent_until = -inf
        self._given_until = -inf
        self.paused_until = -inf
        self.refusing_until = -inf
        self._waiting: list[tuple[Place, Future[None]]] = []
        self._timer: TimerHandle | None = None
        self._numbers = count()

    @property
    def rate(self) -> float | None:
        """Requests a second; None: as many as there are."""
        return 1 / self._interval if self._interval else None

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def is_free(self, now: float) -> bool:
        """Whether nobody has to wait at all, so that there is no need to ask for a turn."""
        return not self._interval and now >= self.paused_until and not self._waiting

    def is_idle(self, now: float) -> bool:
        """Whether what happened so far makes no difference to what may be sent."""
        return not self._waiting and now >= self.paused_until and now >= self._sent_until

    def may_send(self, now: float) -> bool:
        return now >= self.paused_until and now >= self._sent_until - self._tolerance

    def send(self, now: float) -> bool:
        """Count a request that is sent at this moment; False if it may not be."""
        if not self.may_send(now):
            return False
        self._sent_until = max(self._sent_until, now) + self._interval
        return True

    def pause(self, until: float) -> None:
        """Let nobody send before that time; a longer pause stays."""
        self.paused_until = max(self.paused_until, until)

    def refuse(self, until: float) -> None:
        """Let nobody send or wait before that time; who waits already gets a turn that is worth nothing."""
        self.pause(until)
        self.refusing_until = max(self.refusing_until, until)
        for _, granted in self._waiting:
            if not granted.done():
                granted.set_result(None)
        self._waiting.clear()
        self._admit()

    def refuses(self, now: float) -> bool:
        return now < self.refusing_until

    def change(self, interval_seconds: float, burst: int, now: float) -> None:
        """Another pace from now on; what was sent last counts for it."""
        old, new = self._interval, interval_seconds
        if self._sent_until > -inf:
            owed = max(self._sent_until - now, 0.0) / old * new if old else 0.0
            self._sent_until = max(now + owed, self._sent_until - old + new)
        self._given_until = self._sent_until
        self._interval = new
        self._tolerance = (max(burst, 1) - 1) * new
        self._admit()

    def place(self, urgent: bool) -> Place:
        """A place in the line, to be kept if the turn has to be waited for again."""
        return (not urgent, next(self._numbers))

    async def turn(self, place: Place) -> None:
        """Wait until it makes sense to ask for what sending needs; then send, or give the turn back."""
        loop = asyncio.get_running_loop()
        if not self._waiting and self._give(loop.time()):
            return
        granted: Future[None] = loop.create_future()
        entry = (place, granted)
        heapq.heappush(self._waiting, entry)
        self._admit()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.give_back()  # granted in the same moment: pass it on
            elif entry in self._waiting:
                self._waiting.remove(entry)
                heapq.heapify(self._waiting)
                self._admit()
            raise

    def give_back(self) -> None:
        """Return a turn in which nothing was sent."""
        self._given_until -= self._interval
        if self._waiting:
            self._admit()

    def _next_turn(self) -> float:
        return max(self.paused_until, max(self._given_until, self._sent_until) - self._tolerance)

    def _give(self, now: float) -> bool:
        if now < self._next_turn():
            return False
        self._given_until = max(self._given_until, self._sent_until, now) + self._interval
        return True

    def _admit(self) -> None:
        """Give turns to those whose time has come, and look again when the next one's will."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._waiting:
            granted = self._waiting[0][1]
            if not granted.done():
                if not self._give(now):
                    self._timer = loop.call_at(self._next_turn(), self._admit)
                    return
                granted.set_result(None)
            heapq.heappop(self._waiting)
