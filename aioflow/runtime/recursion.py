"""The state that the calls of one recursion share: values of ONCE, and the order of levels.

With both ONCE and MAX_DEPTH, levels begin one after the other, so that each value is found by the shortest
way. A level is all calls that the same number of recursive calls leads to, whichever plans and statements of
the recursion make them.

An `EntryStream` inspects tuples on their way into a call: for ONCE, for its level, for a checkpoint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from aioflow.compiler.declarations import Keys
from aioflow.compiler.step import Step
from aioflow.errors import DepthError
from aioflow.plan import Plan
from aioflow.relation import Row, Schema
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.outlet import Outlet, Target
from aioflow.runtime.room import Room
from aioflow.runtime.session import Session, Tasks
from aioflow.runtime.spill import KeySet, RowQueue, off_loop
from aioflow.runtime.stream import Stream
from aioflow.wholeness import Marks

T = TypeVar("T")


class Levels:
    """Opens the levels of a recursion one after the other.

    A level is open when everything that leads to the levels above it is known: their calls have unfolded, and
    the inputs of these have ended.
    """

    def __init__(self) -> None:
        self._open = 1
        self._pending: Counter[int] = Counter()
        self._waiting: dict[int, list[Callable[[], None]]] = {}

    def is_open(self, level: int) -> bool:
        return level <= self._open

    def when_open(self, level: int, callback: Callable[[], None]) -> None:
        self._waiting.setdefault(level, []).append(callback)

    def enter(self, level: int) -> None:
        """Take note that something in this level is not known yet."""
        self._pending[level] += 1

    def leave(self, level: int) -> None:
        self._pending[level] -= 1
        if not self._pending[level]:
            del self._pending[level]
        while self._pending and self._open not in self._pending:
            self._open += 1
            for callback in self._waiting.pop(self._open, ()):
                callback()


class LevelShare:
    """The part of one call in its level: before the level is known, its inputs end and it unfolds."""

    __slots__ = ("_left", "_levels", "level")

    def __init__(self, levels: Levels | None, level: int, inputs: int) -> None:
        self._levels = levels
        self.level = level
        self._left = inputs + 1
        if levels is not None:
            levels.enter(level)

    def one_known(self) -> None:
        """Take note that an input has ended, or that the call has unfolded."""
        self._left -= 1
        if not self._left and self._levels is not None:
            self._levels.leave(self.level)

    def give_up(self) -> None:
        """Take note that the call ends without having unfolded."""
        if self._left > 0:
            self._left = 1
            self.one_known()


class Recursion:
    """The shared state of all calls of one recursion."""

    def __init__(self, memory: MemoryBudget, levelled: bool) -> None:
        self.levels = Levels() if levelled else None
        self._memory = memory
        self._seen: dict[str, SeenValues] = {}

    def seen(self, plan: Plan) -> SeenValues:
        """Return the values of ONCE that a plan has worked on in this recursion."""
        if plan.key not in self._seen:
            self._seen[plan.key] = SeenValues(self._memory)
        return self._seen[plan.key]

    def close(self) -> None:
        for seen in self._seen.values():
            seen.close()


class SeenValues:
    """The values of ONCE of one plan. They are released after the last look-up that is under way."""

    __slots__ = ("_is_over", "_look_ups", "keys")

    def __init__(self, memory: MemoryBudget) -> None:
        self.keys = KeySet(memory)
        self._look_ups = 0
        self._is_over = False

    async def look_up(self, function: Callable[[], list[T]]) -> list[T]:
        """Return what a function finds, in the disk thread; nothing if the recursion has ended."""
        if self._is_over:
            return []
        self._look_ups += 1
        try:
            return await off_loop(self.keys, function)
        finally:
            self._look_ups -= 1
            if self._is_over:
                self.close()

    def close(self) -> None:
        self._is_over = True
        if not self._look_ups:
            self.keys.close()


class Once:
    """ONCE of one plan in one recursion: lets each value pass a single time."""

    __slots__ = ("_bind", "_latest", "_seen")

    def __init__(self, bind: Callable[[Schema], Keys | None], seen: SeenValues) -> None:
        self._bind = bind
        self._seen = seen
        self._latest: tuple[Schema, Keys | None] | None = None

    @property
    def is_on_disk(self) -> bool:
        """Return whether values are on disk, so that `look_up` is the way to find new ones."""
        return self._seen.keys.is_on_disk

    async def look_up(self, batches: Sequence[tuple[Schema, Sequence[Row]]]) -> list[Sequence[Row]]:
        """Return the rows of each batch with a new value, which the disk thread looks up."""
        return await self._seen.look_up(lambda: [self.fresh(schema, rows) for schema, rows in batches])

    def fresh(self, schema: Schema, rows: Sequence[Row]) -> Sequence[Row]:
        """Return the rows with a new value; all of them if they lack an attribute that ONCE names."""
        if self._latest is None or self._latest[0] is not schema:
            self._latest = schema, self._bind(schema)
        keys = self._latest[1]
        return rows if keys is None else self._seen.keys.add_new(keys(rows), rows)


class Turn:
    """Decides when tuples may enter a call: when its level is open, and no checkpoint is being made.

    At a checkpoint tuples rest before a recursive call, as others rest in the sources. Otherwise a recursion,
    in which each level feeds the next, would never come to rest.
    """

    __slots__ = ("_level", "_levels", "_session")

    def __init__(self, session: Session, levels: Levels | None, level: int) -> None:
        self._session = session
        self._levels = levels
        self._level = level

    @property
    def has_come(self) -> bool:
        checkpoints = self._session.checkpoints
        if self._levels is not None and not self._levels.is_open(self._level):
            return False
        return checkpoints is None or self._level == 1 or checkpoints.is_open

    def when_it_comes(self, callback: Callable[[], None]) -> None:
        """Call back when the turn may have come."""
        if self._levels is not None and not self._levels.is_open(self._level):
            self._levels.when_open(self._level, callback)
        elif self._session.checkpoints is not None:
            self._session.checkpoints.when_open(callback)


def too_deep(step: Step) -> DepthError:
    """Return the error of a recursive call past MAX_DEPTH."""
    plan = step.callee
    message = f"the recursion of {plan.name} went past MAX_DEPTH: {plan.max_depth}"
    return DepthError(f"{step.where}: {message}")


def unbounded(step: Step, levels: int) -> DepthError:
    """Return the error of a recursion that waits on the outside world and has no bound in the plan."""
    name = step.callee.name
    return DepthError(
        f"{step.where}: the recursion of {name} went past {levels:,} levels, and each waits on the outside "
        f'world; write ONCE (as ONCE: "url") or MAX_DEPTH into {name}, or raise the setting max_depth'
    )


class CutOff:
    """Takes the tuples of a call that MAX_DEPTH stops, and counts them."""

    def __init__(self, session: Session, step: Step) -> None:
        self._session = session
        self._step = step

    @property
    def reads(self) -> bool:
        return True

    def attach(self, outlet: Outlet) -> None:
        """Do nothing: there is nothing to prepare for a writer."""

    def accept(self, outlet: Outlet, schema: Schema) -> Target:
        return self

    def push(self, rows: Sequence[Row], full: list[Room]) -> None:
        self._session.report.cut_off(self._step, len(rows))

    def serves(self, reader: object) -> bool:
        return reader is self

    def mark(self, marks: Marks) -> None:
        """Do nothing: missing rows would not be followed either, since the bound defines the whole."""

    def end(self, outlet: Outlet, dead: bool) -> None:
        """Do nothing: nothing waits for the end."""


class EntryStream(Stream):
    """An input of a call that sees every row on its way into the called plan.

    Rows that arrive before their turn are kept aside, in memory and then on disk. Where that or ONCE needs
    the disk, a task of the run lets rows in, and the end comes after them. `on_over` is called when no more
    will come.
    """

    __slots__ = (
        "_asked",
        "_entry",
        "_is_admitting",
        "_is_finishing",
        "_is_over",
        "_kept",
        "_on_over",
        "_once",
        "_relay",
        "_tasks",
        "_turn",
    )

    def __init__(
        self,
        capacity: int,
        memory: MemoryBudget,
        tasks: Tasks,
        once: Once | None,
        turn: Turn | None = None,
        on_over: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(capacity, memory)
        self._tasks = tasks
        self._once = once
        self._turn = turn
        self._on_over = on_over
        self._is_over = False
        self._is_finishing = False  # all writers have ended
        self._is_admitting = False  # a task lets rows in
        self._asked: list[Row] = []  # rows that wait for the disk, before those that are kept
        self._kept: RowQueue | None = None
        self._entry = Room()  # full while many rows wait for the disk
        self._relay: Outlet | None = None

    # It must see every row, so no step of the called plan can take its place.
    can_be_adopted = False

    def forward_to(self, relay: Outlet) -> None:
        """Pass on the rows that are there, which are in memory, and those to come to the called plan."""
        while (batch := self.take()) is not None:
            relay.push(batch)
        self._relay = relay
        relay.mark(self.marks)
        if self.ended:
            relay.end(self.dead)

    def let_go(self) -> None:
        """Drop rows that are not needed any more; bystanders that are left get an end."""
        self.close()
        if self._relay is not None:
            self._relay.end()

    def accept(self, outlet: Outlet, schema: Schema) -> Target:
        accepted = super().accept(outlet, schema)
        if self._relay is not None and self._relay.schema is None and self.schema is not None:
            self._relay.open(self.schema)
        return accepted

    def push(self, rows: Sequence[Row], full: list[Room]) -> None:
        if self.closed or self.discarding:
            return
        waits = self._has_waiting
        if not waits and self._turn_has_come and not self._looks_up:
            self._let_in(rows, full)
            return
        self._keep(rows)
        if not waits:
            self._go_on()
        if self._is_admitting and len(self._asked) >= self.capacity:
            self._entry.is_full = True
            full.append(self._entry)

    @property
    def _has_waiting(self) -> bool:
        return self._is_admitting or bool(self._asked) or self._kept is not None

    @property
    def _turn_has_come(self) -> bool:
        return self._turn is None or self._turn.has_come

    @property
    def _looks_up(self) -> bool:
        """Return whether ONCE needs the disk."""
        return self._once is not None and self._once.is_on_disk

    def _keep(self, rows: Sequence[Row]) -> None:
        if self._kept is None and self._turn_has_come and len(self._asked) < self.capacity:
            self._asked += rows
            return
        if self._kept is None:
            self._kept = RowQueue(self._memory)
        self._kept.append(list(rows))

    def _go_on(self) -> None:
        """Let in the rows that wait, if their turn has really come."""
        if self._is_admitting or not self._has_waiting:
            return
        if self._turn is not None and not self._turn.has_come:
            self._turn.when_it_comes(self._go_on)
            return
        while (self._asked or self._kept is not None) and not self._looks_up and not self._waits_for_disk:
            self._let_in(self._next_rows(), [])
        if self._asked or self._kept is not None:
            self._is_admitting = True
            self._tasks.spawn(self._admit())
        elif self._is_finishing:
            self.finish()

    @property
    def _waits_for_disk(self) -> bool:
        """Return whether the rows that are next have to be read."""
        return not self._asked and self._kept is not None and not self._kept.is_ready

    def _next_rows(self) -> Sequence[Row]:
        if self._asked:
            asked, self._asked = self._asked, []
            return asked
        assert self._kept is not None
        rows = self._kept.popleft()
        if not self._kept.length:
            self._kept.close()
            self._kept = None
        return rows

    async def _admit(self) -> None:
        """Let in rows while that needs the disk, one batch after the other."""
        try:
            with self._tasks.at_work():
                while (self._asked or self._kept is not None) and self._turn_has_come:
                    if self._waits_for_disk and self._kept is not None:
                        await self._kept.ready()
                        continue
                    await self._admit_rows(self._next_rows())
            self._is_admitting = False
            self._entry.free()
            if self._has_waiting:
                self._go_on()
            elif self._is_finishing and not self.closed:
                self.finish()
        except Exception as error:
            self._tasks.fail(error)

    async def _admit_rows(self, rows: Sequence[Row]) -> None:
        self._entry.free()
        if self._once is not None and self.schema is not None:
            rows = next(iter(await self._once.look_up([(self.schema, rows)])), ())
        full: list[Room] = []
        if rows and not self.closed and not self.discarding:
            self._pass(rows, full)
        for room in full:
            await room.wait()

    def _let_in(self, rows: Sequence[Row], full: list[Room]) -> None:
        if self._once is not None and self.schema is not None:
            rows = self._once.fresh(self.schema, rows)
        if rows:
            self._pass(rows, full)

    def _pass(self, rows: Sequence[Row], full: list[Room]) -> None:
        if self._relay is None:
            super().push(rows, full)
        else:
            self._relay.pass_on(rows, full)

    def mark(self, marks: Marks) -> None:
        super().mark(marks)
        if self._relay is not None:
            self._relay.mark(marks)

    def finish(self) -> None:
        self._is_finishing = True
        if self._has_waiting:
            return  # the end comes after the rows
        self._note_over()
        super().finish()
        if self._relay is not None:
            if self._relay.schema is None and self.schema is not None:
                self._relay.open(self.schema)
            self._relay.end(self.dead)

    def release(self) -> None:
        super().release()
        self._asked = []
        if self._kept is not None:
            self._kept.close()
            self._kept = None
        self._entry.free()
        if self._is_finishing:
            self._note_over()

    def close(self) -> None:
        super().close()
        self._note_over()

    def _note_over(self) -> None:
        if not self._is_over:
            self._is_over = True
            if self._on_over is not None:
                self._on_over()
