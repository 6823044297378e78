"""What the engine offers to the operator of one step, behind its Context.

What an operator may yield, made into rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from aioflow.authoring.context import Position, RunInfo
from aioflow.compiler.step import Step
from aioflow.plan import Item
from aioflow.processes.frames import Limits, UnimportableError
from aioflow.relation import Batch, Row, Schema
from aioflow.runtime.budget import Permits
from aioflow.runtime.events import FiringEnded, FiringStarted, StepEvent
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.outlet import Outlet
from aioflow.runtime.session import Session, Totals
from aioflow.runtime.threads import BlockingCall
from aioflow.values.coercion import row_of_mapping
from aioflow.wholeness import Marks


class HostedStep(Protocol):
    """The step that runs the operator."""

    session: Session
    step: Step
    totals: Totals
    urgent: bool
    ordered: bool
    outlets: Sequence[Outlet]
    children: dict[asyncio.Task[Any], None]
    own_marks: Marks

    @property
    def takes_failures(self) -> bool: ...
    @property
    def position(self) -> Position: ...
    def tuple_failed(self, row: Row, error: BaseException, attempts: int) -> None: ...
    def fired(self) -> None: ...
    def output_number(self, name: str) -> int: ...
    def place(self) -> tuple[float, str, str, str, int | None, int]: ...


class Host:
    """Implements `context.StepHost`."""

    def __init__(self, step: HostedStep) -> None:
        self._step = step
        self.ordered = step.ordered
        self.takes_failures = step.takes_failures
        self.tuple_failed = step.tuple_failed
        self.fired = step.fired

    @property
    def workers(self) -> int:
        step = self._step
        return min(step.step.workers or step.session.workers, step.session.workers)

    @property
    def memory(self) -> MemoryBudget:
        return self._step.session.memory

    @property
    def run_info(self) -> RunInfo:
        return self._step.session.info

    @property
    def folder(self) -> Path:
        return self._step.session.folder

    @property
    def where(self) -> str:
        return self._step.step.where

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self._step.session.spawn(coroutine, self._step.children)

    @property
    def urgent(self) -> bool:
        return self._step.urgent

    @property
    def runs_once(self) -> bool:
        return self._step.session.graph.runs_once(self._step.step.plan)

    def number_in_plan(self, setting: str) -> tuple[str, int]:
        step = self._step.step
        return step.plan.name, self._step.session.graph.number_of(step, setting)

    @property
    def position(self) -> Position:
        return self._step.position

    @property
    def hold_rows(self) -> int:
        return self._step.session.hold_rows

    @property
    def sees_own_writes(self) -> bool:
        return self._step.step.sees_own_writes

    @property
    def is_read_back(self) -> bool:
        return self._step.step.is_read_back

    def permit(self, source: str | None, label: str) -> Firing:
        return Firing(self._step, source, label)

    async def in_thread(self, function: Callable[[], Any], source: str | None) -> Any:
        call = BlockingCall(function)
        firing = Firing(self._step, source, "")
        async with firing:
            try:
                return await self._step.session.budget.threads.call(call)
            except asyncio.CancelledError:
                firing.leave_permits(call)
                raise

    async def in_process(
        self, function: Callable[..., Any], args: tuple[Any, ...], source: str | None, limits: Limits
    ) -> Any:
        # Imported late: few plans need other processes.
        from aioflow.processes.pool import Processes

        try:
            async with Firing(self._step, source, ""):
                return await self.service(Processes).call(function, *args, limits=limits)
        except UnimportableError:
            return await self.in_thread(partial(function, *args), source)

    def has_spare_permits(self, told: Callable[[], None]) -> bool:
        session = self._step.session
        permits = session.budget.all_permits if session.permits_of_run is None else (session.permits_of_run,)
        if any(each.is_spare for each in permits):
            return True
        for each in permits:
            each.when_spare(told)
        return False

    def service(self, kind: type[Any]) -> Any:
        return self._step.session.services.service(kind)

    def count(self, what: str, number: int) -> None:
        self._step.totals.counters[what] += number

    def warn(self, message: str) -> None:
        self._step.session.warn(f"{self._step.step.where}: {message}")

    @property
    def is_watched(self) -> bool:
        return bool(self._step.session.listeners)

    def publish(self, kind: Callable[..., StepEvent], *details: Any) -> None:
        if self.is_watched:
            self._step.session.publish(kind(*self._step.place(), *details))

    def mark(self, marks: Marks) -> None:
        self._step.own_marks = self._step.own_marks.united(marks)

    def note(self, message: str) -> None:
        self._step.session.notes.append(f"{self._step.step.where}: {message}")

    def found_nothing(self, message: str) -> None:
        self._step.session.find_nothing(f"{self._step.step.where}: {message}")

    def reads_attribute(self, name: str) -> bool:
        needed = self._step.step.needed
        return needed is None or name in needed

    def reads_output(self, name: str) -> bool:
        return bool(self._step.outlets[self._step.output_number(name)].targets)

    def item(self, kind: str, name: str) -> Item | None:
        return self._step.session.graph.program.item(kind, name)

    async def emit(self, name: str, schema: Schema, rows: Sequence[Row]) -> None:
        await self._step.session.emit(name, schema, rows)


class Firing:
    """One firing that waits on the outside world: holds its permits while it does, counts and reports it."""

    __slots__ = ("_label", "_number", "_permits", "_step", "_was_left")

    def __init__(self, step: HostedStep, source: str | None, label: str) -> None:
        session = step.session
        self._step = step
        self._label = label
        # Always in this order, so that no two firings wait for each other.
        needed = (session.limit_of(step.step), session.permits_of_run, session.budget.permits_for(source))
        self._permits = [permits for permits in needed if permits is not None]
        self._was_left = False
        self._number = 0

    async def __aenter__(self) -> None:
        if len(self._permits) == 1 and self._permits[0].try_acquire():
            self._start(0.0)
            return
        session = self._step.session
        started = session.now()
        taken: list[Permits] = []
        try:
            for permits in self._permits:
                await permits.acquire(self._step.urgent, self._tell_why)
                taken.append(permits)
        except BaseException:
            for permits in taken:
                permits.release()
            raise
        self._start(session.now() - started)

    def _start(self, waited_seconds: float) -> None:
        session = self._step.session
        totals = self._step.totals
        totals.firings += 1
        totals.waiting_permit_seconds += waited_seconds
        session.firings += 1
        self._number = session.firings
        if session.listeners:
            session.publish(FiringStarted(*self._step.place(), self._number, waited_seconds, self._label))

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        session = self._step.session
        if not self._was_left:
            for permits in self._permits:
                permits.release()
        if session.listeners:
            message = None if error is None else str(error) or type(error).__name__
            session.publish(FiringEnded(*self._step.place(), self._number, message))

    def _tell_why(self, permits: Permits) -> None:
        self._step.session.warn_of_outlasting(self._step.step, permits)

    def leave_permits(self, call: BlockingCall[Any]) -> None:
        """Leave the permits to a function that works on although its caller was cancelled."""
        left = self._permits

        def give_back() -> None:  # it knows nothing of the run, which is not kept for it
            for permits in left:
                permits.give_back()

        self._was_left = call.give_up(give_back)
        if self._was_left:
            for permits in left:
                permits.leave()


def rows_of(item: Any, outlet: Outlet, operator: str) -> Batch:
    """Rows from what an operator yielded: a row, a list of rows, or a mapping."""
    rows = item if isinstance(item, list) else [item]
    if rows and isinstance(rows[0], Mapping):
        if outlet.schema is None:
            outlet.open(Schema(tuple(rows[0])))
        assert outlet.schema is not None
        return [row_of_mapping(outlet.schema, mapping) for mapping in rows]
    if rows and not isinstance(rows[0], tuple):
        raise TypeError(f"{operator} yields {rows[0]!r}: a row is a tuple, a mapping, or a list of these")
    if outlet.schema is None and rows:
        raise TypeError(
            f"{operator} yields tuples without saying their attributes: give @operator a schema rule, "
            "or yield mappings or a Schema first"
        )
    if rows and outlet.schema is not None and len(rows[0]) != len(outlet.schema):
        raise TypeError(
            f"{operator} yields a row of {len(rows[0])} values, but its schema has {len(outlet.schema)} "
            f"attributes: {', '.join(outlet.schema.names)}"
        )
    return rows
