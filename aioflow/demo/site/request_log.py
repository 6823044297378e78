"""What was asked of the site and when, kept in memory for tests and for the picture of a run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

_MOST_ENTRIES = 200_000


@dataclass
class LoggedRequest:
    """A request. Times are seconds of a clock; `concurrency` counts those under way, this one with them."""

    path: str
    arrived: float
    concurrency: int
    answered: float | None = None
    status: int | None = None


class RequestLog:
    """The requests in the order in which they came."""

    def __init__(self) -> None:
        self._entries: deque[LoggedRequest] = deque(maxlen=_MOST_ENTRIES)
        self._under_way = 0

    def begin(self, path: str, now: float) -> LoggedRequest:
        self._under_way += 1
        entry = LoggedRequest(path, now, self._under_way)
        self._entries.append(entry)
        return entry

    def end(self, entry: LoggedRequest, now: float, status: int) -> None:
        self._under_way -= 1
        entry.answered = now
        entry.status = status

    def clear(self) -> None:
        self._entries.clear()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(asdict, self._entries)
