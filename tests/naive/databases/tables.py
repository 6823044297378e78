"""Tables as lists of rows, and what the runs of a plan do to them.

A statement sees the tables as they were before the run, with the writes that came before it: no others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from aioflow.relation import Row
from tests.operators.diff_oracle import DiffOracle

# In `many` an n may stand several times, in `one` it is a key; `whole` is exported, `watched` is compared.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "many": ("n", "m"),
    "one": ("n", "m"),
    "whole": ("n", "k", "a", "b", "m"),
    "watched": ("n", "a", "k"),
}


@dataclass
class Tables:
    """The content of all tables."""

    rows: dict[str, list[Row]] = field(default_factory=lambda: {"many": [], "one": [], "whole": []})
    watched: DiffOracle = field(default_factory=DiffOracle)

    def of(self, name: str) -> list[Row]:
        return list(self.watched.rows.values()) if name == "watched" else self.rows[name]


Effect: TypeAlias = Callable[[Tables], None]


@dataclass
class World:
    """The tables before a run, and its writes in an order in which they may take hold."""

    before: Tables
    now: datetime
    writes: list[Effect] = field(default_factory=list)

    def view(self, after: Collection[int]) -> Tables:
        """What a statement sees that comes after these writes."""
        tables = deepcopy(self.before)
        for number, effect in enumerate(self.writes):
            if number in after:
                effect(tables)
        return tables

    def write(self, effect: Effect) -> int:
        """Note a write; return its number."""
        self.writes.append(effect)
        return len(self.writes) - 1

    def ended(self) -> Tables:
        """The tables after a run that ended well."""
        return self.view(range(len(self.writes)))
