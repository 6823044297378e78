"""Crash points: the moments, by name, at which a crash must not make a difference.

They are each commit, flush and step of a delivery. Passing one costs a call and does nothing, until `watch`
sets a watcher, or the variable AIOFLOW_KILL_AT names a moment (and `:3` its third passing). Then the process
kills itself there, for tests.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

VARIABLE = "AIOFLOW_KILL_AT"
MOMENTS: dict[str, str] = {}

_watcher: Callable[[str], None] | None = None


def moment(name: str, meaning: str) -> Callable[[], None]:
    """Declare a moment, as a constant of the module in which it passes: `_COMMITTED = moment("…", "…")`."""
    if name in MOMENTS:
        raise ValueError(f"two moments are called {name!r}")
    MOMENTS[name] = meaning

    def passing() -> None:
        if _watcher is not None:
            _watcher(name)

    return passing


@contextmanager
def watch(watcher: Callable[[str], None]) -> Iterator[None]:
    """Call a function with the name of every moment that passes meanwhile."""
    global _watcher
    before, _watcher = _watcher, watcher
    try:
        yield
    finally:
        _watcher = before


def _killer(setting: str) -> Callable[[str], None]:
    wanted, _, number = setting.partition(":")
    passed: Counter[str] = Counter()

    def watcher(name: str) -> None:
        passed[name] += 1
        if name == wanted and passed[name] == int(number or 1):
            os.kill(os.getpid(), signal.SIGKILL)

    return watcher


if VARIABLE in os.environ:
    _watcher = _killer(os.environ[VARIABLE])
