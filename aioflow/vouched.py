"""WHOLE on a call: its readers get everything but the marks, since the plan's author vouches for it."""

from __future__ import annotations

from collections.abc import Sequence

from aioflow.outlet import Outlet, Space, Target, is_bystander
from aioflow.relation import Row, Schema
from aioflow.wholeness import Marks


class Vouched:
    """A target that keeps marks away from another."""

    __slots__ = ("_target", "only_watches")

    def __init__(self, target: Target) -> None:
        self._target = target
        self.only_watches = getattr(target, "only_watches", False)

    @property
    def is_bystander(self) -> bool:
        return is_bystander(self._target)

    @property
    def reads(self) -> bool:
        return self._target.reads

    def serves(self, reader: object) -> bool:
        return self._target.serves(reader)

    def attach(self, outlet: Outlet) -> None:
        self._target.attach(outlet)

    def accept(self, outlet: Outlet, schema: Schema) -> Target:
        accepted = self._target.accept(outlet, schema)
        return self if accepted is self._target else Vouched(accepted)

    def push(self, rows: Sequence[Row], full: list[Space]) -> None:
        self._target.push(rows, full)

    def mark(self, marks: Marks) -> None:
        """Keep it."""

    def end(self, outlet: Outlet, dead: bool) -> None:
        self._target.end(outlet, dead)
