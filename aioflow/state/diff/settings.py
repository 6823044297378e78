"""The settings of a comparison: those of a statement on `diff`, and `[history]` of the configuration.

Also the attributes that come out of it, and the origin of changes: the run that noticed them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

from aioflow.authoring.context import RunInfo
from aioflow.config.sections import Section, at_least
from aioflow.relation import Schema

Duplicates: TypeAlias = Literal["error", "first"]
FirstRun: TypeAlias = Literal["baseline", "news"]

SHARE = 0.3
CONFIRMING_RUNS = 3
APART_SECONDS = 24 * 3600.0

OLD = "old-"
CHANGES = "changes"


class DiffSpec(msgspec.Struct, frozen=True):
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


@dataclass(frozen=True)
class HistorySettings:
    """The time and the number for which changes of a table are kept."""

    keep_days: float = 365.0
    most_changes: int = 100_000  # of one table; 0 keeps none


HISTORY = Section(
    "history",
    HistorySettings,
    refine={
        "keep_days": at_least(0, "a number of days"),
        "most_changes": at_least(0, "a whole number"),
    },
)


class ChangeOrigin(msgspec.Struct, frozen=True):
    """The run that noticed changes, and the settings of the history that it writes to."""

    run_id: str
    task_id: str
    plan: str
    noticed: datetime
    settings: HistorySettings

    @classmethod
    def of(cls, run: RunInfo, settings: HistorySettings) -> ChangeOrigin:
        return cls(run.run_id, run.task_id or "", run.plan, run.started, settings)
