"""The state of each host: slots, rate limiter, pauses, circuit breaker, robots.txt. Idle hosts are forgotten.

The rate limiter knows nothing of slots and permits: there may be other waits between its turn and the
request. The circuit breaker refuses requests to a host that failed several times in a row, for a while.
"""

from __future__ import annotations

import asyncio
from asyncio import Future, TimerHandle
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from math import inf
from typing import TYPE_CHECKING, Any

from aioflow.runtime.budget import FairQueue, Permits, Place, current_run
from aioflow.web.errors import AddressRefusedError, CircuitOpenError
from aioflow.web.settings import HttpSettings, WebSettings
from aioflow.web.statistics import HostCounters
from aioflow.web.urls import PortError, host_key, shown_host, without_userinfo

if TYPE_CHECKING:
    from aioflow.web.robots import RobotsRules


LONGER_AT_MOST = 10  # times the first opening


class Breaker:
    """Opens after `failures` in a row; then one probe at a time decides whether it closes again.

    Requests that were under way when it opened change nothing: only a probe closes it or keeps it open. A
    request that comes while it is open waits for the next probe, if that is no further off than `seconds`.
    """

    __slots__ = (
        "_failed",
        "_limit",
        "_opened",
        "_probe",
        "_seconds",
        "_until",
        "_why",
        "_wider",
        "answered",
        "is_open",
    )

    def __init__(self, failures: int, seconds: float) -> None:
        self._limit = failures
        self._seconds = seconds
        self._failed = 0
        self._wider = 1
        self._opened = 0.0
        self._until = 0.0
        self._why = ""
        self._probe: asyncio.Event | None = None  # set when the probe under way has ended
        self.answered = 0  # responses so far, to see whether there were any meanwhile
        self.is_open = False  # or half open

    def state(self, now: float) -> str:
        """`closed`, `open` or `half-open`."""
        if not self.is_open:
            return "closed"
        return "half-open" if now >= self._until else "open"

    def until(self) -> float | None:
        """The time of the loop's clock at which the next probe may be sent; None while closed."""
        return self._until if self.is_open else None

    def refuses(self) -> bool:
        """Return whether the next probe is too far off to be waited for."""
        return self.is_open and self._until - asyncio.get_running_loop().time() > self._seconds

    async def enter(self, host: str, url: str) -> bool:
        """Wait until a request may be sent; return whether it is a probe, or raise a CircuitOpenError."""
        time = asyncio.get_running_loop().time
        while self.is_open:
            if self._probe is not None:
                await self._probe.wait()
            elif self.refuses():
                raise CircuitOpenError(self._refusal(host, url, time()))
            elif (seconds := self._until - time()) > 0:
                await asyncio.sleep(seconds)
            else:
                self._probe = asyncio.Event()
                return True
        return False

    def leave(self, probe: bool) -> None:
        """Take note of a request that says nothing about the host, because it was refused or cancelled."""
        if probe:
            self._end_probe()

    def succeeded(self, probe: bool) -> None:
        """Take note that the host answered."""
        self.answered += 1
        if probe:
            self.is_open = False
            self._wider = 1
            self._end_probe()
        if not self.is_open:
            self._failed = 0

    def failed(self, why: str) -> bool:
        """Take note of a request that failed for good by the host's fault; return whether that opens it."""
        if self.is_open:
            return False
        self._failed += 1
        self._why = why
        if not self._limit or self._failed < self._limit:
            return False
        self.is_open = True
        self._opened = asyncio.get_running_loop().time()
        self._until = self._opened + self._seconds
        return True

    def probe_failed(self, why: str) -> None:
        """Take note that the host is still in trouble."""
        self._failed += 1
        self._why = why
        self._wider = min(2 * self._wider, LONGER_AT_MOST)
        self._until = asyncio.get_running_loop().time() + self._seconds * self._wider
        self._end_probe()

    def _end_probe(self) -> None:
        if self._probe is not None:
            self._probe.set()
            self._probe = None

    def _refusal(self, host: str, url: str, now: float) -> str:
        wall = datetime.now(UTC)
        since = (wall - timedelta(seconds=now - self._opened)).isoformat(timespec="seconds")
        left = self._until - now
        until = (wall + timedelta(seconds=left)).isoformat(timespec="seconds")
        return (
            f"{without_userinfo(url)}: {host} is left alone since {since}, after {self._failed} failures "
            f"in a row, the last: {self._why}; until {until} (for {left:.3g} s more)"
        )


class RateLimiter:
    """At most `burst` requests at once and `rate` a second after that, and none during a pause.

    Some pauses are too long to wait for: while it `refuses`, no request should ask for a turn.

    Two clocks say when the bucket would be full again. The clock of requests sent is the limit itself: in any
    second there are at most rate + burst. The clock of turns given only spaces the requests that go on to ask
    for slots and permits, so that no more ask than may be sent. If it is wrong, a request asks twice.

    Runs take turns, so that one with many requests does not hold up the others.
    """

    __slots__ = (
        "_given_until",
        "_interval",
        "_sent_until",
        "_timer",
        "_tolerance",
        "_waiting",
        "paused_until",
        "refusing_until",
    )

    def __init__(self, rate: float | None, burst: int) -> None:
        self._interval = 1 / rate if rate else 0.0
        self._tolerance = (max(burst, 1) - 1) * self._interval
        self._sent_until = -inf
        self._given_until = -inf
        self.paused_until = -inf
        self.refusing_until = -inf
        self._waiting = FairQueue()
        self._timer: TimerHandle | None = None

    @property
    def rate(self) -> float | None:
        """The requests per second; None if there is no limit."""
        return 1 / self._interval if self._interval else None

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def is_free(self, now: float) -> bool:
        """Return whether no request has to wait, so that there is no need to ask for a turn."""
        return not self._interval and now >= self.paused_until and not self._waiting

    def is_idle(self, now: float) -> bool:
        """Return whether past requests and pauses make no difference any more."""
        return not self._waiting and now >= self.paused_until and now >= self._sent_until

    def may_send(self, now: float) -> bool:
        return now >= self.paused_until and now >= self._sent_until - self._tolerance

    def send(self, now: float) -> bool:
        """Count a request that is sent at this moment; return False if it may not be sent."""
        if not self.may_send(now):
            return False
        self._sent_until = max(self._sent_until, now) + self._interval
        return True

    def pause(self, until: float) -> None:
        """Send no request before that time. A longer pause stays."""
        self.paused_until = max(self.paused_until, until)

    def refuse(self, until: float) -> None:
        """Refuse requests before that time. Requests that wait already are woken, and refused."""
        self.pause(until)
        self.refusing_until = max(self.refusing_until, until)
        for granted in self._waiting.take_all():
            if not granted.done():
                granted.set_result(None)
        self._admit()

    def refuses(self, now: float) -> bool:
        return now < self.refusing_until

    def change(self, interval_seconds: float, burst: int, now: float) -> None:
        """Change the pace from now on; the latest requests count for it."""
        old, new = self._interval, interval_seconds
        if self._sent_until > -inf:
            owed = max(self._sent_until - now, 0.0) / old * new if old else 0.0
            self._sent_until = max(now + owed, self._sent_until - old + new)
        self._given_until = self._sent_until
        self._interval = new
        self._tolerance = (max(burst, 1) - 1) * new
        self._admit()

    def place(self, urgent: bool, rank: tuple[Any, ...] = ()) -> Place:
        """Return a place in the queue, to be kept if the request has to wait for a turn again."""
        return self._waiting.place(urgent, rank)

    async def turn(self, place: Place) -> None:
        """Wait until it makes sense to ask for a slot and a permit; then send, or give the turn back."""
        loop = asyncio.get_running_loop()
        if not self._waiting and self._give(loop.time()):
            return
        granted: Future[None] = loop.create_future()
        run = current_run.get()
        self._waiting.add(granted, run, place)
        self._admit()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.give_back()  # granted in the same moment: pass it on
            else:
                self._waiting.remove(granted, run)
                self._admit()
            raise

    def give_back(self) -> None:
        """Return a turn in which nothing was sent."""
        self._given_until -= self._interval
        if self._waiting:
            self._admit()

    def _next_turn(self) -> float:
        return max(self.paused_until, max(self._given_until, self._sent_until) - self._tolerance)

    def _give(self, now: float) -> bool:
        if now < self._next_turn():
            return False
        self._given_until = max(self._given_until, self._sent_until, now) + self._interval
        return True

    def _admit(self) -> None:
        """Give turns to the requests whose time has come, and look again at the time of the next one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._waiting.first() is not None:
            if not self._give(now):
                self._timer = loop.call_at(self._next_turn(), self._admit)
                return
            granted = self._waiting.take()
            assert granted is not None
            granted.set_result(None)


IDLE_HOSTS = 1000
# Unused hosts that are paused, throttled or failing are kept longer, but not without limit.
LEFT_ALONE_HOSTS = 10 * IDLE_HOSTS
_RETRY_RESERVE = 10.0  # retries that a host starts with
_RETRIES_SAVED = 100.0  # retries that requests without trouble can save up


class Host:
    """The state of one host, which is kept while a request is `inside` a turn or among its `users`."""

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
        self.pace = RateLimiter(rate, self._burst)
        self.slots = Permits(max(http.concurrency if own.concurrency is None else own.concurrency, 1))
        self.breaker = Breaker(http.breaker_failures, http.breaker_seconds)
        self.counters = HostCounters()
        self.has_paused = False  # logged once
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
        """Add to the retry budget for a new request."""
        if self._retry_tokens < _RETRIES_SAVED:
            self._retry_tokens += self._retry_budget

    def spend_retry(self) -> bool:
        """Return whether the budget allows a retry, and count it."""
        if self._retry_tokens < 1:
            return False
        self._retry_tokens -= 1
        self.counters.retries += 1
        return True

    def robots_state(self) -> str:
        """The state of robots.txt: `off`, `unknown`, `reading`, `rules`, `absent` or `unreachable`."""
        if not self.heeds_robots:
            return "off"
        if self.reading_robots:
            return "reading"
        return next((rules.state for rules in self.robots.values()), "unknown")

    @property
    def is_used(self) -> bool:
        return bool(self.inside or self.users)

    def is_left_alone(self, now: float) -> bool:
        """Return whether the next request would have to wait or be refused."""
        return not self.pace.is_idle(now) or self.breaker.state(now) == "open"


class Hosts:
    """The hosts in use and those used lately."""

    def __init__(
        self, settings: WebSettings, *, idle_hosts: int = IDLE_HOSTS, left_alone_hosts: int = LEFT_ALONE_HOSTS
    ) -> None:
        self.settings = settings
        self.forgotten = HostCounters()
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
        """Return a host by `host:port`, if it is known."""
        return self._hosts.get(key)

    def at(self, url: str) -> Host:
        """Return the host of a URL, with a new state if there is none."""
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
        """Forget the quarter of the hosts that were unused for longest, so that this is seldom done."""
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
