"""The log of a run on stderr: what the operator log writes, and warnings of anything else."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from aioflow.cli.ending import tell
from aioflow.secrets import Secrets

if TYPE_CHECKING:
    from aioflow.cli.progress import Progress


class _ToStandardError(logging.Handler):
    def __init__(self, progress: Progress | None) -> None:
        super().__init__()
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        def write() -> None:
            tell("log" if record.levelno <= logging.INFO else record.levelname.lower(), self.format(record))
            sys.stderr.flush()

        if self._progress is None:
            write()
        else:
            self._progress.aside(write)


@contextmanager
def logged(progress: Progress | None) -> Iterator[None]:
    """Show the log meanwhile, unless a module of the user has arranged for that."""
    # Functions of users know secrets that nobody asked for here.
    Secrets().conceal_all()
    logger = logging.getLogger("aioflow")
    if logging.getLogger().handlers or logger.handlers:
        yield
        return
    handler = _ToStandardError(progress)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
