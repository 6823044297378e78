"""Everything that people do with the databases of tasks: their outboxes, and what diff holds back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Literal, TypeAlias, TypeVar

import msgspec

from aioflow.config.configuration import Configuration
from aioflow.config.masking import mask, masked_logger
from aioflow.errors import InputError, suggestion
from aioflow.messages.outbox.courier import opened_courier
from aioflow.messages.outbox.digest_table import DigestTable, GatheringDigest
from aioflow.messages.outbox.message import State, summary_of
from aioflow.messages.outbox.rows import OutboxEntry
from aioflow.messages.outbox.table import OutboxTable
from aioflow.runtime.shielded import run_shielded
from aioflow.service.errors import NotFoundError
from aioflow.state.databases import Databases
from aioflow.state.diff.suspects import Suspect, confirm_suspect, forget_suspect, read_suspects
from aioflow.state.driver import Address, Connection
from aioflow.state.errors import BusyError, VersionError
from aioflow.state.lock_wait import LockWait
from aioflow.state.system_tables import OWN_TABLES, are_there, found_version

T = TypeVar("T")
MessageChange: TypeAlias = Literal["retry", "drop"]

_LOG = masked_logger("aioflow.service")
_DONE: tuple[State, ...] = ("sent", "dropped")
_GATHERING = "gathering"  # the state of a digest that is not composed yet
_DELIVER_SECONDS = 30.0


class DatabaseView(msgspec.Struct, frozen=True):
    """A database. `id` is a digest of its address, since several may be called `default`."""

    id: str
    name: str
    address: str
    is_service: bool


class MessageView(msgspec.Struct, frozen=True):
    """A message of an outbox, or a digest that is `gathering`."""

    key: str
    state: str
    channel: str
    account: str
    message: str
    attempts: int
    created: datetime | None
    due: datetime | None
    error: str | None
    delivery: str | None = None
    leased_by: str | None = None
    leased_until: datetime | None = None
    sent: datetime | None = None
    answer: str | None = None
    run_id: str | None = None
    statement: str | None = None
    tuples: int | None = None  # of a digest


class ChangedMessage(msgspec.Struct, frozen=True):
    """A message that was to be changed; `problem` says why it was not."""

    key: str
    problem: str = ""


class DeliveryReport(msgspec.Struct, frozen=True):
    """The outcome of a delivery."""

    sent: int
    failed: int
    dead: int
    waiting: int
    quiet: int
    gathering: int
    troubles: list[str]


class SuspectView(msgspec.Struct, frozen=True):
    """The changes that diff holds back from a table."""

    table: str
    held: str
    rows: int
    gone: int
    added: int
    changed: int
    columns: list[str]
    incomplete: bool
    reasons: list[str]
    noticed: datetime
    seen: datetime
    confirmed: str
    run_id: str


def database_id(address: Address) -> str:
    """Return the id of a database; the address itself may hold a password."""
    return blake2b(address.url.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


class DatabaseActions:
    """Actions on outboxes and suspects."""

    def __init__(self, databases: Databases, configuration: Configuration) -> None:
        self._databases = databases
        self._configuration = configuration

    # --- messages -------------------------------------------------------------------------------

    async def list_messages(
        self, address: Address, *, everything: bool = False, after: str | None = None, limit: int = 50
    ) -> list[MessageView]:
        """Return messages, the oldest first, after the one with the key `after`; digests come last."""
        found: list[MessageView] = []
        async with self._outbox(address, to_change=False) as table:
            if table is None:
                return []
            is_after = after is None
            async with aclosing(table.entries(but=() if everything else _DONE)) as entries:
                async for entry in entries:
                    if is_after:
                        found.append(_message(entry))
                    is_after = is_after or entry.message.key == after
                    if len(found) == limit:
                        return found
            digests = DigestTable(table)
            for digest in await digests.gathering():
                if is_after:
                    found.append(_digest(digest, await digests.recipe(digest.key)))
                is_after = is_after or digest.key == after
        return found[:limit]

    async def change_messages(
        self, address: Address, keys: Sequence[str], change: MessageChange
    ) -> list[ChangedMessage]:
        """Have messages tried again, or never; if one of the keys is wrong, none of them."""
        async with self._outbox(address, to_change=True) as table:
            if table is None:
                raise NotFoundError(f"there are no messages in {address.shown}")
            found = dict([await _found(table, key) for key in keys])
            now = datetime.now(UTC) + await table.time_ahead()
            return [await self._change(address, table, key, found[key], change, now) for key in found]

    async def _change(
        self,
        address: Address,
        table: OutboxTable,
        key: str,
        state: str,
        change: MessageChange,
        now: datetime,
    ) -> ChangedMessage:
        async def work() -> bool:
            if state == _GATHERING:
                digests = DigestTable(table)
                return await (digests.retry if change == "retry" else digests.drop)(key)
            return await (table.retry if change == "retry" else table.drop)(key, now)

        if await self._when_unlocked(address, work):
            return ChangedMessage(key)
        present = dict(await table.matching(key)).get(key, "composed")
        return ChangedMessage(
            key, "it is just being delivered" if present == "sending" else f"it is {present} already"
        )

    async def retry_dead(self, address: Address) -> int:
        """Have all messages tried again that were given up; return their number."""
        async with self._outbox(address, to_change=True) as table:
            return 0 if table is None else await self._when_unlocked(address, table.retry_dead)

    async def deliver(self, address: Address, *, early: bool = False) -> DeliveryReport:
        """Deliver the messages that wait, for a while; with `early` also digests, and in quiet hours."""
        async with self._outbox(address, to_change=True) as table:
            if table is None:
                raise NotFoundError(f"there are no messages in {address.shown}")
        opened = opened_courier(self._databases, address, self._configuration, _LOG.warning, early=early)
        async with opened as courier:
            report = await run_shielded(courier.deliver(_DELIVER_SECONDS, everything=True), courier.interrupt)
        return DeliveryReport(
            *(report.sent, report.failed, report.dead, sum(each.count for each in report.waiting)),
            *(sum(each.count for each in report.quiet), len(report.gathering)),
            [mask(each) for each in dict.fromkeys(report.troubles)],
        )

    @asynccontextmanager
    async def _outbox(self, address: Address, *, to_change: bool) -> AsyncIterator[OutboxTable | None]:
        """Open the outbox of a database; None if no plan has ever written to the database."""
        if address.is_missing:
            yield None
            return
        connection = await self._databases.connect(address)
        try:
            version = await found_version(connection, address, OWN_TABLES)
            if to_change and version:
                await self._databases.prepare(connection, address, _LOG.warning)
        finally:
            await connection.close()
        if 0 < version < OWN_TABLES.version and not to_change:
            raise VersionError(
                f"{address.shown}: an older version of aioflow made its tables; a delivery upgrades them"
            )
        table = OutboxTable(lambda: self._databases.connect(address))
        try:
            yield table if version else None
        finally:
            await table.close()

    async def _when_unlocked(self, address: Address, work: Callable[[], Awaitable[T]]) -> T:
        """Do work on a database, after a run that is writing to it."""
        lock = self._lock(address)
        while True:
            try:
                return await work()
            except BusyError as error:
                await lock.pause(error)

    def _lock(self, address: Address) -> LockWait:
        return LockWait(address, self._databases.settings(address.name).wait_seconds, _LOG.warning)

    # --- suspects -------------------------------------------------------------------------------

    async def list_suspects(self, address: Address) -> list[SuspectView]:
        """Return what diff holds back, by table."""
        connection = await self._databases.connect_to_read(address)
        try:
            return [_suspect(each) for each in await _suspects(connection, address)]
        finally:
            await connection.close()

    async def confirm_suspect(self, address: Address, table: str, *, quietly: bool) -> SuspectView:
        """Let the next whole run apply what is held back now, and tell it unless it does so `quietly`."""

        async def change(connection: Connection) -> None:
            await confirm_suspect(connection, table, quietly=quietly)

        return await self._change_suspect(address, table, change)

    async def forget_suspect(self, address: Address, table: str) -> SuspectView:
        """Forget what is held back of a table."""

        async def change(connection: Connection) -> None:
            await forget_suspect(connection, table)

        return await self._change_suspect(address, table, change)

    async def _change_suspect(
        self, address: Address, table: str, change: Callable[[Connection], Awaitable[None]]
    ) -> SuspectView:
        """Change what is held back of a table; return it as it was before."""
        connection = await self._databases.connect_to_read(address)
        try:
            found = {each.table: each for each in await _suspects(connection, address)}
            if table not in found:
                known = ", ".join(found) or "none"
                hint = suggestion(table, found)
                raise NotFoundError(
                    f"nothing is held back from the table {table[:80]!r}{hint} (suspect: {known})"
                )
            async with AsyncExitStack() as stack:
                await self._lock(address).enter(connection, stack)
                await change(connection)
            return _suspect(found[table])
        finally:
            await connection.close()


async def _suspects(connection: Connection, address: Address) -> list[Suspect]:
    return await read_suspects(connection) if await are_there(connection, address) else []


async def _found(table: OutboxTable, prefix: str) -> tuple[str, str]:
    """Return the key and the state of the message or digest whose key begins so."""
    digests = await DigestTable(table).matching(prefix)
    found = [*await table.matching(prefix), *((key, _GATHERING) for key in digests)]
    if not found:
        raise NotFoundError(f"there is no message whose key begins with {prefix[:80]!r}")
    if len(found) > 1:
        keys = ", ".join(key for key, _ in found)
        raise InputError(f"several keys begin with {prefix[:80]!r}: {keys}")
    return found[0]


def _message(entry: OutboxEntry) -> MessageView:
    message = entry.message
    return MessageView(
        key=message.key,
        state=entry.state,
        channel=message.channel,
        account=message.account,
        message=mask(message.summary),
        attempts=message.attempts,
        created=message.created,
        due=entry.due,
        error=None if entry.last_error is None else mask(entry.last_error),
        delivery=message.delivery,
        leased_by=entry.leased_by,
        leased_until=entry.leased_until,
        sent=entry.sent_at if entry.state == "sent" else None,
        answer=None if entry.answer is None else mask(entry.answer),
        run_id=message.run_id,
        statement=message.statement,
    )


def _digest(digest: GatheringDigest, recipe: str) -> MessageView:
    try:
        about = summary_of(json.loads(recipe)["content"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        about = ""  # it is damaged
    return MessageView(
        *(digest.key, _GATHERING, digest.account.channel, digest.account.account, mask(about), 0),
        *(digest.created, digest.due, digest.last_error),
        tuples=digest.row_count,
    )


def _suspect(found: Suspect) -> SuspectView:
    return SuspectView(
        table=found.table,
        held=found.held,
        rows=found.total,
        gone=found.gone,
        added=found.added,
        changed=found.changed,
        columns=list(found.columns),
        incomplete=found.incomplete,
        reasons=[mask(reason.text) for reason in found.reasons],
        noticed=found.noticed,
        seen=found.seen,
        confirmed=found.confirmed,
        run_id=found.run_id,
    )
