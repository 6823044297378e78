"""The HTTP client: all layers around one transport, composed as the settings ask."""

from __future__ import annotations

import time
from collections.abc import Coroutine
from dataclasses import replace
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from aioflow.authoring.services import Scope, ServiceHost
from aioflow.config.folders import shown_path
from aioflow.config.masking import masked_logger
from aioflow.config.secrets import Secrets
from aioflow.errors import InputError
from aioflow.web.coalescing import CoalescingFetcher
from aioflow.web.cookies import CookieFetcher
from aioflow.web.errors import NotRecordedError
from aioflow.web.holding import HoldingFetcher
from aioflow.web.host_queue import HostQueueFetcher
from aioflow.web.hosts import Hosts
from aioflow.web.http import Fetcher, Request, Response
from aioflow.web.redirects import RedirectFetcher
from aioflow.web.restarts import RestartFetcher
from aioflow.web.retries import RetryFetcher
from aioflow.web.robots import RobotsFetcher
from aioflow.web.settings import WebSettings, web_settings
from aioflow.web.statistics import SourceStatistics, Statistics
from aioflow.web.urls import without_userinfo

# aiohttp, which takes long to load, and modules that few programs need are imported on use.
if TYPE_CHECKING:
    from aioflow.web.cache import CacheFetcher, CacheStatistics

_LOG = masked_logger("aioflow.web")


class ClientStatistics(msgspec.Struct, frozen=True):
    """The figures of a client so far; `shared` responses took no request of their own."""

    sources: tuple[SourceStatistics, ...]
    shared: int
    cache: CacheStatistics | None


class Client:
    """Answers requests with all policies and guards. It is a service of an engine, and an `async with`."""

    scope: ClassVar[Scope] = "engine"

    def __init__(self, shared: CoalescingFetcher, cache: CacheFetcher | None, hosts: Hosts) -> None:
        self._shared = shared
        self._cache = cache
        self._statistics = Statistics(hosts)

    @classmethod
    def open(
        cls,
        settings: WebSettings,
        *,
        secrets: Secrets | None = None,
        random: Random | None = None,
        network: Fetcher | None = None,
    ) -> Client:
        """Return a client, to be closed. `network` takes the place of aiohttp, below all layers."""
        settings = _in_force(settings)
        hosts = Hosts(settings)
        fetcher: Fetcher = (
            _Offline() if settings.http.offline else _polite(settings, hosts, secrets, random, network)
        )
        cache = None
        if settings.http.cache:
            from aioflow.web.cache import CacheFetcher, cache_path
            from aioflow.web.cache_store import CacheStore

            store = CacheStore(cache_path(settings.http), settings.http.cache_bytes, clock=time.time)
            fetcher = cache = CacheFetcher(fetcher, store, settings)
        if settings.http.cookies:
            fetcher = CookieFetcher(fetcher)
        return cls(CoalescingFetcher(RedirectFetcher(fetcher, settings)), cache, hosts)

    @classmethod
    def open_service(cls, host: ServiceHost) -> Client:
        return cls.open(web_settings(host.configuration))

    def fetch(self, request: Request) -> Coroutine[Any, Any, Response]:
        """Return the response to a request, whatever its status; failures are WebErrors."""
        return self._shared.fetch(request)

    def statistics(self) -> ClientStatistics:
        cache = None if self._cache is None else self._cache.statistics
        return ClientStatistics(self._statistics.sources(), self._shared.shared, cache)

    async def close(self) -> None:
        """Close everything; requests that are under way fail."""
        await self._shared.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class _Offline:
    """No network at all."""

    async def fetch(self, request: Request) -> Response:
        raise NotRecordedError(f"{without_userinfo(request.url)}: the network is not to be used")

    async def close(self) -> None:
        """Do nothing: nothing is open."""


def _in_force(settings: WebSettings) -> WebSettings:
    """Return the settings in force, which are different for replays and recordings."""
    http = settings.http
    if http.record is not None and http.replay is not None:
        raise InputError(
            f"a run cannot record to {shown_path(http.record)} and replay {shown_path(http.replay)} at once"
        )
    if http.record is not None and http.offline:
        raise InputError(f"a run cannot record to {shown_path(http.record)} without using the network")
    if http.replay is not None:
        # There is no host to be polite to, and nothing but the recording may answer.
        http = replace(http, cache=False, offline=False, robots=False, rate=None, breaker_failures=0)
        hosts = {name: replace(own, robots=False, rate=0.0) for name, own in settings.hosts.items()}
        return replace(settings, http=http, hosts=hosts)
    if http.record is not None:
        # Responses from the cache would be missing from the recording.
        if http.cache:
            _LOG.warning(
                "the HTTP cache is neither used nor filled while answers are recorded to %s",
                shown_path(http.record),
            )
        return replace(settings, http=replace(http, cache=False))
    if http.offline and http.cache is False:
        return replace(settings, http=replace(http, cache=True))
    return settings


def _polite(
    settings: WebSettings,
    hosts: Hosts,
    secrets: Secrets | None,
    random: Random | None,
    network: Fetcher | None,
) -> Fetcher:
    """Return the network with its layers of policies, without those that would have nothing to do."""
    http = settings.http
    turns = HostQueueFetcher(_network(settings, secrets, network), hosts)
    fetcher: Fetcher = HoldingFetcher(turns)
    if http.robots or any(own.robots for own in settings.hosts.values()):
        reader = RetryFetcher(turns, hosts, random, beneath=True) if http.retries else turns
        fetcher = RobotsFetcher(fetcher, hosts, reader=reader)
    if http.replay is None and http.record is None:
        fetcher = RestartFetcher(fetcher, hosts, random)
    if http.retries or http.breaker_failures:
        fetcher = RetryFetcher(fetcher, hosts, random)
    return fetcher


def _network(settings: WebSettings, secrets: Secrets | None, network: Fetcher | None) -> Fetcher:
    http = settings.http
    if http.replay is not None:
        from aioflow.web.recording import ReplayFetcher

        return ReplayFetcher(http.replay)
    if network is None:
        from aioflow.web.transport import Transport

        network = Transport(settings, secrets=secrets)
    if http.record is None:
        return network
    from aioflow.web.recording import RecordFetcher

    return RecordFetcher(network, http.record, settings)
