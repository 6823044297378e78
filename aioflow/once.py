"""How tuples enter a call that looks at them on their way in: for ONCE, for its level, for a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aioflow.outlet import Outlet, Space, Target
from aioflow.recursion import Once, Turn
from aioflow.relation import Row, Schema
from aioflow.spill import Memory, RowQueue
from aioflow.stream import Stream
from aioflow.wholeness import Marks


class EntryStream(Stream):
    """An input of a call that sees every row on its way into the called plan.

    Rows that come before their turn are kept aside, in memory and then on disk. `on_over` is called when no
    more will come.
    """

    __slots__ = ("_is_over", "_kept", "_on_over", "_once", "_relay", "_turn")

    def __init__(
        self,
        capacity: int,
        memory: Memory,
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

    # It must see every row that comes, so no step of the called plan can take its place.
    can_be_adopted = False

    def forward_to(self, relay: Outlet) -> None:
        """Pass on what is there and what comes to the readers in the called plan."""
        while (batch := self.take()) is not None:
            relay.push(batch)
        self._relay = relay
        relay.mark(self.marks)
        if self.ended:
            relay.end(self.dead)

    def let_go(self) -> None:
        """Nobody needs the rows any more; bystanders that are left get an end."""
        self.close()
        if self._relay is not None:
            self._relay.end()

    def accept(self, outlet: Outlet, schema: Schema) -> Target:
        accepted = super().accept(outlet, schema)
        if self._relay is not None and self._relay.schema is None and self.schema is not None:
            self._relay.open(self.schema)
        return accepted

    def push(self, rows: Sequence[Row], full: list[Space]) -> None:
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
        """Let in what was kept, if its turn has really come."""
        if self._kept is None or self._turn is None:
            return
        if not self._turn.has_come:
            self._turn.when_it_comes(self._go_on)
            return
        kept, self._kept = self._kept, None
        while kept.length:
            self._let_in(kept.popleft(), [])
        kept.close()
        if self._is_over:
            self.finish()

    def _let_in(self, rows: Sequence[Row], full: list[Space]) -> None:
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
