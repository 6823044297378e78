"""The courier claims messages of an outbox, hands them to channels and notes the outcomes.

Any number of couriers may work on one outbox, in any number of processes. A claim is a lease: when a courier
dies while it delivers, another one takes the message over, unless it must not be sent twice. Leases go by the
clock of the database, which all couriers share. Between two readings of that clock the time of the loop
counts. Deliveries open a courier with all that it needs, in a run or outside of one.
"""

from __future__ import annotations

import asyncio
import math
import os
import random as chance
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import msgspec

from aioflow.config.configuration import as_configuration
from aioflow.messages.channels import Channels, NoChannel
from aioflow.messages.outbox.attempt import Attempt, DeliveryContext, DeliveryOutcome
from aioflow.messages.outbox.composing import DigestComposer
from aioflow.messages.outbox.digest_table import DigestTable, GatheringDigest, gathering
from aioflow.messages.outbox.message import Channel, Cutoff
from aioflow.messages.outbox.rows import Held, OutboxAccount, StuckMessages, Waiting, moment_of
from aioflow.messages.outbox.settings import OUTBOX, OutboxSettings
from aioflow.messages.outbox.table import OutboxTable, stuck_in_table, time_ahead
from aioflow.runtime.shielded import run_shielded
from aioflow.state.crash_points import moment
from aioflow.state.databases import Databases
from aioflow.state.driver import Address, Connection
from aioflow.state.errors import BusyError, StateError
from aioflow.state.lock_wait import LockWait
from aioflow.state.system_tables import DIGESTS, OWN_TABLES, found_version
from aioflow.state.system_tables import OUTBOX as TABLE
from aioflow.values.quantities import count_text, duration_text

_ACCOUNTS_AT_ONCE = 16
# An account where nothing arrives is left alone for a while, instead of trying all that waits for it.
_FAILURES_IN_A_ROW = 3
_LOOK_SECONDS = 2.0
_NOT_CONFIGURED_SECONDS = 60.0
_TIDY_SECONDS = 3600.0
# Before a message is taken over. Whoever waits for the database looks at it twice in such a time.
_NOTICES = 2
_NOTICE_SECONDS = 1.0
# Before its time is over a courier claims nothing more, then cuts deliveries short, then takes leave. Without
# the first pause it would cut one short whenever much waits, and a copy may come of that.
_LAST_CLAIM_SECONDS = 5.0
_LEAVING_SECONDS = 1.0
# For deliveries under way, when somebody interrupts: most receivers answer in that time.
GRACE_SECONDS = 2.0

_CLAIMING = moment("message claiming", "a message is due, and not claimed yet")
_CLAIMED = moment("message claimed", "the lease is durable, the channel has not been called")


class Report(msgspec.Struct):
    """The work of a courier."""

    sent: int = 0
    failed: int = 0  # attempts after which there will be another
    dead: int = 0
    last_words: dict[OutboxAccount, str] = msgspec.field(
        default_factory=dict
    )  # the latest error of each account
    troubles: list[str] = msgspec.field(default_factory=list)  # with the database
    waiting: list[Waiting] = msgspec.field(default_factory=list)  # when the courier ended
    quiet: list[Waiting] = msgspec.field(default_factory=list)  # for the end of their quiet hours, likewise
    gathering: list[GatheringDigest] = msgspec.field(default_factory=list)  # digests, likewise
    held: list[Held] = msgspec.field(default_factory=list)  # by others, when the courier ended
    unnoted: list[Held] = msgspec.field(default_factory=list)  # still leased to the courier when it had ended
    is_interrupted: bool = False

    @property
    def unnoted_count(self) -> int:
        """Return the number of messages with an outcome that could not be noted."""
        return sum(each.count for each in self.unnoted)

    @property
    def unnoted_text(self) -> str:
        """Return `the outcome of 1 message could not be noted in the database; …`, or "" for none."""
        if not self.unnoted:
            return ""
        ends = [each.until for each in self.unnoted if each.until is not None]
        at = f", at {max(ends).astimezone():%H:%M:%S}," if ends else ""
        they, their = (
            ("it is", "its lease has") if self.unnoted_count == 1 else ("they are", "their leases have")
        )
        return (
            f"the outcome of {count_text(self.unnoted_count, 'message')} could not be noted in the database; "
            f"{they} taken up again when {their} ended{at} by `aioflow outbox deliver` or a later run"
        )


class Courier:
    """Delivers the messages of one outbox until none is due, or as long as it is told to.

    Digests that are due are composed first. With `early` all are, and quiet hours do not count.
    """

    def __init__(
        self,
        table: OutboxTable,
        channels: Channels,
        settings: OutboxSettings,
        address: Address,
        warn: Callable[[str], None],
        *,
        clock: Callable[[], datetime] | None = None,
        random: Callable[[], float] = chance.random,
        early: bool = False,
        listener: Callable[[str, OutboxAccount, DeliveryOutcome], None] = lambda key, account, outcome: None,
    ) -> None:
        owner = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"
        self._cutoff = Cutoff()
        self._context = DeliveryContext(
            table, settings, address, warn, owner, self._now, random, self._cutoff, early
        )
        self._table = table
        self._digests = DigestTable(table)
        self._composer = DigestComposer(self._digests, channels, settings, warn, early=early)
        self._channels = channels
        self._settings = settings
        self._clock = clock
        self._listener = listener
        self._seen_at = (0.0, datetime.now(UTC))  # the loop's time, and the database's at that moment
        self._until = math.inf
        self._is_patient = False  # waits for what failed and is to be tried again
        self._everything = False  # delivers what waits whenever it is due, once
        self._served: set[OutboxAccount] = set()
        self._unreachable: set[OutboxAccount] = (
            set()
        )  # accounts at whose receivers the last attempt did not arrive
        self._looks_again = False
        self.report = Report()
        self._busy: set[OutboxAccount] = set()
        self._rests: dict[OutboxAccount, datetime] = {}
        self._again: dict[str, datetime] = {}  # messages that were tried, and when they are to be again
        self._lost: dict[str, datetime] = {}  # messages whose outcome could not be noted, and till when
        self._tidied = datetime.min.replace(tzinfo=UTC)
        self._defect: BaseException | None = None
        self._changed = asyncio.Event()

    async def deliver(self, seconds: float | None = None, *, everything: bool = False) -> Report:
        """Deliver all that is due, once; or for so many seconds, also what becomes due again in them.

        The seconds are the most that this takes, whatever receivers do. With `everything` all that waits is
        tried once, also what is to be tried again later.
        """
        self._everything = everything
        self._is_patient = seconds is not None
        if seconds is not None:
            self._end_within(seconds)
        try:
            await self._set_clock()
            await self._work()
            self.report.waiting = await self._table.waiting(self._now())
            self.report.quiet = await self._table.quiet(self._now())
            self.report.gathering = await self._digests.gathering()
            self.report.held = await self._table.held(self._now(), self._context.owner)
            self.report.unnoted = await self._table.held_by(self._now(), self._context.owner)
        except StateError as error:
            self.report.troubles.append(str(error))
        return self.report

    def _end_within(self, seconds: float) -> None:
        end = asyncio.get_running_loop().time() + seconds
        self._until = min(self._until, end - min(_LAST_CLAIM_SECONDS, seconds / 4))
        reason = f"the {duration_text(seconds)} of outbox deliver_seconds were over"
        self._cutoff.bring_forward(end - min(_LEAVING_SECONDS, seconds / 10), reason)

    def stop(self) -> None:
        """Claim nothing more: `deliver` and `watch` end when what is under way is delivered and noted."""
        self._until = -math.inf
        self._changed.set()

    def interrupt(self) -> None:
        """End in a moment: claim nothing more, and soon cut short what is under way."""
        self.stop()
        self.report.is_interrupted = True
        self._cutoff.bring_forward(asyncio.get_running_loop().time() + GRACE_SECONDS, "interrupted", 0.0)

    async def watch(self) -> Report:
        """Deliver whatever becomes due, until it is stopped; a database that is away is waited for."""
        self._looks_again = True
        told = ""
        while not self._is_stopped:
            try:
                await self._work()
            except StateError as error:
                self.report.troubles.append(str(error))
            trouble = self.report.troubles.pop() if self.report.troubles else ""
            self.report.troubles.clear()
            if trouble and trouble != told:
                self._context.warn(f"{trouble}; trying again until it works")
                told = trouble
            if trouble and not self._is_stopped:
                self._changed.clear()
                await self._wait(_LOOK_SECONDS)
        return await self.deliver()

    async def _wait(self, seconds: float) -> None:
        """Wait until something has changed, no longer than this."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    # --- time -------------------------------------------------------------------------------------

    async def _set_clock(self) -> None:
        if self._clock is None:
            ahead = await self._table.time_ahead()
            self._seen_at = asyncio.get_running_loop().time(), datetime.now(UTC) + ahead

    def _now(self) -> datetime:
        if self._clock is not None:
            return self._clock()
        at, then = self._seen_at
        return then + timedelta(seconds=asyncio.get_running_loop().time() - at)

    @property
    def _is_stopped(self) -> bool:
        return self._until == -math.inf

    @property
    def _is_over(self) -> bool:
        over = asyncio.get_running_loop().time() >= self._until
        return over or bool(self.report.troubles) or self._defect is not None

    # --- accounts ---------------------------------------------------------------------------------

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            while not self._is_over:
                self._changed.clear()
                try:
                    await self._start(group)
                except StateError as error:  # not out of the group: that would break deliveries off
                    self.report.troubles.append(str(error))
                pause = self._pause()
                if pause is None:
                    break
                await self._wait(pause)
        if self._defect is not None:
            raise self._defect

    async def _start(self, group: asyncio.TaskGroup) -> None:
        """Start a delivery for every account with messages that are due."""
        if self._looks_again:
            await self._set_clock()
        now = self._now()
        with suppress(BusyError):  # another time
            await self._tidy(now)
        await self._compose()
        found = await self._table.accounts(now, everything=self._everything)
        self._count_damaged()
        for account in found:
            if len(self._busy) >= _ACCOUNTS_AT_ONCE:
                break
            if account not in self._busy | self._served and self._rests.get(account, now) <= now:
                self._busy.add(account)
                group.create_task(self._serve(account))
        self._again = {key: due for key, due in self._again.items() if due > now}
        self._lost = {key: until for key, until in self._lost.items() if until > now}

    async def _compose(self) -> None:
        """Compose the digests that are due, after runs that are writing."""
        for digest in await self._composer.due(self._now()):
            patience = self._patience()
            while not self._is_over:
                try:
                    await self._composer.compose(digest, self._now())
                    break
                except BusyError as error:
                    await patience.pause(error)
                except StateError:
                    raise
                except Exception as error:  # not out of the group, either
                    self._defect = error

    def _patience(self) -> LockWait:
        left = self._until - asyncio.get_running_loop().time()
        return LockWait(self._context.address, left, self._context.warn)

    async def _tidy(self, now: datetime) -> None:
        buried = await self._table.bury(now, self._settings.most_attempts)
        self.report.dead += buried  # not before: deliveries count meanwhile
        if now >= self._tidied + timedelta(seconds=_TIDY_SECONDS):
            buried = await self._table.bury_unknown()
            self.report.dead += buried
            await self._table.prune(now - timedelta(days=self._settings.keep_days))
            self._tidied = now

    def _count_damaged(self) -> None:
        self.report.dead, self._table.damaged = self.report.dead + self._table.damaged, 0

    def _pause(self) -> float | None:
        """Return the seconds until a delivery may start; None if there is nothing more to wait for."""
        left = self._until - asyncio.get_running_loop().time()
        if self._busy or self._looks_again:
            return min(_LOOK_SECONDS, left)
        now = self._now()
        if not self._again or not self._is_patient:
            return None
        wait = max((min(self._again.values()) - now).total_seconds(), 0.01)
        return wait if wait < left else None

    async def _serve(self, account: OutboxAccount) -> None:
        """Deliver for one account, one message after the other; what fails here breaks off no other's."""
        try:
            # A message for a channel that is unknown is for nobody to deliver: it is a dead letter.
            is_known = self._channels.knows(account.channel)
            problems = self._channels.problems(account.channel, account.account) if is_known else []
            if problems:
                await self._leave_waiting(account, "; ".join(problems))
            elif self._everything:
                await self._deliver_each(account)
            else:
                await self._deliver_all(account)
        except StateError as error:
            self.report.troubles.append(str(error))
        except Exception as error:
            self._defect = error
        finally:
            if self._everything:
                self._served.add(account)
            self._busy.discard(account)
            self._changed.set()

    async def _leave_waiting(self, account: OutboxAccount, problem: str) -> None:
        self.report.last_words[account] = problem
        self._rests[account] = self._now() + timedelta(seconds=_NOT_CONFIGURED_SECONDS)
        with suppress(BusyError):
            await self._table.explain(account, problem)

    async def _deliver_all(self, account: OutboxAccount) -> None:
        failures = 0
        while keys := await self._claimable(account):
            for key in keys:
                if self._is_over:
                    return
                if not await self._deliver_one(account, key):
                    continue
                failures = failures + 1 if key in self._again else 0
                if failures == _FAILURES_IN_A_ROW:
                    self._rests[account] = min(self._again.values())
                    return
        if self._lost:
            # They seem to be due, and are not for this courier: not to be looked for again at once.
            self._rests[account] = self._now() + timedelta(seconds=_LOOK_SECONDS)

    async def _deliver_each(self, account: OutboxAccount) -> None:
        """Try every message of an account once, as long as its receiver can be reached."""
        failures = 0
        for key in await self._claimable(account):
            if self._is_over:
                return
            self._unreachable.discard(account)
            await self._deliver_one(account, key)
            failures = failures + 1 if account in self._unreachable else 0
            if failures == _FAILURES_IN_A_ROW:
                return

    async def _claimable(self, account: OutboxAccount) -> list[str]:
        now = self._now()
        keys = await self._table.claimable(account, now, everything=self._everything)
        self._count_damaged()
        # What was handed over here, and could not be noted, is not handed over again in the same round.
        return [key for key in keys if key not in self._lost]

    # --- one message --------------------------------------------------------------------------------

    async def _deliver_one(self, account: OutboxAccount, key: str) -> bool:
        """Claim and deliver a message. Return False if another courier was faster."""
        attempt = Attempt(self._context, key)
        self._again.pop(key, None)
        try:
            if not await self._claim(key):
                return False
            _CLAIMED()
            outcome = await attempt.make(self._channel(account.channel))
        except BaseException as error:
            # Cancelled, or the database failed: nobody is to wait for a lease that is of no use any more.
            await attempt.abandon(error)
            raise
        if outcome is None:
            self._lost[key] = self._now() + timedelta(seconds=self._settings.lease_seconds)
        else:
            self._count(key, account, outcome)
        return True

    def _channel(self, kind: str) -> Channel:
        return self._channels.get(kind) if self._channels.knows(kind) else NoChannel(kind)

    def _count(self, key: str, account: OutboxAccount, outcome: DeliveryOutcome) -> None:
        report = self.report
        if outcome.state == "sent":
            report.sent += 1
        elif outcome.state != "quiet":
            report.last_words[account] = outcome.error
            report.dead += outcome.state == "dead"
            report.failed += outcome.state == "waiting"
        if outcome.state == "waiting":
            self._again[key] = outcome.due
        if outcome.is_unreachable:
            self._unreachable.add(account)
        self._listener(key, account, outcome)

    async def _claim(self, key: str) -> bool:
        patience = self._patience()
        while True:
            _CLAIMING()
            now = self._now()
            try:
                claimed = await self._table.claim(
                    key, self._context.owner, now, self._lease_end(now), everything=self._everything
                )
                return claimed or await self._take_over(key, patience)
            except BusyError as error:
                if self._is_stopped:
                    return False
                await patience.pause(error)

    def _lease_end(self, now: datetime) -> datetime:
        return now + timedelta(seconds=self._settings.lease_seconds)

    async def _take_over(self, key: str, patience: LockWait) -> bool:
        """Claim a message whose lease has ended, unless its owner lives and notes what became of it.

        The owner may only have waited for a run that was writing. It is given notice, and time in which the
        database is free: whenever it is not, that time begins anew.
        """
        given = self._notice_end()
        has_notice = await self._table.give_notice(key, self._now(), given)
        free = 0
        while has_notice:
            await asyncio.sleep(_NOTICE_SECONDS)
            if self._is_over:
                return False
            try:
                if free == _NOTICES - 1:
                    until = self._lease_end(self._now())
                    return await self._table.take_over(key, given, self._context.owner, until)
                until = self._notice_end()
                has_notice = await self._table.repeat_notice(key, given, until)
                given, free = until, free + 1
            except BusyError as error:
                free = 0
                await patience.pause(error)
        return False

    def _notice_end(self) -> datetime:
        # Later than it is looked at, so that nobody else gives notice in between.
        return self._now() + timedelta(seconds=3 * _NOTICE_SECONDS)


Listener = Callable[[str, OutboxAccount, DeliveryOutcome], None]


@asynccontextmanager
async def opened_courier(
    databases: Databases,
    address: Address,
    configuration: Mapping[str, Any],
    warn: Callable[[str], None],
    *,
    clock: Callable[[], datetime] | None = None,
    early: bool = False,
    listener: Listener = lambda key, account, outcome: None,
    around: Callable[[Courier], AbstractContextManager[Any]] = nullcontext,
) -> AsyncIterator[Courier]:
    """Open a courier for a database that has an outbox. `around` lasts until its channels are closed."""
    table = OutboxTable(lambda: databases.connect(address))
    channels = Channels(configuration)
    settings = as_configuration(configuration).section(OUTBOX)
    courier = Courier(table, channels, settings, address, warn, clock=clock, early=early, listener=listener)
    with around(courier):
        try:
            yield courier
        finally:
            try:
                await channels.close()
            finally:
                await table.close()


async def deliver_due(
    databases: Databases,
    address: Address,
    configuration: Mapping[str, Any],
    warn: Callable[[str], None],
    seconds: float | None = None,
    *,
    clock: Callable[[], datetime] | None = None,
) -> Report:
    """Compose and deliver all that is due in a database, once; or for so many seconds, with all retries that
    become due in them.

    Nothing is made in a database that aioflow has never written to. A cancellation is raised after what is
    under way has been cut short and noted.
    """
    if not await _has_outbox(databases, address, warn):
        return Report()
    async with opened_courier(databases, address, configuration, warn, clock=clock) as courier:
        return await run_shielded(courier.deliver(seconds), courier.interrupt)


async def stuck_messages(connection: Connection) -> list[StuckMessages]:
    """Return the messages and digests of a database that could not leave, and those that were given up."""
    for table in (TABLE, DIGESTS):
        if await connection.columns(table) is None:
            return []
    digests = [
        StuckMessages(1, each.created, False, each.last_error)
        for each in await gathering(connection)
        if each.last_error is not None
    ]
    return [*await stuck_in_table(connection), *digests]


async def _has_outbox(databases: Databases, address: Address, warn: Callable[[str], None]) -> bool:
    """Return whether a database has system tables; those of an older version are upgraded."""
    if address.is_missing:
        return False
    connection = await databases.connect(address)
    try:
        version = await found_version(connection, address, OWN_TABLES)
        if 0 < version < OWN_TABLES.version:
            await databases.prepare(connection, address, warn)
        return version > 0
    finally:
        await connection.close()


async def next_due(
    connection: Connection, settings: OutboxSettings | None = None, *, now: datetime | None = None
) -> datetime | None:
    """Return the moment at which the next message or digest of a database is to be delivered.

    It is the present, by the clock of the database, if one is due already. None means that nothing waits. A
    message that a process is delivering counts from the end of its lease on.
    """
    for table in (TABLE, DIGESTS):
        if await connection.columns(table) is None:
            return None
    rows = await connection.fetch(
        f"SELECT min(due) FROM {TABLE} WHERE state = 'waiting' UNION ALL "
        f"SELECT min(leased_until) FROM {TABLE} WHERE state = 'sending'"
    )
    present = now or datetime.now(UTC) + await time_ahead(connection)
    # A text that is no time makes a message due at once.
    found = [moment_of(text) or present for (text,) in rows if text is not None]
    for digest in await gathering(connection):
        is_due = digest.is_due(present, settings or OutboxSettings())
        found.append(present if is_due or digest.due is None else digest.due)
    return max(present, min(found)) if found else None
