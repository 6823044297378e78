"""The algorithm that chooses by itself.

Ranges are swept with all menus open. Menus are searched where a point of all ranges overflows, or alone if
the form has no ranges.
"""

from __future__ import annotations

from aioflow.hidden.algorithms.order import OrderChoice
from aioflow.hidden.algorithms.points import end_at_point
from aioflow.hidden.algorithms.ranges import Shrink, by_rank
from aioflow.hidden.algorithms.sweep import Sweep
from aioflow.hidden.algorithms.trees import TreeSearch
from aioflow.hidden.form_crawler import FormCrawler
from aioflow.hidden.space import QueryAnswer, Region


class Auto:
    """The search of one region, in which required attributes have their values."""

    def __init__(self, crawler: FormCrawler, root: Region) -> None:
        self._crawler = crawler
        self._root = root
        self._search: TreeSearch | None = None
        self._shrink = Shrink(crawler, by_rank, self._at_leaf)

    async def begin(self) -> None:
        answer = await self._crawler.ask_unless_known(self._root)
        if not answer.overflows:
            await self._crawler.resolved(self._root, answer)
        elif self._crawler.space.free_ranges(self._root):
            await self._sweep(self._root, answer)
        elif self._crawler.space.free_lists(self._root):
            await self._choose_order(answer)
        else:
            await end_at_point(self._crawler, self._root, answer)

    def _explain(self, text: str) -> None:
        if text not in self._crawler.report.explanation:
            self._crawler.report.explanation.append(text)

    # --- ranges -------------------------------------------------------------------------------------

    async def _sweep(self, region: Region, answer: QueryAnswer) -> None:
        """Sweep the attribute with the most different values in an answer."""
        crawler, space = self._crawler, self._crawler.space
        free = space.free_ranges(region)
        place = max(free, key=lambda each: (len({codes[each] for codes in answer.codes}), -each))
        sample = crawler.values(answer, place)
        if region == self._root:
            self._explain(f"{space.axes[place].name} is swept first, as it has the most values")
        await Sweep(crawler, region, place, sample, self._at_value, self._shrink).step()

    async def _at_value(self, region: Region, answer: QueryAnswer) -> None:
        if self._crawler.space.free_ranges(region):
            await self._sweep(region, answer)
        else:
            await self._at_leaf(self._crawler, region, answer)

    async def _at_leaf(self, crawler: FormCrawler, region: Region, answer: QueryAnswer) -> None:
        """Search the menus of a region in which all ranges have one value."""
        if crawler.space.free_lists(region):
            self._explain("menus are searched only where a point of all ranges overflows")
            await self._tree().expand(region, answer)
        else:
            await end_at_point(crawler, region, answer)

    def _tree(self) -> TreeSearch:
        """The search of menus. Its slices leave the ranges open, so that all points of ranges share them."""
        if self._search is None:
            space = self._crawler.space
            order = sorted(space.free_lists(self._root), key=lambda place: len(space.list_axis(place)))
            self._search = TreeSearch(self._crawler, self._root, order, "frugal", end_at_point)
        return self._search

    # --- menus only ---------------------------------------------------------------------------------

    async def _choose_order(self, answer: QueryAnswer) -> None:
        choice = OrderChoice(self._crawler, self._root, answer)

        async def search(order: list[int]) -> None:
            space = self._crawler.space
            first = space.axes[order[0]].name
            self._explain(f"{first} comes first, for about {choice.tuples:,.0f} tuples by early answers")
            self._search = TreeSearch(self._crawler, self._root, order, "when needed", end_at_point)
            await self._search.expand(self._root, answer)

        await choice.begin(search)
