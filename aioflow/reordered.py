"""Several writers of one stream: their attributes must be the same, in whatever order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aioflow.outlet import Outlet, Space, Target, is_bystander
from aioflow.relation import Row, Schema, picker
from aioflow.wholeness import Marks


class SchemaMismatchError(Exception):
    """Two writers of one stream do not have the same attributes."""

    def __init__(self, expected: Schema, found: Schema) -> None:
        super().__init__(
            f"the inputs differ in their attributes: {', '.join(expected.names)} and {', '.join(found.names)}"
        )


def columns(given: Schema, wanted: Schema) -> Callable[[Row], Row]:
    """A function that puts a row into the columns of another schema; null where an open one lists none."""
    if not given.open:
        return picker([given.position(name) for name in wanted.names])
    places = [given.position(name) if name in given else None for name in wanted.names]
    return lambda row: tuple([None if place is None else row[place] for place in places])


class Reordered:
    """A target for a writer whose columns stand in another order."""

    def __init__(self, target: Target, given: Schema, wanted: Schema) -> None:
        self._target = target
        self._pick = columns(given, wanted)

    @property
    def reads(self) -> bool:
        return True

    @property
    def is_bystander(self) -> bool:
        return is_bystander(self._target)

    def serves(self, reader: object) -> bool:
        return self._target.serves(reader)

    def attach(self, outlet: Outlet) -> None:
        self._target.attach(outlet)

    def accept(self, outlet: Outlet, schema: Schema) -> Target:
        return self

    def push(self, rows: Sequence[Row], full: list[Space]) -> None:
        self._target.push([self._pick(row) for row in rows], full)

    def mark(self, marks: Marks) -> None:
        self._target.mark(marks)

    def end(self, outlet: Outlet, dead: bool) -> None:
        self._target.end(outlet, dead)
