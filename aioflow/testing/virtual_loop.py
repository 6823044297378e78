"""An event loop with a virtual clock and a seeded order of tasks: tests take no time and can be replayed."""

from __future__ import annotations

import asyncio
import heapq
import selectors
import sys
from asyncio import Handle, Task, TimerHandle
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import suppress
from random import Random
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from anyio import lowlevel

T = TypeVar("T")

# The number of handles that run before the loop looks for events from threads and processes.
_STEPS_BETWEEN_POLLS = 64
_CANCELLED_AT_MOST = 100  # timers that were cancelled and wait for their time, if they are the minority


class DeadlockError(Exception):
    """Nothing can happen any more, yet a task still waits."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer as soon as nothing is ready.

    Without a seed, ready tasks run in asyncio's order. With a seed, each step picks one of the ready tasks at
    random; the same seed always makes the same choices, even in another process. Callbacks that are not tasks
    keep their order, since transports rely on it.

    It runs one step of one task at a time: `steps` counts them, `before_step` is called with the
    number of each before it runs, `trace` lists them when it is a list. While a thread or process
    works, time stands still. When nothing is ready, no timer runs and no thread or process works, it raises a
    DeadlockError.
    """

    # Attributes of BaseEventLoop, under the names that they have had since Python 3.5.
    _ready: deque[Handle]
    _scheduled: list[TimerHandle]
    _selector: selectors.BaseSelector
    _stopping: bool
    _timer_cancelled_count: int
    _default_executor: ThreadPoolExecutor | None

    def __init__(
        self,
        seed: int | None = None,
        *,
        before_step: Callable[[int], None] | None = None,
        trace: list[str] | None = None,
        outside_seconds: float = 30.0,
    ) -> None:
        super().__init__()
        self.steps = 0
        self.before_step = before_step
        self.trace = trace
        self.abandoned: list[str] = []
        self.complaints: list[str] = []
        self._random = None if seed is None else Random(seed)
        self._now = 0.0
        self._outside_seconds = outside_seconds
        self._in_executor: set[object] = set()
        self._on_aiosqlite: set[asyncio.Future[Any]] = set()
        self._numbers: WeakKeyDictionary[Task[Any], int] = WeakKeyDictionary()
        self._created = 0

    def time(self) -> float:
        """Return the seconds since the loop was made, in its own time."""
        return self._now

    # --- running ---

    def _run_once(self) -> None:
        self._wake_sleepers()
        if not self._ready and not self._stopping:
            self._wait()
        elif self.steps % _STEPS_BETWEEN_POLLS == 0:
            self._poll(0)
        if self._ready:
            self._step(self._next())

    def _step(self, handle: Handle) -> None:
        if handle._cancelled:
            return
        if self.before_step is not None:
            self.before_step(self.steps)
        if self.trace is not None:
            self.trace.append(self._describe(handle))
        self.steps += 1
        handle._run()

    def _next(self) -> Handle:
        ready = self._ready
        if self._random is None or len(ready) == 1:
            return ready.popleft()
        index = int(self._random.random() * len(ready))
        if _task_of(ready[index]) is None:
            # Of a copy: threads that have an answer add to the ready ones meanwhile.
            index = next(place for place, handle in enumerate(list(ready)) if _task_of(handle) is None)
        handle = ready[index]
        del ready[index]
        return handle

    def _wake_sleepers(self) -> None:
        """Make timers ready whose time has come, and drop those that were cancelled."""
        if self._timer_cancelled_count > max(_CANCELLED_AT_MOST, len(self._scheduled) / 2):
            self._drop_cancelled()
        timers = self._scheduled
        while timers and (timers[0]._cancelled or timers[0].when() <= self._now):
            handle = heapq.heappop(timers)
            handle._scheduled = False  # type: ignore[attr-defined]
            if handle._cancelled:
                self._timer_cancelled_count -= 1
            else:
                self._ready.append(handle)

    def _drop_cancelled(self) -> None:
        """Forget cancelled timers whose time is far ahead, as the loops of asyncio do."""
        for handle in self._scheduled:
            handle._scheduled = not handle._cancelled  # type: ignore[attr-defined]
        self._scheduled = [handle for handle in self._scheduled if not handle._cancelled]
        heapq.heapify(self._scheduled)
        self._timer_cancelled_count = 0

    def _wait(self) -> None:
        """Let time pass until something is ready."""
        if self._working_elsewhere():
            if not self._poll(self._outside_seconds):
                raise DeadlockError(self._report(f"a thread did not answer in {self._outside_seconds} s"))
        elif not self._poll(0):
            if not self._scheduled:
                raise DeadlockError(self._report("nothing can happen any more"))
            self._now = max(self._now, self._scheduled[0].when())
            self._wake_sleepers()

    def _poll(self, timeout: float) -> bool:
        """Process events from outside. Return whether there were any."""
        events = self._selector.select(timeout)
        self._process_events(events)  # type: ignore[attr-defined]
        return bool(events)

    # --- work that is done elsewhere ---

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, function: Callable[..., T], *arguments: Any
    ) -> asyncio.Future[T]:
        """Run a function in a thread; time stands still until it returns, even if no task waits for it."""
        if executor is None:
            executor = self._default_executor
        if executor is None:
            executor = ThreadPoolExecutor(thread_name_prefix="asyncio")
            self.set_default_executor(executor)
        work = executor.submit(function, *arguments)
        if getattr(executor, "is_prompt", False):
            # The thread of a disk: which tasks run first must not depend on how fast the disk is.
            wait((work,))
        self._in_executor.add(work)
        future = asyncio.wrap_future(work, loop=self)
        work.add_done_callback(self._returned)  # after the future's own: the answer comes first
        return future

    def _returned(self, work: object) -> None:
        with suppress(RuntimeError):  # the loop has been closed since
            self.call_soon_threadsafe(self._in_executor.discard, work)

    def create_future(self) -> asyncio.Future[Any]:
        """Return a new future. Time stands still until one that aiosqlite made is done: its thread works."""
        future = super().create_future()
        # aiosqlite has threads of its own, and no public way to ask whether they are busy.
        if sys._getframe(1).f_globals.get("__name__") == "aiosqlite.core":
            self._on_aiosqlite.add(future)
            future.add_done_callback(self._on_aiosqlite.discard)
        return future

    def _working_elsewhere(self) -> bool:
        if self._in_executor or self._on_aiosqlite:
            return True
        # anyio keeps its threads here, and has no public way to ask whether they are busy.
        variables = getattr(lowlevel, "_run_vars", {}).get(self, {})
        pools = {variable._name: pool for variable, pool in variables.items()}
        return len(pools.get("_threadpool_workers", ())) > len(pools.get("_threadpool_idle_workers", ()))

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for the threads in the thread of the loop: nothing else is left to run."""
        if self._default_executor is not None:
            self._default_executor.shutdown(wait=True)

    # --- for tests ---

    def create_task(  # type: ignore[override]
        self, coroutine: Coroutine[Any, Any, T], **keywords: Any
    ) -> Task[T]:
        """Start a task and remember in which order tasks were started."""
        task: Task[T] = super().create_task(coroutine, **keywords)
        self._created += 1
        self._numbers[task] = self._created
        return task

    def tasks(self) -> list[Task[Any]]:
        """Return the tasks that have not ended, in the order in which they were started."""
        return sorted(asyncio.all_tasks(self), key=lambda task: self._numbers.get(task, 0))

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep problems that asyncio would only log: an unhandled exception, a task that was dropped."""
        self.complaints.append(f"{context.get('message')}: {context.get('exception')!r}")

    def _asyncgen_finalizer_hook(self, agen: Any) -> None:
        self.abandoned.append(agen.__qualname__)
        super()._asyncgen_finalizer_hook(agen)  # type: ignore[misc]

    def _describe(self, handle: Handle) -> str:
        task = _task_of(handle)
        if task is None:
            return getattr(handle._callback, "__qualname__", "callback")  # type: ignore[attr-defined]
        return f"{self._numbers.get(task, 0)} {getattr(task.get_coro(), '__qualname__', '?')}"

    def _report(self, reason: str) -> str:
        waiting = "".join(f"\n  {describe_task(task)}" for task in self.tasks())
        return f"deadlock: {reason}, waiting: {waiting or 'no task'}"


def _task_of(handle: Handle) -> Task[Any] | None:
    """Return the task that a handle takes a step of, or None for any other callback."""
    owner = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
    return owner if isinstance(owner, Task) else None


def describe_task(task: Task[Any]) -> str:
    """Return the name of a task, its coroutine, and the innermost line at which it waits."""
    awaited: Any = task.get_coro()
    name = f"{task.get_name()} {getattr(awaited, '__qualname__', '')}"
    place = "not started"
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "ag_frame", None)
        if frame is not None:
            place = f"{frame.f_code.co_qualname} in {frame.f_code.co_filename}:{frame.f_lineno}"
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "ag_await", None)
    return f"{name}: {place}"


def run(
    main: Coroutine[Any, Any, T],
    *,
    seed: int | None = None,
    before_step: Callable[[int], None] | None = None,
    trace: list[str] | None = None,
) -> T:
    """Run a coroutine on a VirtualLoop of its own and return its result."""
    loop = VirtualLoop(seed, before_step=before_step, trace=trace)
    try:
        return loop.run_until_complete(main)
    finally:
        close(loop)


def close(loop: VirtualLoop) -> None:
    """Cancel the tasks that are left on a loop, let them end, and close the loop."""
    loop.before_step = None
    try:
        left = loop.tasks()
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    except DeadlockError:
        # The test has failed already, with the first deadlock; a task that resists adds nothing to it.
        pass
    finally:
        loop.close()
