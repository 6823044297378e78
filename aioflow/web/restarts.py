"""Slow requests are sent again, if the policy of their wrapper or host allows it.

The races between attempts, and all that is learned from them, are loaded when a policy is first used.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from aioflow.web.hosts import Hosts
from aioflow.web.http import Fetcher, Request, Response

if TYPE_CHECKING:
    from aioflow.web.races import Races


class RestartFetcher:
    """Has requests that are safe to repeat sent again when they are slow."""

    def __init__(self, inner: Fetcher, hosts: Hosts, random: Random | None = None) -> None:
        self._inner = inner
        self._hosts = hosts
        self._random = random
        self._races: Races | None = None
        settings = hosts.settings
        policies = (settings.http.restart, *(own.restart or "off" for own in settings.hosts.values()))
        self._is_configured = any(policy != "off" for policy in policies)

    async def fetch(self, request: Request) -> Response:
        if not request.is_safe or (request.restart is None and not self._is_configured):
            return await self._inner.fetch(request)
        if self._races is None:
            self._races = self._begin()
        return await self._races.fetch(request)

    def _begin(self) -> Races:
        from aioflow.web.latencies import LatencyBook
        from aioflow.web.latency_store import LatencyStore, latency_path
        from aioflow.web.races import Races

        settings = self._hosts.settings
        path = latency_path(settings.http)
        book = LatencyBook(settings, None if path is None else LatencyStore(path))
        return Races(self._inner, self._hosts, book, self._random)

    async def close(self) -> None:
        try:
            if self._races is not None:
                await self._races.close()
        finally:
            await self._inner.close()
