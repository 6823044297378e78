"""Where output goes: stdout, or a file; `-o` appends, `-O` replaces it once the run has ended well."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from aioflow.cli.ending import os_error_text
from aioflow.cli.loop import last_words
from aioflow.errors import InputError
from aioflow.operators.destination import missing_line_end


class Destination:
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
        """The first line of the file that is appended to; nothing for a new one."""
        if self.name is None or not self._is_appended_to:
            return b""
        with open(self.name, "rb") as file:
            return file.readline()

    def line_end(self) -> bytes:
        """What has to stand before the first row: the end of a line that the file does not end."""
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
        last_words.append(self.abandon)
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
            last_words.remove(self.abandon)
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
            last_words.remove(self.abandon)


def check_replaceable(path: str, what: str) -> None:
    """Find out whether `replace_file` could write now, and leave everything as it is."""
    if _is_special(Path(path)) and not os.path.isdir(path):
        return  # who reads a pipe would see its end
    probe = Destination(overwrite=path, what=what)
    os.close(probe.descriptor)
    probe.abandon()


def replace_file(path: str, text: str, what: str | None = None) -> None:
    """Make a file hold this text, or leave it as it was."""
    destination = Destination(overwrite=path, what=what)
    try:
        with open(destination.descriptor, "w", encoding="utf-8", newline="", closefd=False) as file:
            file.write(text)
        destination.commit()
    finally:
        destination.abandon()


def _is_special(path: Path) -> bool:
    """A device or pipe, which cannot be replaced."""
    return path.exists() and not path.is_file()
