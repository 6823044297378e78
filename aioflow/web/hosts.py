"""What is remembered of each host: slots, pace, pauses, failures, robots.txt; of few hosts at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from aioflow.budget import Permits
from aioflow.web.breaker import Breaker
from aioflow.web.errors import AddressRefusedError
from aioflow.web.rate import Pace
from aioflow.web.settings import HttpSettings, WebSettings
from aioflow.web.statistics import Counters
from aioflow.web.urls import PortError, host_key, shown_host, without_userinfo

if TYPE_CHECKING:
    from aioflow.web.robots import RobotsRules

IDLE_HOSTS = 1000
# Hosts that nobody uses but that are paused, throttled or failing are kept longer, yet not without end.
LEFT_ALONE_HOSTS = 10 * IDLE_HOSTS
_RETRY_RESERVE = 10.0  # retries that a host starts with
_RETRIES_SAVED = 100.0  # retries that requests without trouble can save up


class Host:
    """One host's state, which is not forgotten while anybody is `inside` a turn or among its `users`."""

    __slots__ = (
        "_burst",
        "_interval",
        "_retry_budget",
        "_retry_tokens",
        "aside",
        "breaker",
        "counters",
        "has_paused",
        "heeds_robots",
        "in_flight",
        "inside",
        "key",
        "name",
        "pace",
        "reading_robots",
        "robots",
        "slots",
        "touched",
        "users",
    )

    def __init__(self, key: str, settings: WebSettings) -> None:
        name, _, port = key.rpartition(":")
        http, own = settings.http, settings.host(name, int(port))
        rate = http.rate if own.rate is None else own.rate
        self._burst = http.burst if own.burst is None else own.burst
        self._interval = 1 / rate if rate else 0.0
        self._retry_budget = http.retry_budget
        self._retry_tokens = max(_RETRY_RESERVE, float(http.retries))
        self.key = key
        self.name = shown_host(key)
        self.pace = Pace(rate, self._burst)
        self.slots = Permits(max(http.concurrency if own.concurrency is None else own.concurrency, 1))
        self.breaker = Breaker(http.breaker_failures, http.breaker_seconds)
        self.counters = Counters()
        self.has_paused = False  # which is told once
        self.heeds_robots = http.robots if own.robots is None else own.robots
        self.robots: dict[str, RobotsRules] = {}  # by scheme
        self.reading_robots = 0
        self.inside = 0  # requests that wait for their turn or have it
        self.in_flight = 0
        self.aside = 0  # requests that wait for robots.txt or to be repeated
        self.users = 0
        self.touched = 0.0

    def follow_crawl_delay(self, seconds: float) -> None:
        """Leave at least so much time between two requests; 0 returns to the configured rate."""
        now = asyncio.get_running_loop().time()
        if seconds > self._interval:
            self.pace.change(seconds, 1, now)
        else:
            self.pace.change(self._interval, self._burst, now)

    def save_retry(self) -> None:
        """A new request adds to what may be spent on repeating."""
        if self._retry_tokens < _RETRIES_SAVED:
            self._retry_tokens += self._retry_budget

    def spend_retry(self) -> bool:
        """Whether a request may be repeated; then it is counted."""
        if self._retry_tokens < 1:
            return False
        self._retry_tokens -= 1
        self.counters.retries += 1
        return True

    def robots_state(self) -> str:
        """`off`, `unknown`, `reading`, `rules`, `absent` or `unreachable`."""
        if not self.heeds_robots:
            return "off"
        if self.reading_robots:
            return "reading"
        return next((rules.state for rules in self.robots.values()), "unknown")

    @property
    def is_used(self) -> bool:
        return bool(self.inside or self.users)

    def is_left_alone(self, now: float) -> bool:
        """Whether something is remembered that the next request would have to heed."""
        return not self.pace.is_idle(now) or self.breaker.state(now) == "open"


class Hosts:
    """The hosts that are or were lately used."""

    def __init__(
        self, settings: WebSettings, *, idle_hosts: int = IDLE_HOSTS, left_alone_hosts: int = LEFT_ALONE_HOSTS
    ) -> None:
        self.settings = settings
        self.forgotten = Counters()
        self.forgotten_hosts = 0
        self._idle_hosts = idle_hosts
        self._left_alone_hosts = left_alone_hosts
        self._hosts: dict[str, Host] = {}
        self._full = idle_hosts
        self._last_url: str | None = None
        self._last: Host

    @property
    def http(self) -> HttpSettings:
        return self.settings.http

    def __len__(self) -> int:
        return len(self._hosts)

    def __iter__(self) -> Iterator[Host]:
        return iter(tuple(self._hosts.values()))

    def known(self, key: str) -> Host | None:
        """A host by `host:port`, if anything is remembered of it."""
        return self._hosts.get(key)

    def at(self, url: str) -> Host:
        """The host of a URL; its state begins here if there is none."""
        if url is self._last_url:  # each layer asks, with the same string
            return self._last
        try:
            key = host_key(url)
        except ValueError as error:
            why = str(error) if isinstance(error, PortError) else "no http(s) URL with a host"
            raise AddressRefusedError(f"{without_userinfo(url)}: {why}") from error
        host = self._hosts.get(key) or self._begin(key)
        self._last_url, self._last = url, host
        return host

    def _begin(self, key: str) -> Host:
        if len(self._hosts) >= self._full:
            self._forget(asyncio.get_running_loop().time())
            self._last_url = None
        host = self._hosts[key] = Host(key, self.settings)
        return host

    def _forget(self, now: float) -> None:
        """Forget those that were not used for longest: a quarter, so that this is seldom done."""
        unused = sorted((host for host in self._hosts.values() if not host.is_used), key=_last_use)
        idle = [host for host in unused if not host.is_left_alone(now)]
        self._drop(idle[: max(len(idle) - self._idle_hosts * 3 // 4, 0)])
        left_alone = [host for host in unused if host.is_left_alone(now)]
        self._drop(left_alone[: max(len(left_alone) - self._left_alone_hosts * 3 // 4, 0)])
        self._full = max(self._idle_hosts, len(self._hosts) * 5 // 4)

    def _drop(self, hosts: list[Host]) -> None:
        for host in hosts:
            del self._hosts[host.key]
            self.forgotten.add(host.counters)
        self.forgotten_hosts += len(hosts)


def _last_use(host: Host) -> float:
    return host.touched
