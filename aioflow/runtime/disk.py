"""The thread that does the disk work of an engine: the event loop never waits for a disk.

Everything that spills hands its reads and writes to this one thread, which does them in the order in which
they were handed over. A read therefore sees every write before it, without a lock.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from itertools import islice
from threading import get_ident
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")

# Writes that may wait for the thread: past the first number steps wait before they read on, past the second
# also callers that cannot await.
_BEHIND_WRITES = 8
_MOST_WRITES = 64
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
        self._written = self._settled = 0  # writes that were handed over, and those known to be done
        self.is_behind = False  # so many writes wait that steps should wait for them

    def write(self, function: Callable[..., None], *arguments: Any) -> None:
        """Have a function that writes called in the thread, without waiting for it.

        A step that reads on waits while the thread is behind. So the rows that wait to be written are few.
        """
        if self._works_here:
            function(*arguments)
            return
        self._written += 1
        waiting = self._written - self._settled
        self.is_behind = waiting >= _BEHIND_WRITES
        if waiting < _MOST_WRITES:
            self._started().submit(function, *arguments)
            return
        self.wait(function, *arguments)
        self._note_settled(self._written)

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
        written = self._written
        work: asyncio.Future[T] = self.start(copy_context().run, function, *arguments)
        cancelled: asyncio.CancelledError | None = None
        while not work.done():
            try:
                await asyncio.wait((work,))
            except asyncio.CancelledError as error:
                cancelled = error
        self._note_settled(written)
        if cancelled is not None:
            work.exception()  # it has been looked at: the loop need not complain
            raise cancelled
        return work.result()

    async def settle(self) -> None:
        """Wait until everything that was handed over has been done."""
        if self._executor is not None:
            await self.call(_nothing)

    def settled(self) -> asyncio.Future[None]:
        """Return a future that is done when everything that was handed over has been done."""
        written = self._written
        settled = self.start(_nothing)
        settled.add_done_callback(lambda _: self._note_settled(written))
        return settled

    def _note_settled(self, written: int) -> None:
        self._settled = max(self._settled, written)
        self.is_behind = self._written - self._settled >= _BEHIND_WRITES

    async def close(self) -> None:
        """End the thread, after all that was submitted. What is called later runs in the calling thread."""
        await self.settle()
        self._is_closed = True
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown()

    @property
    def _works_here(self) -> bool:
        """Whether a function can be called at once: in the thread itself, and when there is none any more."""
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


def _nothing() -> None:
    """Whoever waits for this has waited for everything before it."""


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


def walk(owner: Spilling, items: Iterator[T]) -> AsyncIterator[T]:
    """Walk through an iterator, which advances in the disk thread once its owner is on disk."""
    return _Walk(owner, items)


# A class: an async generator that is left early would be closed by a task of its own.
class _Walk(Generic[T]):
    __slots__ = ("_ahead", "_items", "_owner")

    def __init__(self, owner: Spilling, items: Iterator[T]) -> None:
        self._owner = owner
        self._items = items
        self._ahead: deque[T] = deque()

    def __aiter__(self) -> _Walk[T]:
        return self

    async def __anext__(self) -> T:
        if not self._ahead:
            if not self._owner.is_on_disk:
                for item in self._items:
                    return item
                raise StopAsyncIteration
            self._ahead.extend(await self._owner.disk.call(list, islice(self._items, _WALKED_ITEMS)))
            if not self._ahead:
                raise StopAsyncIteration
        return self._ahead.popleft()
