"""The tasks of a run, in one flat set: how they start, how a failure ends all of them, and how they stop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any


class Tasks:
    """Owns the tasks and the deferred calls of one run.

    A task that is started here needs no other owner: `stop` cancels it, and waits until it has ended.
    """

    def __init__(self) -> None:
        self.failure: BaseException | None = None  # the first one, which ends the run
        self.on_failure: Callable[[], None] = lambda: None
        self.stopping = False
        self._running: dict[asyncio.Task[Any], None] = {}  # in the order of their start, so that seeds replay
        self._deferred = 0
        self._settling: deque[Callable[[], None]] = deque()

    def __contains__(self, task: asyncio.Task[Any] | None) -> bool:
        return task in self._running

    def spawn(
        self, coroutine: Coroutine[Any, Any, Any], siblings: dict[asyncio.Task[Any], None] | None = None
    ) -> asyncio.Task[Any]:
        """Start a task. It is also among its siblings until it ends."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._running[task] = None
        if siblings is None:
            task.add_done_callback(self._task_ended)
        else:
            siblings[task] = None
            task.add_done_callback(partial(self._task_ended, siblings=siblings))
        return task

    def _task_ended(
        self, task: asyncio.Task[Any], siblings: dict[asyncio.Task[Any], None] | None = None
    ) -> None:
        self._running.pop(task, None)
        if siblings is not None:
            siblings.pop(task, None)

    @property
    def has_deferred_work(self) -> bool:
        """Whether a callback of `call_soon` has not run yet, or a block of `at_work` has not ended."""
        return self._deferred > 0

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Count as deferred work during a block, because rows are under way that no step shows."""
        self._deferred += 1
        try:
            yield
        finally:
            self._deferred -= 1

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call a function in the next turn of the loop. An error that it raises fails the run."""
        self._deferred += 1
        asyncio.get_running_loop().call_soon(self._call_deferred, callback)

    def _call_deferred(self, callback: Callable[[], None]) -> None:
        self._deferred -= 1
        self.guard(callback)

    def guard(self, callback: Callable[[], None]) -> None:
        """Call a function now. An error that it raises fails the run."""
        try:
            callback()
        except Exception as error:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """End the run with this error, unless it stops already or fails with another one."""
        if self.failure is None and not self.stopping:
            self.failure = error
            self.on_failure()

    def settle(self, work: Callable[[], None]) -> None:
        """Release something that has lost its readers, and then everything that loses its own by that.

        This happens at once, so that it overtakes a recursion that goes on unfolding. Work that is added
        meanwhile waits in a queue, so a long chain does not grow the stack.
        """
        self._settling.append(work)
        if len(self._settling) > 1:
            return  # the loop below, further up the stack, comes to it
        while self._settling:
            self._settling[0]()
            self._settling.popleft()

    async def stop(self) -> None:
        """Cancel every task of the run and wait until all have ended, even if this is cancelled meanwhile."""
        self.stopping = True
        current = asyncio.current_task()
        interrupted: asyncio.CancelledError | None = None
        while pending := [task for task in self._running if task is not current]:
            for task in pending:
                task.cancel()
            try:
                await asyncio.wait(pending)
            except asyncio.CancelledError as error:
                # A second Ctrl-C must not leave tasks behind. It is passed on when all have ended.
                interrupted = error
        if interrupted is not None:
            raise interrupted
