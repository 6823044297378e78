"""The context of an operator, which is its view of the run, and the items beside rows that it may yield.

`aioflow.authoring.concurrency` uses it to work on many tuples at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from aioflow.plan import Item
from aioflow.relation import Row, Schema
from aioflow.runtime.events import StepEvent
from aioflow.runtime.memory import MemoryBudget
from aioflow.wholeness import Marks

T = TypeVar("T")


class RunIdentity(msgspec.Struct, frozen=True):
    """The identity of a run that a service or a job begins, and perhaps begins again.

    An occurrence is one time at which the task is due; all attempts at it share its name. An attempt commits
    only while no later one has raised the fence above its own. `defaults` name the database and the accounts
    that statements take if they name none (`database`, `email`, …), and `first` as FIRST of diff.
    """

    run_id: str
    task_id: str | None
    occurrence: str = ""
    fence: int = 0
    defaults: Mapping[str, str] = msgspec.field(default_factory=dict)
    job: Any = None  # the exchange of a job (`aioflow.jobs`): later attempts find what calls have brought


class RunInfo(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Identity of a run: `$run-id`, `$task-id` and `$started` of the language, its plan and its store."""

    run_id: str
    started: datetime
    task_id: str | None = None
    plan: str = ""  # name of the plan
    folder: Path = Path()  # of the plan's file
    writes: bool = False  # True if its statements may write to a store
    store: str | None = None  # the store that they write to; None for the default one
    writes_early: bool = False  # before the end of the run, because a statement reads the writes of another
    identity: RunIdentity | None = None  # of a run that a service began
    tell_task: Callable[[], str] = str

    @cached_property
    def task(self) -> str:
        """The name that tells the task of this run from others of its plan: `$task-id`, or a fingerprint.

        The fingerprint is made of the parameters and the inputs; it is "" if there are none. It is made on
        demand only, because long inputs take time.
        """
        return self.task_id or self.tell_task()

    @property
    def is_job(self) -> bool:
        """True if later attempts at the run find what its calls have brought."""
        return self.identity is not None and self.identity.job is not None

    def default(self, kind: str, named: str | None = None) -> str | None:
        """Return the account or database that a statement names, or else the one that its task names."""
        return named if named is not None or self.identity is None else self.identity.defaults.get(kind)


class To(msgspec.Struct, frozen=True):
    """Rows (or a Schema, DEAD or END) for one output; an operator with several outputs yields it."""

    output: str
    content: Any


class Release(msgspec.Struct, frozen=True):
    """Yielded by an operator whose results cannot be held until it has ended.

    If ERRORS may take a failure, results are held so that a failed firing gives none. After a Release they
    leave as they come, and a failure ends the run, with `why` in its message.
    """

    why: str


class Ending:
    """A mark that ends one output of an operator before the others: DEAD or END."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


class Position(msgspec.Struct, frozen=True, eq=False):
    """The position of a statement among all statements of its run, in any call of any plan."""

    index: int  # of the statement in its plan
    later: frozenset[int]  # statements of the plan that get data or signals from it, directly or not
    iteration: int  # the colour of its call
    caller: Position | None = None  # the call that runs its plan; all levels of a tail call share it
    depth: int = 0  # number of callers

    def comes_after(self, other: Position) -> bool:
        """Return whether data or signals of another statement may have come here."""
        here, there = self, other
        while here.caller is not there.caller:  # replace the deeper one by the call that it is part of
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


class Context(Protocol):
    """An operator's view of its run: ask for it with a parameter `context: Context`.

    The engine implements it in `aioflow.runtime.step_context`.
    """

    __slots__ = ()

    # --- the statement --------------------------------------------------------------------------

    @property
    def run(self) -> RunInfo:
        """The run that the statement works in."""

    @property
    def folder(self) -> Path:
        """The folder of the plan's file, to which relative paths refer."""

    @property
    def where(self) -> str:
        """File, line and name of the statement, for messages."""

    @property
    def position(self) -> Position:
        """The position of the statement in the run, which determines the statements before it."""

    @property
    def ordered(self) -> bool:
        """True if results must leave in the order of their inputs."""

    @property
    def workers(self) -> int:
        """The largest number of firings of this statement at once."""

    @property
    def urgent(self) -> bool:
        """True if the results lead into a recursive call: such firings go first."""

    @property
    def runs_once(self) -> bool:
        """True if the statement runs only once in its run: its plan is neither recursive nor called again."""

    @property
    def sees_own_writes(self) -> bool:
        """True if the statement reads a store that a statement before it, in this run, writes to."""

    @property
    def is_read_back(self) -> bool:
        """True if a statement after this one, in this run, reads the store that this one writes to."""

    @property
    def takes_failures(self) -> bool:
        """True if failures go to ERRORS, of the statement or of a call around it.

        If so, a firing must give all its results or none.
        """

    @property
    def hold_rows(self) -> int:
        """The largest number of results of one firing that are held until it has ended."""

    def number_in_plan(self, setting: str) -> tuple[str, int]:
        """Return the name of the statement's plan, and its number among similar statements of that plan.

        Similar statements have the same operator and the same value of the setting. Together with that value
        the pair identifies the statement from run to run, whatever else is changed in the text.
        """

    def reads_attribute(self, name: str) -> bool:
        """Return whether a reader may use that attribute of the results."""

    def reads_output(self, name: str) -> bool:
        """Return whether that output has a reader whose own results are taken, in this call of the plan."""

    def item(self, kind: str, name: str) -> Item | None:
        """Return an item of the program, such as a wrapper."""

    # --- resources ------------------------------------------------------------------------------

    @property
    def memory(self) -> MemoryBudget:
        """The memory budget that the structures of `aioflow.runtime.spill` use for their rows."""

    def service(self, kind: type[T]) -> T:
        """Return an object that operators share through their engine or run, by its class.

        `aioflow.authoring.services` describes such classes.
        """

    def permit(self, source: str | None = None, label: str = "") -> AbstractAsyncContextManager[None]:
        """Return a firing: `async with` it around each wait on the outside world. Traces show the label."""

    def has_spare_permits(self, when_spare: Callable[[], None]) -> bool:
        """Return whether there are permits that no firing wants.

        If there are none, `when_spare` is called once as soon as there are.
        """

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task of the statement, which is cancelled when the operator ends."""

    async def in_thread(self, function: Callable[..., T], *args: Any, source: str | None = None) -> T:
        """Call a blocking function on a worker thread, under a permit.

        A thread cannot be interrupted: if this call is cancelled, the function keeps its permit until it
        returns.
        """

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

        It is also killed, with a ProcessError, when it takes longer than `seconds`, or than
        `processor_seconds` of the processor; beyond `memory_bytes` it gets a MemoryError. The process imports
        modules by name. A function of the main module cannot be imported: it runs on a worker thread, without
        these limits.
        """

    def clock(self) -> float:
        """Return the loop's time in seconds; virtual in tests."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    # --- reports --------------------------------------------------------------------------------

    def fired(self) -> None:
        """Report that a firing succeeded (operators with `firing="tuple"` only)."""

    def fail(self, row: Row, error: BaseException, attempts: int = 1) -> None:
        """Report that the firing for this tuple failed: to the statement's ERRORS, or the run ends."""

    def mark(self, marks: Marks) -> None:
        """Say why the results are not whole (`aioflow.wholeness`), before the operator ends.

        The results have the marks of their inputs and of failed tuples anyway.
        """

    def found_nothing(self, message: str) -> None:
        """Report that the statement ended well and brought nothing where there should be something.

        The command line then ends with an exit code of its own.
        """

    def count(self, what: str, number: int = 1) -> None:
        """Add to a counter that the statistics show."""

    def warn(self, message: str) -> None:
        """Add a warning to the account of the run."""

    def note(self, message: str) -> None:
        """Add a remark to the account of the run; nothing is wrong."""

    @property
    def is_watched(self) -> bool:
        """True if the events of the run have a listener."""

    def publish(self, kind: Callable[..., StepEvent], *details: Any) -> None:
        """Send listeners an event of this statement: `kind` is called with its place and the details.

        Nothing is made while there is no listener.
        """

    async def emit(self, name: str, schema: Schema, rows: Sequence[Row]) -> None:
        """Send rows to an output of the run that the plan does not declare."""
