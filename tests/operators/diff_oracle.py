"""What diff does, said as simply as possible: dictionaries remember the table and what is held back."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from aioflow.relation import Row, identity

DAY = timedelta(hours=24) * 0.95


def same(one: object, other: object) -> bool:
    return identity((one,)) == identity((other,))


@dataclass
class DiffOracle:
    """Rows are (key, a, v): v is ignored."""

    share: float = 0.3
    rows: dict[Hashable, Row] = field(default_factory=dict)
    is_known: bool = False  # a table is there
    is_complete: bool = False  # and a whole run has been seen
    gone: dict[Hashable, tuple[int, datetime | None]] = field(default_factory=dict)
    new: int = 0  # how many rows are held that seem to be new
    columns: set[int] = field(default_factory=set)
    confirmed: bool = False
    confirmed_columns: set[int] = field(default_factory=set)

    def diff(self, given: Iterable[Row], mark: str, now: datetime) -> tuple[list[Row], list[Row], list[Row]]:
        """Return added, changed and removed rows of a run that is whole, partial or doubtful."""
        relation: dict[Hashable, Row] = {}
        for row in given:
            relation.setdefault(identity(row[:1]), row)
        if mark == "doubtful" or self._key_is_lost(relation):
            return [], [], []
        whole = mark == "whole"
        confirmed = self.confirmed and whole
        vanished = {at for at in (1, 2) if self._is_empty(at, relation)}
        if confirmed:
            vanished -= self.confirmed_columns
        changed = self._change(relation, vanished)
        added, removed, held_new = self._come_and_go(relation, whole, confirmed, now)
        tells = self.is_complete
        if not held_new:
            for key in added:
                self.rows[key] = relation[key]
        empty = {at for at in self.columns if all(row[at] is None for row in relation.values())}
        left = empty if whole and relation else set(self.columns)
        self.columns = vanished | (left - self.confirmed_columns if confirmed else left)
        if whole:
            self.confirmed = False
        if relation or whole:
            self.is_known = True
            self.is_complete = self.is_complete or whole
        return [relation[key] for key in added if tells and not held_new], changed, removed

    def _key_is_lost(self, relation: dict[Hashable, Row]) -> bool:
        return bool(relation) and self._is_empty(0, relation)

    def _is_empty(self, at: int, relation: dict[Hashable, Row]) -> bool:
        had = any(row[at] is not None for row in self.rows.values())
        return had and bool(relation) and all(row[at] is None for row in relation.values())

    def _change(self, relation: dict[Hashable, Row], vanished: set[int]) -> list[Row]:
        changed = []
        for key, row in relation.items():
            old = self.rows.get(key)
            if old is None:
                continue
            now = tuple(old[at] if at in vanished else value for at, value in enumerate(row))
            is_filled = 1 in self.columns and old[1] is None
            if not same(old[1], now[1]) and not is_filled:
                changed.append((*now, old[1], old[2], "a"))
            self.rows[key] = now
        return changed

    def _come_and_go(
        self, relation: dict[Hashable, Row], whole: bool, confirmed: bool, now: datetime
    ) -> tuple[list[Hashable], list[Row], bool]:
        added = [key for key in relation if key not in self.rows]
        missing = [key for key in self.rows if key not in relation]
        known, total = len(self.rows) - len(missing), len(self.rows)
        redesigned = 2 * len(added) >= len(missing) and known < len(missing)
        counts = whole and bool(relation) and not redesigned
        absent = {key: self._absence(key, counts, now) for key in missing}
        settled = {key for key in missing if (confirmed and key in self.gone) or absent[key][0] >= 3}
        rest = [key for key in missing if key not in settled]
        too_many = len(rest) > self.share * (total - len(settled))
        holds = bool(rest) and (not whole or not relation or too_many)
        looks_redesigned = too_many and (2 * len(added) >= len(rest) or not known)
        held_new = bool(added) and (looks_redesigned or (self.new > 0 and not whole))
        now_held = len(added) if held_new else 0
        self.new = now_held if whole else max(now_held, self.new)
        removed = [self.rows.pop(key) for key in missing if key in settled or not holds]
        waits = self.confirmed and not confirmed
        self.gone = {key: absent[key] for key in rest if holds and (not waits or key in self.gone)}
        return added, removed, held_new

    def _absence(self, key: Hashable, counts: bool, now: datetime) -> tuple[int, datetime | None]:
        runs, counted = self.gone.get(key, (0, None))
        if not counts or (counted is not None and now - counted < DAY):
            return runs, counted
        return runs + 1, now

    @property
    def holds_anything(self) -> bool:
        return bool(self.gone or self.columns)

    def confirm(self) -> None:
        self.confirmed_columns = set(self.columns)
        self.confirmed = self.is_complete = True
