"""Requests to the site: how long answers take and how often they fail, and the log of them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

DEFAULT_PORT = 8640


@dataclass(frozen=True)
class Latency:
    """The time of an answer: always the same, or lognormal around a median."""

    median_seconds: float = 0.0
    sigma: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Latency:
        """Of `0.1` or `lognormal:0.1,0.8`; a ValueError says what else it is."""
        kind, colon, numbers = text.partition(":")
        if not colon:
            latency = cls(float(text))
        elif kind == "lognormal" and numbers.count(",") == 1:
            latency = cls(*map(float, numbers.split(",")))
        else:
            raise ValueError(f"a latency is `0.1` or `lognormal:0.1,0.8`, not {text!r}")
        if latency.median_seconds < 0 or latency.sigma < 0:
            raise ValueError(f"a latency is not negative: {text!r}")
        return latency

    def __str__(self) -> str:
        return f"lognormal:{self.median_seconds},{self.sigma}" if self.sigma else str(self.median_seconds)

    def draw(self, dice: Random) -> float:
        return self.median_seconds * dice.lognormvariate(0, self.sigma) if self.sigma else self.median_seconds


@dataclass(frozen=True)
class Switches:
    """The settings of the command line."""

    latency: Latency = Latency()
    error_rate: float = 0.0
    results: int = 72
    per_page: int = 6
    seed: int = 1


@dataclass(frozen=True)
class Fate:
    """The outcome of one request."""

    latency_seconds: float
    fails: bool


class Fates:
    """Decides over requests by seed, path and how often that path was asked for: never by who came first."""

    def __init__(self, switches: Switches) -> None:
        self._switches = switches
        self._asked: Counter[str] = Counter()
        self._plain = Fate(switches.latency.median_seconds, fails=False)

    def next(self, path: str) -> Fate:
        if not self._switches.error_rate and not self._switches.latency.sigma:
            return self._plain
        self._asked[path] += 1
        return fate_of(self._switches, path, self._asked[path])


def fate_of(switches: Switches, path: str, attempt: int) -> Fate:
    """Return the outcome of the first, second, … request for a path."""
    dice = Random(f"{switches.seed} {path} {attempt}")
    fails = dice.random() < switches.error_rate
    return Fate(switches.latency.draw(dice), fails)


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
