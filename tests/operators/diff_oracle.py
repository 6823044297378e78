"""What diff does, said as simply as possible: a dictionary remembers the rows of the table."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from aioflow.relation import Row, identity

NEARLY = 0.9


def same(one: object, other: object) -> bool:
    return identity((one,)) == identity((other,))


@dataclass
class DiffOracle:
    """Rows are (key, a, v): v is ignored, and with a guard at least `fewest` rows must vanish to trip it."""

    share: float | None = 0.3
    fewest: int = 20
    rows: dict[Hashable, Row] = field(default_factory=dict)
    mark: set[Hashable] | None = None
    confirmed: bool = False

    def diff(self, given: Iterable[Row]) -> tuple[list[Row], list[Row], list[Row]]:
        """Added, changed and removed rows."""
        added, changed = [], []
        seen: set[Hashable] = set()
        before = dict(self.rows)
        for row in given:
            key = identity(row[:1])
            if key in seen:
                continue
            seen.add(key)
            old = before.get(key)
            self.rows[key] = row
            if old is None:
                added.append(row)
            elif not same(old[1], row[1]):
                changed.append((*row, old[1], old[2], "a"))
        vanishing = set(before) - seen
        if not self._may_vanish(vanishing, len(before)):
            return added, changed, []
        return added, changed, [self.rows.pop(key) for key in vanishing]

    def _may_vanish(self, vanishing: set[Hashable], total: int) -> bool:
        mark, confirmed, self.mark, self.confirmed = self.mark, self.confirmed, None, False
        if self.share is None or len(vanishing) < self.fewest or len(vanishing) <= self.share * total:
            return True
        common = len(mark & vanishing) if mark is not None else 0
        if mark is not None and (confirmed or _nearly(common, mark, vanishing)):
            return True
        self.mark = vanishing
        return False

    def confirm(self) -> None:
        self.confirmed = self.mark is not None


def _nearly(common: int, *sets: Sequence[Hashable] | set[Hashable]) -> bool:
    return all(common >= NEARLY * len(each) for each in sets)
