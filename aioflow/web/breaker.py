"""The circuit breaker of one host: who failed often in a row is left alone for a while."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from aioflow.web.errors import CircuitOpenError
from aioflow.web.urls import without_userinfo

LONGER_AT_MOST = 10  # times the first opening


class Breaker:
    """Opens after `failures` in a row; one probe at a time says whether it may close again.

    What was under way when it opened changes nothing: only a probe closes it or keeps it open. Who comes
    while it is open waits for the next probe, if that is no further off than `seconds`.
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
        self._probe: asyncio.Event | None = None  # set when the one under way has ended
        self.answered = 0  # requests, so that one can see whether there were any meanwhile
        self.is_open = False  # or half open

    def state(self, now: float) -> str:
        """`closed`, `open` or `half-open`."""
        if not self.is_open:
            return "closed"
        return "half-open" if now >= self._until else "open"

    def until(self) -> float | None:
        """When the next probe may be sent, on the loop's clock; None while closed."""
        return self._until if self.is_open else None

    def refuses(self) -> bool:
        """Whether the next probe is too far off to be waited for."""
        return self.is_open and self._until - asyncio.get_running_loop().time() > self._seconds

    async def enter(self, host: str, url: str) -> bool:
        """Wait until a request may be sent, and say whether it is a probe; or raise CircuitOpenError."""
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
        """The request ended without saying anything about the host: refused, or cancelled."""
        if probe:
            self._end_probe()

    def succeeded(self, probe: bool) -> None:
        """The host answered."""
        self.answered += 1
        if probe:
            self.is_open = False
            self._wider = 1
            self._end_probe()
        if not self.is_open:
            self._failed = 0

    def failed(self, why: str) -> bool:
        """A request failed for good: no answer, or an error of the host's own. Whether that opens it."""
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
        """The host is in trouble still."""
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
