"""What an operator may ask of the run that it works in, and how it works on many tuples at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from aioflow.dataclass import dataclass
from aioflow.plan import Item
from aioflow.relation import Row, Schema
from aioflow.spill import Memory

T = TypeVar("T")


@dataclass(frozen=True)
class RunInfo:
    """Who is running: `$run-id`, `$task-id` and `$started` of the language."""

    run_id: str
    started: datetime
    task_id: str | None = None
    plan: str = ""  # its name
    folder: Path = Path()  # of its file


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


@dataclass(frozen=True, eq=False)
class Position:
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
    def memory(self) -> Memory: ...
    @property
    def run_info(self) -> RunInfo: ...
    @property
    def folder(self) -> Path: ...
    @property
    def where(self) -> str: ...
    @property
    def urgent(self) -> bool: ...
    @property
    def position(self) -> Position: ...
    @property
    def sees_own_writes(self) -> bool: ...
    @property
    def is_read_back(self) -> bool: ...
    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]: ...
    def permit(self, source: str | None, label: str) -> AbstractAsyncContextManager[None]: ...
    def has_spare_permits(self, told: Callable[[], None]) -> bool:
        """Whether there are permits that nobody wants; if not, `told` is called once when there are."""
        ...

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
