"""Starts commands of aioflow that are to be killed: as users do, or quickly, forked off a process that has
everything imported already."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol, Self

from tests.clocks import PATIENCE_SECONDS

SABOTAGE = "AIOFLOW_TEST_SABOTAGE"  # read by the nursery alone: see there
NEWER_TABLES = "AIOFLOW_TEST_NEWER_TABLES"

_ROOT = Path(__file__).parents[2]


class Victim(Protocol):
    """A command that was started."""

    def wait(self, seconds: float | None = None) -> int | None:
        """Its exit code, -9 when it was killed; None when it has not ended within the time."""
        ...

    def kill(self) -> None: ...


class Commands(Protocol):
    """Starts commands, one at a time."""

    def start(
        self, arguments: Sequence[str], environment: Mapping[str, str], cwd: Path, log: Path
    ) -> Victim: ...

    def close(self) -> None: ...


class Fresh:
    """`python -m aioflow …`, as users start it."""

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], cwd: Path, log: Path) -> Victim:
        module = "tests.kills.nursery" if {SABOTAGE, NEWER_TABLES} & environment.keys() else "aioflow"
        with log.open("ab") as output:
            return _Process(
                subprocess.Popen(
                    [sys.executable, "-m", module, *arguments],
                    env=environment,
                    cwd=cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
            )

    def close(self) -> None:
        pass


class _Process:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def wait(self, seconds: float | None = None) -> int | None:
        try:
            return self._process.wait(PATIENCE_SECONDS if seconds is None else seconds)
        except subprocess.TimeoutExpired:
            if seconds is None:
                self._process.kill()
                self._process.wait()
                raise
            return None

    def kill(self) -> None:
        self._process.kill()


class Forked:
    """The same commands, forked off a nursery: what a process imports takes longer than what it does."""

    def __init__(self) -> None:
        self._nursery = subprocess.Popen(
            [sys.executable, "-m", "tests.kills.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=_ROOT,
            bufsize=0,  # what is readable is told by select
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], cwd: Path, log: Path) -> Victim:
        wish = {"arguments": [*arguments], "environment": {**environment}, "cwd": str(cwd), "log": str(log)}
        assert self._nursery.stdin is not None
        self._nursery.stdin.write(json.dumps(wish).encode() + b"\n")
        assert self._nursery.stdout is not None
        return _Child(self._nursery, int(self._nursery.stdout.readline()))

    def close(self) -> None:
        self._nursery.communicate(timeout=PATIENCE_SECONDS)


class _Child:
    def __init__(self, nursery: subprocess.Popen[bytes], pid: int) -> None:
        self._nursery = nursery
        self._pid = pid

    def wait(self, seconds: float | None = None) -> int | None:
        # The nursery answers when the child has ended.
        assert self._nursery.stdout is not None
        patience = PATIENCE_SECONDS if seconds is None else seconds
        if select.select([self._nursery.stdout], [], [], patience)[0]:
            return int(self._nursery.stdout.readline())
        if seconds is None:
            self.kill()
            raise TimeoutError("a command did not end")
        return None

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
