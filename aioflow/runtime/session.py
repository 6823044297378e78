"""One run: its tasks in one flat set, its counters, and how it ends."""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from aioflow.authoring.context import RunInfo
from aioflow.authoring.services import Services
from aioflow.compiler.graph import Graph
from aioflow.compiler.step import Step
from aioflow.config.masking import mask
from aioflow.errors import OperatorError
from aioflow.relation import Row, Schema
from aioflow.runtime.budget import Budget, Permits
from aioflow.runtime.events import Event, Listener, TupleFailed, Warned
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.stream import Stream

Mode: TypeAlias = Literal["D-", "D+S-", "D+S+"]
MODES: tuple[Mode, ...] = ("D-", "D+S-", "D+S+")


class Totals(msgspec.Struct):
    """What all calls of one statement did so far."""

    step: Step
    rows_in: int = 0
    rows_out: int = 0
    errors: int = 0
    unasked: int = 0  # failures that went nowhere: ERRORS: skip, or an output that nobody reads
    skipped: int = 0  # failures that ERRORS: skip dropped
    first_skipped: str = ""
    first_unasked: str = ""
    firings: int = 0
    activations: int = 0
    ended: int = 0
    dead: int = 0
    doubtful: bool = False  # which was told
    waiting_input_seconds: float = 0.0
    waiting_output_seconds: float = 0.0
    waiting_permit_seconds: float = 0.0
    counters: Counter[str] = msgspec.field(default_factory=Counter)
    kinds: Counter[str] = msgspec.field(default_factory=Counter)  # of the errors that were taken

    def fail(self, error: BaseException, *, ends_run: bool = False) -> None:
        """A firing failed, whatever becomes of that."""
        self.errors += 1
        if not ends_run:
            self.kinds[type(error).__name__] += 1

    def go_unasked(self, error: BaseException) -> None:
        """A failure went where nobody looks."""
        if not self.unasked:
            self.first_unasked = f"{type(error).__name__}: {error}".removesuffix(": ")
        self.unasked += 1

    def skip(self, error: BaseException) -> None:
        """A failure was dropped, as the statement asks for."""
        self.go_unasked(error)
        if not self.skipped:
            self.first_skipped = f"{type(error).__name__}: {error}".removesuffix(": ")
        self.skipped += 1


class Active(Protocol):
    """A step that is under way, as statistics see it."""

    step: Step
    iteration: int

    @property
    def streams(self) -> Sequence[Stream]: ...
    @property
    def is_idle(self) -> bool:
        """Whether it works on nothing: it waits for rows that are not there."""
        ...

    @property
    def rows_in(self) -> int: ...
    @property
    def rows_out(self) -> int: ...


class Gatekeeper(Protocol):
    """Holds sources back while a checkpoint is made."""

    @property
    def is_open(self) -> bool: ...
    def when_open(self, callback: Callable[[], None]) -> None: ...
    async def gate(self) -> None: ...
    def gated(self, source: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]: ...


class Ready(Protocol):
    """A step that could run: what the baton of D- is handed to."""

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


async def _emit_nowhere(name: str, schema: Schema, rows: Sequence[Row]) -> None:
    """Nobody reads what is emitted."""


class Session:
    """Everything that the steps of one run share. Whoever starts a task here leaves it to `stop`."""

    def __init__(
        self,
        graph: Graph,
        budget: Budget,
        memory: MemoryBudget,
        info: RunInfo,
        mode: Mode,
        capacity_rows: int,
        max_depth: int,
        hold_rows: int,
        listeners: Sequence[Listener],
        timing: bool,
        services: Services,
    ) -> None:
        self.graph = graph
        self.budget = budget
        self.memory = memory
        self.info = info
        self.mode = mode
        self.capacity_rows = capacity_rows
        self.max_depth = max_depth
        self.hold_rows = hold_rows
        self.listeners = listeners
        self.timing = timing
        self.services = services.for_run(info, self.warn, self.find_nothing)
        self.streaming = mode == "D+S+"
        self.baton = Baton() if mode == "D-" else None
        self.workers = 1 if mode == "D-" else budget.most
        self.permits_of_run = Permits(1) if mode == "D-" else None
        self.folder = info.folder
        self.tasks: dict[asyncio.Task[Any], None] = {}  # in the order of their start, so that seeds replay
        self.active: dict[Active, None] = {}  # steps that are under way, in the order of their start
        self.totals: dict[tuple[str, int], Totals] = {}
        self._totals_by_step: dict[Step, Totals] = {}
        self.statement_limits: dict[tuple[str, int], Permits] = {}
        self.failure: BaseException | None = None
        self.warnings: list[str] = []
        self.nothing_found: list[str] = []
        self.notes: list[str] = []
        self._cut_off: dict[str, tuple[Step, int]] = {}  # by plan: where first, and how many tuples
        self.calls = 0
        self.firings = 0
        self.inline_depth = 0
        self._settling: deque[Callable[[], None]] = deque()
        self.on_failure: Callable[[], None] = lambda: None
        self.emit: Callable[[str, Schema, Sequence[Row]], Awaitable[None]] = _emit_nowhere
        self.stopping = False
        self.checkpoints: Gatekeeper | None = None  # of a plan that commits as it streams
        self._put_off = 0
        self._warned_of_outlasting = False

    def totals_of(self, step: Step) -> Totals:
        totals = self._totals_by_step.get(step)
        if totals is None:
            # Routines of one plan with other parameters, or merged, share the statement's totals.
            totals = self.totals.setdefault((step.plan.key, step.index), Totals(step))
            self._totals_by_step[step] = totals
        return totals

    def limit_of(self, step: Step) -> Permits | None:
        """The permits of a statement with WORKERS, shared by all calls of its plan."""
        if step.workers is None:
            return None
        key = (step.plan.key, step.index)
        if key not in self.statement_limits:
            self.statement_limits[key] = Permits(step.workers)
        return self.statement_limits[key]

    def spawn(
        self, coroutine: Coroutine[Any, Any, Any], siblings: dict[asyncio.Task[Any], None] | None = None
    ) -> asyncio.Task[Any]:
        """Start a task; until it ends it is also among its siblings."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self.tasks[task] = None
        if siblings is None:
            task.add_done_callback(self._task_ended)
        else:
            siblings[task] = None
            task.add_done_callback(partial(self._task_ended, siblings=siblings))
        return task

    def _task_ended(
        self, task: asyncio.Task[Any], siblings: dict[asyncio.Task[Any], None] | None = None
    ) -> None:
        self.tasks.pop(task, None)
        if siblings is not None:
            siblings.pop(task, None)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Have something done later; if that fails, so does the run."""
        self._put_off += 1
        asyncio.get_running_loop().call_soon(self._catch_up, callback)

    def _catch_up(self, callback: Callable[[], None]) -> None:
        self._put_off -= 1
        self.guard(callback)

    @property
    def is_quiet(self) -> bool:
        """Whether no row is under way, sources aside."""
        return not self._put_off and all(step.is_idle for step in self.active)

    def guard(self, callback: Callable[[], None]) -> None:
        try:
            callback()
        except Exception as error:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """End the run with this error, unless it already fails with another."""
        if self.failure is None and not self.stopping:
            self.failure = error
            self.on_failure()

    def fail_step(self, step: Step, iteration: int, error: OperatorError) -> None:
        """End the run with the error of a step whose failures no ERRORS takes."""
        cause = error.__cause__ or error
        self.totals_of(step).fail(cause, ends_run=True)
        if self.listeners:
            self.publish(TupleFailed(*self.place(step, iteration), str(cause)))
        self.fail(error)

    def settle(self, work: Callable[[], None]) -> None:
        """Let go of something that nobody reads, and at once of all that this makes unread in turn.

        At once, so that it overtakes a recursion that goes on unfolding; one after the other, so that
        no depth of it grows the stack.
        """
        self._settling.append(work)
        if len(self._settling) > 1:
            return  # whoever is at it further up the stack comes to it
        while self._settling:
            self._settling[0]()
            self._settling.popleft()

    def warn(self, message: str) -> None:
        message = mask(message)
        self.warnings.append(message)
        if self.listeners:
            self.publish(Warned(self.now(), self.info.run_id, message))

    def warn_of_skipped(self) -> None:
        """Nothing is dropped silently."""
        for totals in self.totals.values():
            if totals.skipped:
                number = "1 failure was" if totals.skipped == 1 else f"{totals.skipped:,} failures were"
                self.warn(f"{totals.step.where}: {number} skipped, the first: {totals.first_skipped}")

    def warn_of_outlasting(self, step: Step, permits: Permits) -> None:
        """Say once why the run does not get on: its permits are with functions that cannot be interrupted."""
        if self._warned_of_outlasting:
            return
        self._warned_of_outlasting = True
        number = permits.outlasting
        holders = (
            "a blocking function that was cancelled and has not returned holds"
            if number == 1
            else "blocking functions that were cancelled and have not returned hold"
        )
        self.warn(f"{step.where}: waits for a permit: {holders} {number:,} of {permits.count:,}")

    def find_nothing(self, message: str) -> None:
        """Tell that a run that ended well brought nothing, which is no success."""
        if message not in self.nothing_found:
            self.nothing_found.append(message)
            self.warn(message)

    def look_for_silence(self) -> None:
        """Statements of which every tuple failed, and nobody asked for the failures."""
        for totals in self.totals.values():
            firings = totals.rows_in if totals.step.inputs else totals.activations
            if totals.unasked and totals.unasked == firings:
                number = "all there was to do" if firings == 1 else f"all {firings:,} tuples"
                self.find_nothing(f"{totals.step.where}: {number} failed, the first: {totals.first_unasked}")

    def cut_off(self, step: Step, tuples: int) -> None:
        """Tuples of a recursive call are not followed, because MAX_DEPTH stops it."""
        first, count = self._cut_off.get(step.callee.key, (step, 0))
        self._cut_off[step.callee.key] = first, count + tuples

    def warn_of_cuts(self) -> None:
        """A recursion that was cut off looks whole otherwise."""
        for step, count in self._cut_off.values():
            plan = step.callee
            number = "1 tuple was" if count == 1 else f"{count:,} tuples were"
            cut = f"MAX_DEPTH: {plan.max_depth} cut the recursion of {plan.name} off"
            self.warn(f"{step.where}: {cut}: {number} not followed")

    def publish(self, event: Event) -> None:
        for listener in self.listeners:
            try:
                listener(event)
            except Exception as error:
                self.fail(error)

    def place(self, step: Step, iteration: int) -> tuple[float, str, str, str, int | None, int]:
        """Return what every event of a statement in one call begins with."""
        return self.now(), self.info.run_id, step.plan.name, step.name, step.line, iteration

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def stop(self) -> None:
        """End every task of the run and wait for it, whatever happens meanwhile."""
        self.stopping = True
        current = asyncio.current_task()
        interrupted: asyncio.CancelledError | None = None
        while pending := [task for task in self.tasks if task is not current]:
            for task in pending:
                task.cancel()
            try:
                await asyncio.wait(pending)
            except asyncio.CancelledError as error:
                # A second Ctrl-C must not leave tasks behind; it is passed on when all have ended.
                interrupted = error
        if interrupted is not None:
            raise interrupted
