"""The start of a measured process: it does the work, then writes down what the process used.

It is started by its path, also in environments without aioflow: it imports the standard library alone.

    python -P child.py REPORT PROFILE MODULE|FILE.py ARGUMENT…
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import signal
import sys
from collections import Counter
from pathlib import Path
from time import process_time
from types import FrameType
from typing import Any, TypeAlias

# File, line of its first statement, name.
Place: TypeAlias = tuple[str, int, str]

MEGABYTE = 1_000_000
_STATUS = Path("/proc/self/status")
_EVERY_SECONDS = 0.001
_IMPORTING = "<frozen importlib._bootstrap>"


def resident_megabytes() -> float:
    """Return the memory that this process has now."""
    return _status("VmRSS")


def peak_megabytes() -> float:
    """Return the most memory that this process ever had."""
    # Not getrusage: its peak begins with that of the process which started this one.
    return _status("VmHWM")


def _status(field: str) -> float:
    if not _STATUS.exists():  # not Linux: the peak is all that can be told
        from resource import RUSAGE_SELF, getrusage

        peak = getrusage(RUSAGE_SELF).ru_maxrss
        return (peak if sys.platform == "darwin" else peak * 1024) / MEGABYTE
    for line in _STATUS.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024 / MEGABYTE
    raise RuntimeError(f"{_STATUS} has no {field}")


def collections() -> list[int]:
    """Return how often this process has collected garbage, in each generation."""
    return [generation["collections"] for generation in gc.get_stats()]


def end_with_parent() -> None:
    """End this process when the process at the other end of its input has ended, in whatever way."""
    if sys.platform != "linux":
        return
    import fcntl

    # The signal of a pipe that closes ends a process that does not handle it; no thread has to watch.
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)


def do(work: str, arguments: list[str]) -> None:
    """Run a module or a file as Python would."""
    if not work.endswith(".py"):
        sys.argv = [work, *arguments]
        runpy.run_module(work, run_name="__main__", alter_sys=True)
        return
    sys.argv = [work, *arguments]
    sys.path.insert(0, str(Path(work).parent))
    runpy.run_path(work, run_name="__main__")


class Sampler:
    """Counts the functions in which the main thread is found every millisecond, but for imports.

    The clock is that of the process, so waits are never seen and computation is seen in proportion. Tracing
    every call instead would make short functions look many times as expensive as they are.
    """

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
        """Return functions with their own and their total number of samples, in a form for JSON."""
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


def main(report: str, profile: str, work: str, *arguments: str) -> None:
    end_with_parent()
    sampler = Sampler() if profile == "profile" else None
    if sampler is not None:
        sampler.start()
    try:
        do(work, list(arguments))
    finally:
        used: dict[str, Any] = {
            "processor_seconds": process_time(),
            "peak_megabytes": peak_megabytes(),
            "collections": collections(),
        }
        if sampler is not None:
            used["profile"] = sampler.stop()
        Path(report).write_text(json.dumps(used))


if __name__ == "__main__":
    main(*sys.argv[1:])
