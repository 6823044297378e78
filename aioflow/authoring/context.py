"""What an operator may ask of the run that it works in, and how it works on many tuples at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import msgspec

from aioflow.plan import Item
from aioflow.processes.frames import Limits
from aioflow.relation import Row, Schema
from aioflow.runtime.events import StepEvent
from aioflow.runtime.memory import MemoryBudget
from aioflow.wholeness import Marks

T = TypeVar("T")


@dataclass(frozen=True)
class RunInfo:
    """Who is running: `$run-id`, `$task-id` and `$started` of the language, and what it works on."""

    run_id: str
    started: datetime
    task_id: str | None = None
    plan: str = ""  # its name
    folder: Path = Path()  # of its file
    writes: bool = False  # whether its statements may write to a store
    store: str | None = None  # the one that they write to; None for the one taken by default
    writes_early: bool = False  # before its end, because a statement looks at what others wrote
    tell_task: Callable[[], str] = field(default=str, compare=False, repr=False)

    @cached_property
    def task(self) -> str:
        """What tells the task of this run from others of its plan: `$task-id`, or a fingerprint.

        The fingerprint is that of the parameters and the inputs; "" where there are none. It takes time for
        long inputs, and few ask for it.
        """
        return self.task_id or self.tell_task()


class To(msgspec.Struct, frozen=True):
    """What an operator with several outputs yields: rows (or a Schema, DEAD or END) for one of them."""

    output: str
    content: Any


class Release(msgspec.Struct, frozen=True):
    """What a generator yields that cannot have its results held until it has ended.

    Where ERRORS may take a failure, results are held so that a failed firing gives none. From here on they
    leave as they come, and a failure ends the run, with `why` in its message.
    """

    why: str


class Ending:
    """How an operator ends one of its outputs before the others."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


class Position(msgspec.Struct, frozen=True, eq=False):
    """Where a statement stands among all statements of its run, in whichever call of whichever plan."""

    index: int  # of the statement in its plan
    later: frozenset[int]  # statements of the plan that get data or signals of it, directly or not
    iteration: int  # the colour of its call
    caller: Position | None = None  # the call that its plan is run by; all levels of a tail call share it
    depth: int = 0  # how many callers there are

    def comes_after(self, other: Position) -> bool:
        """Whether data or signals of another statement may have come here."""
        here, there = self, other
        while here.caller is not there.caller:  # the deeper one goes to the call that it is part of
            if here.depth >= there.depth:
                assert here.caller is not None
                here = here.caller
            else:
                assert there.caller is not None
                there = there.caller
        if here.iteration == there.iteration:
            return here.index in there.later
        return here.iteration > there.iteration  # levels of one tail recursion


DEAD = Ending("DEAD")
END = Ending("END")


class StepHost(Protocol):
    """What the engine gives to the context of one step."""

    @property
    def ordered(self) -> bool: ...
    @property
    def workers(self) -> int: ...
    @property
    def memory(self) -> MemoryBudget: ...
    @property
    def run_info(self) -> RunInfo: ...
    @property
    def folder(self) -> Path: ...
    @property
    def where(self) -> str: ...
    @property
    def urgent(self) -> bool: ...
    @property
    def runs_once(self) -> bool: ...
    @property
    def position(self) -> Position: ...
    @property
    def sees_own_writes(self) -> bool: ...
    @property
    def is_read_back(self) -> bool: ...
    @property
    def takes_failures(self) -> bool: ...
    @property
    def hold_rows(self) -> int: ...
    def number_in_plan(self, setting: str) -> tuple[str, int]: ...
    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]: ...
    def permit(self, source: str | None, label: str) -> AbstractAsyncContextManager[None]: ...
    async def in_thread(self, function: Callable[[], Any], source: str | None) -> Any: ...
    async def in_process(
        self, function: Callable[..., Any], args: tuple[Any, ...], source: str | None, limits: Limits
    ) -> Any: ...
    def has_spare_permits(self, told: Callable[[], None]) -> bool:
        """Whether there are permits that nobody wants; if not, `told` is called once when there are."""
        ...

    def service(self, kind: type[Any]) -> Any: ...
    def tuple_failed(self, row: Row, error: BaseException, attempts: int) -> None: ...
    def fired(self) -> None: ...
    def count(self, what: str, number: int) -> None: ...
    def warn(self, message: str) -> None: ...
    @property
    def is_watched(self) -> bool: ...
    def publish(self, kind: Callable[..., StepEvent], *details: Any) -> None: ...
    def note(self, message: str) -> None: ...
    def mark(self, marks: Marks) -> None: ...
    def found_nothing(self, message: str) -> None: ...
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
    def memory(self) -> MemoryBudget:
        """The account on which the structures of `aioflow.runtime.spill` keep rows."""
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

    @property
    def runs_once(self) -> bool:
        """Whether the statement runs but once in its run: its plan is neither recursive nor called again."""
        return self._step.runs_once

    def number_in_plan(self, setting: str) -> tuple[str, int]:
        """Return the name of the statement's plan, and its number among the statements of it that are alike.

        Those have the same operator and the same value of the setting. With that value this names the
        statement from run to run, whatever else is changed in the text.
        """
        return self._step.number_in_plan(setting)

    @property
    def sees_own_writes(self) -> bool:
        """Whether the statement reads a store that a statement before it, in this run, writes to."""
        return self._step.sees_own_writes

    @property
    def is_read_back(self) -> bool:
        """Whether a statement after this one, in this run, reads the store that this one writes to."""
        return self._step.is_read_back

    @property
    def position(self) -> Position:
        """Where the statement stands in the run; tells after which others it comes."""
        return self._step.position

    @property
    def hold_rows(self) -> int:
        """The most results of one firing that are held until it has ended."""
        return self._step.hold_rows

    @property
    def takes_failures(self) -> bool:
        """Whether ERRORS, of the statement or of a call around it, takes what fails.

        If so, a firing must give all its results or none.
        """
        return self._step.takes_failures

    def permit(self, source: str | None = None, label: str = "") -> AbstractAsyncContextManager[None]:
        """`async with` this around whatever waits on the outside world; traces show the label."""
        return self._step.permit(source, label)

    def service(self, kind: type[T]) -> T:
        """What operators share through their engine or run, by its class (`aioflow.authoring.services`)."""
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

    @property
    def is_watched(self) -> bool:
        """Whether anybody listens to the events of the run."""
        return self._step.is_watched

    def publish(self, kind: Callable[..., StepEvent], *details: Any) -> None:
        """Tell listeners of an event of this statement: what `kind` makes of its place and the details.

        Nothing is made while nobody listens.
        """
        self._step.publish(kind, *details)

    def note(self, message: str) -> None:
        """Have the account of the run say this; nothing is wrong."""
        self._step.note(message)

    def mark(self, marks: Marks) -> None:
        """Say why the results are not whole (`aioflow.wholeness`), before the operator ends.

        The marks of its inputs and of failed tuples the results have anyway.
        """
        self._step.mark(marks)

    def found_nothing(self, message: str) -> None:
        """Tell that the statement ended well and brought nothing where there should be something.

        The command line then ends with an exit code of its own.
        """
        self._step.found_nothing(message)

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
        """Call a blocking function on a worker thread, under a permit.

        A thread cannot be interrupted: where this is cancelled, the function has its permit until it returns.
        """
        return cast(T, await self._step.in_thread(partial(function, *args), source))

    async def in_process(
        self,
        function: Callable[..., T],
        *args: Any,
        source: str | None = None,
        seconds: float | None = None,
        processor_seconds: float | None = None,
        memory_bytes: int | None = None,
    ) -> T:
        """Call a CPU-heavy function in another process, under a permit; it is killed on cancel.

        It is killed too, with a ProcessError, when it takes longer than `seconds`, or than
        `processor_seconds` of the processor; beyond `memory_bytes` it gets a MemoryError. The process imports
        what it needs by the names of modules. What the main module defines has no such name: it runs on a
        worker thread, without these limits.
        """
        limits = Limits(seconds, processor_seconds, memory_bytes)
        return cast(T, await self._step.in_process(function, args, source, limits))
