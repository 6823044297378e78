"""The service of a run that posts messages: staged as writes of the run, and delivered after its commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, TypeAlias
from uuid import uuid4

import msgspec

from aioflow.authoring.context import RunInfo
from aioflow.authoring.services import AccountEntry, Deliveries, Scope, ServiceHost
from aioflow.config.configuration import as_configuration
from aioflow.messages.outbox.contributions import CONTRIBUTED, GatheredRows, digest_key
from aioflow.messages.outbox.courier import Report, opened_courier
from aioflow.messages.outbox.message import Delivery
from aioflow.messages.outbox.settings import OUTBOX, OutboxSettings
from aioflow.messages.outbox.table import AT_ONCE, STAGED, as_json, time_ahead
from aioflow.messages.timing import MessageTiming, QuietHours, read_quiet
from aioflow.relation import Batch, Row, Schema
from aioflow.runtime.memory import MemoryBudget, row_size
from aioflow.runtime.shielded import run_shielded
from aioflow.runtime.spill import walk
from aioflow.state.databases import DEFAULT, Databases
from aioflow.state.driver import Address, Connection
from aioflow.state.staged import StagedRows, batches_of
from aioflow.state.system_tables import DIGESTS, are_there, stamp
from aioflow.state.system_tables import OUTBOX as TABLE
from aioflow.state.transaction import Transaction
from aioflow.values.quantities import count_text, duration_text


class OutboxClock:
    """A clock for outboxes; a service of the engine. Tests hand in one that they set themselves."""

    scope: ClassVar[Scope] = "engine"

    def __init__(self, now: Callable[[], datetime] | None = None) -> None:
        self.now = now  # None: the clock of the database

    @classmethod
    def open_service(cls, host: ServiceHost) -> OutboxClock:
        return cls()

    async def close(self) -> None:
        """Nothing is open."""

    async def read(self, connection: Connection) -> datetime:
        """Return the time."""
        return datetime.now(UTC) + await time_ahead(connection) if self.now is None else self.now()


_MEMORY_BYTES = 8 * 1024 * 1024
_BATCH_BYTES = 64 * 1024
_PORTION_BYTES = 1024 * 1024

Timed: TypeAlias = Callable[[Row, datetime], Row]


class OutboxWrite:
    """Rows for a table of the outbox, with times that are set when they are written, by the clock of the
    database.
    """

    where = "outbox"
    whole = False

    def __init__(self, table: str, columns: Sequence[str], clock: OutboxClock, timed: Timed) -> None:
        self.memory = MemoryBudget(_MEMORY_BYTES)  # with a disk thread of its own, which the outbox ends
        self.has_times = False  # whether a row needs the clock
        self.count = 0
        self._table = table
        self._columns = columns
        self._clock = clock
        self._timed = timed
        self._staged = StagedRows(Schema(tuple(columns)), self.memory)
        self._latest: Batch = []
        self._latest_size = 0

    @property
    def is_empty(self) -> bool:
        return not self._latest and not len(self._staged)

    def add(self, *row: Any) -> None:
        self.count += 1
        self._latest.append(row)
        self._latest_size += row_size(row)
        if self._latest_size >= _BATCH_BYTES:
            self._stage()

    def _stage(self) -> None:
        latest, self._latest, self._latest_size = self._latest, [], 0
        if latest:
            self._staged.add(latest)

    def seal(self) -> None:
        self._stage()
        self._staged.seal()

    async def apply(self, connection: Connection) -> None:
        now = await self._clock.read(connection) if self.has_times else None
        staged = batches_of(self._staged.sealed)
        # One portion at a time: it may be one message with large attachments.
        async for rows in walk(staged, _portions(staged), at_once=1):
            timed = rows if now is None else [self._timed(row, now) for row in rows]
            await connection.load(self._table, self._columns, [timed])

    def forget(self) -> None:
        self._staged.forget()

    def close(self) -> None:
        self._latest = []
        self._staged.close()


class PostedWrite(OutboxWrite):
    """The write of a run's messages."""

    def __init__(self, clock: OutboxClock) -> None:
        super().__init__(TABLE, STAGED, clock, _after_quiet_hours)


def _after_quiet_hours(row: Row, now: datetime) -> Row:
    quiet = row[_QUIET]
    end = now if quiet is None else read_quiet(quiet).end_after(now)
    return (*row[:_DUE], stamp(end), *row[_DUE + 1 :]) if end > now else row


_DUE, _QUIET = STAGED.index("due"), STAGED.index("quiet")


class GatheredWrite(OutboxWrite):
    """The write of a run's contributions to digests."""

    def __init__(self, clock: OutboxClock) -> None:
        super().__init__(DIGESTS, CONTRIBUTED, clock, self._with_times)
        self.has_times = True
        self.row_count = 0
        self._timings: dict[str, MessageTiming] = {}

    def gather(self, digest: str, timing: MessageTiming) -> None:
        """Have the contributions to a digest due by its times."""
        self._timings[digest] = timing

    def _with_times(self, row: Row, now: datetime) -> Row:
        values = dict(zip(CONTRIBUTED, row, strict=True))
        due, latest = self._timings[values["digest"]].due(now)
        values |= {"created": stamp(now), "due": stamp(due), "latest": stamp(latest)}
        return tuple(values.values())


def _portions(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Rows by about as many bytes, not by number: some messages carry large attachments."""
    portion: Batch = []
    size = 0
    for batch in batches:
        portion += batch
        size += sum(map(row_size, batch))
        if size >= _PORTION_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


class DigestRecipe(msgspec.Struct, frozen=True):
    """All that a statement says of the messages about what its runs gather.

    `statement` identifies it among those of its plan, from run to run. `content` is plain JSON, for the
    channel that composes the messages.
    """

    channel: str
    account: str
    statement: tuple[str | int, ...]
    content: Mapping[str, Any]
    timing: MessageTiming
    delivery: Delivery = "at-least-once"

    def as_json(self) -> dict[str, Any]:
        """Return the recipe as contributions hold it. One with other times is another recipe."""
        timing = self.timing
        times = {"digest": timing.digest, "debounce": timing.debounce, "quiet": timing.quiet}
        texts = {name: None if time is None else str(time) for name, time in times.items()}
        return {"content": dict(self.content), "delivery": self.delivery, **texts}


class Outbox:
    """Where operators post messages; a service of the run. They leave when it has ended well, or never."""

    scope: ClassVar[Scope] = "run"

    def __init__(self, host: ServiceHost, run: RunInfo) -> None:
        self._host = host
        self._run = run
        self._transaction = host.service(Transaction)
        self._settings: OutboxSettings = as_configuration(host.configuration).section(OUTBOX)
        self._clock = host.service(OutboxClock)
        self._posted: PostedWrite | None = None
        self._gathered: GatheredWrite | None = None
        self._address: Address | None = None
        self._is_closed = False
        self._is_committed = False
        self._sent = 0
        self._dead = 0
        self._waiting: int | None = None  # None where nobody has looked
        self._quiet = 0

    @classmethod
    def open_service(cls, host: ServiceHost) -> Outbox:
        assert host.run is not None, "an outbox belongs to a run"
        return cls(host, host.run)

    async def close(self) -> None:
        """The messages that were posted belong to the transaction, which releases them."""
        self._is_closed = True
        for write in (self._posted, self._gathered):
            if write is not None:
                await write.memory.disk.close()

    def account(self) -> AccountEntry | None:
        """Return what became of messages, those of earlier runs included, which are delivered as well."""
        posted = 0 if self._posted is None else self._posted.count
        figures = {"posted": posted, "committed": self._is_committed}
        gathered = 0 if self._gathered is None else self._gathered.row_count
        if gathered:
            figures |= {"gathered": gathered}
        if self._waiting is not None:
            figures |= {"delivered": self._sent, "waiting": self._waiting, "dead": self._dead}
        lines = tuple(filter(None, (self._line(posted), self._gathered_line(gathered))))
        return AccountEntry("messages", figures, lines) if lines else None

    def _gathered_line(self, count: int) -> str:
        """`3 tuples gathered for a digest`."""
        is_lost = self._is_closed and not self._is_committed
        return (
            f"{count_text(count, 'tuple')} {'not ' if is_lost else ''}gathered for a digest" if count else ""
        )

    def _line(self, posted: int) -> str:
        """`2 messages delivered, 1 waiting`."""
        if not self._is_committed or self._waiting is None:
            became = "not sent" if self._is_closed and not self._is_committed else "in the outbox"
            return f"{count_text(posted, 'message')} {became}" if posted else ""
        became_of = (
            *((self._sent, "delivered"), (self._waiting, "waiting")),
            *((self._quiet, "in quiet hours"), (self._dead, "given up")),
        )
        told = [(number, words) for number, words in became_of if number]
        if posted and not told:  # another process was faster
            return f"{count_text(posted, 'message')} in the outbox"
        first = [f"{count_text(number, 'message')} {words}" for number, words in told[:1]]
        return ", ".join([*first, *(f"{number:,} {words}" for number, words in told[1:])])

    async def post(
        self,
        channel: str,
        account: str | None,
        content: Mapping[str, Any],
        *,
        where: str,
        delivery: Delivery = "at-least-once",
        database: str | None = None,
        quiet: QuietHours | None = None,
    ) -> str:
        """Stage a message; returns its key, which every copy of it will carry. `content` is plain JSON.

        It is not delivered in `quiet` hours.
        """
        key = uuid4().hex
        posted = self._posted_to(database)
        posted.has_times = posted.has_times or quiet is not None
        posted.add(
            *(key, channel, account or "", as_json(content), delivery, "waiting", 0),
            *(stamp(datetime.now(UTC)), posted.count, AT_ONCE, "{}", self._run.run_id, where),
            None if quiet is None else str(quiet),
        )
        await posted.memory.disk.room.wait()  # messages that are still to be written to disk are in memory
        return key

    @property
    def most_gathered(self) -> tuple[int, int]:
        """The most rows, and bytes of them, that a digest gathers."""
        return self._settings.digest_rows, self._settings.digest_bytes

    async def gather(
        self,
        recipe: DigestRecipe,
        rows: GatheredRows,
        *,
        doubt: str = "",
        where: str,
        database: str | None = None,
    ) -> str:
        """Stage rows for a digest; return the key of the digest.

        All runs of a task share the digests of their statements, as long as the recipes stay the same.
        """
        self.attend(database)
        if self._gathered is None:
            self._gathered = GatheredWrite(self._clock)
        gathered, run = self._gathered, self._run
        self._transaction.stage(database, gathered)
        described = recipe.as_json()
        identity = (run.plan, run.task, recipe.statement, recipe.channel, recipe.account, described)
        digest = digest_key(*identity)
        gathered.gather(digest, recipe.timing)
        gathered.row_count += rows.row_count
        gathered.add(
            *(uuid4().hex, digest, recipe.channel, recipe.account, rows.row_count, rows.byte_count),
            *(AT_ONCE, gathered.count, AT_ONCE, AT_ONCE, run.run_id, where, doubt, as_json(described)),
            rows.text,
        )
        await gathered.memory.disk.room.wait()
        return digest

    def attend(self, database: str | None) -> None:
        """Have what is due delivered when the run has ended well, even if it posts nothing itself."""
        self._posted_to(database)

    def _posted_to(self, database: str | None) -> PostedWrite:
        if self._posted is None:
            self._posted = PostedWrite(self._clock)
            self._address = self._transaction.database_of(database)
        # Staged with every message: the transaction refuses another database.
        self._transaction.stage(database, self._posted)
        return self._posted

    async def committed(self) -> Deliveries | None:
        """Deliver what is due in the database, whichever run posted it; return what became of it.

        None means that nothing was tried. A failure is a warning of the run, which has committed.
        """
        if self._address is None:
            return None  # no statement has posted, or asked for deliveries
        self._is_committed = True
        if not self._settings.deliver_seconds:
            return None
        if self._address.path is not None and not self._address.path.exists():
            return None  # the outbox was never used, and looking would make the file
        try:
            report = await self._delivered(self._address)
        except Exception as error:
            self._host.warn(f"messages wait to be delivered: {type(error).__name__}: {error}")
            return None
        self._sent += report.sent
        self._dead += report.dead
        self._waiting = sum(each.count for each in report.waiting) + report.unnoted_count
        self._quiet = sum(each.count for each in report.quiet)
        for warning in report_warnings(report, self._address, datetime.now(UTC)):
            self._host.warn(warning)
        return Deliveries(report.sent, report.dead, self._waiting)

    async def _delivered(self, address: Address) -> Report:
        databases = self._host.service(Databases)
        if not await self._is_there(databases, address):
            return Report()
        host = self._host
        opened = opened_courier(
            *(databases, address, host.configuration, host.warn),
            clock=self._clock.now,
            around=lambda courier: host.if_interrupted(courier.interrupt),
        )
        async with opened as courier:
            # What was handed over is noted, also where the run ends meanwhile: else it would go twice.
            return await run_shielded(courier.deliver(self._settings.deliver_seconds), courier.stop)

    async def _is_there(self, databases: Databases, address: Address) -> bool:
        connection = await databases.connect(address)
        try:
            return await are_there(connection, address)
        finally:
            await connection.close()


def report_warnings(report: Report, address: Address, now: datetime) -> list[str]:
    """Return the warnings about messages that the run could not deliver."""
    database = "" if address.name == DEFAULT else f" --db {address.name}"
    look = f"see `aioflow outbox list{database}`"
    count = sum(waiting.count for waiting in report.waiting)
    warnings = []
    if report.dead:
        reasons = ", ".join(f"{account}: {words}" for account, words in report.last_words.items())
        died = count_text(report.dead, "message")
        warnings.append(f"{died} could not be delivered, nor will be ({reasons or 'given up'}); {look}")
    if report.is_interrupted and not report.troubles:
        sends = (
            f"; `aioflow outbox deliver{database}` sends {'it' if count == 1 else 'them'}" if count else ""
        )
        warnings.append(
            f"interrupted during delivery: all that the run wrote is stored, and "
            f"{_in_outbox(count + report.unnoted_count)}{sends}"
        )
    elif count or report.troubles:
        warnings.append(f"{_waiting_text(report, count, now)}; {look}")
    if report.unnoted:
        warnings.append(f"{report.unnoted_text}; {look}")
    return warnings


def _in_outbox(count: int) -> str:
    return (
        f"{count_text(count, 'message')} wait{'s' if count == 1 else ''} in the outbox"
        if count
        else "no message waits"
    )


def _waiting_text(report: Report, count: int, now: datetime) -> str:
    """`2 messages wait to be delivered (email home: refused); next try in 12.0 s`."""
    reasons = [*dict.fromkeys(report.troubles)]
    reasons += [f"{each.account}: {each.reason}" for each in report.waiting if each.reason]
    counted = f"{count_text(count, 'message')} wait{'s' if count == 1 else ''}" if count else "messages wait"
    text = f"{counted} to be delivered"
    text += f" ({', '.join(reasons)})" if reasons else ""
    times = [each.due for each in report.waiting if each.due is not None and each.due > now]
    if not times:
        return f"{text}; `aioflow outbox deliver` tries again"
    wait = duration_text((min(times) - now).total_seconds())
    return f"{text}; next try in {wait}, by `aioflow outbox deliver` or a later run"
