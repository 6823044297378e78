"""Looks every so often at what a process is computing. Imports nothing but the standard library.

The clock is that of the process: what waits is never seen, what computes is seen in proportion. Tracing every
call instead would make short functions look many times as expensive as they are.
"""

from __future__ import annotations

import signal
import sys
from collections import Counter
from time import process_time
from types import FrameType
from typing import Any, TypeAlias

# File, line of its first statement, name.
Place: TypeAlias = tuple[str, int, str]

_EVERY_SECONDS = 0.001
_IMPORTING = "<frozen importlib._bootstrap>"


class Sampler:
    """Counts in which functions the main thread of this process is found, but for imports."""

    def __init__(self) -> None:
        self._own: Counter[Place] = Counter()
        self._total: Counter[Place] = Counter()
        self._imports = 0
        self._before: Any = None
        self._started = 0.0

    def start(self) -> None:
        self._started = process_time()
        self._before = signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, _EVERY_SECONDS, _EVERY_SECONDS)

    def stop(self) -> dict[str, Any]:
        """What was seen, as JSON can hold it: functions with their own and their total number of samples."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, self._before)
        functions = [[*place, self._own[place], total] for place, total in self._total.items()]
        seconds, seen = process_time() - self._started, self._own.total()
        importing = seconds * self._imports / max(1, seen + self._imports)
        return {
            "processor_seconds": seconds - importing,
            "importing_seconds": importing,
            "functions": functions,
        }

    def _look(self, number: int, frame: FrameType | None) -> None:
        places: list[Place] = []
        while frame is not None:
            code = frame.f_code
            if code.co_filename == _IMPORTING:
                self._imports += 1
                return
            places.append((code.co_filename, code.co_firstlineno, code.co_qualname))
            frame = frame.f_back
        self._own[places[0]] += 1
        self._total.update(set(places))  # a recursion counts once


assert sys.version_info >= (3, 11), "co_qualname is that new"
