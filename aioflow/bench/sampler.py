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


class Sampler:
    """Counts in which functions the main thread of this process is found."""

    def __init__(self) -> None:
        self._own: Counter[Place] = Counter()
        self._total: Counter[Place] = Counter()
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
        return {"processor_seconds": process_time() - self._started, "functions": functions}

    def _look(self, number: int, frame: FrameType | None) -> None:
        seen: set[Place] = set()
        innermost = True
        while frame is not None:
            code = frame.f_code
            place = (code.co_filename, code.co_firstlineno, code.co_qualname)
            if innermost:
                self._own[place] += 1
                innermost = False
            seen.add(place)  # a recursion counts once
            frame = frame.f_back
        self._total.update(seen)


assert sys.version_info >= (3, 11), "co_qualname is that new"
