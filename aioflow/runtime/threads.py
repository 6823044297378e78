"""The threads of an engine, in which blocking functions are called.

A thread cannot be interrupted. A function whose caller has been cancelled goes on, and keeps its permit until
it returns. anyio's `to_thread` was considered: it does not report when such a function returns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Lock
from typing import Generic, TypeVar, cast

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
