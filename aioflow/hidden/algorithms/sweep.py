"""The sweep over an ordered attribute: from one end to the other by intervals of just under k tuples.

rank-shrink divides until parts are small enough, so about half of its queries overflow, and its parts are
filled to two thirds. A sweep knows how many tuples the interval before held, and makes the next as wide as
will probably hold a little less than k. Only where the density changes does a query overflow; its answer
then is a sample that says where to cut.

Ranked answers are poor samples, and a hostile density fools every guess. So a sweep has a budget of queries
by the tuples found; when it is spent, rank-shrink goes on with the rest. The cost stays within a constant
of that of rank-shrink: at most FREE + PER_K times n/k queries a sweep before it, and one sweep a value that
overflows, of which each attribute has at most n/k. The parts of a long sweep share its budget.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

from aioflow.hidden.algorithms.ranges import Shrink, around
from aioflow.hidden.form_crawler import FormCrawler
from aioflow.hidden.known import end_for
from aioflow.hidden.space import QueryAnswer, Region

# Of a region that a value fills alone and that still overflows.
AtValue: TypeAlias = Callable[[Region, QueryAnswer], Awaitable[None]]

FILL = 0.85  # of k: where an interval should end
FIRST = 0.125  # of the sample: the first interval, as nothing is known of the number of tuples
FREE, PER_K = 16, 3.0  # the budget
FREE_SHARE, FREE_AT_MOST = (
    0.08,
    40,
)  # of n/k, since a longer sweep finds more places where the density changes
_TIGHTEST = 0.75  # of an interval that overflows: the longest part that is tried next
_CHANGE_AT_MOST = 4.0  # of the density from one interval to the next
# Workers sweep parts of a range at once. Each part wastes about a query, and there are as many as this share
# of all queries, whatever the number of workers: so any number of them sends the same queries.
_WASTE = 0.04
_PARTS_AT_MOST = 15
_SWEPT_AT_LEAST = 8  # tuples of the sample, after which it tells how many parts there should be
_MARGIN, _MARGIN_AT_MOST = 0.02, 0.2  # one more each time that known tuples have become too many
_NEIGHBOURS = 8  # tuples of the sample that tell the density at a place


class _Budget:
    """The queries of a sweep, or of all its parts, and the tuples found."""

    def __init__(self) -> None:
        self.free: float = FREE
        self.queries = 0
        self.found = 0

    def is_spent(self, k: int) -> bool:
        return self.queries > self.free + PER_K * self.found / k


class Sweep:
    """A sweep of one attribute of a region that overflows, from `low` to `high`."""

    def __init__(
        self,
        crawler: FormCrawler,
        region: Region,
        place: int,
        sample: list[int],
        at_value: AtValue,
        shrink: Shrink,
        density: float | None = None,
        budget: _Budget | None = None,
    ) -> None:
        self._crawler = crawler
        self._shrink = shrink
        self._region = region
        self._place = place
        self._sample = sample  # the values of the attribute in answers, sorted
        self._at_value = at_value
        self._low, self._high = crawler.space.extent(region, place)
        self._density = density  # tuples a value, as far as is known
        self._first_sample = sample  # which is spread over the whole region
        self._is_divided = budget is not None  # or a part
        self._swept: list[int] = []  # tuples of the first sample up to the end of each interval
        self._budget = _Budget() if budget is None else budget
        self._known = crawler.known.values(region, place)
        self._margin = 0.0  # of k, for tuples that may have been added since they became known
        self._share = 1.0  # of the tuples of the region that lie in the first interval
        self._in_row = 0  # queries in a row that overflowed
        self._next: list[int] = []  # ends of intervals that an overflow asks for
        self._overflowing: QueryAnswer | None = None  # the last one in a row

    async def step(self) -> None:
        """Ask for the next interval, and add the step after it."""
        space = self._crawler.space
        if self._budget.is_spent(self._k):
            await self._fall_back()
            return
        end = self._choose_end()
        part = space.between(self._region, self._place, self._low, end)
        answer = await self._crawler.ask_unless_known(part)
        self._budget.queries += not answer.is_known
        if answer.overflows:
            await self._narrow(part, end, answer)
            return
        await self._crawler.resolved(part, answer)
        self._in_row, self._overflowing = 0, None
        self._budget.found += len(answer)
        if end != self._high and end is not None:
            self._learn(len(answer), end)
            self._go_on(end)

    async def _fall_back(self) -> None:
        """Leave the rest to the fallback. It is not asked if an interval of it has overflowed."""
        rest = self._crawler.space.between(self._region, self._place, self._low, self._high)
        if self._overflowing is None:
            await self._shrink.visit(rest)
        else:
            await self._shrink.divide(rest, self._overflowing)

    @property
    def _k(self) -> int:
        return max(self._crawler.report.k or 1, 1)

    @property
    def _start(self) -> int:
        """The first value that may have tuples, as far as is known."""
        if self._low is not None:
            return self._low
        return self._sample[0] if self._sample else 0

    def _choose_end(self) -> int | None:
        """Return the end of the next interval; None for the open end."""
        start = self._start
        if self._next:
            return self._next.pop()
        if self._known and not self._in_row:
            return self._known_end(start)
        if self._density is None:
            rest = [value for value in self._sample if value >= start] or [start]
            end = rest[max(0, int(len(rest) * FIRST) - 1)]
            self._share *= FIRST
        else:
            end = max(start, start + int(min(FILL * self._k / self._density, 2.0**200)) - 1)
        if self._density is None and self._low == self._crawler.space.extent(self._region, self._place)[0]:
            # The whole region is known to overflow.
            return end if self._high is None else min(end, self._high - 1)
        last = self._high if self._high is not None else self._last_seen
        return self._high if end >= last else end

    def _known_end(self, start: int) -> int | None:
        """Return the end of an interval that was just whole when its tuples became known."""
        most = max(1, int(self._crawler.most_whole * (1 - self._margin)))
        end = end_for(self._known, start, most)
        return self._high if end is None or (self._high is not None and end >= self._high) else end

    @property
    def _last_seen(self) -> int:
        return self._sample[-1] if self._sample else self._start

    def _learn(self, found: int, end: int) -> None:
        density = max(found, 0.5) / max(end + 1 - self._start, 1)
        if self._density is None:
            self._density = density
            if not self._is_divided:
                tuples = found / self._share
                self._budget.free = max(FREE, min(FREE_AT_MOST, FREE_SHARE * tuples / self._k))
        else:
            most, least = self._density * _CHANGE_AT_MOST, self._density / _CHANGE_AT_MOST
            self._density = min(max(density, least), most)
        if not self._is_divided and not self._known:
            self._divide(end)

    def _go_on(self, end: int) -> None:
        if self._high is None or end < self._high:
            self._low = end + 1
            self._crawler.add(self.step)

    async def _narrow(self, part: Region, end: int | None, answer: QueryAnswer) -> None:
        """Go on with a shorter interval after one that overflows."""
        if end is not None and self._low == end:
            self._budget.found += len(answer)
            self._crawler.add(partial(self._at_value, part, answer))
            if end != self._high:
                self._in_row, self._overflowing = 0, None
                self._low = end + 1
                self._crawler.add(self.step)
            return
        if self._known and self._margin < _MARGIN_AT_MOST:
            self._margin += _MARGIN
            shorter = self._known_end(self._start)
            if shorter is not None and (end is None or shorter < end):
                self._next = [shorter]
                self._crawler.add(self.step)
                return
        values = self._crawler.values(answer, self._place)
        if not values:
            await self._shrink.divide(part, answer)
            if end is not None and end != self._high:
                self._go_on(end)
            return
        last = end if end is not None else values[-1]
        value = values[max(0, int(len(values) * self._share_to_take(last)) - 1)]
        if values.count(value) > len(values) / 4 or value >= last:
            ends = [high for _, high in around((self._low, end), value)[:2] if high is not None]
            self._next = [high for high in reversed(ends) if high <= value]
        else:
            self._next = [value]
        self._overflowing = None if answer.is_known else answer
        self._sample = values + [each for each in self._sample if each > last]
        self._crawler.add(self.step)

    def _share_to_take(self, last: int) -> float:
        """Return the share of an interval that overflows which probably holds just under k tuples."""
        self._in_row += 1
        if self._density is None:
            self._share *= FIRST
            return FIRST
        guess = max(self._density * max(last + 1 - self._start, 1), 1.15 * self._k)
        return min(_TIGHTEST / 2.0 ** (self._in_row - 1), FILL * self._k / guess)

    # --- parts --------------------------------------------------------------------------------------

    def _divide(self, end: int) -> None:
        """Have parts of the rest swept too, if it is long enough to be worth a query for each."""
        swept = bisect_right(self._first_sample, end)
        self._swept.append(swept)
        # If the answer was ranked, its tuples are not spread like those found, and tell nothing.
        is_fair = 4 * self._swept[(len(self._swept) - 1) // 2] >= swept
        if swept < _SWEPT_AT_LEAST or not is_fair:
            return
        self._is_divided = True
        tuples = self._budget.found * len(self._first_sample) / swept
        sample = [value for value in self._first_sample if value > end]
        most = min(_PARTS_AT_MOST, int(tuples / (FILL * self._k) * _WASTE), len(sample) // 2)
        cuts = sorted({sample[len(sample) * number // most] for number in range(1, most)} - set(sample[:1]))
        if not cuts:
            return
        ends = [*(cut - 1 for cut in cuts[1:]), self._high]
        weight = tuples / max(len(self._first_sample), 1)
        for cut, high in zip(cuts, ends, strict=True):
            part = self._crawler.space.between(self._region, self._place, cut, high)
            here = [value for value in sample if value >= cut and (high is None or value <= high)]
            sweep = Sweep(
                *(self._crawler, part, self._place, here, self._at_value, self._shrink),
                density=_density_at_start(here, cut, weight),
                budget=self._budget,
            )
            self._crawler.add(sweep.step)
        self._high = cuts[0] - 1
        self._sample = [value for value in self._sample if value < cuts[0]]


def _density_at_start(sample: list[int], start: int, weight: float) -> float | None:
    near = sample[:_NEIGHBOURS]
    if len(near) < _NEIGHBOURS:
        return None
    return 1.3 * weight * len(near) / float(near[-1] + 1 - start)
