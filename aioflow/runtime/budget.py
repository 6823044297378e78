"""The worker budget, which limits the firings that wait on the outside world at once."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType

from aioflow.runtime.threads import WorkerThreads

# Most blocking functions return in a moment, cancelled or not. A longer wait is explained to the caller.
PATIENCE_SECONDS = 1.0


class Permits:
    """A number of permits, given first come, first served, except that urgent requests go first.

    `outlasting` permits are held by blocking functions that go on although their callers were cancelled.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.used = 0
        self.outlasting = 0
        self._urgent: deque[Future[None]] = deque()
        self._ordinary: deque[Future[None]] = deque()
        self._told_when_spare: dict[Callable[[], None], None] = {}
        self._returned: deque[None] = deque()  # permits of functions that have returned, not yet taken back
        self._loop: asyncio.AbstractEventLoop | None = None  # the latest on which a task waited
        self._told_why: dict[Future[None], Callable[[Permits], None]] = {}  # of the waiting tasks

    @property
    def waiting(self) -> int:
        return len(self._urgent) + len(self._ordinary)

    @property
    def is_spare(self) -> bool:
        """True if there is a permit for which no task waits."""
        if self._returned:
            self._take_back()
        return self.used < self.count and not (self._urgent or self._ordinary)

    def when_spare(self, told: Callable[[], None]) -> None:
        """Call a function once, when a permit is given back for which no task waits."""
        self._told_when_spare[told] = None
        self._listen_for_returns()

    def try_acquire(self) -> bool:
        """Take a permit if there is one for which no task waits."""
        if self.is_spare:
            self.used += 1
            return True
        return False

    async def acquire(self, urgent: bool = False, told_why: Callable[[Permits], None] | None = None) -> None:
        """Take a permit, waiting for one if need be.

        `told_why` is called when that takes long because functions outlast their callers.
        """
        if self.try_acquire():
            return
        granted: Future[None] = asyncio.get_running_loop().create_future()
        queue = self._urgent if urgent else self._ordinary
        queue.append(granted)
        if told_why is not None:
            self._told_why[granted] = told_why
        self._listen_for_returns()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.release()  # granted in the same moment: pass it on
            elif granted in queue:
                queue.remove(granted)
            raise
        finally:
            self._told_why.pop(granted, None)

    def release(self) -> None:
        """Give a permit back, or pass it to a task that waits for one."""
        for queue in (self._urgent, self._ordinary):
            while queue:
                granted = queue.popleft()
                if not granted.done():
                    granted.set_result(None)
                    return
        self.used -= 1
        if self._told_when_spare:
            told, self._told_when_spare = self._told_when_spare, {}
            for tell in told:
                tell()

    # --- functions that outlast their callers ---

    def leave(self) -> None:
        """Leave a permit to a blocking function that goes on, until `give_back` is called."""
        self.outlasting += 1
        self._listen_for_returns()

    def give_back(self) -> None:
        """Give back a permit that was left to a function; called in its thread."""
        self._returned.append(None)
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop was closed; another one that waits has looked, or will
                self._loop.call_soon_threadsafe(self._take_back)

    def _listen_for_returns(self) -> None:
        # The loop is known before the look: a permit that is given back after it wakes this loop.
        self._loop = asyncio.get_running_loop()
        self._take_back()
        if self.outlasting and self._told_why:
            self._loop.call_later(PATIENCE_SECONDS, self._tell_why)

    def _tell_why(self) -> None:
        if self.outlasting:
            for told_why in tuple(self._told_why.values()):
                told_why(self)

    def _take_back(self) -> None:
        while self._returned:
            self._returned.pop()
            self.outlasting -= 1
            self.release()

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Budget:
    """The permits of an engine, and a thread for each. A partition gives a source permits of its own."""

    def __init__(self, workers: int, partitions: Mapping[str, int] | None = None) -> None:
        self.common = Permits(workers)
        self.partitions = {name: Permits(count) for name, count in (partitions or {}).items()}
        self.threads = WorkerThreads(sum(permits.count for permits in self.all_permits))

    @property
    def workers(self) -> int:
        return self.common.count

    @property
    def all_permits(self) -> Sequence[Permits]:
        return (self.common, *self.partitions.values())

    @property
    def most(self) -> int:
        """The largest number of firings of one statement that can have permits at once."""
        return max(permits.count for permits in self.all_permits)

    @property
    def used(self) -> int:
        return sum(permits.used for permits in self.all_permits)

    @property
    def outlasting(self) -> int:
        """The number of permits that are left to functions that outlast their callers."""
        return sum(permits.outlasting for permits in self.all_permits)

    def permits_for(self, source: str | None) -> Permits:
        """Return a source's own permits, or the common ones."""
        return self.partitions.get(source, self.common) if source is not None else self.common
