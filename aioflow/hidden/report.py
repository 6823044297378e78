"""The report of a crawl: its cost, whether its result is complete, and if not, what may be missing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from aioflow.hidden.bounds import theorem_1
from aioflow.hidden.coverage import joined
from aioflow.hidden.space import Region, Space
from aioflow.values.quantities import count_text

Kind: TypeAlias = Literal["point", "undecided", "one-sided", "no value", "endless"]
_SHOWN_AT_MOST = 3
Z = 1.96  # of a 95 % interval


class Unresolved(msgspec.Struct, frozen=True):
    """A region that may hold more tuples than the `known` ones. `query` has its conditions."""

    query: Mapping[str, Any]
    kind: Kind
    reason: str
    known: int = 0


class SourceChange(msgspec.Struct, frozen=True):
    """A sign that the source changed while it was crawled: a tuple was shown first and missing later."""

    query: Mapping[str, Any]
    tuple: tuple[Any, ...] | None
    reason: str


class Estimate(msgspec.Struct, frozen=True):
    """The number of tuples of the source, with an interval, and the share of them that is certain."""

    tuples: float
    low: float
    high: float
    share: float


class CrawlReport:
    """The state of a crawl, while it runs and after its end."""

    def __init__(self, space: Space, k: int | None, algorithm: str) -> None:
        self._space = space
        self.algorithm = algorithm
        self.explanation: list[str] = []  # why `auto` did what it did
        self.k = k
        self.queries = 0  # different ones that were answered
        self.repeated = 0  # queries that were asked again, since their answers were not kept
        self.tuples = 0
        self.unresolved: list[Unresolved] = []
        self.changes: list[SourceChange] = []
        self.resolved: list[Region] = []  # regions, as numbers
        self.warnings: list[str] = []
        self.doubts: list[str] = []  # reasons why tuples may be missing that no region shows
        self.is_finished = False
        self.total: int | None = None  # as the source says
        self.added: Counter[tuple[Any, ...]] | None = None  # since the tuples that were known
        self.removed: Counter[tuple[Any, ...]] | None = None
        self.sampled = 0  # tuples of the first answer
        self.found_of_sample = 0

    @property
    def complete(self) -> bool:
        """True if every tuple was extracted for certain."""
        return self.is_finished and not self.reason

    @property
    def reason(self) -> str:
        """Why the result is incomplete; "" if it is complete."""
        reasons = [] if self.is_finished else ["the crawl has not ended"]
        reasons += self.doubts
        if self.changes:
            reasons.append(f"the source changed while it was crawled: {self.changes[0].reason}")
        if self.unresolved:
            endless = (each for each in self.unresolved if each.kind == "endless")
            first = next(endless, self.unresolved[0])
            more = f" (and {len(self.unresolved) - 1} further regions)" if len(self.unresolved) > 1 else ""
            reasons.append(f"{self._space.shown(first.query)}: {first.reason}{more}")
        return "; ".join(reasons)

    @property
    def covered(self) -> list[Mapping[str, Any]]:
        """The regions that were resolved, as their conditions; neighbours are joined. `{}` is everything."""
        return [self._space.query(region) for region in joined(self._space, self.resolved)]

    def bound(self, n: int | None = None) -> int:
        """Return the most queries that theorem 1 allows for n tuples.

        By default these are the tuples found, and before the end as many as there are by estimate.
        """
        tuples = round(self.estimate().tuples) if n is None else n
        return theorem_1(self._space, tuples, self.k or max(tuples, 1))

    def estimate(self) -> Estimate:
        """Return the size of the source, as far as the first answer is a fair sample of it."""
        if self.total is not None or self.is_finished:
            size = max(self.tuples, self.total or 0)
            return Estimate(size, size, size, self.tuples / size if size else 1.0)
        if not self.sampled:
            return Estimate(0.0, 0.0, math.inf, 0.0)
        share = self.found_of_sample / self.sampled
        low, high = _wilson(self.found_of_sample, self.sampled)
        middle = self.tuples / share if share else float(max(self.tuples, self.sampled))
        most = self.tuples / low if low > 0 else math.inf
        return Estimate(middle, max(float(self.tuples), self.tuples / high), most, share)

    def shown(self, query: Mapping[str, Any]) -> str:
        """Return the query of a region in words."""
        return self._space.shown(query)

    def statement(self) -> str:
        """Return the completeness of the result in words."""
        again = f" and {self.repeated:,} repeated ones" if self.repeated else ""
        queries = f"{self.tuples:,} tuples by {self.queries:,} queries{again}"
        if self.complete:
            return f"complete: {queries}; every region of the form was resolved"
        return f"incomplete: {queries}, which cover {self._covered_in_words()}; {self.reason}"

    def _covered_in_words(self) -> str:
        covered = [f"({self._space.shown(each)})" for each in self.covered]
        more = len(covered) - _SHOWN_AT_MOST
        shown = covered[:_SHOWN_AT_MOST] + ([count_text(more, "further region")] if more > 0 else [])
        return " and ".join(shown) or "nothing"


def _wilson(found: int, of: int) -> tuple[float, float]:
    share, square = found / of, Z * Z
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = Z * math.sqrt(share * (1 - share) / of + square / (4 * of * of)) / (1 + square / of)
    return max(middle - half, 0.0), min(middle + half, 1.0)
