"""The logs of runs: the latest lines of each, told apart by the run that a task of the loop works for."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TypeAlias

from aioflow.config.masking import mask
from aioflow.runtime.budget import current_run

LineListener: TypeAlias = Callable[[str, str], None]


class RunLogs(logging.Handler):
    """A handler of the logger `aioflow`, which gives each line to the run that wrote it."""

    def __init__(self, bytes_at_most: int) -> None:
        super().__init__(logging.INFO)
        self._bytes_at_most = bytes_at_most
        self._logs: dict[str, _Lines] = {}
        self.listeners: list[LineListener] = []  # called with the run and the line

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Take lines from the loggers of aioflow meanwhile."""
        logger = logging.getLogger("aioflow")
        level = logger.level
        logger.addHandler(self)
        if logger.getEffectiveLevel() > logging.INFO:
            logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.removeHandler(self)
            logger.setLevel(level)

    @contextmanager
    def collecting(self, run_id: str) -> Iterator[None]:
        """Collect the lines of a run, and have this task and those that it starts count as part of it."""
        self._logs[run_id] = _Lines(self._bytes_at_most)
        token = current_run.set(run_id)
        try:
            yield
        finally:
            current_run.reset(token)
            self._logs.pop(run_id, None)

    def text(self, run_id: str) -> str:
        """Return the lines of a run that is under way; "" for any other."""
        found = self._logs.get(run_id)
        return "" if found is None else found.text()

    def emit(self, record: logging.LogRecord) -> None:
        run_id = current_run.get()
        lines = self._logs.get(run_id)
        if lines is None:
            return
        try:
            time = datetime.fromtimestamp(record.created, UTC)
            line = f"{time:%Y-%m-%dT%H:%M:%SZ} {record.levelname.lower()} {mask(record.getMessage())}"
        except Exception:
            self.handleError(record)
            return
        lines.add(line)
        for listener in tuple(self.listeners):
            listener(run_id, line)


class _Lines:
    """The latest lines within a number of bytes, and a note about those that were dropped."""

    def __init__(self, bytes_at_most: int) -> None:
        self._bytes_at_most = bytes_at_most
        self._lines: deque[str] = deque()
        self._size = 0
        self._dropped = 0

    def add(self, line: str) -> None:
        line = line[: self._bytes_at_most]
        self._lines.append(line)
        self._size += len(line) + 1
        while self._size > self._bytes_at_most and self._lines:
            self._size -= len(self._lines.popleft()) + 1
            self._dropped += 1

    def text(self) -> str:
        first = [f"({self._dropped:,} earlier lines are not kept)"] if self._dropped else []
        return "\n".join([*first, *self._lines])
