"""The order of menus: which attribute comes first decides on the cost, often by a factor of two and more.

A few slices are asked to estimate how many tuples there are. Then the cost of beginning with each attribute
is computed for a database like the tuples that were seen. The order is chosen once, so lemma 4 still holds:
the slices that were asked are among its first term.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from random import Random

from aioflow.hidden.form_crawler import FormCrawler
from aioflow.hidden.space import Codes, QueryAnswer, Region

# Slices of attributes with fewer values say little about the mean of all.
_VALUES_AT_LEAST = 24
_SLICES, _MORE_SLICES = 10, 20
_ENOUGH = 10  # tuples of the first answer in resolved slices: then they tell the number of all
_SAMPLE_AT_MOST = 2_500
_LEVELS = 4


class OrderChoice:
    """The choice for a region that overflows, of which an answer is known."""

    def __init__(self, crawler: FormCrawler, root: Region, answer: QueryAnswer) -> None:
        self._crawler = crawler
        self._root = root
        self._answer = answer
        space = crawler.space
        self._free = sorted(space.free_lists(root), key=lambda place: len(space.list_axis(place)))
        self._random = Random(7)  # the choice is the same each time: a crawl that goes on repeats it
        self._seen: Counter[Codes] = Counter(answer.codes)
        self._in_slices = 0  # tuples in resolved slices
        self._of_first = 0  # those of the first answer among them
        self.tuples = float(2 * max(len(answer), 1))

    async def begin(self, then: Callable[[list[int]], Awaitable[None]]) -> None:
        """Estimate, choose, and go on with the order."""
        space = self._crawler.space
        if self._answer.is_known:
            self.tuples = float(len(self._answer))
        elif self._answer.total is not None:
            self.tuples = float(self._answer.total)
        elif not any(space.list_axis(place).is_learnt for place in self._free) and len(self._free) > 1:
            for place in self._free:
                if await self._estimate_by(place):
                    break
        await then(self._order())

    async def _estimate_by(self, place: int) -> bool:
        """Ask slices of an attribute; return whether the number of tuples is known well enough."""
        size = len(self._crawler.space.list_axis(place))
        if size < _VALUES_AT_LEAST and place != self._free[-1]:
            return False
        values = self._random.sample(range(size), min(size, _SLICES + _MORE_SLICES))
        slices = [await self._slice(place, value) for value in values[:_SLICES]]
        if self._is_enough():
            return True
        if sum(each.overflows for each in slices) > 1:
            return False
        slices += [await self._slice(place, value) for value in values[_SLICES:]]
        if not self._is_enough():
            mean = sum(len(each) * (1.5 if each.overflows else 1) for each in slices) / len(slices)
            self.tuples = max(self.tuples, size * mean)
        return True

    async def _slice(self, place: int, value: int) -> QueryAnswer:
        region = self._crawler.space.at(self._root, place, value)
        answer = await self._crawler.ask(region, keep=True)
        for codes, times in Counter(answer.codes).items():
            self._seen[codes] = max(self._seen[codes], times)
        if not answer.overflows:
            self._in_slices += len(answer)
            self._of_first += sum(codes[place] == value for codes in self._answer.codes)
        return answer

    def _is_enough(self) -> bool:
        if self._of_first < _ENOUGH:
            return False
        self.tuples = max(self.tuples, len(self._answer) * self._in_slices / self._of_first)
        return True

    # --- the cost of an order -----------------------------------------------------------------------

    def _order(self) -> list[int]:
        """Return the order that begins with the cheapest attribute, and goes on with the smallest domains."""
        sample = list(self._seen.elements())
        if len(sample) > _SAMPLE_AT_MOST:
            sample = self._random.sample(sample, _SAMPLE_AT_MOST)
        orders = [[first, *(each for each in self._free if each != first)] for first in self._free]
        return min(orders, key=partial(self._cost, sample, self._frequent(sample)))

    def _frequent(self, sample: Sequence[Codes]) -> dict[int, set[int]]:
        """Return the values of each attribute whose slices overflow, for certain or probably."""
        found = {}
        for place in self._free:
            size = len(self._crawler.space.list_axis(place))
            counts = Counter(codes[place] for codes in sample)
            # Values that were seen once are mostly rarer than that.
            weight = self.tuples / (len(sample) + size / 2)
            k = self._k
            values = {value for value, n in counts.items() if value is not None and (n + 0.5) * weight > k}
            for value in range(size):
                overflows = self._crawler.slice_overflows(self._crawler.space.at(self._root, place, value))
                if overflows is not None:
                    (values.add if overflows else values.discard)(value)
            found[place] = values
        return found

    @property
    def _k(self) -> int:
        return max(self._crawler.report.k or 1, 1)

    def _cost(self, sample: Sequence[Codes], frequent: dict[int, set[int]], order: Sequence[int]) -> float:
        """Return the queries that a search in an order needs, for a database like the sample."""
        weight = max(1.0, self.tuples / max(len(sample), 1))
        regions, cost = [list(sample)], 0
        for level, place in enumerate(order[:_LEVELS]):
            if not regions:
                break
            cost += len(self._crawler.space.list_axis(place))
            if level:
                cost += len(regions) * len(frequent[place])
            regions = [
                part
                for region in regions
                for part in _parts(region, place, frequent[place])
                if (len(part) - 0.5) * weight > self._k
            ]
        return cost


def _parts(region: Sequence[Codes], place: int, values: set[int]) -> list[list[Codes]]:
    found: dict[int | None, list[Codes]] = {}
    for codes in region:
        if codes[place] in values:
            found.setdefault(codes[place], []).append(codes)
    return list(found.values())
