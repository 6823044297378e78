"""What is known of the latency of each source, what restarts have cost it, and whether more are allowed now.

A source is a host and the wrapper that asks it: pages of one kind have one distribution.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from math import sqrt
from typing import TYPE_CHECKING

import msgspec

from aioflow.restart.learning import (
    FEWEST,
    USUAL_SHARE,
    Decision,
    Latencies,
    Observation,
    RestartLimits,
    decide,
)
from aioflow.restart.policies import RestartPolicy, read_policy
from aioflow.web.settings import HostSettings, WebSettings

if TYPE_CHECKING:
    from aioflow.web.latency_store import LatencyStore

MOST_RECORDS = 500
_SAVED_AFTER = 100  # requests

_SAVED_EXTRAS = 20.0  # extra requests that requests without one can save up
_TROUBLE_SECONDS = 30.0  # without extra requests after the last sign of trouble
_RECENT = 20
_FEWEST_LEFT = 5  # slow requests that were left running, before others are compared with them
_RELEARNED_AFTER = (20, 0.1, 500)  # observations: at least, of those so far, at most
_OVERLOAD = 429
_SERVER_ERRORS = 500


class RestartCounts(msgspec.Struct):
    """The requests to a source, and of those that took longer than its time to give up, how they went on.

    Seconds are counted from that time to the answer. `held_back` counts reasons for leaving a slow request
    running; `rule` is the rule of the latest request.
    """

    rule: str = ""
    requests: int = 0
    extra: int = 0
    asked_again: int = 0
    asked_again_seconds: float = 0.0
    left_running: int = 0
    left_running_seconds: float = 0.0
    held_back: dict[str, int] = {}

    def add(self, other: RestartCounts) -> None:
        self.rule = other.rule or self.rule
        self.requests += other.requests
        self.extra += other.extra
        self.asked_again += other.asked_again
        self.asked_again_seconds += other.asked_again_seconds
        self.left_running += other.left_running
        self.left_running_seconds += other.left_running_seconds
        self.held_back = dict(Counter(self.held_back) + Counter(other.held_back))

    def observed_gain(self, residual: float | None) -> float | None:
        """Return the seconds saved for each request, against slow requests that were left running.

        Where few were, they are compared with `residual`, the time that was still to be expected.
        """
        if self.left_running >= _FEWEST_LEFT:
            residual = self.left_running_seconds / self.left_running
        if residual is None or not self.requests or not self.asked_again:
            return None
        return (residual - self.asked_again_seconds / self.asked_again) * self.asked_again / self.requests


class SourceRecord:
    """The latencies of one source, the decision that follows from them, and its counts."""

    def __init__(self, host: str, kind: str) -> None:
        self.host = host
        self.kind = kind
        self.latencies = Latencies()
        self.decision = Decision()
        self.counts = RestartCounts()  # since they were stored
        self.unsaved: list[tuple[Observation, bool]] = []
        self.is_loaded = False
        self._learned_at = -1
        self._decided_for: tuple[RestartPolicy, tuple[str, ...]] | None = None
        # The times of the latest attempts; slow ones have that after which they were.
        self._recent = deque[float](maxlen=_RECENT)

    def add(self, seen: Observation, *, again: bool = False) -> None:
        self.latencies.add(seen, again=again)
        self.unsaved.append((seen, again))

    def decide(
        self, policy: RestartPolicy, mirrors: Sequence[SourceRecord], limits: RestartLimits, now: float
    ) -> Decision:
        """Return the present decision, which is derived again as observations come in."""
        total = self.latencies.total + sum(each.latencies.total for each in mirrors)
        wanted = policy, tuple(each.host for each in mirrors)
        least, share, most = _RELEARNED_AFTER
        due = self._learned_at + min(max(least, int(share * self._learned_at)), most)
        if wanted == self._decided_for and (
            total < due or (self.is_slow_for_all() and total < self._learned_at + most)
        ):
            return self.decision  # what is learned while a host is busy says little of it
        before = self.decision if wanted == self._decided_for else None
        sources = [self.latencies, *(each.latencies for each in mirrors)]
        self.decision = decide(policy, sources, limits, now, before)
        if before is not None and before.steps[0] != self.decision.steps[0]:
            self._recent.clear()
        self._learned_at = total
        self._decided_for = wanted
        return self.decision

    def note_speed(self, seconds: float) -> None:
        """Take note of the time of an attempt, or of the time after which it is slow."""
        self._recent.append(seconds)

    @property
    def is_known(self) -> bool:
        return self.latencies.total >= FEWEST

    def is_slow_for_all(self) -> bool:
        """Return whether far more requests than usual are slow just now: the host is busy, not unlucky.

        Extra requests would make that worse, since every client sees it at once.
        """
        decision = self.decision
        after = decision.steps[0][1]
        gives_up = after is not None and self._exceed(after, decision.slow)
        return gives_up or self._exceed(decision.usual, 1.0 - USUAL_SHARE)

    def _exceed(self, seconds: float, usual: float) -> bool:
        """Return whether more of the latest requests took so long than by chance."""
        size = len(self._recent)
        usual = min(max(usual, 1.0 / _RECENT), 1.0)
        deviation = sqrt(size * usual * (1.0 - usual))
        return sum(each > seconds for each in self._recent) > size * usual + 3.0 * deviation + 1.0


class HostAllowance:
    """The extra requests that a host is asked for at most, and its latest trouble."""

    def __init__(self, extra: float) -> None:
        self._extra = extra
        self._saved = 0.0
        self._trouble_until = float("-inf")

    def note_request(self) -> None:
        self._saved = min(self._saved + self._extra, max(_SAVED_EXTRAS, self._extra))

    def note_trouble(self, now: float) -> None:
        self._trouble_until = now + _TROUBLE_SECONDS

    def note_status(self, status: int, now: float) -> bool:
        """Take note of an answer; return whether it is a real one, whose time says something."""
        if status == _OVERLOAD or status >= _SERVER_ERRORS:
            self.note_trouble(now)
            return False
        return True

    def is_in_trouble(self, now: float) -> bool:
        return now < self._trouble_until

    @property
    def is_spent(self) -> bool:
        return self._saved < 1.0

    def spend(self) -> None:
        self._saved -= 1.0


class LatencyBook:
    """The records of all sources, the policies of their hosts, and the file that keeps them between runs."""

    def __init__(
        self, settings: WebSettings, store: LatencyStore | None, *, clock: Callable[[], float] = time.time
    ) -> None:
        http = settings.http
        self.limits = RestartLimits(http.restarts, http.restart_extra)
        self.clock = clock
        self._settings = settings
        self._store = store
        self._default = read_policy(http.restart)
        self._policies: dict[str, RestartPolicy] = {}
        self._allowances: dict[str, HostAllowance] = {}
        self._records: OrderedDict[tuple[str, str], SourceRecord] = OrderedDict()
        self._since_saved = 0

    def policy(self, host: str) -> RestartPolicy:
        """Return the policy for a host that its requests do not override."""
        found = self._policies.get(host)
        if found is None:
            own = self._own(host).restart
            found = self._policies[host] = self._default if own is None else read_policy(own)
        return found

    def mirrors(self, host: str) -> tuple[str, ...]:
        """Return the hosts that have the same pages."""
        return self._own(host).mirrors

    def _own(self, host: str) -> HostSettings:
        name, _, port = host.rpartition(":")
        return self._settings.host(name, int(port))

    def allowance(self, host: str) -> HostAllowance:
        found = self._allowances.get(host)
        if found is None:
            found = self._allowances[host] = HostAllowance(self.limits.extra)
        return found

    async def record(self, host: str, kind: str) -> SourceRecord:
        """Return the record of a source, as it was stored if this is its first use."""
        record = self._records.get((host, kind))
        if record is None:
            record = self._records[host, kind] = SourceRecord(host, kind)
        else:
            self._records.move_to_end((host, kind))
        if not record.is_loaded:
            record.is_loaded = True
            if self._store is not None:
                await self._store.load(record)
            await self._forget()
        return record

    @property
    def records(self) -> tuple[SourceRecord, ...]:
        return tuple(self._records.values())

    async def _forget(self) -> None:
        """Store and forget the sources that were unused for longest."""
        if len(self._records) <= MOST_RECORDS:
            return
        await self.save()
        while len(self._records) > MOST_RECORDS * 3 // 4:
            self._records.popitem(last=False)

    async def save_some(self) -> None:
        """Count a request, and store what was observed when it is worth a transaction."""
        self._since_saved += 1
        if self._since_saved >= _SAVED_AFTER:
            await self.save()

    async def save(self) -> None:
        self._since_saved = 0
        records = [record for record in self._records.values() if record.unsaved]
        if self._store is not None and records:
            await self._store.save(records)
        for record in records:
            record.unsaved.clear()
            record.counts = RestartCounts()

    async def close(self) -> None:
        """Store the rest, and close the file."""
        if self._store is not None:
            try:
                await self.save()
            finally:
                await self._store.close()
