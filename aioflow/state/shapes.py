"""What the statements of a run make of one table: they agree on its attributes before anything is written.

The checker finds this where it knows the schemas; here it is found where only the run tells them.
"""

from __future__ import annotations

from aioflow.dataclass import dataclass
from aioflow.state.errors import CommitError


@dataclass(frozen=True)
class Shape:
    """The attributes that a statement gives a table; one that `evolves` it may add to those of others."""

    where: str
    table: str
    names: tuple[str, ...]
    evolves: bool = False


class Shapes:
    """The shapes that a run has met, by table; equal ones once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bool, frozenset[str]], Shape] = {}
        self._tables: dict[str, list[Shape]] = {}

    def add(self, shape: Shape) -> None:
        """A statement is going to write; a CommitError when another one makes something else of the table."""
        key = (shape.table, shape.evolves, frozenset(shape.names))
        if key in self._known:
            return
        for other in self._tables.get(shape.table, ()):
            lacking = sorted(set(other.names) - set(shape.names))
            added = sorted(set(shape.names) - set(other.names))
            if (lacking and not other.evolves) or (added and not shape.evolves):
                raise CommitError(
                    f"unlike relations for the table {shape.table!r}: {shape.where} gives it "
                    f"{', '.join(shape.names)}, {other.where} {', '.join(other.names)}; "
                    "nothing of this run was stored"
                )
        self._known[key] = shape
        self._tables.setdefault(shape.table, []).append(shape)
