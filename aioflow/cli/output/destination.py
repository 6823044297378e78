"""Where output goes: stdout, or a file; `-o` appends, `-O` replaces it once the run has ended well.

Output that leaves by a descriptor written to by a thread, so that a slow reader never holds up the loop.

What is written while the thread is busy goes out together; an idle thread is given the first row at once.
"""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue

from aioflow.cli.exit import exit_callbacks, os_error_text
from aioflow.errors import InputError
from aioflow.operators.files import missing_line_end


class OutputDestination:
    """An open descriptor with what has to happen at the end; stdout when there is no path.

    `what` names the file in the message that it cannot be written.
    """

    def __init__(
        self, append: str | None = None, overwrite: str | None = None, *, what: str | None = None
    ) -> None:
        self._temporary: str | None = None
        self._target: Path | None = None
        path = append or overwrite
        self.name = path if path not in (None, "-") else None
        if self.name is None:
            self.descriptor = 1
            return
        target = Path(os.path.realpath(self.name))
        try:
            if append or _is_special(target):
                self.descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            else:
                self._target = target
                self.descriptor = self._open_temporary(target)
        except OSError as error:
            error.filename = self.name
            named = "" if what is None else f" {what}"
            raise InputError(f"cannot write{named}: {os_error_text(error)}") from error

    def beginning(self) -> bytes:
        """Return the first line of the file that is appended to; nothing for a new one."""
        if self.name is None or not self._is_appended_to:
            return b""
        with open(self.name, "rb") as file:
            return file.readline()

    def line_end(self) -> bytes:
        """Return the bytes before the first row: a line end, if the file does not end with one."""
        if self.name is None or not self._is_appended_to:
            return b""
        with open(self.name, "rb") as file:
            return missing_line_end(file)

    @property
    def _is_appended_to(self) -> bool:
        return self.name is not None and self._target is None and not _is_special(Path(self.name))

    def _open_temporary(self, target: Path) -> int:
        descriptor, self._temporary = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=".part", dir=target.parent
        )
        exit_callbacks.append(self.abandon)
        try:
            mode = stat.S_IMODE(target.stat().st_mode)
        except FileNotFoundError:
            mask = os.umask(0)
            os.umask(mask)
            mode = 0o666 & ~mask
        os.chmod(self._temporary, mode)
        return descriptor

    def commit(self) -> None:
        """The run has ended well: the file becomes what was written."""
        if self._temporary is not None and self._target is not None:
            os.fsync(self.descriptor)
            os.close(self.descriptor)
            os.replace(self._temporary, self._target)
            self._temporary = None
            exit_callbacks.remove(self.abandon)
        elif self.name is not None:
            os.close(self.descriptor)

    def abandon(self) -> None:
        """The run has not: a file that was to be replaced stays as it is.

        The descriptor stays open: the thread that writes to it may still be at work.
        """
        if self._temporary is not None:
            with suppress(FileNotFoundError):
                os.unlink(self._temporary)
            self._temporary = None
            exit_callbacks.remove(self.abandon)


def check_replaceable(path: str, what: str) -> None:
    """Find out whether `replace_file` could write now, and leave everything as it is."""
    if _is_special(Path(path)) and not os.path.isdir(path):
        return  # the reader of a pipe would see its end
    probe = OutputDestination(overwrite=path, what=what)
    os.close(probe.descriptor)
    probe.abandon()


def replace_file(path: str, text: str, what: str | None = None) -> None:
    """Make a file hold this text, or leave it as it was."""
    destination = OutputDestination(overwrite=path, what=what)
    try:
        with open(destination.descriptor, "w", encoding="utf-8", newline="", closefd=False) as file:
            file.write(text)
        destination.commit()
    finally:
        destination.abandon()


def _is_special(path: Path) -> bool:
    """Return whether the path is a device or pipe, which cannot be replaced."""
    return path.exists() and not path.is_file()


# Past this much unread output, the run is held back.
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
        # If the loop was closed meanwhile, the report is not needed any more.
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
