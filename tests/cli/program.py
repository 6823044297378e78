"""Runs the command line as its users do: in a process of its own."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.clocks import PATIENCE_SECONDS

AIOFLOW = (sys.executable, "-m", "aioflow")

ROOT = Path(__file__).parents[2]


def environment(**changes: str) -> dict[str, str]:
    """The environment of a command: this checkout's package, no settings, no terminal's peculiarities.

    Runs end without an account, which has tests of its own: others look at what else is told.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AIOFLOW_")}
    ours = {"PYTHONPATH": str(ROOT), "COLUMNS": "100", "LINES": "30", "AIOFLOW_ACCOUNT": "false"}
    return {**kept, **ours, **changes}


def own_folders(folder: Path) -> dict[str, str]:
    """Variables that put the user's settings, data and cache into a folder of the test."""
    return {f"XDG_{kind}_HOME": str(folder / f".{kind.lower()}") for kind in ("CONFIG", "DATA", "CACHE")}


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
        env=environment(**{**own_folders(cwd), **changes}),
    )


@dataclass(frozen=True)
class Process:
    """A command that runs."""

    popen: subprocess.Popen[bytes]
    input: IO[bytes]
    output: IO[bytes]
    messages: IO[bytes]

    def send(self, data: bytes) -> None:
        self.input.write(data)
        self.input.flush()

    def end(self) -> int:
        """Wait for its end; its exit code."""
        return self.popen.wait(PATIENCE_SECONDS)


@contextmanager
def start(*arguments: str, cwd: Path, **changes: str) -> Iterator[Process]:
    """Start a command with pipes to all three of its streams; it is gone when the block is left.

    One that takes far too long is ended, so that whoever reads from it does not wait forever.
    """
    process = subprocess.Popen(
        [*AIOFLOW, *arguments],
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**{**own_folders(cwd), **changes}),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    watchdog = threading.Timer(PATIENCE_SECONDS, process.kill)
    watchdog.start()
    try:
        yield Process(process, process.stdin, process.stdout, process.stderr)
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
        with suppress(BrokenPipeError):
            process.stdin.close()
