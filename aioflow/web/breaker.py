"""The circuit breaker of one host: who failed often in a row is left alone for a while."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from aioflow.web.errors import CircuitOpenError
from aioflow.web.urls import without_userinfo

LONGER_AT_MOST = 10  # times the first opening


class Breaker:
    """Opens after `failures` in a row; one probe at a time says whether it may close again.

    What was under way when it opened changes nothing: only a probe closes it or keeps it open.
    """

    __slots__ = (
        "_failed",
        "_limit",
        "_opened",
        "_probing",
        "_seconds",
        "_until",
        "_why",
        "_wider",
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
        self._probing = False
        self.is_open = False  # or half open

    def state(self, now: float) -> str:
        """`closed`, `open` or `half-open`."""
        if not self.is_open:
            return "closed"
        return "half-open" if now >= self._until else "open"

    def until(self) -> float | None:
        """When the next probe may be sent, on the loop's clock; None while closed."""
        return self._until if self.is_open else None

    def enter(self, host: str, url: str) -> bool:
        """Whether this request is a probe; raises CircuitOpenError if it may not be sent."""
        if not self.is_open:
            return False
        now = asyncio.get_running_loop().time()
        if self._probing or now < self._until:
            raise CircuitOpenError(self._refusal(host, url, now))
        self._probing = True
        return True

    def leave(self, probe: bool) -> None:
        """The request ended without saying anything about the host: refused, or cancelled."""
        if probe:
            self._probing = False

    def succeeded(self, probe: bool) -> None:
        """The host answered."""
        if probe:
            self.is_open = self._probing = False
            self._wider = 1
        if not self.is_open:
            self._failed = 0

    def failed(self, why: str, probe: bool) -> None:
        """The host did not answer, or with an error of its own."""
        if self.is_open and not probe:
            return
        self._failed += 1
        self._why = why
        now = asyncio.get_running_loop().time()
        if probe:
            self._probing = False
            self._wider = min(2 * self._wider, LONGER_AT_MOST)
        elif self._limit and self._failed >= self._limit:
            self.is_open = True
            self._opened = now
        if self.is_open:
            self._until = now + self._seconds * self._wider

    def _refusal(self, host: str, url: str, now: float) -> str:
        wall = datetime.now(UTC)
        since = (wall - timedelta(seconds=now - self._opened)).isoformat(timespec="seconds")
        after = f"after {self._failed} failures in a row, the last: {self._why}"
        if self._probing:
            ends = "one request is trying it now"
        else:
            left = self._until - now
            until = (wall + timedelta(seconds=left)).isoformat(timespec="seconds")
            ends = f"until {until} (for {left:.3g} s more)"
        return f"{without_userinfo(url)}: {host} is left alone since {since}, {after}; {ends}"
