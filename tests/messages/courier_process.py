"""A courier as a process of its own: `python -m tests.messages.courier_process URL RECORD`.

It waits for a line of input, delivers what is due, and adds the key of each message that reaches its channel
to the file RECORD.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from aioflow.messages.outbox.message import Message
from tests.messages.posts import Post, ScriptedChannel
from tests.servers.process import append_durably

_ROOT = Path(__file__).parents[2]


class CourierProcess:
    """One that was started."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def begin(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.close()

    async def end(self) -> int:
        """Its exit code."""
        return await asyncio.to_thread(self._process.wait, 60)


@contextmanager
def courier_process(
    url: str, record: Path, environment: dict[str, str] | None = None
) -> Iterator[CourierProcess]:
    """Start one, which begins when it is told to; it is gone afterwards."""
    command = [sys.executable, "-m", __name__, url, str(record)]
    variables = {**os.environ, **(environment or {})}
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True, cwd=_ROOT, env=variables) as process:
        try:
            yield CourierProcess(process)
        finally:
            process.kill()


async def main(url: str, record: Path) -> None:
    post = Post(url)

    async def does(message: Message) -> None:
        append_durably(record, message.key)

    post.channel = ScriptedChannel(does)
    table = post.table()
    try:
        await post.courier(table, clock=lambda: datetime.now(UTC)).deliver()
    finally:
        await table.close()


if __name__ == "__main__":
    sys.stdin.readline()
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
