"""Where a relation is written: a file that appears whole at the end, a device or pipe, or standard output."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from pathlib import Path
from typing import BinaryIO

from aioflow import InputError, Schema
from aioflow.operators.formats import Format, Writer
from aioflow.relation import UNTOLD, Batch

_LONGEST_BEGINNING = 1 << 16


class Destination:
    """Takes tuples; `commit` makes them last, `abandon` without it leaves everything as it was.

    What may take long (`start`, `write`, `end`) is for a worker thread. What makes or removes files is
    not: a thread may still be at work when its statement has been cancelled and cleaned up.
    """

    def __init__(self, path: str, target: Path | None, format: Format) -> None:
        self._path = path
        self._format = format
        self._target = target or Path()  # of standard output, nothing is asked
        self._temporary: Path | None = None
        self._file: BinaryIO | None = None
        self._writer: Writer | None = None
        self._beginning = b""

    @property
    def _is_standard(self) -> bool:
        return self._path == "-"

    @property
    def _is_special(self) -> bool:
        """A device or pipe, which cannot be replaced."""
        return self._target.exists() and not self._target.is_file()

    def open(self) -> None:
        """Make the file, under another name as long as it is not whole."""
        if self._is_standard or self._is_special:
            return
        temporary = self._target.with_name(f".{self._target.name}.{secrets.token_hex(4)}.part")
        try:
            self._file = temporary.open("xb")
            self._temporary = temporary
            if self._target.exists():
                shutil.copymode(self._target, temporary)
        except OSError as error:
            raise self._cannot_write(error) from error

    def start(self, append: bool) -> None:
        """Open what is written to directly; with `append`, begin with what the file has."""
        try:
            if self._is_standard:
                self._file = sys.stdout.buffer
                if sys.stdout.isatty():
                    self._format = self._format.for_terminal()
            elif self._file is None:
                self._file = self._target.open("wb")
            elif append and self._target.exists():
                self._take_over()
        except OSError as error:
            raise self._cannot_write(error) from error

    def _cannot_write(self, error: OSError) -> InputError:
        return InputError(f"cannot write {self._path!r}: {error.strerror}")

    def _take_over(self) -> None:
        assert self._file is not None
        with self._target.open("rb") as existing:
            self._beginning = existing.readline(_LONGEST_BEGINNING)
            existing.seek(0)
            shutil.copyfileobj(existing, self._file)
            self._file.write(missing_line_end(existing))

    def write(self, batch: Batch, schema: Schema) -> None:
        assert self._file is not None
        if self._writer is None:
            self._writer = self._format.write(self._file, schema, self._beginning)
        self._writer.write(batch)
        if self._temporary is None:
            self._file.flush()

    def end(self, schema: Schema | None) -> None:
        """Everything has been written, perhaps nothing."""
        assert self._file is not None
        if schema is not None or self._format.has_frame:
            self.write([], UNTOLD if schema is None else schema)
        if self._writer is not None:
            self._writer.end()
        self._file.flush()
        if self._temporary is not None:
            os.fsync(self._file.fileno())

    def commit(self) -> None:
        """Put the file in its place."""
        if self._temporary is not None and self._file is not None:
            self._file.close()
            os.replace(self._temporary, self._target)
            self._temporary = None

    def abandon(self) -> None:
        """Remove what was not committed."""
        if self._file is not None and not self._is_standard:
            self._file.close()
        self._file = None
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)
            self._temporary = None


def missing_line_end(file: BinaryIO) -> bytes:
    """Return what a file needs at its end before another line can follow."""
    if not file.seek(0, os.SEEK_END):
        return b""
    file.seek(-1, os.SEEK_END)
    return b"" if file.read(1) == b"\n" else b"\n"
