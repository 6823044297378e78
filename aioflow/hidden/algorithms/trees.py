"""DFS, slice-cover, lazy-slice-cover and hybrid: menus are searched as a tree, one attribute a level."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal, TypeAlias

from aioflow.hidden.algorithms.points import AtLeaf
from aioflow.hidden.form_crawler import FormCrawler
from aioflow.hidden.space import QueryAnswer, Region

# `never` is DFS. Slices are queries that name one value of one attribute, and answer for all regions in it.
Slices: TypeAlias = Literal["never", "when needed", "frugal"]


class TreeSearch:
    """The search below a root: level by level one more attribute of `order` has a value.

    With `slices`, a slice is asked when a region in it is first needed, and answers for all of them if it is
    resolved. A `frugal` search asks as many regions without their slices as an attribute has values: where
    few regions overflow, slices would cost more than they save.
    """

    def __init__(
        self, crawler: FormCrawler, root: Region, order: Sequence[int], slices: Slices, at_leaf: AtLeaf
    ) -> None:
        self._crawler = crawler
        self._root = root
        self._order = order
        self._slices = slices
        self._at_leaf = at_leaf
        self._spent = dict.fromkeys(order, 0)
        self._overflowing: set[Region] = set()  # slices, as regions in them overflow

    async def visit(self, region: Region) -> None:
        answer = await self._crawler.ask_unless_known(region)
        if answer.overflows:
            self._overflowing.update(self._slices_around(region))
            await self.expand(region, answer)
        else:
            await self._crawler.resolved(region, answer)

    async def expand(self, region: Region, answer: QueryAnswer) -> None:
        """Search the parts of a region that overflows."""
        place = next((each for each in self._order if region[each] is None), None)
        if place is None:
            await self._at_leaf(self._crawler, region, answer)
            return
        if self._crawler.ends_endless(region, answer, place):
            return
        self._crawler.expand(place, lambda number: partial(self._child, region, place, number))

    async def _child(self, region: Region, place: int, number: int) -> None:
        crawler, space = self._crawler, self._crawler.space
        child = space.at(region, place, number)
        if self._slices != "never":
            part = space.at(self._root, place, number)
            if part != child and self._is_better_without(part, place):
                await self.visit(child)
                return
            found = crawler.known.overflowing(part, crawler.report.k) or await crawler.ask(part, keep=True)
            if not found.overflows:
                crawler.report.resolved.append(child)
                await crawler.answered_by(child, found)
                return
            if part == child:
                await self.expand(child, found)
                return
        await self.visit(child)

    def _slices_around(self, region: Region) -> list[Region]:
        """Return the slices that a region lies in. Where a slice is always asked first, none is needed."""
        space = self._crawler.space
        values = [(place, value) for place in self._order if isinstance(value := region[place], int)]
        return [space.at(self._root, *each) for each in values] if self._slices == "frugal" else []

    def _is_better_without(self, part: Region, place: int) -> bool:
        """Return whether a region is asked without its slice."""
        if part in self._overflowing or self._crawler.is_forgotten(part):
            return True
        if self._slices != "frugal" or self._crawler.slice_overflows(part) is not None:
            return False
        if self._spent[place] >= len(self._crawler.space.list_axis(place)):
            return False
        self._spent[place] += 1
        return True


class SliceCover:
    """slice-cover: all slices are asked first, and then the tree is searched with their answers."""

    def __init__(self, crawler: FormCrawler, root: Region, order: Sequence[int], at_leaf: AtLeaf) -> None:
        self._crawler = crawler
        self._root = root
        self._order = order
        self._search = TreeSearch(crawler, root, order, "when needed", at_leaf)
        self._left = 0  # slices to be asked

    async def begin(self) -> None:
        space = self._crawler.space
        if any(space.list_axis(place).is_learnt for place in self._order):
            answer = await self._crawler.ask(self._root)  # it shows the first values
            if not answer.overflows:
                await self._crawler.resolved(self._root, answer)
                return
        slices = [
            space.at(self._root, place, number)
            for place in self._order
            for number in range(len(space.list_axis(place)))
        ]
        self._left = len(slices)
        self._crawler.add(*(partial(self._ask, each) for each in slices))

    async def _ask(self, part: Region) -> None:
        await self._crawler.ask(part, keep=True)
        self._left -= 1
        if not self._left:
            # The root is not asked: it overflows if a slice does, and else the slices answer for it.
            await self._search.expand(self._root, QueryAnswer((), (), overflows=True))
