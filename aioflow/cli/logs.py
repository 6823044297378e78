"""The log of a run on stderr: what the operator log writes, and warnings of anything else."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from aioflow.cli.ending import tell
from aioflow.display import visible

if TYPE_CHECKING:
    from aioflow.cli.progress import Progress


class _ToStandardError(logging.Handler):
    def __init__(self, progress: Progress | None) -> None:
        super().__init__()
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        def write() -> None:
            label = "log" if record.levelno <= logging.INFO else record.levelname.lower()
            text = self.format(record)
            # A line end in a value must not make it look like another line of the log.
            has_trace = record.exc_info or record.stack_info
            tell(label, visible(text) if sys.stderr.isatty() and not has_trace else text)
            sys.stderr.flush()

        if self._progress is None:
            write()
        else:
            self._progress.aside(write)


@contextmanager
def logged(progress: Progress | None) -> Iterator[None]:
    """Show the log meanwhile, unless a module of the user has arranged for that."""
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
