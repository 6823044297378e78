"""What a statement on `diff` asks for, and which attributes come out of it."""

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
    """A table, and how a relation is compared with it; without `key` tuples are compared as a whole.

    More than the share `guard` of the table's rows vanishes in no single run; None lets all of them. What
    vanished is believed after `confirm_runs` whole runs, `confirm_seconds` apart. `first` says what the first
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
        """The attributes that tell tuples apart."""
        return self.key or tuple(name for name in names if name not in self.ignore)


def changed_schema(schema: Schema, key: Sequence[str]) -> Schema:
    """The attributes of what has changed: those of the tuple, the old values, and the names that differ."""
    before = (f"{OLD}{name}" for name in schema.names if name not in key)
    return schema.add(Schema(tuple(before)), Schema.of(**{CHANGES: "char"}))
