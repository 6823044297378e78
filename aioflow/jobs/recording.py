"""Calls under a job: their outcome comes from a record, or is recorded.

A statement that makes requests hands each call to `recorded_call`. Marks and counts that a call reports go to
its record as well: `RecordingContext` takes them down on their way to the run.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from hashlib import blake2b
from time import monotonic
from typing import Any, ClassVar, cast

from aioflow.authoring.context import Context
from aioflow.authoring.services import AccountEntry, Scope, ServiceHost
from aioflow.config.masking import mask
from aioflow.errors import AioflowError, message_of
from aioflow.jobs.exchange import Exchange, StageFailure, StageRecord
from aioflow.relation import Batch, Row
from aioflow.values.json import encode_rows
from aioflow.values.quantities import count_text
from aioflow.wholeness import Marks, Reason

_KEY_BYTES = 16
_RATE_SECONDS = 60
_HOSTS_AT_MOST = 10_000  # that are counted
_HOSTS_SHOWN = 10

# The record of the call that the present task makes.
_present: ContextVar[StageRecord | None] = ContextVar("present record", default=None)


class RecordedError(AioflowError):
    """A failure of an earlier attempt at a job, which its plan took."""

    def __init__(self, failure: StageFailure) -> None:
        super().__init__(failure.message)
        self.kind_name = failure.kind
        self.attempts = failure.attempts
        self.means_absence = failure.means_absence


class RequestRate:
    """Requests a second over the last minute, or since the first one if that is shorter ago."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._counts: deque[tuple[int, int]] = deque(maxlen=_RATE_SECONDS)  # of each second with any

    def add(self, now: float) -> None:
        """Count a request."""
        self._first = now if self._first is None else self._first
        second, number = self._counts[-1] if self._counts else (-1, 0)
        if second == int(now):
            self._counts[-1] = (second, number + 1)
        else:
            self._counts.append((int(now), 1))

    def per_second(self, now: float) -> float | None:
        """Return the rate; None in the first second, which tells nothing."""
        if self._first is None or now - self._first < 1:
            return None
        count = sum(number for second, number in self._counts if now - second <= _RATE_SECONDS)
        return round(count / min(now - self._first, _RATE_SECONDS), 2)


class JobRecords:
    """The records of the run's job, as statements use them. A service of each run."""

    scope: ClassVar[Scope] = "run"

    def __init__(self, exchange: Exchange | None) -> None:
        self.exchange = exchange
        self.found = 0
        self.made = 0
        self.failed = 0
        self.under_way = 0
        self._hosts: Counter[str] = Counter()
        self._rate = RequestRate()

    @classmethod
    def open_service(cls, host: ServiceHost) -> JobRecords:
        assert host.run is not None, "records belong to a run"
        return cls(None if host.run.identity is None else host.run.identity.job)

    @property
    def is_job(self) -> bool:
        return self.exchange is not None

    async def conclude(self) -> None:
        """Make all records durable before the run commits anything."""
        if self.exchange is not None:
            await self.exchange.flush()

    def account(self) -> AccountEntry | None:
        if self.exchange is None:
            return None
        rate = self._rate.per_second(monotonic())
        line = f"job: {count_text(self.made, 'request')} made, {self.found:,} known from before"
        line += f", {self.failed:,} failed" if self.failed else ""
        line += f"; {rate:.1f} a second" if rate is not None else ""
        figures = {
            "made": self.made,
            "found": self.found,
            "failed": self.failed,
            "under-way": self.under_way,
            "hosts": dict(self._hosts.most_common(_HOSTS_SHOWN)),
            "requests-per-second": rate,
        }
        return AccountEntry("job", figures, (line,))

    def note(self, record: StageRecord, *, is_new: bool) -> None:
        """Count a call that has ended, or that was found."""
        if is_new:
            self.made += 1
            self._rate.add(monotonic())
        else:
            self.found += 1
        self.failed += record.failure is not None
        host = record.host
        if host and (host in self._hosts or len(self._hosts) < _HOSTS_AT_MOST):
            self._hosts[host] += 1

    async def close(self) -> None:
        """Keep what was recorded, also of a run that failed or was interrupted."""
        if self.exchange is not None:
            await self.exchange.flush()


def record_key(stage: str, values: Row) -> bytes:
    """Return the key of a call: a hash of what asks, and of the values that it asks with."""
    (text,) = encode_rows([values]) if values else ("",)
    return blake2b(f"{stage}\0{text}".encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()


async def recorded_call(
    records: JobRecords, key: bytes, call: Callable[[], Awaitable[Batch]], context: Context
) -> tuple[Batch, StageRecord | None]:
    """Return the rows of a call: those of its record, which is returned too, or new ones, which are recorded.

    A failure is recorded if the plan takes it. Otherwise it ends the run, and the job tries again.
    """
    exchange = records.exchange
    assert exchange is not None
    found = await exchange.find(key)
    if found is not None:
        records.note(found, is_new=False)
        _tell_again(found, context)
        return found.rows, found
    record = StageRecord()
    token = _present.set(record)
    records.under_way += 1
    try:
        record.rows = await call()
    except Exception as error:
        if context.takes_failures:
            record.failure = StageFailure(
                getattr(error, "kind_name", None) or type(error).__name__,
                message_of(error),
                getattr(error, "attempts", 1),
                getattr(error, "means_absence", False),
            )
            await exchange.put(key, record)
            records.note(record, is_new=True)
        raise
    finally:
        records.under_way -= 1
        _present.reset(token)
    await exchange.put(key, record)
    records.note(record, is_new=True)
    return record.rows, None


def _tell_again(record: StageRecord, context: Context) -> None:
    """Report to the run what the call reported when it was made; raise its failure."""
    for what, number in record.counts.items():
        context.count(what, number)
    if record.partial:
        context.mark(Marks(partial=tuple(map(Reason, record.partial))))
    if record.failure is not None:
        raise RecordedError(record.failure)


class RecordingContext:
    """A context that also takes down what the call of the present task reports."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @classmethod
    def around(cls, context: Context) -> Context:
        return cast(Context, cls(context))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def count(self, what: str, number: int = 1) -> None:
        record = _present.get()
        if record is not None:
            record.counts = dict(Counter(record.counts) + Counter({what: number}))
        self._context.count(what, number)

    def mark(self, marks: Marks) -> None:
        record = _present.get()
        if record is not None:
            record.partial += [reason.text for reason in marks.partial]
        self._context.mark(marks)


def note_page(url: str, has_items: bool) -> None:
    """Take down that the call of the present task read a page."""
    record = _present.get()
    if record is not None:
        record.pages.append((mask(url), has_items))
