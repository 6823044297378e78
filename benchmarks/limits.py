"""The bounds that no program could beat, by the time of requests, the order of pages and the workers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """Seconds to the first and to the last tuple."""

    first: float
    last: float


def limit_of(mode: str, pages: int, per_page: int, workers: int, latency: float) -> Limit:
    """Of Homeseekers in a mode, where every request takes the same time."""
    houses = pages * per_page
    if mode == "D-":
        return Limit((pages + houses) * latency, (pages + houses) * latency)
    if mode == "D+S-":
        whole = (pages + math.ceil(houses / workers)) * latency
        return Limit(whole, whole)
    return Limit(2 * latency, _streaming_slots(pages, per_page, workers) * latency)


def _streaming_slots(pages: int, per_page: int, workers: int) -> int:
    """How often all workers wait for a request, when the next page always comes before houses."""
    slots = known = 0
    while pages or known:
        slots += 1
        known -= min(known, workers - bool(pages))
        if pages:
            pages -= 1
            known += per_page
    return slots


def limit_of_drawn(
    mode: str, pages: Sequence[float], houses: Sequence[Sequence[float]], workers: int
) -> Limit:
    """The same where each request takes its own time; `houses` has those on each page."""
    in_all = sum(pages) + sum(map(sum, houses))
    if mode == "D-":
        return Limit(in_all, in_all)
    if mode == "D+S-":
        details = [latency for page in houses for latency in page]
        whole = sum(pages) + max(max(details), sum(details) / workers)
        return Limit(whole, whole)
    known = [sum(pages[: number + 1]) for number in range(len(pages))]
    first = min(when + min(page) for when, page in zip(known, houses, strict=True))
    chain = max(when + max(page) for when, page in zip(known, houses, strict=True))
    return Limit(first, max(chain, in_all / workers))
