"""The settings of a statement on `diff`, and the attributes that come out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from aioflow.relation import Schema
from aioflow.state.diff.suspects import APART_SECONDS, CONFIRMING_RUNS, SHARE

Duplicates: TypeAlias = Literal["error", "first"]
FirstRun: TypeAlias = Literal["baseline", "news"]

OLD = "old-"
CHANGES = "changes"


@dataclass(frozen=True)
class DiffSpec:
    """A table, and how a relation is compared with it. Without `key`, tuples are compared as a whole.

    No run deletes more than the share `guard` of the table's rows; None allows all of them. A vanished row is
    believed to be gone after `confirm_runs` whole runs, `confirm_seconds` apart. `first` says what the first
    run tells.
    """

    table: str
    key: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    evolve: bool = False
    guard: float | None = SHARE
    duplicates: Duplicates = "error"
    first: FirstRun = "baseline"
    confirm_runs: int = CONFIRMING_RUNS
    confirm_seconds: float = APART_SECONDS

    def key_of(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the attributes that tell tuples apart."""
        return self.key or tuple(name for name in names if name not in self.ignore)


def changed_schema(schema: Schema, key: Sequence[str]) -> Schema:
    """Return the attributes of a changed tuple: its own, the old values, and the names that differ."""
    before = (f"{OLD}{name}" for name in schema.names if name not in key)
    return schema.add(Schema(tuple(before)), Schema.of(**{CHANGES: "char"}))
