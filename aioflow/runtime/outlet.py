"""The writer's end of a variable: rows go to every reader at once, and the writer waits for the slowest.

Several writers of one stream must have the same attributes, in any order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from aioflow.relation import Batch, Row, Schema, picker
from aioflow.runtime.room import Room
from aioflow.values.coercion import row_of_mapping
from aioflow.wholeness import WHOLE, Marks

_PAUSE_ROWS = 1024


class Target(Protocol):
    """The destination of an outlet, usually a Stream."""

    def attach(self, outlet: Outlet) -> None:
        """Take note of one more outlet, which will write here and end."""

    def accept(self, outlet: Outlet, schema: Schema) -> Target:
        """Take note of a writer's schema; return the target to write to, which may reorder its columns."""

    def push(self, rows: Sequence[Row], full: list[Room]) -> None:
        """Take rows; add rooms that they have filled to `full`."""

    def mark(self, marks: Marks) -> None:
        """Take the marks of the relation; this comes before the end, and may come several times."""

    def end(self, outlet: Outlet, dead: bool) -> None:
        """Take note that a writer has ended; its schema may be an open one that was not passed before."""

    def serves(self, reader: object) -> bool:
        """Return whether rows pushed here reach only that reader."""

    @property
    def reads(self) -> bool:
        """True if it needs rows; some targets need only the end."""


class Outlet:
    """The writer's end of a variable: every reader gets every row."""

    __slots__ = (
        "_full",
        "_has_left",
        "_since_pause",
        "_told",
        "ended",
        "marks",
        "on_unread",
        "schema",
        "sent",
        "targets",
        "was_needed",
        "was_read",
    )

    def __init__(self, targets: Iterable[Target], on_unread: Callable[[], None] | None = None) -> None:
        self.targets: list[Target] = list(targets)
        self.on_unread = on_unread
        self.was_read = has_readers(self.targets)
        self.was_needed = is_needed(self.targets)
        self.schema: Schema | None = None
        self._told = False  # true if the readers know the schema
        self.sent = 0
        self.marks = WHOLE
        self.ended = False
        self._has_left = False
        self._since_pause = 0
        self._full: Sequence[Room] = ()
        for target in self.targets:
            target.attach(self)

    @property
    def unread(self) -> bool:
        """True if all readers have left. A variable that never had one is not unread.

        Once a reader needed the rows, bystanders, whose own results are not taken, keep no step at work.
        """
        if not self.was_read:
            return False
        return not any(
            target.reads and not (self.was_needed and is_bystander(target)) for target in self.targets
        )

    @property
    def is_awaited(self) -> bool:
        """True if a statement waits for the first row."""
        return any(getattr(target, "only_watches", False) and target.reads for target in self.targets)

    def open(self, schema: Schema) -> None:
        """Pass the schema of the rows to the readers; an open schema is passed with the first row.

        Without any row it is not passed, since another writer of the same stream may know more. A reader
        finds it here at the end.
        """
        self.schema = schema
        if not schema.open or self.sent:
            self._tell(schema)

    def _tell(self, schema: Schema) -> None:
        self._told = True
        for number, target in enumerate(self.targets):
            accepted = target.accept(self, schema)
            if accepted is not target:
                self.targets = [*self.targets[:number], accepted, *self.targets[number + 1 :]]

    def push(self, rows: Sequence[Row]) -> bool:
        """Give rows to all readers at once; return whether the writer should now wait in `drain`.

        No reader is skipped because another is full: rows that one stage cannot take yet must not keep a
        second stage from starting.
        """
        self._since_pause += len(rows)
        full: list[Room] = []
        self.pass_on(rows, full)
        if full:
            self._full = full
        # Once in a while even without need, since readers that hold everything never make a writer wait.
        return bool(full) or self._since_pause >= _PAUSE_ROWS

    def pass_on(self, rows: Sequence[Row], full: list[Room]) -> None:
        """Give rows to all readers, for a writer that waits elsewhere for rooms that become full."""
        if not self._told and self.schema is not None:
            self._tell(self.schema)
        self.sent += len(rows)
        for target in self.targets:
            target.push(rows, full)

    async def drain(self) -> None:
        """Wait until every reader has room, and let other tasks run."""
        if self._since_pause >= _PAUSE_ROWS:
            self._since_pause = 0
            await asyncio.sleep(0)
        full, self._full = self._full, ()
        for room in full:
            await room.wait()

    def mark(self, marks: Marks) -> None:
        """Pass the marks of the relation to the readers."""
        if marks is WHOLE or self.ended:
            return
        united = self.marks.united(marks)
        if united != self.marks:
            self.marks = united
            for target in self.targets:
                target.mark(marks)

    def end(self, dead: bool = False) -> None:
        """End the relation."""
        if self.ended:
            return
        self.ended = True
        for target in self.targets:
            target.end(self, dead)

    def drop(self, reader: object) -> None:
        """Take note that a reader has left."""
        self._has_left |= is_needed((reader,))
        # A new list, since a loop over the old one may be under way.
        self.targets = [target for target in self.targets if not target.serves(reader)]
        # The step may have gone on only for the readers that waited for this output.
        was_awaited = not self.was_read and getattr(reader, "only_watches", False)
        if (self.unread or was_awaited) and self.on_unread is not None and not self.ended:
            self.on_unread()

    def replace(self, reader: object, targets: Sequence[Target]) -> None:
        """Let other targets read in place of one reader."""
        accepted = []
        if any(isinstance(target, Vouched) for target in self.targets if target.serves(reader)):
            targets = [Vouched(target) for target in targets]
        for target in targets:
            target.attach(self)
            told = self.schema if self._told else None
            accepted.append(target if told is None else target.accept(self, told))
            if self.marks is not WHOLE:
                target.mark(self.marks)
        kept = [target for target in self.targets if not target.serves(reader)]
        self.targets = kept + accepted
        self.readers_changed()

    def readers_changed(self) -> None:
        """Find out again whether a reader needs the rows, after others took a reader's place."""
        if not self._has_left:
            self.was_needed = is_needed(self.targets)

    def mark_left(self) -> None:
        """Take note that all readers have left, which is not the same as never having had any."""
        self.was_read = self.was_needed = self._has_left = True


class Vouched:
    """A reader of a call with WHOLE, which gets everything but the marks.

    There may be many readers, and other calls may read in their place. Each has one of these before it, and
    so has any target that takes its place.
    """

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

    def push(self, rows: Sequence[Row], full: list[Room]) -> None:
        self._target.push(rows, full)

    def mark(self, marks: Marks) -> None:
        """Keep it."""

    def end(self, outlet: Outlet, dead: bool) -> None:
        self._target.end(outlet, dead)


def rows_of(item: Any, outlet: Outlet, operator: str) -> Batch:
    """Return the rows of an item that an operator yielded: a row, a mapping, or a list of these."""
    rows = item if isinstance(item, list) else [item]
    if rows and isinstance(rows[0], Mapping):
        if outlet.schema is None:
            outlet.open(Schema(tuple(rows[0])))
        assert outlet.schema is not None
        return [row_of_mapping(outlet.schema, mapping) for mapping in rows]
    if rows and not isinstance(rows[0], tuple):
        raise TypeError(f"{operator} yields {rows[0]!r}: a row is a tuple, a mapping, or a list of these")
    if outlet.schema is None and rows:
        raise TypeError(
            f"{operator} yields tuples without saying their attributes: give @operator a schema rule, "
            "or yield mappings or a Schema first"
        )
    if rows and outlet.schema is not None and len(rows[0]) != len(outlet.schema):
        raise TypeError(
            f"{operator} yields a row of {len(rows[0])} values, but its schema has {len(outlet.schema)} "
            f"attributes: {', '.join(outlet.schema.names)}"
        )
    return rows


def nobody_needs(outlets: Sequence[Outlet]) -> bool:
    """Return whether all readers that need rows of these have left; if none ever needed any, all readers.

    A reader that still waits for a first row needs it. Outputs that never had a reader are no reason to stop.
    """
    if any(outlet.is_awaited for outlet in outlets):
        return False
    needed = [outlet for outlet in outlets if outlet.was_needed]
    looked_at = needed or [outlet for outlet in outlets if outlet.was_read]
    return bool(looked_at) and all(outlet.unread for outlet in looked_at)


def is_bystander(reader: object) -> bool:
    """Return whether a reader belongs to a step whose own results are not taken."""
    return getattr(reader, "is_bystander", False)


def is_needed(targets: Iterable[object]) -> bool:
    """Return whether any target reads the rows and is not a bystander."""
    return any(not getattr(target, "only_watches", False) and not is_bystander(target) for target in targets)


def has_readers(targets: Iterable[Target]) -> bool:
    """Return whether any target reads the rows; a watch for the first row or the end does not."""
    return any(not getattr(target, "only_watches", False) for target in targets)


class SchemaMismatchError(Exception):
    """Two writers of one stream do not have the same attributes."""

    def __init__(self, expected: Schema, found: Schema) -> None:
        super().__init__(
            f"the inputs differ in their attributes: {', '.join(expected.names)} and {', '.join(found.names)}"
        )


def columns(given: Schema, wanted: Schema) -> Callable[[Row], Row]:
    """Return a function that puts a row into the columns of another schema; unlisted ones are null."""
    if not given.open:
        return picker([given.position(name) for name in wanted.names])
    places = [given.position(name) if name in given else None for name in wanted.names]
    return lambda row: tuple([None if place is None else row[place] for place in places])


class Reordered:
    """A target for a writer whose columns are in another order."""

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

    def push(self, rows: Sequence[Row], full: list[Room]) -> None:
        self._target.push([self._pick(row) for row in rows], full)

    def mark(self, marks: Marks) -> None:
        self._target.mark(marks)

    def end(self, outlet: Outlet, dead: bool) -> None:
        self._target.end(outlet, dead)
