"""ONCE: a recursion that does not unfold again for values that it has already seen."""

from __future__ import annotations

from collections.abc import Sequence

from aioflow.outlet import Outlet, Space
from aioflow.relation import Row, value_identities
from aioflow.spill import KeySet, Memory
from aioflow.stream import Stream
from aioflow.wholeness import Marks


class OnceStream(Stream):
    """The input of a call of a plan with ONCE.

    In a recursive call it passes on only rows with a value that is new in the recursion; in the
    outermost call it only takes note of the values. Inputs without the attribute pass unchanged.
    """

    __slots__ = ("_attribute", "_filters", "_relay", "_seen")

    def __init__(self, capacity: int, memory: Memory, attribute: str, seen: KeySet, *, filters: bool) -> None:
        super().__init__(capacity, memory)
        self._attribute = attribute
        self._seen = seen
        self._filters = filters
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

    def push(self, rows: Sequence[Row], full: list[Space]) -> None:
        if self.closed or self.discarding:
            return
        fresh = self._fresh(rows)
        if not fresh:
            return
        if self._relay is None:
            super().push(fresh, full)
            return
        if self._relay.schema is None and self.schema is not None:
            self._relay.open(self.schema)
        self._relay.pass_on(fresh, full)

    def mark(self, marks: Marks) -> None:
        super().mark(marks)
        if self._relay is not None:
            self._relay.mark(marks)

    def finish(self) -> None:
        super().finish()
        if self._relay is not None:
            if self._relay.schema is None and self.schema is not None:
                self._relay.open(self.schema)
            self._relay.end(self.dead)

    def _fresh(self, rows: Sequence[Row]) -> Sequence[Row]:
        if self.schema is None or self._attribute not in self.schema:
            return rows
        position = self.schema.position(self._attribute)
        fresh = self._seen.add_new(value_identities([row[position] for row in rows]), rows)
        return fresh if self._filters else rows
