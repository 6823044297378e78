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

    def add(self, shape: Shape, *, capitals_differ: bool) -> None:
        """A statement is going to write; a CommitError when another one makes something else of the table.

        Where the database does not tell capitals from small letters, unlike names may be one table.
        """
        table = shape.table if capitals_differ else _small(shape.table)
        key = (table, shape.evolves, frozenset(shape.names))
        if key in self._known:
            return
        for other in self._tables.get(table, ()):
            lacking = sorted(set(other.names) - set(shape.names))
            added = sorted(set(shape.names) - set(other.names))
            if (lacking and not other.evolves) or (added and not shape.evolves):
                one = "" if shape.table == other.table else f", which is {other.table!r} too"
                why = one and "; SQLite does not tell capitals from small letters"
                raise CommitError(
                    f"unlike relations for the table {shape.table!r}{one}: {shape.where} gives it "
                    f"{', '.join(shape.names)}, {other.where} {', '.join(other.names)}{why}; "
                    "nothing of this run was stored"
                )
        self._known[key] = shape
        self._tables.setdefault(table, []).append(shape)


def _small(name: str) -> str:
    """A name as SQLite compares it: only letters of ASCII have small ones."""
    return name.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
