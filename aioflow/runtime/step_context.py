"""The context of a step, which gives its operator access to the run, and the firings of the step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from aioflow.authoring.context import Context, Position, RunInfo
from aioflow.plan import Item
from aioflow.processes.frames import Limits, UnimportableError
from aioflow.relation import Row, Schema
from aioflow.runtime.budget import BlockingCall, Permits
from aioflow.runtime.events import FiringEnded, FiringStarted, StepEvent
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.operator_step import OperatorStep
from aioflow.runtime.outlet import is_needed
from aioflow.runtime.report import now
from aioflow.wholeness import Marks


class Firing:
    """`async with` it around a wait: it holds its permits meanwhile, is counted, and is reported."""

    __slots__ = ("_label", "_number", "_permits", "_step", "_was_left")

    def __init__(self, step: OperatorStep, source: str | None, label: str = "") -> None:
        self._step = step
        self._label = label
        self._permits = step.session.permits.needed(step.step, source)
        self._was_left = False
        self._number = 0

    async def __aenter__(self) -> None:
        if len(self._permits) == 1 and self._permits[0].try_acquire():
            self._start(0.0)
            return
        started = now()
        taken: list[Permits] = []
        try:
            for permits in self._permits:
                await permits.acquire(self._step.urgent, self._tell_why)
                taken.append(permits)
        except BaseException:
            for permits in taken:
                permits.release()
            raise
        self._start(now() - started)

    def _start(self, waited_seconds: float) -> None:
        session = self._step.session
        totals = self._step.totals
        totals.firings += 1
        totals.waiting_permit_seconds += waited_seconds
        session.totals.firings += 1
        self._number = session.totals.firings
        if session.events.listeners:
            place = self._step.place()
            session.events.publish(FiringStarted(*place, self._number, waited_seconds, self._label))

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not self._was_left:
            for permits in self._permits:
                permits.release()
        events = self._step.session.events
        if events.listeners:
            message = None if error is None else str(error) or type(error).__name__
            events.publish(FiringEnded(*self._step.place(), self._number, message))

    def _tell_why(self, permits: Permits) -> None:
        self._step.session.report.warn_of_outlasting(self._step.step, permits)

    def leave_permits(self, call: BlockingCall[Any]) -> None:
        """Leave the permits to a function that goes on although its caller was cancelled."""
        left = self._permits

        def give_back() -> None:  # without a reference to the run, which may end before the function
            for permits in left:
                permits.give_back()

        self._was_left = call.give_up(give_back)
        if self._was_left:
            for permits in left:
                permits.leave()


T = TypeVar("T")


class StepContext(Context):
    """Implements `Context`, which documents each member, for one step of a run."""

    __slots__ = ("_session", "_statement", "_step")

    def __init__(self, step: OperatorStep) -> None:
        self._step = step
        self._session = step.session
        self._statement = step.step

    # --- the statement --------------------------------------------------------------------------

    @property
    def run(self) -> RunInfo:
        return self._session.info

    @property
    def folder(self) -> Path:
        return self._session.info.folder

    @property
    def where(self) -> str:
        return self._statement.where

    @property
    def position(self) -> Position:
        return self._step.position

    @property
    def ordered(self) -> bool:
        return self._step.ordered

    @property
    def workers(self) -> int:
        most = self._session.permits.workers
        return min(self._statement.workers or most, most)

    @property
    def urgent(self) -> bool:
        return self._step.urgent

    @property
    def runs_once(self) -> bool:
        return self._session.graph.runs_once(self._statement.plan)

    @property
    def sees_own_writes(self) -> bool:
        return self._statement.sees_own_writes

    @property
    def is_read_back(self) -> bool:
        return self._statement.is_read_back

    @property
    def takes_failures(self) -> bool:
        return self._step.takes_failures

    @property
    def hold_rows(self) -> int:
        return self._session.settings.hold_rows

    def number_in_plan(self, setting: str) -> tuple[str, int]:
        return self._statement.plan.name, self._session.graph.number_of(self._statement, setting)

    def reads_attribute(self, name: str) -> bool:
        needed = self._statement.needed
        return needed is None or name in needed

    def reads_output(self, name: str) -> bool:
        return is_needed(self._step.outlets[self._step.output_number(name)].targets)

    def item(self, kind: str, name: str) -> Item | None:
        return self._session.graph.program.item(kind, name)

    # --- resources ------------------------------------------------------------------------------

    @property
    def memory(self) -> MemoryBudget:
        return self._session.memory

    def service(self, kind: type[T]) -> T:
        return cast(T, self._session.services.service(cast(type[Any], kind)))

    def permit(self, source: str | None = None, label: str = "") -> Firing:
        return Firing(self._step, source, label)

    def has_spare_permits(self, when_spare: Callable[[], None]) -> bool:
        return self._session.permits.has_spare(when_spare)

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return self._session.tasks.spawn(coroutine, self._step.children)

    async def in_thread(self, function: Callable[..., T], *args: Any, source: str | None = None) -> T:
        call = BlockingCall(partial(function, *args))
        firing = Firing(self._step, source)
        async with firing:
            try:
                return await self._session.permits.budget.threads.call(call)
            except asyncio.CancelledError:
                firing.leave_permits(call)
                raise

    async def in_process(
        self,
        function: Callable[..., T],
        *args: Any,
        source: str | None = None,
        seconds: float | None = None,
        processor_seconds: float | None = None,
        memory_bytes: int | None = None,
    ) -> T:
        # Imported late: few plans need other processes.
        from aioflow.processes.pool import Processes

        limits = Limits(seconds, processor_seconds, memory_bytes)
        try:
            async with Firing(self._step, source):
                return await self.service(Processes).call(function, *args, limits=limits)
        except UnimportableError:
            return await self.in_thread(function, *args, source=source)

    # --- reports --------------------------------------------------------------------------------

    def fired(self) -> None:
        self._step.fired()

    def fail(self, row: Row, error: BaseException, attempts: int = 1) -> None:
        self._step.tuple_failed(row, error, attempts)

    def mark(self, marks: Marks) -> None:
        self._step.own_marks = self._step.own_marks.united(marks)

    def found_nothing(self, message: str) -> None:
        self._session.report.find_nothing(f"{self.where}: {message}")

    def count(self, what: str, number: int = 1) -> None:
        self._step.totals.counters[what] += number

    def warn(self, message: str) -> None:
        self._session.report.warn(f"{self.where}: {message}")

    def note(self, message: str) -> None:
        self._session.report.notes.append(f"{self.where}: {message}")

    @property
    def is_watched(self) -> bool:
        return bool(self._session.events.listeners)

    def publish(self, kind: Callable[..., StepEvent], *details: Any) -> None:
        if self._session.events.listeners:
            self._session.events.publish(kind(*self._step.place(), *details))

    async def emit(self, name: str, schema: Schema, rows: Sequence[Row]) -> None:
        await self._session.emit(name, schema, rows)
