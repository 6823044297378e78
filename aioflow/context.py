"""What an operator may ask of the run that it works in, and how it works on many tuples at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import dataclass
from datetime import datetime
from inspect import isasyncgenfunction
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast

from aioflow.plan import Item
from aioflow.relation import Batch, Row, Schema
from aioflow.spill import Memory
from aioflow.stream import Stream

T = TypeVar("T")


@dataclass(frozen=True)
class RunInfo:
    """Who is running: `$run-id`, `$task-id` and `$started` of the language."""

    run_id: str
    started: datetime
    task_id: str | None = None


@dataclass(frozen=True)
class To:
    """What an operator with several outputs yields: rows (or a Schema, DEAD or END) for one of them."""

    output: str
    content: Any


class Ending:
    """How an operator ends one of its outputs before the others."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


DEAD = Ending("DEAD")
END = Ending("END")


class StepHost(Protocol):
    """What the engine gives to the context of one step."""

    @property
    def ordered(self) -> bool: ...
    @property
    def workers(self) -> int: ...
    @property
    def memory(self) -> Memory: ...
    @property
    def run_info(self) -> RunInfo: ...
    @property
    def folder(self) -> Path: ...
    @property
    def where(self) -> str: ...
    @property
    def urgent(self) -> bool: ...
    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]: ...
    def permit(self, source: str | None, label: str) -> AbstractAsyncContextManager[None]: ...
    def service(self, kind: type[Any]) -> Any: ...
    def tuple_failed(self, row: Row, error: BaseException, attempts: int) -> None: ...
    def fired(self) -> None: ...
    def count(self, what: str, number: int) -> None: ...
    def warn(self, message: str) -> None: ...
    def reads_attribute(self, name: str) -> bool: ...
    def reads_output(self, name: str) -> bool: ...
    def item(self, kind: str, name: str) -> Item | None: ...
    async def emit(self, name: str, schema: Schema, rows: Sequence[Row]) -> None: ...


class Context:
    """An operator's view of its run: ask for it with a parameter `context: Context`."""

    __slots__ = ("_step",)

    def __init__(self, step: StepHost) -> None:
        self._step = step

    @property
    def ordered(self) -> bool:
        """Whether results must leave in the order of their inputs."""
        return self._step.ordered

    @property
    def workers(self) -> int:
        """The most firings of this statement at once."""
        return self._step.workers

    @property
    def memory(self) -> Memory:
        """The account on which the structures of `aioflow.spill` keep rows."""
        return self._step.memory

    @property
    def run(self) -> RunInfo:
        return self._step.run_info

    @property
    def folder(self) -> Path:
        """The folder of the plan's file, to which relative paths refer."""
        return self._step.folder

    @property
    def where(self) -> str:
        """The statement's place, for messages."""
        return self._step.where

    @property
    def urgent(self) -> bool:
        """Whether the results lead into a recursive call: such firings go first."""
        return self._step.urgent

    def permit(self, source: str | None = None, label: str = "") -> AbstractAsyncContextManager[None]:
        """`async with` this around whatever waits on the outside world; traces show the label."""
        return self._step.permit(source, label)

    def service(self, kind: type[T]) -> T:
        """What operators share through their engine or run, by its class (`aioflow.services`)."""
        return cast(T, self._step.service(kind))

    def fail(self, row: Row, error: BaseException, attempts: int = 1) -> None:
        """Report that the firing for this tuple failed: to the statement's ERRORS, or the run ends."""
        self._step.tuple_failed(row, error, attempts)

    def fired(self) -> None:
        """Report that a firing succeeded (operators with `firing="tuple"` only)."""
        self._step.fired()

    def count(self, what: str, number: int = 1) -> None:
        """Add to a counter that the statistics show."""
        self._step.count(what, number)

    def warn(self, message: str) -> None:
        self._step.warn(message)

    def reads_attribute(self, name: str) -> bool:
        """Whether anybody may read that attribute of the results."""
        return self._step.reads_attribute(name)

    def reads_output(self, name: str) -> bool:
        """Whether anybody reads that output."""
        return self._step.reads_output(name)

    def item(self, kind: str, name: str) -> Item | None:
        """An item of the program, such as a wrapper."""
        return self._step.item(kind, name)

    async def emit(self, name: str, schema: Schema, rows: Sequence[Row]) -> None:
        """Send rows to an output of the run that the plan does not declare."""
        await self._step.emit(name, schema, rows)

    def clock(self) -> float:
        """The loop's time in seconds; virtual in tests."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def in_thread(self, function: Callable[..., T], *args: Any, source: str | None = None) -> T:
        """Call a blocking function on a worker thread, under a permit."""
        from anyio import to_thread

        async with self.permit(source):
            return await to_thread.run_sync(function, *args)

    async def in_process(self, function: Callable[..., T], *args: Any, source: str | None = None) -> T:
        """Call a CPU-heavy function in a spawned process, under a permit; it is killed on cancel."""
        from anyio import to_process

        async with self.permit(source):
            return await to_process.run_sync(function, *args, cancellable=True)


def map_concurrently(
    function: Callable[[Row], Awaitable[T] | AsyncGenerator[T, None]],
    rows: Stream,
    context: Context,
    *,
    permit: bool = True,
    source: str | None = None,
    window: int | None = None,
) -> AsyncIterator[tuple[Row, T]]:
    """Call a function for each tuple, several at once, each under a permit.

    Gives (tuple, result) as calls end, or as an async generator function yields; in the order of the
    tuples when the statement is ORDERED.
    A call that fails is reported to `context.fail`, and the rest goes on. Calls that take their permits
    themselves, and may wait for something else before, can be under way for a `window` of tuples.
    """
    return _ConcurrentMap(function, rows, context, permit, source, window)


class _NoMore:
    """The end of a generator."""


_NO_MORE = _NoMore()
_EARLY_AT_MOST = 64


@dataclass(frozen=True)
class _Several(Generic[T]):
    """What is left to give of a call that gave its results one by one."""

    results: list[T]


class _ConcurrentMap(Generic[T]):
    """Its tasks belong to the step, which ends them with itself: no `finally` is needed here."""

    def __init__(
        self,
        function: Callable[[Row], Awaitable[T] | AsyncGenerator[T, None]],
        rows: Stream,
        context: Context,
        permit: bool,
        source: str | None,
        window: int | None,
    ) -> None:
        self._function = function
        self._window = window or context.workers
        self._rows = rows
        self._context = context
        self._permit = permit
        self._source = source
        self._pending: deque[Row] = deque()
        self._running: deque[asyncio.Task[T | _Several[T]]] = deque()  # in the order of their rows
        self._row_of: dict[asyncio.Task[T | _Several[T]], Row] = {}
        self._finished: deque[asyncio.Task[T | _Several[T]]] = deque()
        self._early: deque[tuple[Row, T]] = deque()  # results that can leave
        self._taken = asyncio.Event()
        self._reading: asyncio.Task[Batch | None] | None = None
        self._changed: asyncio.Event = asyncio.Event()
        self._exhausted = False

    def __aiter__(self) -> _ConcurrentMap[T]:
        return self

    async def __anext__(self) -> tuple[Row, T]:
        while True:
            self._start_calls()
            while not self._early and (task := self._next_finished()) is not None:
                self._take_result(task)
            if self._early:
                self._taken.set()
                self._context.fired()
                return self._early.popleft()
            if self._exhausted and not self._pending and not self._running:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()

    def _take_result(self, task: asyncio.Task[T | _Several[T]]) -> None:
        row = self._row_of.pop(task)
        self._start_calls()
        error = RuntimeError("the call was cancelled from inside") if task.cancelled() else task.exception()
        if error is not None:
            self._context.fail(row, error, getattr(error, "attempts", 1))
            return
        self._context.fired()
        result = task.result()
        if isinstance(result, _Several):
            self._early.extend((row, each) for each in result.results)
        else:
            self._early.append((row, result))

    def _start_calls(self) -> None:
        # Results that nobody took yet count: a slow reader slows the calls down.
        while len(self._running) + len(self._finished) < self._window:
            if not self._pending and not self._read():
                return
            row = self._pending.popleft()
            task = self._spawn(self._call(row))
            self._row_of[task] = row
            self._running.append(task)
            task.add_done_callback(self._call_ended)

    def _read(self) -> bool:
        """Take the rows that are there; if there are none, have somebody wait for them."""
        if self._reading is not None:
            return False  # what it is about to give comes before anything else
        batch = self._rows.take()
        if batch is not None:
            self._pending.extend(batch)
            return True
        if self._rows.ended:
            self._exhausted = True
        else:
            self._reading = self._spawn(self._rows.receive())
            self._reading.add_done_callback(self._read_ended)
        return False

    def _read_ended(self, task: asyncio.Task[Batch | None]) -> None:
        self._reading = None
        if not task.cancelled() and task.exception() is None:
            self._pending.extend(task.result() or ())
        self._changed.set()

    async def _call(self, row: Row) -> T | _Several[T]:
        try:
            if isasyncgenfunction(self._function):
                return await self._pull(row, self._function(row))
            async with self._permitted():
                return await cast("Awaitable[T]", self._function(row))
        except SystemExit as error:  # in a task it would end the loop, past every cleanup
            raise RuntimeError(f"the function wants to exit: {error!r}") from error

    async def _pull(self, row: Row, results: AsyncGenerator[T, None]) -> _Several[T]:
        """Results one by one; each pull is a firing, so that no permit is held while nobody takes them."""
        kept: list[T] = []
        async with aclosing(results):
            while True:
                async with self._permitted():
                    result = await anext(results, _NO_MORE)
                if isinstance(result, _NoMore):
                    return _Several(kept)
                if self._context.ordered:
                    kept.append(result)
                    continue
                while len(self._early) >= _EARLY_AT_MOST:
                    self._taken.clear()
                    await self._taken.wait()
                self._early.append((row, result))
                self._changed.set()

    def _permitted(self) -> AbstractAsyncContextManager[None]:
        return self._context.permit(self._source) if self._permit else nullcontext()

    def _call_ended(self, task: asyncio.Task[T | _Several[T]]) -> None:
        if not task.cancelled():
            task.exception()  # asked for, so that asyncio does not report it a second time
        if not self._context.ordered:
            self._running.remove(task)
            self._finished.append(task)
        self._changed.set()

    def _next_finished(self) -> asyncio.Task[T | _Several[T]] | None:
        if self._context.ordered:
            return self._running.popleft() if self._running and self._running[0].done() else None
        return self._finished.popleft() if self._finished else None

    def _spawn(self, coroutine: Any) -> asyncio.Task[Any]:
        return self._context._step.spawn(coroutine)
