"""The ends of a search: points that overflow, and attributes of which one side only can be asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from aioflow.hidden.form_crawler import FormCrawler
from aioflow.hidden.space import QueryAnswer, Region

# What is done with a region that cannot be divided further and overflows.
AtLeaf: TypeAlias = Callable[[FormCrawler, Region, QueryAnswer], Awaitable[None]]


async def end_at_point(crawler: FormCrawler, region: Region, answer: QueryAnswer) -> None:
    """Take what can be had of a region that no algorithm can divide."""
    if crawler.space.one_sided:
        await _OneSides(crawler, region, answer).shrink()
    elif answer.is_undecided:
        reason = f"it has {len(answer)} tuples, as many as an answer can have, and perhaps more"
        crawler.unresolved(region, "undecided", reason, answer)
    elif not len(answer):
        reason = "the source says that there are more tuples than it shows, and shows none"
        crawler.unresolved(region, "point", reason, answer)
    else:
        number = f"{answer.total}" if answer.total is not None else f"more than {len(answer)}"
        reason = f"{number} identical tuples, of which an answer has {len(answer)}"
        crawler.unresolved(region, "point", reason, answer)


class _OneSides:
    """The search for the largest part of a region that is resolved, on one side of an attribute each.

    The tuples beyond it are hidden in every answer by those nearer to the open side: the seen ones are all
    that is known of them.
    """

    def __init__(self, crawler: FormCrawler, region: Region, answer: QueryAnswer) -> None:
        self._crawler = crawler
        self._space = crawler.space
        self._region = region
        self._first = answer
        self._resolved: list[Region] = []

    async def shrink(self) -> None:
        for place in self._space.one_sided:
            part, found = await self._largest_part(place)
            if part is not None and found is not None:
                await self._crawler.answered_by(self._region, found, but=self._resolved)
                self._resolved.append(part)
                self._crawler.report.resolved.append(part)
        names = " and ".join(self._space.axes[place].name for place in self._space.one_sided)
        reason = f"only one side of {names} can be asked for, and nearer tuples hide those beyond it"
        self._crawler.unresolved(self._region, "one-sided", reason, self._first, but=self._resolved)

    async def _largest_part(self, place: int) -> tuple[Region | None, QueryAnswer | None]:
        """Return the largest part that is resolved, and its answer; by bisection over the values seen."""
        side = 1 if self._space.range_axis(place).predicates == "at_most" else -1
        ends = self._ends(place, side, self._first)
        best: tuple[Region | None, QueryAnswer | None] = None, None
        nearest: int | None = None  # the end of the best part
        while ends:
            middle = (len(ends) - 1) // 2
            end = side * ends[middle]
            part = self._space.between(self._region, place, *((None, end) if side > 0 else (end, None)))
            found = await self._crawler.ask(part)
            if found.overflows:
                known = set(ends[:middle]) | set(self._ends(place, side, found))
                ends = sorted(
                    each for each in known if each < side * end and (nearest is None or each > nearest)
                )
            else:
                best, nearest = (part, found), ends[middle]
                ends = ends[middle + 1 :]
        return best

    def _ends(self, place: int, side: int, answer: QueryAnswer) -> list[int]:
        """Return the values of an attribute in an answer, as distances from its open side."""
        return sorted({side * value for codes in answer.codes if (value := codes[place]) is not None})
