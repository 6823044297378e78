"""The table of messages in a database: every statement about it, each atomic by itself.

A message is `waiting`, or `sending` under a lease that ends some time, then `sent`, `dead` or `dropped`.
Every change says what it expects to find, so that of several processes one succeeds, and the others learn of
it by the number of rows. None of them needs a transaction: they wait for nobody but a run that is writing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, TypeVar, cast

from aioflow.dataclass import dataclass
from aioflow.messages.message import Delivery, Message, State
from aioflow.relation import Row, Schema
from aioflow.state.driver import Connection, Dialect
from aioflow.state.errors import DisconnectedError, StateError
from aioflow.state.own_tables import OUTBOX, from_stamp, stamp

T = TypeVar("T")
Connect: TypeAlias = Callable[[], Awaitable[Connection]]

STAGED = (
    *("key", "channel", "account", "content", "delivery", "state", "attempts", "created", "place", "due"),
    *("progress", "run_id", "statement"),
)
# Before every moment: a new message is due whatever the clocks of those who look at it say.
AT_ONCE = ""

_MESSAGE = "key, channel, account, content, delivery, run_id, statement, created, attempts, progress"
_DETAILS = "state, due, leased_by, leased_until, last_error, answer, sent_at"
_FREE = "leased_by = NULL, leased_until = NULL"
_DUE = "state = 'waiting' AND due <= {}"
_EXPIRED = "state = 'sending' AND leased_until < {}"
_LOST = f"{_EXPIRED} AND delivery = 'at-least-once'"
_TAKEN = "state = 'sending', leased_by = {}, leased_until = {}, attempts = attempts + 1"
# Notices have different ends: nobody gives one before the last has ended.
_NOTICED = "key = {} AND state = 'sending' AND leased_until = {}"
# A message that was given up because its process seemed dead, and then turns out to be delivered after all.
_MINE = "key = {} AND leased_by = {} AND state IN ('sending', 'dead')"
_KEYS_AT_ONCE = 32
_CLOCKS_AGREE_SECONDS = 2.0


@dataclass(frozen=True)
class Account:
    """Where messages go to: a channel's account; one without a name is the default."""

    channel: str
    account: str

    def __str__(self) -> str:
        return f"{self.channel} {self.account}".strip()


@dataclass(frozen=True)
class Waiting:
    """How many messages of an account wait that nobody is delivering, the time of the next try, and why."""

    account: Account
    count: int
    due: datetime | None  # None: now
    reason: str | None


@dataclass(frozen=True)
class Entry:
    """A message with what became of it so far."""

    message: Message
    state: State
    due: datetime | None
    leased_by: str | None
    leased_until: datetime | None
    last_error: str | None
    answer: str | None
    sent_at: datetime | None


class OutboxTable:
    """The messages of one database. The connection is made when needed, and again after it was lost."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._connection: Connection | None = None
        self._using = asyncio.Lock()

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    # --- for a courier --------------------------------------------------------------------------

    async def time_ahead(self) -> timedelta:
        """How far the database's clock is ahead of ours; nothing when they agree to the second or two."""
        ((value,),) = await self._fetch("SELECT {now}")
        found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        there = found if found.tzinfo else found.replace(tzinfo=UTC)
        ahead = there - datetime.now(UTC)
        return ahead if abs(ahead.total_seconds()) > _CLOCKS_AGREE_SECONDS else timedelta()

    async def accounts(self, now: datetime) -> list[Account]:
        """Those with messages that can be claimed."""
        rows = await self._fetch(
            f"SELECT channel, account FROM {OUTBOX} WHERE {_DUE} UNION "
            f"SELECT channel, account FROM {OUTBOX} WHERE {_LOST} ORDER BY 1, 2",
            *(stamp(now), stamp(now)),
        )
        return [Account(*row) for row in rows]

    async def claimable(self, account: Account, now: datetime) -> list[str]:
        """The keys of some messages of an account that can be claimed, the oldest first."""
        parts = [
            f"SELECT * FROM (SELECT created, place, key FROM {OUTBOX} WHERE {condition} "
            f"AND channel = {{}} AND account = {{}} ORDER BY created, place LIMIT {_KEYS_AT_ONCE}) {name}"
            for name, condition in (("due", _DUE), ("lost", _LOST))
        ]
        values = (stamp(now), account.channel, account.account)
        rows = await self._fetch(f"{' UNION ALL '.join(parts)} ORDER BY 1, 2", *values, *values)
        return [row[2] for row in rows]

    async def claim(self, key: str, owner: str, now: datetime, until: datetime) -> bool:
        """Take a message that is due for oneself until then; whether it was still to be had."""
        return await self._changes(_TAKEN, f"key = {{}} AND {_DUE}", owner, stamp(until), key, stamp(now))

    async def give_notice(self, key: str, now: datetime, until: datetime) -> bool:
        """Tell the owner of a lease that has ended to note the outcome until then; whether there is one."""
        return await self._changes(
            "leased_until = {}", f"key = {{}} AND {_LOST}", stamp(until), key, stamp(now)
        )

    async def repeat_notice(self, key: str, given: datetime, until: datetime) -> bool:
        """Put the end of one's notice off; a BusyError when that cannot be done at once."""
        return await self._changes_at_once("leased_until = {}", _NOTICED, stamp(until), key, stamp(given))

    async def take_over(self, key: str, given: datetime, owner: str, until: datetime) -> bool:
        """Claim a message of which one has given notice; a BusyError when that cannot be done at once."""
        return await self._changes_at_once(_TAKEN, _NOTICED, owner, stamp(until), key, stamp(given))

    async def read(self, key: str, owner: str) -> Message | None:
        """A message that was claimed, as it is since then."""
        rows = await self._fetch(
            f"SELECT {_MESSAGE} FROM {OUTBOX} WHERE key = {{}} AND leased_by = {{}}", key, owner
        )
        return _message(rows[0]) if rows else None

    async def release(self, key: str, owner: str) -> bool:
        """Give a message back that was claimed and not touched."""
        return await self._changes(
            f"state = 'waiting', attempts = attempts - 1, {_FREE}",
            "key = {} AND leased_by = {} AND state = 'sending'",
            *(key, owner),
        )

    async def mark_sent(self, key: str, owner: str, answer: str, now: datetime) -> bool:
        return await self._changes(
            f"state = 'sent', answer = {{}}, sent_at = {{}}, last_error = NULL, {_FREE}",
            _MINE,
            *(answer, stamp(now), key, owner),
        )

    async def mark_waiting(
        self, key: str, owner: str, due: datetime, error: str, progress: Mapping[str, Any]
    ) -> bool:
        return await self._changes(
            f"state = 'waiting', due = {{}}, last_error = {{}}, progress = {{}}, {_FREE}",
            "key = {} AND leased_by = {} AND state = 'sending'",
            *(stamp(due), error, _progress(progress), key, owner),
        )

    async def mark_dead(self, key: str, owner: str, error: str, progress: Mapping[str, Any]) -> bool:
        return await self._changes(
            f"state = 'dead', last_error = {{}}, progress = {{}}, {_FREE}",
            _MINE,
            *(error, _progress(progress), key, owner),
        )

    async def bury(self, now: datetime, most_attempts: int) -> int:
        """Give up what a process died over: what must not be sent twice, or was tried too often."""
        condition = f"{_EXPIRED} AND (delivery = 'at-most-once' OR attempts >= {{}})"
        values = (stamp(now), most_attempts)
        if not await self._fetch(f"SELECT 1 FROM {OUTBOX} WHERE {condition} LIMIT 1", *values):
            return 0  # not even the lock is taken
        error = "the process that was delivering it ended: it may have been delivered"
        # It stays leased to that process: should it be alive, it knows better.
        return await self._change("state = 'dead', last_error = {}", condition, error, *values)

    async def explain(self, account: Account, error: str) -> None:
        """Note why an account's messages wait, though none was tried."""
        condition = (
            "state = 'waiting' AND channel = {} AND account = {} AND (last_error IS NULL OR last_error <> {})"
        )
        values = (account.channel, account.account, error)
        if await self._fetch(f"SELECT 1 FROM {OUTBOX} WHERE {condition} LIMIT 1", *values):
            await self._change("last_error = {}", condition, error, *values)

    async def waiting(self, now: datetime) -> list[Waiting]:
        """What still waits, by account."""
        rows = await self._fetch(
            f"SELECT channel, account, count(*), min(due), max(last_error) FROM {OUTBOX} "
            f"WHERE state = 'waiting' OR ({_LOST}) GROUP BY channel, account ORDER BY 1, 2",
            stamp(now),
        )
        return [
            Waiting(Account(channel, account), count, _moment(due), reason)
            for channel, account, count, due, reason in rows
        ]

    async def prune(self, before: datetime) -> int:
        """Let go of what was sent or dropped long ago."""
        if not await self._fetch(f"SELECT 1 FROM {OUTBOX} WHERE sent_at < {{}} LIMIT 1", stamp(before)):
            return 0
        return await self._run(f"DELETE FROM {OUTBOX} WHERE sent_at < {{}}", stamp(before))

    # --- for people -----------------------------------------------------------------------------

    async def entries(self, states: Sequence[State]) -> AsyncGenerator[Entry, None]:
        """The messages in these states, the oldest first; nobody else may use this table meanwhile."""
        among = ", ".join("{}" for _ in states)
        sql = (
            f"SELECT {_MESSAGE}, {_DETAILS} FROM {OUTBOX} WHERE state IN ({among}) "
            "ORDER BY created, place, key"
        )
        async with self._using:
            connection = await self._opened()
            async with aclosing(connection.select(_bound(connection.dialect, sql), states)) as found:
                async for batch in found:
                    for row in () if isinstance(batch, Schema) else batch:
                        yield _entry(row)

    async def matching(self, prefix: str) -> list[tuple[str, State]]:
        """The keys that begin so, and their states; no more than a few."""
        rows = await self._fetch(
            f"SELECT key, state FROM {OUTBOX} WHERE substr(key, 1, {len(prefix)}) = {{}} "
            "ORDER BY key LIMIT 3",
            prefix,
        )
        return [(key, state) for key, state in rows]

    async def retry(self, key: str, now: datetime) -> bool:
        """Have a message tried as if it were new; not one that was sent, or is just being delivered."""
        return await self._changes(
            f"state = 'waiting', attempts = 0, due = '{AT_ONCE}', sent_at = NULL, {_FREE}",
            f"key = {{}} AND (state IN ('waiting', 'dead', 'dropped') OR {_EXPIRED})",
            *(key, stamp(now)),
        )

    async def retry_dead(self) -> int:
        return await self._change(
            f"state = 'waiting', attempts = 0, due = '{AT_ONCE}', {_FREE}", "state = 'dead'"
        )

    async def drop(self, key: str, now: datetime) -> bool:
        """Have a message never tried again; not one that was sent, or is just being delivered."""
        return await self._changes(
            f"state = 'dropped', sent_at = {{}}, {_FREE}",
            f"key = {{}} AND (state IN ('waiting', 'dead') OR {_EXPIRED})",
            *(stamp(now), key, stamp(now)),
        )

    # --- statements -----------------------------------------------------------------------------

    async def _changes(self, changes: str, condition: str, *values: Any) -> bool:
        return await self._change(changes, condition, *values) == 1

    async def _change(self, changes: str, condition: str, *values: Any) -> int:
        return await self._run(f"UPDATE {OUTBOX} SET {changes} WHERE {condition}", *values)

    async def _changes_at_once(self, changes: str, condition: str, *values: Any) -> bool:
        """As `_changes`, for who must not be faster than others that wait for the same lock."""
        sql = f"UPDATE {OUTBOX} SET {changes} WHERE {condition}"

        async def work(connection: Connection) -> int:
            async with connection.transaction("write"):
                return await connection.run(_bound(connection.dialect, sql), values)

        return await self._on(work) == 1

    async def _run(self, sql: str, *values: Any) -> int:
        return await self._on(lambda connection: connection.run(_bound(connection.dialect, sql), values))

    async def _fetch(self, sql: str, *values: Any) -> list[Row]:
        return await self._on(lambda connection: connection.fetch(_bound(connection.dialect, sql), values))

    async def _on(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        async with self._using:
            connection = await self._opened()
            try:
                return await work(connection)
            except BaseException as error:
                if isinstance(error, DisconnectedError) or not isinstance(error, StateError):
                    # Cancelled in the midst of it, or lost: the next one begins anew.
                    with suppress(StateError):
                        await self.close()
                raise

    async def _opened(self) -> Connection:
        if self._connection is None:
            self._connection = await self._connect()
        return self._connection


def as_json(content: Mapping[str, Any]) -> str:
    """Plain values as a text that every database can hold, whatever characters are in it."""
    return json.dumps(content, allow_nan=False, separators=(",", ":"))


def _progress(progress: Mapping[str, Any]) -> str:
    # What a channel thinks of is no reason to lose the outcome of an attempt.
    return json.dumps(progress, default=str, separators=(",", ":"))


def _bound(dialect: Dialect, sql: str) -> str:
    """SQL with a placeholder for each `{}`, as the dialect writes them."""
    places = (dialect.placeholder.format(number) for number in range(1, sql.count("{}") + 1))
    return sql.format(*places, now=dialect.now)


def _message(row: Row) -> Message:
    key, channel, account, content, delivery, run_id, statement, created, attempts, progress = row
    return Message(
        key=key,
        channel=channel,
        account=account,
        content=json.loads(content),
        delivery=cast(Delivery, delivery),
        run_id=run_id,
        statement=statement,
        created=from_stamp(created),
        attempts=attempts,
        progress=json.loads(progress),
    )


def _entry(row: Row) -> Entry:
    state, due, leased_by, leased_until, last_error, answer, sent_at = row[10:]
    return Entry(
        _message(row[:10]),
        cast(State, state),
        _moment(due),
        leased_by,
        _moment(leased_until),
        last_error,
        answer,
        _moment(sent_at),
    )


def _moment(text: str | None) -> datetime | None:
    return from_stamp(text) if text else None
