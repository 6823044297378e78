"""One run as its steps see it: its settings, its permits, and the parts that its steps share."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
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
from aioflow.runtime.tasks import Tasks

Mode: TypeAlias = Literal["D-", "D+S-", "D+S+"]
MODES: tuple[Mode, ...] = ("D-", "D+S-", "D+S+")


class RunSettings(msgspec.Struct, frozen=True):
    """The settings of a run that do not change while it is under way."""

    mode: Mode
    capacity_rows: int  # of the queue of a reader
    max_depth: int  # of recursions that nothing in the plan bounds
    hold_rows: int  # that an operator may hold for one firing
    timing: bool  # whether the waiting times of statements are measured

    @property
    def one_at_a_time(self) -> bool:
        """Whether one operator works at a time."""
        return self.mode == "D-"

    @property
    def streaming(self) -> bool:
        """Whether a statement may begin before its inputs have ended."""
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
