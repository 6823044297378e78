"""Time in tests on the real clock: how it is made to pass, and how long is waited for what must come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

# Far beyond what anything here takes on a busy machine: only what hangs is waited for so long.
PATIENCE_SECONDS = 300


def let_time_pass(seconds: float) -> None:
    """Have the running loop believe that so much time is over: limits end when a test says so."""
    loop = asyncio.get_running_loop()
    real = type(loop).time
    passed = loop.time() - real(loop) + seconds
    loop.time = lambda: real(loop) + passed  # type: ignore[method-assign]


@contextmanager
def effort_at_most(million_steps: float) -> Iterator[None]:
    """Fail if what is done here takes more processor time than so many steps of an empty loop.

    What other processes do changes little about that, nor does it matter how fast the machine is.
    """
    before = seconds_of_a_million_steps()
    began = time.process_time()
    yield
    taken = time.process_time() - began
    steps = taken / max(before, seconds_of_a_million_steps())
    assert steps <= million_steps, f"it took the time of {steps:.0f} million steps"


def seconds_of_a_million_steps() -> float:
    """The processor time that an empty loop takes on this machine, now."""
    began = time.process_time()
    for _ in range(1_000_000):
        pass
    return time.process_time() - began
