"""The thread that does the disk work of an engine: the event loop never waits for a disk.

Everything that spills hands its reads and writes to this one thread, which does them in the order in which
they were handed over. A read therefore sees every write before it, without a lock. `WorkerThreads` call
functions of users: in any order, each with a permit, and without waiting for those whose caller is cancelled.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from itertools import islice
from threading import get_ident
from typing import Any, Generic, Protocol, TypeVar

from aioflow.runtime.room import Room

T = TypeVar("T")

# Writes that may wait for the thread: past the first number steps wait before they read on, past the second
# also callers that cannot await.
_BEHIND_WRITES = 8
_MOST_WRITES = 64
_WRITES_PER_NOTICE = 4  # of which the loop is told together
_WALKED_ITEMS = 4  # of an iterator, in one call of the thread


class _DiskExecutor(ThreadPoolExecutor):
    """One thread whose functions never wait for the loop."""

    # A loop on virtual time may stand still until a function returns: its seeded order can be replayed then.
    is_prompt = True


class DiskThread:
    """A thread for disk work, which starts with the first function and ends with `close`."""

    def __init__(self) -> None:
        self._executor: _DiskExecutor | None = None
        self._identity: int | None = None
        self._is_closed = False
        # Writes that were handed over, those whose end the loop will be told, and those known to be done.
        self._written = self._announced = self._done = 0
        # Full while many writes wait: steps wait for it before they read on, and writers of held rows.
        self.room = Room()

    def write(self, function: Callable[..., None], *arguments: Any) -> None:
        """Have a function that writes called in the thread; on the loop, without waiting for it.

        A step waits for `room` before it reads on. So the rows that wait to be written are few.
        """
        if self._works_here or not _is_on_loop():
            self.wait(function, *arguments)
            return
        self._written += 1
        self._started().submit(function, *arguments)
        if self._written - self._done >= _MOST_WRITES:
            self.wait(_nothing)
            self._note_done(self._written)
        elif self._written - self._announced >= _WRITES_PER_NOTICE:
            self._announced = self._written
            self.start(_nothing).add_done_callback(partial(self._be_told, self._written))
        self.room.is_full = self._written - self._done >= _BEHIND_WRITES

    def _be_told(self, written: int, notice: asyncio.Future[None]) -> None:
        self._note_done(written)

    def _note_done(self, written: int) -> None:
        self._done = max(self._done, written)
        if self._written - self._done < _BEHIND_WRITES:
            self.room.free()

    def finish(self, function: Callable[[], None]) -> None:
        """Have a function that closes a file called in the thread, after all that were handed over before."""
        try:
            if not self._works_here and self._executor is not None:
                self._executor.submit(function)
                return
        except RuntimeError:  # the interpreter ends: there are no threads any more
            pass
        function()

    def wait(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return what a function returns in the thread; the calling thread waits for it.

        This is for callers that cannot await: iterators of relations in values, and threads.
        """
        if self._works_here:
            return function(*arguments)
        return self._started().submit(function, *arguments).result()

    def start(self, function: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """Have a function called in the thread; return a future of the running loop."""
        loop = asyncio.get_running_loop()
        if self._is_closed:
            return asyncio.wrap_future(_called(function, *arguments), loop=loop)
        return loop.run_in_executor(self._started(), function, *arguments)

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return what a function returns in the thread, in the context of the caller.

        A caller that is cancelled still waits for the function: nothing works on a structure that its owner
        is about to close.
        """
        work: asyncio.Future[T] = self.start(copy_context().run, function, *arguments)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            while not work.done():
                with suppress(asyncio.CancelledError):  # the first one is raised; others say nothing new
                    await asyncio.wait((work,))
            raise

    async def settle(self) -> None:
        """Wait until everything that was handed over has been done."""
        if self._executor is not None:
            await self.call(_nothing)

    async def close(self) -> None:
        """End the thread, after all that was submitted. What is called later runs in the calling thread."""
        await self.settle()
        self._is_closed = True
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown()

    @property
    def _works_here(self) -> bool:
        """Return whether a function can be called at once: in the thread itself, or after its end."""
        return self._is_closed or self._identity == get_ident()

    def _started(self) -> _DiskExecutor:
        if self._executor is None:
            self._executor = _DiskExecutor(1, "aioflow-disk", initializer=self._note_identity)
        return self._executor

    def _note_identity(self) -> None:
        self._identity = get_ident()


def _called(function: Callable[..., T], *arguments: Any) -> Future[T]:
    done: Future[T] = Future()
    try:
        done.set_result(function(*arguments))
    except Exception as error:
        done.set_exception(error)
    return done


def _is_on_loop() -> bool:
    """Return whether the calling thread runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _nothing() -> None:
    """Do nothing: a caller that has waited for this has waited for everything before it."""


class Spilling(Protocol):
    """An object that may have gone to disk: a structure, or an algorithm that works with several."""

    @property
    def is_on_disk(self) -> bool: ...
    @property
    def disk(self) -> DiskThread: ...


async def off_loop(owner: Spilling, function: Callable[..., T], *arguments: Any) -> T:
    """Return what a function returns: called here while its owner is in memory, else in the disk thread."""
    if not owner.is_on_disk:
        return function(*arguments)
    return await owner.disk.call(function, *arguments)


def walk(owner: Spilling, items: Iterator[T], at_once: int = _WALKED_ITEMS) -> AsyncIterator[T]:
    """Walk through an iterator, which advances in the disk thread once its owner is on disk.

    So many items are fetched `at_once`, and are in memory together.
    """
    return _Walk(owner, items, at_once)


# A class: an async generator that is left early would be closed by a task of its own.
class _Walk(Generic[T]):
    __slots__ = ("_ahead", "_at_once", "_is_over", "_items", "_owner")

    def __init__(self, owner: Spilling, items: Iterator[T], at_once: int) -> None:
        self._owner = owner
        self._items = items
        self._at_once = at_once
        self._ahead: deque[T] = deque()
        self._is_over = False

    def __aiter__(self) -> _Walk[T]:
        return self

    async def __anext__(self) -> T:
        if not self._ahead and not self._is_over:
            if not self._owner.is_on_disk:
                for item in self._items:
                    return item
                raise StopAsyncIteration
            await self._owner.disk.call(self._advance)
        if not self._ahead:
            raise StopAsyncIteration
        return self._ahead.popleft()

    def _advance(self) -> None:
        """Get the next items, in the thread: a caller that is cancelled and comes again misses none."""
        items = list(islice(self._items, self._at_once))
        self._is_over = len(items) < self._at_once
        self._ahead.extend(items)


class OwnedItems(Generic[T]):
    """Items with the object that they are read from, so that `walk` can read them off the loop."""

    def __init__(self, owner: Spilling, items: Iterator[T]) -> None:
        self._owner = owner
        self._items = items

    def __iter__(self) -> Iterator[T]:
        return self._items

    @property
    def is_on_disk(self) -> bool:
        return self._owner.is_on_disk

    @property
    def disk(self) -> DiskThread:
        return self._owner.disk


class DiskPause:
    """A generator that cannot await yields this if it needs the disk. Its reader awaits `over`."""

    async def over(self) -> None:
        raise NotImplementedError


class _RoomPause(DiskPause):
    def __init__(self, disk: DiskThread) -> None:
        self._disk = disk

    async def over(self) -> None:
        await self._disk.room.wait()


class _ReadPause(DiskPause, Generic[T]):
    def __init__(self, owner: Spilling, items: Iterator[T]) -> None:
        self._owner = owner
        self._iterator = items
        self.items: list[T] = []

    async def over(self) -> None:
        self.items = await self._owner.disk.call(list, islice(self._iterator, _WALKED_ITEMS))


def with_pauses(owner: Spilling, items: Iterator[T]) -> Iterator[T | DiskPause]:
    """Yield items, and a pause wherever the disk thread must get the next ones first."""
    if not owner.is_on_disk:
        yield from items
        return
    pause = _ReadPause(owner, items)
    while True:
        pause.items = []
        yield pause
        if not pause.items:
            return
        yield from pause.items


def pauses_for_room(disk: DiskThread) -> Iterator[DiskPause]:
    """Yield a pause if many writes wait."""
    if disk.room.is_full:
        yield _RoomPause(disk)
