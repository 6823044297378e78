"""Runs in the process that is measured: does the work, then writes down what the process used.

Started by its path, in environments without aioflow too: it imports nothing but the standard library.

    python -P child.py REPORT PROFILE MODULE|FILE.py ARGUMENT…
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import sys
from pathlib import Path
from time import process_time
from typing import Any

MEGABYTE = 1_000_000
_STATUS = Path("/proc/self/status")


def resident_megabytes() -> float:
    """The memory that this process has now."""
    return _status("VmRSS")


def peak_megabytes() -> float:
    """The most memory that this process ever had."""
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
    """How often this process has collected garbage, in each generation."""
    return [generation["collections"] for generation in gc.get_stats()]


def end_with_parent() -> None:
    """Have this process ended when the one that holds the other end of its input is gone, however it went."""
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


def main(report: str, profile: str, work: str, *arguments: str) -> None:
    end_with_parent()
    sampler: Any = None
    if profile == "profile":
        sampler = runpy.run_path(str(Path(__file__).with_name("sampler.py")))["Sampler"]()
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
