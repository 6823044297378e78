"""Statistics of requests by host: cheap counters, and frozen values to read."""

from __future__ import annotations

import asyncio
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from aioflow.web.errors import RequestRefusedError, WebError

if TYPE_CHECKING:
    from aioflow.web.hosts import Host, Hosts

RECENT_LATENCIES = 1000
FORGOTTEN = "(forgotten)"  # in place of a host: the sum of those that are no longer kept


@dataclass(frozen=True)
class LatencyStatistics:
    """Seconds from sending to the whole answer (to its headers if streamed), of the most recent answers.

    `recent` has them all, the latest last.
    """

    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    maximum: float | None = None
    recent: tuple[float, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class SourceStatistics:
    """The present figures of one host.

    `requests` are those that were sent, repeated ones and robots.txt included: each is answered, fails, is
    cancelled, is refused on its way out, or is in flight. `refused` also counts requests that robots.txt and
    the circuit breaker stopped before. `waiting` requests wait for their turn, for robots.txt or to be
    repeated. Failures and refusals are counted by the name of their error.
    """

    host: str
    requests: int = 0
    answers: Mapping[str, int] = field(default_factory=dict)  # by class: "2xx"
    failures: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    retries: int = 0
    extra: int = 0  # sent because an earlier one was slow
    cancelled: int = 0
    bytes_in: int = 0  # of bodies, decoded
    latency: LatencyStatistics = LatencyStatistics()
    in_flight: int = 0
    waiting: int = 0
    rate: float | None = None
    concurrency: int = 0
    paused_until: datetime | None = None
    breaker: str = "closed"
    breaker_until: datetime | None = None
    robots: str = "unknown"


class HostCounters:
    """Counters of the requests to one host."""

    __slots__ = (
        "_answers",
        "_latencies",
        "_oldest",
        "bytes_in",
        "cancelled",
        "extra",
        "failures",
        "refused",
        "requests",
        "retries",
    )

    def __init__(self) -> None:
        self.requests = 0
        self.retries = 0
        self.extra = 0
        self.cancelled = 0
        self.bytes_in = 0
        self.failures: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._answers = [0] * 10  # by the first digit of their status
        self._latencies = array("d")
        self._oldest = 0

    def answered(self, status: int, seconds: float) -> None:
        self._answers[status // 100 % 10] += 1
        latencies = self._latencies
        if len(latencies) < RECENT_LATENCIES:
            latencies.append(seconds)
        else:
            latencies[self._oldest] = seconds
            self._oldest = (self._oldest + 1) % RECENT_LATENCIES

    def failed(self, error: WebError) -> None:
        kinds = self.refused if isinstance(error, RequestRefusedError) else self.failures
        kinds[type(error).__name__] += 1

    def add(self, other: HostCounters) -> None:
        """Add the counts of another; its latencies are left out."""
        self.requests += other.requests
        self.retries += other.retries
        self.extra += other.extra
        self.cancelled += other.cancelled
        self.bytes_in += other.bytes_in
        self.failures.update(other.failures)
        self.refused.update(other.refused)
        self._answers = [mine + theirs for mine, theirs in zip(self._answers, other._answers, strict=True)]

    @property
    def answers(self) -> dict[str, int]:
        return {f"{digit}xx": number for digit, number in enumerate(self._answers) if number}

    def recent_latencies(self) -> tuple[float, ...]:
        """Return the recent latencies, the latest last."""
        return (*self._latencies[self._oldest :], *self._latencies[: self._oldest])


class Statistics:
    """Reads the counters of hosts."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts

    def source(self, key: str) -> SourceStatistics | None:
        """Return one host by `host:port`; None if it is unknown."""
        host = self._hosts.known(key)
        return None if host is None else _of_host(host, _now())

    def sources(self) -> tuple[SourceStatistics, ...]:
        """Return all hosts that are kept, then the sum of those that were forgotten, if any."""
        now = _now()
        kept = tuple(_of_host(host, now) for host in self._hosts)
        if not self._hosts.forgotten_hosts:
            return kept
        forgotten = self._hosts.forgotten
        return (*kept, _counted(FORGOTTEN, forgotten))


def summarize(latencies: Sequence[float]) -> LatencyStatistics:
    """Return quantiles by nearest rank."""
    if not latencies:
        return LatencyStatistics()
    ordered = sorted(latencies)
    last = len(ordered) - 1
    p50, p90, p99 = (ordered[min(int(share * len(ordered)), last)] for share in (0.5, 0.9, 0.99))
    return LatencyStatistics(p50, p90, p99, ordered[-1], tuple(latencies))


def _now() -> float:
    return asyncio.get_running_loop().time()


def _of_host(host: Host, now: float) -> SourceStatistics:
    breaker = host.breaker
    return replace(
        _counted(host.key, host.counters),
        latency=summarize(host.counters.recent_latencies()),
        in_flight=host.in_flight,
        waiting=host.inside - host.in_flight + host.aside,
        rate=host.pace.rate,
        concurrency=host.slots.count,
        paused_until=_on_the_wall(host.pace.paused_until, now),
        breaker=breaker.state(now),
        breaker_until=_on_the_wall(breaker.until(), now),
        robots=host.robots_state(),
    )


def _counted(host: str, counters: HostCounters) -> SourceStatistics:
    return SourceStatistics(
        host,
        counters.requests,
        counters.answers,
        dict(counters.failures),
        dict(counters.refused),
        counters.retries,
        counters.extra,
        counters.cancelled,
        counters.bytes_in,
    )


def _on_the_wall(until: float | None, now: float) -> datetime | None:
    if until is None or until <= now:
        return None
    return datetime.now(UTC) + timedelta(seconds=until - now)
