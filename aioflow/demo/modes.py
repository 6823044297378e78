"""The modes in which the demonstration runs, and how fast each of them can be at best."""

from __future__ import annotations

import math
from dataclasses import dataclass

from aioflow.demo import site
from aioflow.session import Mode

WORKERS = 15
HOUSES = site.PAGES * site.HOUSES_PER_PAGE


@dataclass(frozen=True)
class DemoMode:
    """A mode with its physical limits, in seconds to the first and to the last tuple."""

    name: Mode
    meaning: str
    first_limit: float
    last_limit: float


@dataclass(frozen=True)
class Outcome:
    """What a run in one mode took."""

    mode: DemoMode
    houses: int
    first_seconds: float
    last_seconds: float


def demo_modes() -> tuple[DemoMode, ...]:
    """From the slowest to the fastest."""
    request = site.LATENCY_SECONDS
    # A page is known only from the page before it, so the pages alone take so many requests in a row.
    pages = site.PAGES * request
    one_by_one = pages + HOUSES * request
    pages_then_houses = pages + math.ceil(HOUSES / WORKERS) * request
    return (
        DemoMode("D-", "one request at a time", one_by_one, one_by_one),
        DemoMode(
            "D+S-", "in parallel; each step waits for its whole input", pages_then_houses, pages_then_houses
        ),
        DemoMode(
            "D+S+",
            "in parallel, streaming: a house is fetched as soon as its page is there",
            2 * request,
            pages + request,
        ),
    )
