"""The worker budget, which limits the firings that wait on the outside world at once, and its threads.

A thread cannot be interrupted. A blocking function whose caller has been cancelled goes on, and keeps its
permit until it returns. anyio's `to_thread` was considered: it does not report when such a function returns.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from heapq import heapify, heappop, heappush
from itertools import count
from threading import Lock
from types import TracebackType
from typing import Any, Generic, TypeAlias, TypeVar, cast

T = TypeVar("T")


class BlockingCall(Generic[T]):
    """One call of a blocking function, which notices its return even if no task waits for it."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._lock = Lock()
        self._has_begun = False
        self._is_over = False
        self._then: Callable[[], None] | None = None

    def run(self) -> T | None:
        """Call the function, in a thread."""
        with self._lock:
            if self._is_over:  # it was given up before a thread got to it
                return None
            self._has_begun = True
        try:
            return self._function()
        except StopIteration as error:  # no future can carry it
            raise RuntimeError(f"the function raised {error!r}") from error
        finally:
            with self._lock:
                self._is_over = True
            if self._then is not None:
                self._then()

    def give_up(self, then: Callable[[], None]) -> bool:
        """Have `then` called, in the thread, when the function returns; return whether it is running."""
        with self._lock:
            if self._has_begun and not self._is_over:
                self._then = then
                return True
            self._is_over = True
            return False


class WorkerThreads:
    """At most `count` threads, each started when all others are busy."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._pool: ThreadPoolExecutor | None = None

    async def call(self, call: BlockingCall[T]) -> T:
        """Return the result of the function, which runs in the caller's context."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._count, "aioflow-worker")
        context = copy_context()
        loop = asyncio.get_running_loop()
        # Only a call that was given up has no result, and no task waits for it.
        return cast(T, await loop.run_in_executor(self._pool, context.run, call.run))

    def close(self) -> None:
        """Let idle threads end now, and busy ones when their functions return."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None


# Most blocking functions return in a moment, cancelled or not. A longer wait is explained to the caller.
PATIENCE_SECONDS = 1.0


# The run that a task works for: runs take turns in getting permits and the turns of a host.
current_run: ContextVar[str] = ContextVar("aioflow run", default="")


# Urgent first (False sorts before True), then by rank, then in the order of arrival.
Place: TypeAlias = tuple[bool, tuple[Any, ...], int]


class FairQueue:
    """Requests that wait. Runs take turns; within a run the earliest place goes first."""

    def __init__(self) -> None:
        self._by_run: dict[str, list[tuple[Place, Future[None]]]] = {}
        self._numbers = count()

    def __len__(self) -> int:
        return sum(map(len, self._by_run.values()))

    def __bool__(self) -> bool:
        return bool(self._by_run)

    def place(self, urgent: bool, rank: tuple[Any, ...] = ()) -> Place:
        """Return the next place; a request that has to wait again may keep its own. Lower ranks go first."""
        return (not urgent, rank, next(self._numbers))

    def add(self, request: Future[None], run: str, place: Place) -> None:
        heappush(self._by_run.setdefault(run, []), (place, request))

    def remove(self, request: Future[None], run: str) -> None:
        """Forget a request that was cancelled before it was granted."""
        left = [entry for entry in self._by_run.get(run, ()) if entry[1] is not request]
        if left:
            heapify(left)
            self._by_run[run] = left
        else:
            self._by_run.pop(run, None)

    def first(self) -> Future[None] | None:
        """Return the request whose turn it is, or None if none waits."""
        while self._by_run:
            run, entries = next(iter(self._by_run.items()))
            while entries:
                if not entries[0][1].done():
                    return entries[0][1]
                heappop(entries)
            del self._by_run[run]
        return None

    def take(self) -> Future[None] | None:
        """Remove the request whose turn it is, put its run last, and return it."""
        request = self.first()
        if request is not None:
            run = next(iter(self._by_run))
            entries = self._by_run.pop(run)
            heappop(entries)
            if entries:
                self._by_run[run] = entries
        return request

    def take_all(self) -> list[Future[None]]:
        """Remove all requests and return them."""
        found = [request for entries in self._by_run.values() for _, request in entries]
        self._by_run.clear()
        return found


class Permits:
    """A number of permits, for which runs take turns.

    Within a run they are given first come, first served, except that urgent requests go first.
    `outlasting` permits are held by blocking functions that go on although their callers were cancelled.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.used = 0
        self.outlasting = 0
        self._requests = FairQueue()
        self._told_when_spare: dict[Callable[[], None], None] = {}
        self._returned: deque[None] = deque()  # permits of functions that have returned, not yet taken back
        self._loop: asyncio.AbstractEventLoop | None = None  # the latest on which a task waited
        self._told_why: dict[Future[None], Callable[[Permits], None]] = {}  # of the waiting tasks

    @property
    def waiting(self) -> int:
        return len(self._requests)

    @property
    def is_spare(self) -> bool:
        """True if there is a permit for which no task waits."""
        if self._returned:
            self._take_back()
        return self.used < self.count and not self._requests

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

    async def acquire(
        self,
        urgent: bool = False,
        told_why: Callable[[Permits], None] | None = None,
        rank: tuple[Any, ...] = (),
    ) -> None:
        """Take a permit, waiting for one if need be. Of those that wait, lower ranks go first.

        `told_why` is called when that takes long because functions outlast their callers.
        """
        if self.try_acquire():
            return
        granted: Future[None] = asyncio.get_running_loop().create_future()
        run = current_run.get()
        self._requests.add(granted, run, self._requests.place(urgent, rank))
        if told_why is not None:
            self._told_why[granted] = told_why
        self._listen_for_returns()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.release()  # granted in the same moment: pass it on
            else:
                self._requests.remove(granted, run)
            raise
        finally:
            self._told_why.pop(granted, None)

    def release(self) -> None:
        """Give a permit back, or pass it to a task that waits for one."""
        granted = self._requests.take()
        if granted is not None:
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
