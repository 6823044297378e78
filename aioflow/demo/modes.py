"""The modes in which the demonstration runs, and how fast each of them can be at best."""

from __future__ import annotations

import math

from aioflow.dataclass import dataclass
from aioflow.session import Mode

WORKERS = 15
PAGES = 12
HOUSES_PER_PAGE = 6
HOUSES = PAGES * HOUSES_PER_PAGE


@dataclass(frozen=True)
class DemoMode:
    """A mode with its physical limits, in seconds to the first and to the last tuple."""

    name: Mode
    meaning: str
    workers: int
    first_limit: float
    last_limit: float


def demo_modes(latency_seconds: float) -> tuple[DemoMode, ...]:
    """From the slowest to the fastest, where each request takes so long."""
    # A page is known only from the page before it, so the pages alone take so many requests in a row.
    pages = PAGES * latency_seconds
    one_by_one = pages + HOUSES * latency_seconds
    pages_then_houses = pages + math.ceil(HOUSES / WORKERS) * latency_seconds
    return (
        DemoMode("D-", "one request at a time", 1, one_by_one, one_by_one),
        DemoMode(
            "D+S-",
            "in parallel, each step on its whole input",
            WORKERS,
            pages_then_houses,
            pages_then_houses,
        ),
        DemoMode(
            "D+S+",
            "in parallel, streaming: a house is fetched as soon as its page is there",
            WORKERS,
            2 * latency_seconds,
            pages + latency_seconds,
        ),
    )
