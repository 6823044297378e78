"""One run as its steps see it: its settings, its permits, its tasks, and the parts that its steps share."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from aioflow.authoring.context import RunInfo
from aioflow.authoring.services import Services
from aioflow.compiler.graph import Graph
from aioflow.compiler.step import Step
from aioflow.errors import OperatorError
from aioflow.relation import Row, Schema
from aioflow.runtime.budget import Budget, Permits
from aioflow.runtime.events import Listener, TupleFailed
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.report import EventPublisher, RunReport, RunTotals

Mode: TypeAlias = Literal["D-", "D+S-", "D+S+"]
MODES: tuple[Mode, ...] = ("D-", "D+S-", "D+S+")


class RunSettings(msgspec.Struct, frozen=True):
    """The settings of a run that do not change while it is under way."""

    mode: Mode
    capacity_rows: int  # of the queue of a reader
    max_depth: int  # of recursions that nothing in the plan bounds
    hold_rows: int  # of an operator, held for one firing
    timing: bool  # True if the waiting times of statements are measured

    @property
    def one_at_a_time(self) -> bool:
        """Return whether one operator works at a time."""
        return self.mode == "D-"

    @property
    def streaming(self) -> bool:
        """Return whether a statement may begin before its inputs have ended."""
        return self.mode == "D+S+"


class Gatekeeper(Protocol):
    """Holds sources back while a checkpoint is made."""

    @property
    def is_open(self) -> bool: ...
    def when_open(self, callback: Callable[[], None]) -> None: ...
    async def gate(self) -> None: ...
    def gated(self, source: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]: ...


class Ready(Protocol):
    """A step that could run and may be handed the baton of D-."""

    @property
    def text_order(self) -> tuple[int, int]: ...
    def spawn_run(self) -> None: ...


class Baton:
    """In D- one operator works at a time: the first ready one in the text."""

    def __init__(self) -> None:
        self._ready: list[tuple[tuple[int, int], int, Ready]] = []
        self._taken = False
        self._requests = 0

    def request(self, step: Ready) -> None:
        self._requests += 1
        heapq.heappush(self._ready, (step.text_order, self._requests, step))
        if not self._taken:
            # Not at once: others that become ready in the same moment may stand before it.
            self._taken = True
            asyncio.get_running_loop().call_soon(self._hand_on)

    def release(self) -> None:
        asyncio.get_running_loop().call_soon(self._hand_on)

    def _hand_on(self) -> None:
        if self._ready:
            heapq.heappop(self._ready)[2].spawn_run()
        else:
            self._taken = False


class RunPermits:
    """Knows which permits a firing of a run needs. In D- one firing of the run works at a time."""

    def __init__(self, budget: Budget, *, one_at_a_time: bool) -> None:
        self.budget = budget
        self.workers = 1 if one_at_a_time else budget.most
        self._of_run = Permits(1) if one_at_a_time else None
        self._of_statements: dict[tuple[str, int], Permits] = {}

    def needed(self, step: Step, source: str | None) -> list[Permits]:
        """Return the permits of a firing, always in the same order, so that no two wait for each other."""
        of_statement = None if step.workers is None else self._of_statement(step, step.workers)
        needed = (of_statement, self._of_run, self.budget.permits_for(source))
        return [permits for permits in needed if permits is not None]

    def _of_statement(self, step: Step, workers: int) -> Permits:
        """Return the permits of a statement with WORKERS, which all calls of its plan share."""
        key = step.statement_key
        if key not in self._of_statements:
            self._of_statements[key] = Permits(workers)
        return self._of_statements[key]

    def has_spare(self, when_spare: Callable[[], None]) -> bool:
        """Return whether a permit is free; if none is, call a function once when one is given back."""
        permits = self.budget.all_permits if self._of_run is None else (self._of_run,)
        if any(each.is_spare for each in permits):
            return True
        for each in permits:
            each.when_spare(when_spare)
        return False


async def _emit_nowhere(name: str, schema: Schema, rows: Sequence[Row]) -> None:
    """Drop rows that are emitted before the run has started."""


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
        """Return whether a callback of `call_soon` has not run yet, or a block of `at_work` has not ended."""
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


class Session:
    """Everything that the steps of one run share."""

    def __init__(
        self,
        graph: Graph,
        info: RunInfo,
        settings: RunSettings,
        budget: Budget,
        memory: MemoryBudget,
        listeners: Sequence[Listener],
        services: Services,
    ) -> None:
        self.graph = graph
        self.info = info
        self.settings = settings
        self.memory = memory
        self.tasks = Tasks()
        self.events = EventPublisher(info.run_id, listeners, self.tasks.fail)
        self.totals = RunTotals()
        self.report = RunReport(self.events)
        self.permits = RunPermits(budget, one_at_a_time=settings.one_at_a_time)
        self.services = services.for_run(info, self.report.warn, self.report.find_nothing)
        self.baton = Baton() if settings.one_at_a_time else None
        self.checkpoints: Gatekeeper | None = None  # of a plan that commits as it streams
        self.emit: Callable[[str, Schema, Sequence[Row]], Awaitable[None]] = _emit_nowhere
        self.inline_depth = 0  # of inline steps that call one another

    def fail_step(self, step: Step, iteration: int, error: OperatorError) -> None:
        """End the run with the error of a step, because no ERRORS takes it."""
        cause = error.__cause__ or error
        self.totals.of(step).fail(cause, ends_run=True)
        if self.events.listeners:
            self.events.publish(TupleFailed(*self.events.place(step, iteration), str(cause)))
        self.tasks.fail(error)
