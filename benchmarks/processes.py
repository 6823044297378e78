"""Work that is measured in a process of its own, and what a process can say of its memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

ROOT = Path(__file__).parents[1]
MEGABYTE = 1_000_000
_STATUS = Path("/proc/self/status")


def run_apart(module: str, *arguments: object, python: str = sys.executable) -> Any:
    """Run `python -m module arguments` and read its last line of output as JSON."""
    done = subprocess.run(
        [python, "-m", module, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def run_silently(command: Sequence[str]) -> None:
    """Run a command whose output nobody needs, unless it fails."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}")


def resident_megabytes() -> float:
    """The memory that this process has now."""
    return _status("VmRSS")


def peak_megabytes() -> float:
    """The most memory that this process ever had."""
    # Not getrusage: its peak begins with that of the process which started this one.
    return _status("VmHWM")


def _status(field: str) -> float:
    if not _STATUS.exists():  # not Linux: the peak is all that can be told
        peak = getrusage(RUSAGE_SELF).ru_maxrss
        return (peak if sys.platform == "darwin" else peak * 1024) / MEGABYTE
    for line in _STATUS.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024 / MEGABYTE
    raise RuntimeError(f"{_STATUS} has no {field}")
