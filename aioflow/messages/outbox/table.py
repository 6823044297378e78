"""The table of messages in a database: every statement about it, each atomic by itself.

A message is `waiting`, or `sending` under a lease that ends some time, then `sent`, `dead` or `dropped`.
Every change says which state it expects, so of several processes one succeeds, and the others learn that by
the number of rows. No change needs a transaction: it waits only for a run that is writing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar, get_args

from aioflow.messages.outbox.message import Message, State
from aioflow.messages.outbox.rows import (
    DAMAGED,
    Held,
    OutboxAccount,
    OutboxEntry,
    StuckMessages,
    Waiting,
    entry_of,
    held_of,
    message_of,
    stuck_of,
    waiting_of,
)
from aioflow.relation import Row, Schema
from aioflow.state.driver import Connection, Dialect
from aioflow.state.errors import DisconnectedError, StateError
from aioflow.state.system_tables import OUTBOX, stamp

T = TypeVar("T")
Connect: TypeAlias = Callable[[], Awaitable[Connection]]

STAGED = (
    *("key", "channel", "account", "content", "delivery", "state", "attempts", "created", "place", "due"),
    *("progress", "run_id", "statement", "quiet"),
)
# Before every time: a new message is due at once, whatever the clocks of the processes say.
AT_ONCE = ""

_MESSAGE = "key, channel, account, content, delivery, run_id, statement, created, attempts, progress, quiet"
_DETAILS = "state, due, leased_by, leased_until, last_error, answer, sent_at"
_FREE = "leased_by = NULL, leased_until = NULL"
# A value that is not a time, or too far ahead to have been set, would never come.
_NONE = "NOT LIKE '____-__-__T__:__:__.______Z'"
_DUE = f"state = 'waiting' AND (due <= {{}} OR due > {{}} OR due {_NONE})"
_EXPIRED = (
    "state = 'sending' AND (leased_until < {} OR leased_until > {} OR leased_until IS NULL "
    f"OR leased_until {_NONE})"
)
_TOO_FAR = timedelta(days=366)
_LOST = f"{_EXPIRED} AND delivery = 'at-least-once'"
# A value that is not a sensible number is left for the reader of the message to find.
_TAKEN = (
    "state = 'sending', leased_by = {}, leased_until = {}, "
    "attempts = CASE WHEN attempts < 1000000 THEN attempts + 1 ELSE attempts END"
)
# Notices have different ends: none is given before the last has ended.
_NOTICED = "key = {} AND state = 'sending' AND leased_until = {}"
# A message that was given up because its process seemed dead, and then turns out to be delivered after all.
_MINE = "key = {} AND leased_by = {} AND state IN ('sending', 'dead')"
# A message that waits for the end of its quiet hours only.
_QUIET = "state = 'waiting' AND quiet IS NOT NULL AND last_error IS NULL AND due > {}"
_STATES = sorted(get_args(State))
# What lies between the states that there are: the index finds that, and `NOT IN` would read all messages.
_UNKNOWN = " OR ".join(
    [
        f"state < '{_STATES[0]}'",
        *(f"(state > '{lower}' AND state < '{upper}')" for lower, upper in pairwise(_STATES)),
        f"state > '{_STATES[-1]}'",
    ]
)
# Without `coalesce` SQLite would read all messages in these states, rather than the oldest.
_OLD = "sent_at < {} AND coalesce(state, '') IN ('sent', 'dropped')"
_KEYS_AT_ONCE = 32
_CLOCKS_AGREE_SECONDS = 2.0


class OutboxTable:
    """The messages of one database. The connection is made when needed, and again after it was lost."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._connection: Connection | None = None
        self._using = asyncio.Lock()
        self.damaged = 0  # messages that were given up because they could not even be claimed

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    # --- for a courier --------------------------------------------------------------------------

    async def time_ahead(self) -> timedelta:
        """Return the lead of the database's clock over ours; zero if they agree to a second or two."""
        return await self.on(time_ahead)

    async def accounts(self, now: datetime, *, everything: bool = False) -> list[OutboxAccount]:
        """Return the accounts with messages to claim: those that are due, or `everything` that waits."""
        rows = await self._fetch(
            f"SELECT channel, account FROM {OUTBOX} WHERE {_DUE} UNION "
            f"SELECT channel, account FROM {OUTBOX} WHERE {_LOST} ORDER BY 1, 2",
            *(*_due(now, everything), *_due(now)),
        )
        for place, column in enumerate(("channel", "account")):
            await self._bury_damaged(column, {row[place] for row in rows}, now)
        return [OutboxAccount(*row) for row in rows if all(isinstance(value, str) for value in row)]

    async def claimable(
        self, account: OutboxAccount, now: datetime, *, everything: bool = False
    ) -> list[str]:
        """Return the keys of some messages of an account that are due, or of `everything` that waits.

        The oldest are first.
        """
        limit = "" if everything else f"LIMIT {_KEYS_AT_ONCE}"
        parts = [
            f"SELECT * FROM (SELECT created, place, key FROM {OUTBOX} WHERE {condition} "
            f"AND channel = {{}} AND account = {{}} ORDER BY created, place {limit}) {name}"
            for name, condition in (("due", _DUE), ("lost", _LOST))
        ]
        values = (account.channel, account.account)
        rows = await self._fetch(
            f"{' UNION ALL '.join(parts)} ORDER BY 1, 2",
            *(*_due(now, everything), *values, *_due(now), *values),
        )
        await self._bury_damaged("key", {row[2] for row in rows}, now)
        return [row[2] for row in rows if isinstance(row[2], str)]

    async def claim(
        self, key: str, owner: str, now: datetime, until: datetime, *, everything: bool = False
    ) -> bool:
        """Take a lease on a message that is due, until then. Return whether it was still free."""
        due = _due(now, everything)
        return await self._changes(_TAKEN, f"key = {{}} AND {_DUE}", owner, stamp(until), key, *due)

    async def give_notice(self, key: str, now: datetime, until: datetime) -> bool:
        """Ask the owner of a lease that has ended to note the outcome. Return whether there is one."""
        return await self._changes(
            "leased_until = {}", f"key = {{}} AND {_LOST}", stamp(until), key, *_due(now)
        )

    async def repeat_notice(self, key: str, given: datetime, until: datetime) -> bool:
        """Put the end of one's notice off; a BusyError when that cannot be done at once."""
        return await self._changes_at_once("leased_until = {}", _NOTICED, stamp(until), key, stamp(given))

    async def take_over(self, key: str, given: datetime, owner: str, until: datetime) -> bool:
        """Claim a message of which one has given notice; a BusyError when that cannot be done at once."""
        return await self._changes_at_once(_TAKEN, _NOTICED, owner, stamp(until), key, stamp(given))

    async def read(self, key: str, owner: str) -> Message | None:
        """Return a claimed message in its present state; raise a DamageError if it was damaged."""
        rows = await self._fetch(
            f"SELECT {_MESSAGE} FROM {OUTBOX} WHERE key = {{}} AND leased_by = {{}}", key, owner
        )
        return message_of(rows[0]) if rows else None

    async def release(self, key: str, owner: str) -> bool:
        """Give a message back that was claimed and not touched."""
        return await self._changes(
            f"state = 'waiting', attempts = attempts - 1, {_FREE}",
            "key = {} AND leased_by = {} AND state = 'sending'",
            *(key, owner),
        )

    async def put_off(self, key: str, owner: str, due: datetime) -> bool:
        """Give a message back that was claimed and not touched, to be delivered at another time."""
        return await self._changes(
            f"state = 'waiting', attempts = attempts - 1, due = {{}}, {_FREE}",
            "key = {} AND leased_by = {} AND state = 'sending'",
            *(stamp(due), key, owner),
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

    async def mark_dead(self, key: str, owner: str, error: str, progress: Mapping[str, Any] | None) -> bool:
        """Give a message up; without `progress` what is there of it stays."""
        changes = "" if progress is None else "progress = {}, "
        values = [] if progress is None else [_progress(progress)]
        return await self._changes(
            f"state = 'dead', last_error = {{}}, {changes}{_FREE}", _MINE, *(error, *values, key, owner)
        )

    async def bury(self, now: datetime, most_attempts: int) -> int:
        """Give up messages of a dead process that must not be sent twice or were tried too often."""
        condition = f"{_EXPIRED} AND (delivery <> 'at-least-once' OR attempts >= {{}})"
        values = (*_due(now), most_attempts)
        if not await self._fetch(f"SELECT 1 FROM {OUTBOX} WHERE {condition} LIMIT 1", *values):
            return 0  # not even the lock is taken
        error = "the process that was delivering it ended: it may have been delivered"
        # It stays leased to that process: should it be alive, it knows better.
        return await self._change("state = 'dead', last_error = {}", condition, error, *values)

    async def bury_unknown(self) -> int:
        """Give up messages that are in no state that there is."""
        if not await self._fetch(f"SELECT 1 FROM {OUTBOX} WHERE {_UNKNOWN} LIMIT 1"):
            return 0
        error = f"{DAMAGED}: it was in no state that there is"
        return await self._change(f"state = 'dead', last_error = {{}}, {_FREE}", _UNKNOWN, error)

    async def _bury_damaged(self, column: str, values: set[Any], now: datetime) -> None:
        """Give up messages that have something else than a text in a column by which messages are found.

        Only SQLite hands such values out. As a key is needed to name a message, it gets another.
        """
        for value in values:
            if isinstance(value, str):
                continue
            is_it = f" OR hex({column}) = '{value.hex().upper()}'" if isinstance(value, bytes) else ""
            key = ", key = 'damaged-' || lower(hex(randomblob(12)))" if column == "key" else ""
            self.damaged += await self._change(
                f"state = 'dead', last_error = {{}}, {_FREE}{key}",
                f"(state = 'waiting' OR {_EXPIRED}) AND (typeof({column}) <> 'text'{is_it})",
                *(f"{DAMAGED}: its {column} is no text", *_due(now)),
            )

    async def explain(self, account: OutboxAccount, error: str) -> None:
        """Note why an account's messages wait, though none was tried."""
        condition = (
            "state = 'waiting' AND channel = {} AND account = {} AND (last_error IS NULL OR last_error <> {})"
        )
        values = (account.channel, account.account, error)
        if await self._fetch(f"SELECT 1 FROM {OUTBOX} WHERE {condition} LIMIT 1", *values):
            await self._change("last_error = {}", condition, error, *values)

    async def waiting(self, now: datetime) -> list[Waiting]:
        """Return the messages that still wait, by account, without those in their quiet hours."""
        condition = f"(state = 'waiting' AND NOT ({_QUIET})) OR ({_LOST})"
        return await self._waiting(condition, stamp(now), *_due(now))

    async def quiet(self, now: datetime) -> list[Waiting]:
        """Return the messages that wait for the end of their quiet hours, by account."""
        return await self._waiting(_QUIET, stamp(now))

    async def _waiting(self, condition: str, *values: str) -> list[Waiting]:
        rows = await self._fetch(
            f"SELECT channel, account, count(*), min(due), max(last_error) FROM {OUTBOX} "
            f"WHERE {condition} GROUP BY channel, account ORDER BY 1, 2",
            *values,
        )
        return [waiting_of(row) for row in rows]

    async def held(self, now: datetime, owner: str) -> list[Held]:
        """Return the messages that others than `owner` are delivering, by account."""
        return await self._leased(now, "(leased_by IS NULL OR leased_by <> {})", owner)

    async def held_by(self, now: datetime, owner: str) -> list[Held]:
        """Return the messages that `owner` has claimed, by account."""
        return await self._leased(now, "leased_by = {}", owner)

    async def _leased(self, now: datetime, condition: str, owner: str) -> list[Held]:
        rows = await self._fetch(
            f"SELECT channel, account, count(*), max(leased_until) FROM {OUTBOX} "
            f"WHERE state = 'sending' AND NOT ({_EXPIRED}) AND {condition} "
            "GROUP BY channel, account ORDER BY 1, 2",
            *(*_due(now), owner),
        )
        return [held_of(row) for row in rows]

    async def prune(self, before: datetime) -> int:
        """Let go of what was sent or dropped long ago."""
        if not await self._fetch(f"SELECT 1 FROM {OUTBOX} WHERE {_OLD} LIMIT 1", stamp(before)):
            return 0
        return await self._run(f"DELETE FROM {OUTBOX} WHERE {_OLD}", stamp(before))

    # --- for people -----------------------------------------------------------------------------

    async def entries(self, *, but: Sequence[State] = ()) -> AsyncGenerator[OutboxEntry, None]:
        """Yield messages except those in some states, the oldest first; other calls wait meanwhile."""
        excluded = f"WHERE state NOT IN ({', '.join('{}' for _ in but)}) " if but else ""
        sql = f"SELECT {_MESSAGE}, {_DETAILS} FROM {OUTBOX} {excluded}ORDER BY created, place, key"
        async with self._using:
            connection = await self._opened()
            async with aclosing(connection.select(bound(connection.dialect, sql), but)) as found:
                async for batch in found:
                    for row in () if isinstance(batch, Schema) else batch:
                        yield entry_of(row)

    async def matching(self, prefix: str) -> list[tuple[str, str]]:
        """Return the keys that begin so, and their states; no more than a few."""
        rows = await self._fetch(
            f"SELECT key, state FROM {OUTBOX} WHERE substr(key, 1, {len(prefix)}) = {{}} "
            "ORDER BY key LIMIT 3",
            prefix,
        )
        return [(key, str(state)) for key, state in rows if isinstance(key, str)]

    async def retry(self, key: str, now: datetime) -> bool:
        """Have a message tried as if it were new; not one that was sent, or is just being delivered."""
        return await self._changes(
            f"state = 'waiting', attempts = 0, due = '{AT_ONCE}', sent_at = NULL, {_FREE}",
            f"key = {{}} AND (state IN ('waiting', 'dead', 'dropped') OR {_EXPIRED})",
            *(key, *_due(now)),
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
            *(stamp(now), key, *_due(now)),
        )

    # --- statements -----------------------------------------------------------------------------

    async def _changes(self, changes: str, condition: str, *values: Any) -> bool:
        return await self._change(changes, condition, *values) == 1

    async def _change(self, changes: str, condition: str, *values: Any) -> int:
        return await self._run(f"UPDATE {OUTBOX} SET {changes} WHERE {condition}", *values)

    async def _changes_at_once(self, changes: str, condition: str, *values: Any) -> bool:
        """Like `_changes`, for a caller that must not overtake others that wait for the same lock."""
        sql = f"UPDATE {OUTBOX} SET {changes} WHERE {condition}"

        async def work(connection: Connection) -> int:
            async with connection.transaction("write"):
                return await connection.run(bound(connection.dialect, sql), values)

        return await self.on(work) == 1

    async def _run(self, sql: str, *values: Any) -> int:
        return await self.on(lambda connection: connection.run(bound(connection.dialect, sql), values))

    async def _fetch(self, sql: str, *values: Any) -> list[Row]:
        return await self.on(lambda connection: connection.fetch(bound(connection.dialect, sql), values))

    async def on(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Do some work with the connection, which is for one caller at a time."""
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
            connection = await self._connect()
            # One damaged row must not keep all others from being read.
            await connection.tolerate_damage()
            self._connection = connection
        return self._connection


async def time_ahead(connection: Connection) -> timedelta:
    """Return the lead of the database's clock over ours; zero if they agree to a second or two."""
    ((value,),) = await connection.fetch(bound(connection.dialect, "SELECT {now}"))
    found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    there = found if found.tzinfo else found.replace(tzinfo=UTC)
    ahead = there - datetime.now(UTC)
    return ahead if abs(ahead.total_seconds()) > _CLOCKS_AGREE_SECONDS else timedelta()


async def stuck_in_table(connection: Connection) -> list[StuckMessages]:
    """Return the messages that were tried, or could not be, and wait; and those that were given up."""
    rows = await connection.fetch(
        f"SELECT state, quiet, count(*), min(created), max(last_error) FROM {OUTBOX} "
        "WHERE state = 'dead' OR (state IN ('waiting', 'sending') AND last_error IS NOT NULL) "
        "GROUP BY state, quiet ORDER BY min(created)"
    )
    return [stuck_of(row) for row in rows]


def as_json(content: Mapping[str, Any]) -> str:
    """Plain values as a text that every database can hold, whatever characters are in it."""
    return json.dumps(content, allow_nan=False, separators=(",", ":"))


def _due(now: datetime, everything: bool = False) -> tuple[str, str]:
    """Return the parameters of `_DUE` or `_EXPIRED`: now, and a time too far ahead to have been set."""
    too_far = now + _TOO_FAR
    return stamp(too_far if everything else now), stamp(too_far)


def _progress(progress: Mapping[str, Any]) -> str:
    # A value that a channel invents is no reason to lose the outcome of an attempt.
    return json.dumps(progress, default=str, separators=(",", ":"))


def bound(dialect: Dialect, sql: str) -> str:
    """SQL with a placeholder for each `{}`, as the dialect writes them."""
    places = (dialect.placeholder.format(number) for number in range(1, sql.count("{}") + 1))
    return sql.format(*places, now=dialect.now)
