"""Concurrent work on many tuples: a function is called for each, and results leave as they come."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from inspect import isasyncgenfunction
from itertools import islice
from typing import Any, Generic, TypeVar, cast

from aioflow.authoring.context import Context, Release
from aioflow.errors import ReleasedError, RunError
from aioflow.relation import Batch, Row
from aioflow.runtime.spill import RowBuffer, off_loop, walk
from aioflow.runtime.stream import Stream

T = TypeVar("T")


def map_concurrently(
    function: Callable[[Row], Awaitable[T] | AsyncIterator[T | Release]],
    rows: Stream,
    context: Context,
    *,
    permit: bool = True,
    source: str | None = None,
    window: int | None = None,
) -> ConcurrentCalls[T]:
    """Call a function for each tuple, several at once, each under a permit.

    Yields (tuple, result) as calls end, or as an async generator function yields; in the order of the tuples
    if the statement is ORDERED. `batches()` yields lists of all available pairs. A call that fails is
    reported to `context.fail`, and the rest goes on. If ERRORS may take the failure, a call gives all its
    results or none: those of a generator are held until it has ended, in memory and then on disk, unless it
    yields a `Release`. Calls that take their permits themselves, and may wait for something else before, can
    be under way for a `window` of tuples as long as there are unused permits.
    """
    return ConcurrentCalls(function, rows, context, permit, source, window or context.workers)


class _NoMore:
    """The end of a generator."""


_NO_MORE = _NoMore()
_EARLY_AT_MOST = 64
_WAITING_AT_MOST = 256
# Then other tasks run: of two statements that get the same tuples, neither should queue all of them first.
_STARTED_AT_ONCE = 4
_TURNS_FOR_URGENT = 12


def _results(held: RowBuffer) -> Iterator[Any]:
    return (result for batch in held.batches() for (result,) in batch)


class _Call(Generic[T]):
    """A call for one tuple, and its outcome. A call of a generator has many results."""

    __slots__ = ("error", "held", "is_done", "release", "results", "row")

    def __init__(self, row: Row) -> None:
        self.row = row
        self.results: tuple[T, ...] = ()
        self.held: RowBuffer | None = None  # results of a generator, in tuples of their own
        self.release: Release | None = None
        self.error: BaseException | None = None
        self.is_done = False


class ConcurrentCalls(Generic[T]):
    """The calls of `map_concurrently`, as an async iterator of (tuple, result).

    Its tasks belong to the step, which ends them with itself: no `finally` is needed here.
    """

    def __init__(
        self,
        function: Callable[[Row], Awaitable[T] | AsyncIterator[T | Release]],
        rows: Stream,
        context: Context,
        permit: bool,
        source: str | None,
        window: int,
    ) -> None:
        self._function = function
        self._is_generator = isasyncgenfunction(function)
        self._rows = rows
        self._context = context
        self._permit = permit
        self._source = source
        self._window = window
        self._workers = min(window, context.workers)
        self._early_at_most = min(window, _EARLY_AT_MOST)
        self._waiting_at_most = min(window, _WAITING_AT_MOST)
        self._ordered = context.ordered
        self._holds = context.ordered or context.takes_failures
        self._pending: deque[Row] = deque()
        self._running = 0
        self._waiting: deque[_Call[T]] = (
            deque()
        )  # calls that have ended; if ordered, all that were begun, in their order
        self._early: deque[tuple[Row, T]] = deque()  # results that can leave
        self._leaving: tuple[Row, RowBuffer] | None = None  # more of them, which were held
        self._rest: Iterator[T] = iter(())
        self._taken = asyncio.Event()
        self._reading: asyncio.Task[Batch | None] | None = None
        self._changed: asyncio.Event = asyncio.Event()
        self._exhausted = False
        self._turns_to_pass = 0

    def __aiter__(self) -> ConcurrentCalls[T]:
        return self

    async def __anext__(self) -> tuple[Row, T]:
        if not self._early:
            await self._arrival()
            if not self._early:
                raise StopAsyncIteration
        self._taken.set()
        self._context.fired()
        return self._early.popleft()

    async def batches(self) -> AsyncGenerator[list[tuple[Row, T]], None]:
        """Yield lists of all available results."""
        while True:
            await self._arrival()
            if not self._early:
                return
            batch = list(self._early)
            self._early.clear()
            self._taken.set()
            self._context.fired()
            yield batch

    async def _arrival(self) -> None:
        """Wait until results can leave, or all is over."""
        while not self._early:
            await self._let_leave()
            self._start_calls()  # now that there is room
            if self._early:
                return
            if self._is_over:
                return
            self._changed.clear()
            await self._changed.wait()

    @property
    def _is_over(self) -> bool:
        return not (self._pending or self._running or self._waiting or self._leaving) and self._exhausted

    async def _let_leave(self) -> None:
        while len(self._early) < self._early_at_most:
            if self._leaving is not None:
                row, held = self._leaving
                some: list[T] = await off_loop(held, list, islice(self._rest, _EARLY_AT_MOST))
                self._early.extend((row, result) for result in some)
                if not some:
                    held.close()
                    self._leaving = None
            elif self._waiting and self._waiting[0].is_done:
                self._take_results(self._waiting.popleft())
            else:
                return

    def _take_results(self, call: _Call[T]) -> None:
        if call.error is not None:
            self._context.fail(call.row, call.error, getattr(call.error, "attempts", 1))
            return
        self._context.fired()
        row = call.row
        for result in call.results:
            self._early.append((row, result))
        if call.held is not None:
            self._leaving, self._rest = (row, call.held), _results(call.held)

    # --- tuples -----------------------------------------------------------------------------------

    def _start_calls(self) -> None:
        if self._turns_to_pass or (not self._pending and (self._reading is not None or self._exhausted)):
            return
        started = 0
        while self._running < self._window and self._has_room():
            if not self._pending and (not self._read() or self._turns_to_pass):
                return
            if self._running >= self._workers and not self._may_look_ahead():
                return
            if started == _STARTED_AT_ONCE:
                asyncio.get_running_loop().call_soon(self._changed.set)
                return
            started += 1
            self._running += 1
            self._spawn(self._work(self._begin()))

    def _has_room(self) -> bool:
        """Return whether a call may begin. Results that were not taken yet count, so a slow reader slows
        calls.
        """
        return len(self._waiting) < self._waiting_at_most + (self._running if self._ordered else 0)

    def _may_look_ahead(self) -> bool:
        """Return whether more calls than workers help: some may wait for a host while another is free."""
        return self._context.has_spare_permits(self._changed.set)

    def _begin(self) -> _Call[T]:
        call: _Call[T] = _Call(self._pending.popleft())
        if self._ordered:
            self._waiting.append(call)
        return call

    def _read(self) -> bool:
        """Take the available rows; if there are none, have a task wait for them."""
        if self._reading is not None:
            return False  # the rows that it is about to return come first
        batch = self._rows.take()
        if batch is not None:
            self._pending.extend(batch)
            self._let_others_pass()
            return True
        if self._rows.ended and not self._rows.has_rows:
            self._exhausted = True
        else:
            self._reading = self._spawn(self._rows.receive())
            self._reading.add_done_callback(self._read_ended)
        return False

    def _read_ended(self, task: asyncio.Task[Batch | None]) -> None:
        self._reading = None
        if not task.cancelled() and task.exception() is None:
            self._pending.extend(task.result() or ())
            self._let_others_pass()
        self._changed.set()

    def _let_others_pass(self) -> None:
        """Wait some turns of the loop with tuples that lead to no recursion.

        A statement that leads to one may get the same tuples over more steps, and its requests should leave
        first.
        """
        if not self._turns_to_pass and not self._context.urgent:
            self._turns_to_pass = _TURNS_FOR_URGENT
            asyncio.get_running_loop().call_soon(self._turn_passed)

    def _turn_passed(self) -> None:
        self._turns_to_pass -= 1
        if self._turns_to_pass:
            asyncio.get_running_loop().call_soon(self._turn_passed)
        else:
            self._changed.set()

    # --- calls ------------------------------------------------------------------------------------

    async def _work(self, call: _Call[T]) -> None:
        """Make a call, and in the same task those for further available tuples, since a task is not cheap."""
        function = self._function
        while True:
            try:
                if self._permit or self._is_generator:
                    await self._make(call)
                else:
                    call.results = (await cast("Awaitable[T]", function(call.row)),)
            except SystemExit as error:  # in a task it would end the loop, past every cleanup
                call.error = RuntimeError(f"the function wants to exit: {error!r}")
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                call.error = RuntimeError("the call was cancelled from inside")
            except Exception as error:
                call.error = error
            if call.error is not None:
                self._drop_results(call, call.error)
            call.is_done = True
            if not self._ordered:
                self._waiting.append(call)
            self._changed.set()
            if not self._pending or not self._has_room():
                self._running -= 1
                return
            call = self._begin()

    async def _make(self, call: _Call[T]) -> None:
        if self._is_generator:
            await self._pull(call, cast(Any, self._function(call.row)))
            return
        async with self._context.permit(self._source):
            call.results = (await cast("Awaitable[T]", self._function(call.row)),)

    async def _pull(self, call: _Call[T], results: AsyncGenerator[T | Release, None]) -> None:
        """Take results one by one. Each pull is a firing, so that no permit is held while results wait."""
        if self._holds:
            call.held = RowBuffer(self._context.memory)
        async with aclosing(results):
            while True:
                async with self._permitted():
                    result = await anext(results, _NO_MORE)
                if isinstance(result, _NoMore):
                    return
                if isinstance(result, Release):
                    await self._release(call, result)
                elif call.held is None:
                    await self._give(call.row, result)
                else:
                    call.held.append([(result,)])
                    if len(call.held) == self._context.hold_rows:
                        why = f"its results had left, being more than hold_rows ({len(call.held):,})"
                        await self._release(call, Release(why))

    async def _release(self, call: _Call[T], release: Release) -> None:
        """Hold the results of a call no longer, unless their order requires it."""
        call.release = release
        if call.held is not None and not self._ordered:
            held, call.held = call.held, None
            with held:
                async for each in walk(held, _results(held)):
                    await self._give(call.row, each)

    async def _give(self, row: Row, result: Any) -> None:
        """Let a result leave when there is room."""
        while len(self._early) >= _EARLY_AT_MOST:
            self._taken.clear()
            await self._taken.wait()
        self._early.append((row, result))
        self._changed.set()

    def _drop_results(self, call: _Call[T], error: BaseException) -> None:
        """Drop the results of a call that failed; if some of them have left, the failure ends the run."""
        if call.held is not None:
            call.held.close()
            call.held = None
        if call.release is not None and not isinstance(error, RunError):
            call.error = ReleasedError(error, call.release.why)

    def _permitted(self) -> AbstractAsyncContextManager[None]:
        return self._context.permit(self._source) if self._permit else nullcontext()

    def _spawn(self, coroutine: Any) -> asyncio.Task[Any]:
        return self._context.spawn(coroutine)
