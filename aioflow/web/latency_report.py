"""Reports on the latencies of sources: what was seen, what is decided by it now, and what that has cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from aioflow.restart.distributions import Empirical
from aioflow.restart.learning import Decision, decide
from aioflow.restart.policies import read_policy
from aioflow.restart.strategies import residual
from aioflow.web.latencies import LatencyBook, RestartCounts, SourceRecord
from aioflow.web.latency_store import read_records
from aioflow.web.settings import WebSettings

_PORTS = (":80", ":443")


@dataclass(frozen=True)
class SourceReport:
    """A host as one wrapper asks it. `hosts` are this host and its mirrors, by their index in decisions."""

    host: str
    kind: str
    hosts: tuple[str, ...]
    rule: str
    decision: Decision
    expected: Decision  # with the cap on extra requests
    answered: tuple[float, ...]
    given_up: int
    latest: float
    distribution: Empirical | None
    counts: RestartCounts

    @property
    def name(self) -> str:
        return shown_host(self.host)

    @property
    def title(self) -> str:
        return f"{self.name}, wrapper {self.kind}" if self.kind else self.name

    @property
    def observed_gain(self) -> float | None:
        """The seconds saved for each request so far; None if no request was sent again."""
        after = self.decision.steps[0][1]
        left = None
        if after is not None and self.distribution is not None:
            left = residual(self.distribution, after)
        return self.counts.observed_gain(left if left and isfinite(left) else None)

    @property
    def strategy_name(self) -> str:
        """What is done at the first time to give up."""
        return "a second request beside it" if self.decision.keeps_first else "given up and sent again"

    @property
    def strategy(self) -> str:
        steps = self.decision.steps
        first = "" if steps[0][0] == 0 else f"{shown_host(self.hosts[steps[0][0]])} first; "
        if len(steps) == 1:
            return f"{first}wait for the answer"
        after = f"after {steps[0][1]:.3g} s"
        if self.decision.keeps_first:
            return f"{first}a second request {after}, beside the first"
        if len(set(steps[:-1])) == 1 and steps[-1][0] == steps[0][0]:
            often = "once" if len(steps) == 2 else f"up to {len(steps) - 1} times"
            return f"{first}send again {after}, {often}"
        named = [
            shown_host(self.hosts[index]) + ("" if seconds is None else f" for {seconds:.3g} s")
            for index, seconds in steps
        ]
        return ", then ".join(named)


def shown_host(host: str) -> str:
    """Return a host without the port of its scheme."""
    return next((host.removesuffix(port) for port in _PORTS if host.endswith(port)), host)


def read_reports(settings: WebSettings, path: Path, now: float) -> list[SourceReport]:
    """Return a report on each source whose latencies are stored."""
    records = {(record.host, record.kind): record for record in read_records(path)}
    book = LatencyBook(settings, None)
    return [_report(record, records, book, now) for record in records.values()]


def _report(
    record: SourceRecord, records: dict[tuple[str, str], SourceRecord], book: LatencyBook, now: float
) -> SourceReport:
    hosts = [record.host, *(_key_of(name, record, records) for name in book.mirrors(record.host))]
    mirrors = [records.get((name, record.kind)) or SourceRecord(name, record.kind) for name in hosts[1:]]
    # A wrapper may have a rule of its own, which only the requests knew.
    rule = record.counts.rule or str(book.policy(record.host))
    sources = [record.latencies, *(each.latencies for each in mirrors)]
    decision = decide(read_policy(rule), sources, book.limits, now)
    seen = record.latencies.first_attempts(now)
    answered = tuple(each.seconds for each in seen if each.answered)
    given_up = [each.seconds for each in seen if not each.answered]
    return SourceReport(
        record.host,
        record.kind,
        tuple(hosts),
        rule,
        decision,
        decision.under(book.limits.extra),
        answered,
        len(given_up),
        max((each.at for each in seen), default=now),
        Empirical(answered, given_up) if answered else None,
        record.counts,
    )


def _key_of(mirror: str, asked: SourceRecord, records: Mapping[tuple[str, str], SourceRecord]) -> str:
    """Return the key of a mirror, whose port may be that of its scheme."""
    if ":" in mirror:
        return mirror
    keys = [f"{mirror}:{port}" for port in (asked.host.rpartition(":")[2], "443", "80")]
    return next((key for key in keys if (key, asked.kind) in records), keys[0])
