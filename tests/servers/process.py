"""A server of this package as a process of its own: it prints its port, and ends when its input does."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.clocks import PATIENCE_SECONDS

_ROOT = Path(__file__).parents[2]


@contextmanager
def server_process(module: str, *arguments: str) -> Iterator[int]:
    """Run a module of this package; gives its port. It is gone afterwards."""
    command = [sys.executable, "-m", f"tests.servers.{module}", *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT, start_new_session=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()
            process.wait(PATIENCE_SECONDS)


async def serve_until_input_ends(port: int) -> None:
    """The other side: tell the port, then wait until whoever started us closes our input, or is gone."""
    print(port, flush=True)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
    await ended.wait()


def append_durably(path: Path, line: str) -> None:
    """Add a line to a file; it is on the disk when this returns."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, line.encode() + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
