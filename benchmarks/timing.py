"""Times contenders in one run, round by round, so that what disturbs the machine disturbs all of them.

Contenders compute and never wait, so their processor time is measured: other programs do not count.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from time import process_time
from typing import TypeAlias

# Does the work and returns its result, which all contenders must agree on.
Contender: TypeAlias = Callable[[], object]


def best_seconds(contenders: Mapping[str, Contender], rounds: int) -> dict[str, float]:
    """The shortest processor time of each contender; raises when their results differ."""
    best: dict[str, float] = {}
    results: dict[str, object] = {}
    for _ in range(rounds):
        for name, work in contenders.items():
            seconds, results[name] = timed(work)
            best[name] = min(seconds, best.get(name, seconds))
    if len(set(map(repr, results.values()))) > 1:
        raise AssertionError(f"the contenders do not do the same work: {results}")
    return best


def timed(work: Contender) -> tuple[float, object]:
    """The processor time that some work takes, and its result."""
    gc.collect()  # nobody pays for what the one before left behind
    started = process_time()
    result = work()
    return process_time() - started, result
