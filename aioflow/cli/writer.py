"""Output that leaves by a descriptor written to by a thread, so that a slow reader never holds up the loop.

What is written while the thread is busy goes out together; an idle thread is given the first row at once.
"""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue

# Past this much that nobody has read yet, the run is held back.
LIMIT_BYTES = 1 << 18


class BackgroundWriter:
    """Writes to a descriptor; use inside a running loop, and `close` it."""

    def __init__(
        self, descriptor: int, *, around: Callable[[Callable[[], None]], None] | None = None
    ) -> None:
        self.descriptor = descriptor
        self.error: OSError | None = None
        self._around = around
        self._loop = asyncio.get_running_loop()
        self._pending: list[bytes] = []
        self._unwritten = 0
        self._busy = False
        self._changed = asyncio.Event()
        self._chunks: SimpleQueue[bytes | None] = SimpleQueue()
        # A daemon, for it may wait for a reader when the process has to end.
        threading.Thread(target=self._work, name="aioflow output", daemon=True).start()

    def write(self, data: bytes) -> None:
        """Take data to be written; raises the error that an earlier write had."""
        if self.error is not None:
            raise self.error
        self._pending.append(data)
        self._unwritten += len(data)
        if not self._busy:
            self._busy = True
            # Whatever the run has ready before it next waits shares a write.
            self._loop.call_soon(self._hand_over)

    async def drain(self, limit: int = LIMIT_BYTES) -> None:
        """Wait until no more than `limit` bytes are unwritten."""
        while self._unwritten > limit and self.error is None:
            self._changed.clear()
            await self._changed.wait()
        if self.error is not None:
            raise self.error

    async def close(self) -> None:
        """Wait for everything to be written, and end the thread."""
        try:
            await self.drain(0)
        finally:
            self._chunks.put(None)

    @contextmanager
    def watching_reader(self, left: Callable[[], object]) -> Iterator[None]:
        """Inside of the block, call when the reader of a pipe closes it, even while nothing is written."""
        if not stat.S_ISFIFO(os.fstat(self.descriptor).st_mode):
            yield
            return
        # A write end polls as readable when, and only when, the read end has been closed.
        # Where the loop cannot watch pipes, the next write will tell.
        with suppress(NotImplementedError):
            self._loop.add_reader(self.descriptor, self._reader_left, left)
        try:
            yield
        finally:
            # What the loop has noticed but not told yet is forgotten as well.
            with suppress(NotImplementedError):
                self._loop.remove_reader(self.descriptor)

    def _reader_left(self, left: Callable[[], object]) -> None:
        self._loop.remove_reader(self.descriptor)
        self._failed(BrokenPipeError())
        left()

    def _hand_over(self) -> None:
        data = b"".join(self._pending)
        self._pending.clear()
        self._busy = bool(data)
        if data:
            self._chunks.put(data)

    def _work(self) -> None:
        while (data := self._chunks.get()) is not None:
            try:
                if self._around is None:
                    _write_all(self.descriptor, data)
                else:
                    self._around(lambda data=data: _write_all(self.descriptor, data))  # type: ignore[misc]
            except OSError as error:
                self._report(self._failed, error)
                return
            self._report(self._written, len(data))

    def _report(self, method: Callable[..., None], argument: object) -> None:
        # When the loop was closed meanwhile, nobody wants to know any more.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(method, argument)

    def _written(self, size: int) -> None:
        self._unwritten -= size
        self._hand_over()
        self._changed.set()

    def _failed(self, error: OSError) -> None:
        self.error = error
        self._changed.set()


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
