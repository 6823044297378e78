"""The threads of an engine, in which blocking functions are called.

A thread cannot be interrupted. A function whose caller has been cancelled works on, and keeps its permit
until it returns. anyio's `to_thread` was considered: it does not tell when such a function returns.
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
    """One call of a blocking function. It knows when the function returns, also when nobody waits for it."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._lock = Lock()
        self._has_begun = False
        self._is_over = False
        self._then: Callable[[], None] | None = None

    def run(self) -> T | None:
        """Call the function, in a thread."""
        with self._lock:
            if self._is_over:  # it was given up before a thread came to it
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
        """Have `then` called, in the thread, when the function returns; whether it is at work at all."""
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
        """Return what the function returns; the context of the caller is that of the function."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._count, "aioflow-worker")
        context = copy_context()
        loop = asyncio.get_running_loop()
        # Without a result there is only a call that was given up, which nobody waits for.
        return cast(T, await loop.run_in_executor(self._pool, context.run, call.run))

    def close(self) -> None:
        """Let idle threads end now, and busy ones when their functions return."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None
