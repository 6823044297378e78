"""A small form over any values, which can lie a little; `forms.Form` is the fast one for large data."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

Row = tuple[Any, ...]
# Tuples that match, tuples that are shown -> what the source says about more.
Tell = Callable[[int, int], bool | int | None]


def whether_more(found: int, shown: int) -> bool | int | None:
    return found > shown


def in_all(found: int, _: int) -> bool | int | None:
    return found


def nothing(_: int, __: int) -> bool | int | None:
    return None


class PlainForm:
    """A form that shows the first `k` matching tuples in their order, and counts its queries.

    A form with `seconds` answers each query after them; `jitter` makes some answers later than others.
    """

    def __init__(
        self,
        names: Sequence[str],
        rows: Sequence[Row],
        k: int,
        *,
        tell: Tell = whether_more,
        seconds: float = 0,
        jitter: int | None = None,
    ) -> None:
        self.names = tuple(names)
        self.rows = list(rows)
        self.k = k
        self.queries: list[dict[str, Any]] = []
        self.under_way = self.most_under_way = 0
        self._tell = tell
        self._seconds = seconds
        self._random = None if jitter is None else Random(jitter)

    async def __call__(self, query: dict[str, Any]) -> tuple[list[Row], bool | int | None]:
        self.queries.append(query)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await self._wait()
        finally:
            self.under_way -= 1
        found = self.matching(query)
        shown = found[: self.k]
        return shown, self._tell(len(found), len(shown))

    async def _wait(self) -> None:
        if self._random is not None:
            for _ in range(self._random.randrange(3)):
                await asyncio.sleep(0)
        if self._seconds:
            await asyncio.sleep(self._seconds)

    def matching(self, query: Mapping[str, Any]) -> list[Row]:
        """Return the tuples that a query asks for, in the order of the form."""
        places = [(self.names.index(name), wanted) for name, wanted in query.items()]
        return [row for row in self.rows if all(_holds(row[place], wanted) for place, wanted in places)]


def _holds(value: Any, wanted: Any) -> bool:
    if not isinstance(wanted, tuple):
        return bool(value == wanted)
    low, high = wanted
    return value is not None and (low is None or value >= low) and (high is None or value <= high)
