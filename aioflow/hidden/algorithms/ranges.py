"""binary-shrink and rank-shrink: a region of ordered attributes is divided until its parts are resolved."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from aioflow.hidden.algorithms.points import AtLeaf, end_at_point
from aioflow.hidden.form_crawler import FormCrawler
from aioflow.hidden.space import Extent, QueryAnswer, Region

# The ends of an attribute and its sorted values in an answer -> the ends of the parts.
Divide: TypeAlias = Callable[[Extent, list[int]], list[Extent]]


class Shrink:
    """The division of regions by their first attribute with more than one value.

    `divide` chooses the parts: `halves` makes it binary-shrink, and `by_rank` rank-shrink. With `longest`,
    the attribute with the longest extent is divided, so that regions of a map stay nearly square. A region in
    which all ranges are exhausted and that overflows is left to `at_leaf`.
    """

    def __init__(
        self, crawler: FormCrawler, divide: Divide, at_leaf: AtLeaf = end_at_point, *, longest: bool = False
    ) -> None:
        self._takes_longest = longest
        self._crawler = crawler
        self._divide = divide
        self._at_leaf = at_leaf

    async def visit(self, region: Region) -> None:
        answer = await self._crawler.ask(region)
        if answer.overflows:
            await self.divide(region, answer)
        else:
            await self._crawler.resolved(region, answer)

    async def divide(self, region: Region, answer: QueryAnswer) -> None:
        """Visit the parts of a region that overflows."""
        crawler, space = self._crawler, self._crawler.space
        free = space.free_ranges(region)
        if not free:
            await self._at_leaf(crawler, region, answer)
            return
        place = max(free, key=lambda each: self._length(region, each)) if self._takes_longest else free[0]
        if crawler.ends_endless(region, answer, place):
            return
        values = crawler.values(answer, place)
        ends = self._divide(space.extent(region, place), values)
        parts = [space.between(region, place, low, high) for low, high in ends]
        crawler.add(*(partial(self.visit, part) for part in parts))

    def _length(self, region: Region, place: int) -> float:
        low, high = self._crawler.space.extent(region, place)
        return math.inf if low is None or high is None else high - low


def halves(extent: Extent, _: list[int]) -> list[Extent]:
    """Return two equal parts; an open end is halved where the distance from the other doubles."""
    low, high = extent
    if low is not None and high is not None:
        middle = -(-(low + high) // 2)
    elif low is not None:
        middle = low + max(1, abs(low))
    else:
        middle = 0 if high is None else high - max(1, abs(high)) + 1
    return [(low, middle - 1), (middle, high)]


def by_rank(extent: Extent, values: list[int]) -> list[Extent]:
    """Return two parts with at least a quarter of the values each, or three around a frequent value."""
    if not values:  # an answer without tuples that says that there are some
        return halves(extent, values)
    low, high = extent
    middle = values[-(-len(values) // 2) - 1]
    if values.count(middle) <= len(values) / 4:
        return [(low, middle - 1), (middle, high)]
    return around(extent, middle)


def around(extent: Extent, value: int) -> list[Extent]:
    """Return a value and the parts on both sides of it, as far as there are any."""
    low, high = extent
    parts: list[Extent] = [(low, value - 1), (value, value), (value + 1, high)]
    return [(a, b) for a, b in parts if a is None or b is None or a <= b]
