"""Contenders that do the same work in the same rounds, so that a busy machine slows all of them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from time import process_time
from typing import TypeAlias

from aioflow.benchmarks.harness import Bench
from aioflow.benchmarks.harness.results import Unit

# Does the work and returns its result, which all contenders must agree on.
Contender: TypeAlias = Callable[[], object]


def sample_all(
    bench: Bench,
    contenders: Mapping[str, Contender],
    rounds: int,
    *,
    figure: str = "processor time",
    unit: Unit = "s",
    scale: float = 1,
) -> None:
    """Sample the processor time of each, in a random order in each round; raise when their results differ."""
    for each in bench.rounds(rounds):
        found = {name: timed(contenders[name]) for name in each.shuffled(contenders)}
        expect_same({name: result for name, (_, result) in found.items()})
        for name in contenders:
            bench.sample(name, unit, found[name][0] * scale, figure=figure)


def timed(work: Contender) -> tuple[float, object]:
    """Return the processor time that some work takes, and its result.

    Contenders compute and never wait, so other programs on the machine do not count.
    """
    gc.collect()  # the garbage of the one before is not for this one
    started = process_time()
    result = work()
    return process_time() - started, result


def expect_same(results: Mapping[str, object]) -> None:
    if len(set(map(repr, results.values()))) > 1:
        raise AssertionError(f"the contenders do not do the same work: {dict(results)}")
