"""Runs the command line as its users do: in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

AIOFLOW = (sys.executable, "-m", "aioflow")
# Far beyond what any command here takes, so that a hang is a failure and not a wait.
PATIENCE_SECONDS = 30

ROOT = Path(__file__).parents[2]


def environment(**changes: str) -> dict[str, str]:
    """The environment of a command: this checkout's package, no settings, no terminal's peculiarities."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AIOFLOW_")}
    return {**kept, "PYTHONPATH": str(ROOT), "COLUMNS": "100", "LINES": "30", **changes}


def aioflow(
    *arguments: str, cwd: Path, input: str | None = None, **changes: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*AIOFLOW, *arguments],
        cwd=cwd,
        input=input,
        stdin=subprocess.DEVNULL if input is None else None,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        env=environment(**changes),
    )


def start(*arguments: str, cwd: Path, **changes: str) -> subprocess.Popen[bytes]:
    """Start a command with pipes to all three of its streams, and let it run."""
    return subprocess.Popen(
        [*AIOFLOW, *arguments],
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**changes),
    )
