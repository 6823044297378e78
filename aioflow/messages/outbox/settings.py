"""`[outbox]` of the configuration: how long and how often messages are tried."""

from __future__ import annotations

from dataclasses import dataclass

from aioflow.config.sections import Section, at_least, more_than_nothing


@dataclass(frozen=True)
class OutboxSettings:
    """The settings `[outbox]`: the delivery of messages, and the size of digests."""

    deliver_seconds: float = 30.0  # of delivery by a run after its commit; 0 leaves it to other processes
    lease_seconds: float = 300.0  # after which a process that is delivering a message is taken to be dead
    most_attempts: int = 30  # before a message becomes a dead letter; about a day with the times below
    retry_base_seconds: float = 5.0
    retry_most_seconds: float = 3600.0
    keep_days: float = 30.0  # for messages that were sent or dropped
    digest_rows: int = 10_000  # in a digest before it is composed early
    digest_bytes: int = 8 * 1024 * 1024  # of such rows, as they are stored

    @property
    def delivery_seconds(self) -> float:
        """The time limit of one delivery: it ends before another process may claim the message."""
        return self.lease_seconds * 0.8


_time = more_than_nothing("a time")

OUTBOX = Section(
    "outbox",
    OutboxSettings,
    refine={
        "deliver_seconds": at_least(0, "a time"),
        "lease_seconds": _time,
        "most_attempts": at_least(1, "a whole number"),
        "retry_base_seconds": _time,
        "retry_most_seconds": _time,
        "keep_days": at_least(0, "a number of days"),
        "digest_rows": at_least(1, "a whole number"),
        "digest_bytes": at_least(1, "a size"),
    },
)
