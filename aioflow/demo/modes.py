"""The modes in which the demonstration runs, and how fast each of them can be at best."""

from __future__ import annotations

import math
from dataclasses import dataclass

from aioflow.demo.site import HOUSES_PER_PAGE, LATENCY_SECONDS, PAGES
from aioflow.session import Mode

WORKERS = 15
HOUSES = PAGES * HOUSES_PER_PAGE


@dataclass(frozen=True)
class DemoMode:
    """A mode with its physical limits, in seconds to the first and to the last tuple."""

    name: Mode
    meaning: str
    first_limit: float
    last_limit: float


# A page is known only from the page before it, so the pages alone take PAGES requests in a row.
_PAGES_IN_A_ROW = PAGES * LATENCY_SECONDS
_ALL_IN_A_ROW = (PAGES + HOUSES) * LATENCY_SECONDS
_PAGES_THEN_HOUSES = _PAGES_IN_A_ROW + math.ceil(HOUSES / WORKERS) * LATENCY_SECONDS

MODES = (
    DemoMode("D-", "one request at a time", _ALL_IN_A_ROW, _ALL_IN_A_ROW),
    DemoMode(
        "D+S-",
        "in parallel; each step waits for its whole input",
        _PAGES_THEN_HOUSES,
        _PAGES_THEN_HOUSES,
    ),
    DemoMode(
        "D+S+",
        "in parallel, streaming: a house is fetched as soon as its page is there",
        2 * LATENCY_SECONDS,
        _PAGES_IN_A_ROW + LATENCY_SECONDS,
    ),
)


@dataclass(frozen=True)
class Outcome:
    """What a run in one mode took."""

    mode: DemoMode
    houses: int
    first_seconds: float
    last_seconds: float
