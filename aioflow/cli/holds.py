"""Which hosts a run has to wait for, and why, in a few lines for the progress display."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from aioflow.quantities import count_text, duration_text

if TYPE_CHECKING:
    from aioflow.services import Services
    from aioflow.web.statistics import SourceStatistics

# Statistics of many hosts take a while: they are not asked for each time that the display is drawn.
EVERY_SECONDS = 0.5
SHOWN_HOSTS = 3


class Holds:
    """Looks at the client of an engine from time to time, if it has one."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._looked = float("-inf")
        self._lines: Sequence[str] = ()

    def lines(self) -> Sequence[str]:
        now = asyncio.get_running_loop().time()
        if now - self._looked >= EVERY_SECONDS:
            self._looked = now
            self._lines = self._look()
        return self._lines

    def _look(self) -> list[str]:
        # A run that has asked for nothing has not loaded the client, and need not.
        module = sys.modules.get("aioflow.web.client")
        client = None if module is None else self._services.opened(module.Client)
        if client is None:
            return []
        found = list(held(client.statistics().sources))
        more = len(found) - SHOWN_HOSTS
        return found[:SHOWN_HOSTS] + ([f"… and {count_text(more, 'more host')}"] if more > 0 else [])


def held(sources: Sequence[SourceStatistics]) -> Iterator[str]:
    """A line for each host that asked for a pause, or is left alone because it fails."""
    for source in sources:
        if source.breaker == "open" and source.breaker_until is not None:
            yield f"{source.host} failed too often and is left alone {_until(source.breaker_until)}"
        elif source.paused_until is not None:
            waiting = f"; {count_text(source.waiting, 'request')} waiting" if source.waiting else ""
            yield f"{source.host} asked us to wait {_until(source.paused_until)}{waiting}"


def _until(end: datetime) -> str:
    left = max(0.0, (end - datetime.now(UTC)).total_seconds())
    return f"until {end.astimezone():%H:%M:%S} ({duration_text(left)})"
