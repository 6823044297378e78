"""The state that the calls of one recursion share: values of ONCE, and the order of levels.

With both ONCE and MAX_DEPTH, levels begin one after the other, so that each value is found by the shortest
way. A level is all calls that the same number of recursive calls leads to, whichever plans and statements of
the recursion make them.

An `EntryStream` inspects tuples on their way into a call: for ONCE, for its level, for a checkpoint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from aioflow.compiler.declarations import Keys
from aioflow.compiler.step import Step
from aioflow.errors import DepthError
from aioflow.plan import Plan
from aioflow.relation import Row, Schema
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.outlet import Outlet, Target
from aioflow.runtime.room import Room
from aioflow.runtime.session import Session
from aioflow.runtime.spill import KeySet, RowQueue
from aioflow.runtime.stream import Stream
from aioflow.wholeness import Marks


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
        self._seen: dict[str, KeySet] = {}

    def seen(self, plan: Plan) -> KeySet:
        """Return the values of ONCE that a plan has worked on in this recursion."""
        if plan.key not in self._seen:
            self._seen[plan.key] = KeySet(self._memory)
        return self._seen[plan.key]

    def close(self) -> None:
        for seen in self._seen.values():
            seen.close()


class Once:
    """ONCE of one plan in one recursion: lets each value pass a single time."""

    __slots__ = ("_bind", "_latest", "_seen")

    def __init__(self, bind: Callable[[Schema], Keys | None], seen: KeySet) -> None:
        self._bind = bind
        self._seen = seen
        self._latest: tuple[Schema, Keys | None] | None = None

    def fresh(self, schema: Schema, rows: Sequence[Row]) -> Sequence[Row]:
        """Return the rows with a new value; all of them if they lack an attribute that ONCE names."""
        if self._latest is None or self._latest[0] is not schema:
            self._latest = schema, self._bind(schema)
        keys = self._latest[1]
        return rows if keys is None else self._seen.add_new(keys(rows), rows)


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

    def guard(self, callback: Callable[[], None]) -> None:
        """Call a function; if that fails, so does the run."""
        if not self._session.tasks.stopping:
            self._session.tasks.guard(callback)

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

    Rows that arrive before their turn are kept aside, in memory and then on disk. `on_over` is called when no
    more will come.
    """

    __slots__ = ("_is_over", "_kept", "_on_over", "_once", "_relay", "_turn")

    def __init__(
        self,
        capacity: int,
        memory: MemoryBudget,
        once: Once | None,
        turn: Turn | None = None,
        on_over: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(capacity, memory)
        self._once = once
        self._turn = turn
        self._on_over = on_over
        self._is_over = False
        self._kept: RowQueue | None = None
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
        if self._turn is not None and (self._kept is not None or not self._turn.has_come):
            self._keep(rows, self._turn)
        else:
            self._let_in(rows, full)

    def _keep(self, rows: Sequence[Row], turn: Turn) -> None:
        if self._kept is None:
            self._kept = RowQueue(self._memory)
            turn.when_it_comes(self._go_on)
        self._kept.append(list(rows))

    def _go_on(self) -> None:
        """Let in the rows that were kept, if their turn has really come."""
        if self._kept is None or self._turn is None:
            return
        if not self._turn.has_come:
            self._turn.when_it_comes(self._go_on)
            return
        while self._kept is not None and self._kept.length:
            if not self._kept.is_ready:
                self._kept.fetch(partial(self._turn.guard, self._go_on))
                return
            self._let_in(self._kept.popleft(), [])
        if self._kept is None:
            return  # all readers left meanwhile
        self._kept.close()
        self._kept = None
        if self._is_over:
            self.finish()

    def _let_in(self, rows: Sequence[Row], full: list[Room]) -> None:
        if self._once is not None and self.schema is not None:
            rows = self._once.fresh(self.schema, rows)
        if not rows:
            return
        if self._relay is None:
            super().push(rows, full)
        else:
            self._relay.pass_on(rows, full)

    def mark(self, marks: Marks) -> None:
        super().mark(marks)
        if self._relay is not None:
            self._relay.mark(marks)

    def finish(self) -> None:
        self._note_over()
        if self._kept is not None:
            return  # the end comes after the rows
        super().finish()
        if self._relay is not None:
            if self._relay.schema is None and self.schema is not None:
                self._relay.open(self.schema)
            self._relay.end(self.dead)

    def release(self) -> None:
        super().release()
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def close(self) -> None:
        super().close()
        self._note_over()

    def _note_over(self) -> None:
        if not self._is_over:
            self._is_over = True
            if self._on_over is not None:
                self._on_over()
