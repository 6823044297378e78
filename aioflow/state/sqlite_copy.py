"""A copy of a database beside it: whole or not there at all, and never in place of an older one."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from itertools import count
from pathlib import Path
from uuid import uuid4


def copy_database(database: sqlite3.Connection, path: Path) -> Path:
    """Copy a database, as it is at one moment, to a new file of that name, or a numbered one."""
    draft = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        database.execute("VACUUM INTO ?", (str(draft),))
        _flush(draft)
        return _publish(draft, path)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()


def _publish(draft: Path, path: Path) -> Path:
    for number in count(1):
        target = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
        with suppress(FileExistsError):
            _name(draft, target)
            _flush(target.parent)
            return target
    raise AssertionError("numbers never end")


def _name(draft: Path, target: Path) -> None:
    """Give a file a name that must be free."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: reserve the name, then take it
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        draft.replace(target)


def _flush(path: Path) -> None:
    """Have a file or folder survive a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
