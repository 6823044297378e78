"""The table of digests that are gathering: contributions of runs, until a message is composed of them.

A digest is due at the greatest `due` of its contributions, and not after the least `latest` of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from aioflow.messages.outbox.contributions import READ, DigestContribution, contribution_of
from aioflow.messages.outbox.rows import DamageError, OutboxAccount, moment_of, text_of_cell
from aioflow.messages.outbox.settings import OutboxSettings
from aioflow.messages.outbox.table import AT_ONCE, STAGED, OutboxTable, bound
from aioflow.relation import Batch, Row
from aioflow.state.crash_points import moment
from aioflow.state.driver import Connection
from aioflow.state.system_tables import DIGESTS, OUTBOX, stamp

_COMPOSED = moment("digest composed", "a digest is in the outbox in place of its rows, nothing is committed")
_COMMITTED = moment("digest committed", "a digest is durable in the outbox, its rows are deleted")

_GROUPS = (
    "SELECT digest, min(channel), min(account), count(*), CAST(sum(row_count) AS bigint), "
    "CAST(sum(byte_count) AS bigint), min(created), max(due), min(latest), max(last_error) "
    f"FROM {DIGESTS} GROUP BY digest ORDER BY 7, 1"
)


class GatheringDigest(msgspec.Struct, frozen=True):
    """A digest that is not composed yet."""

    key: str
    account: OutboxAccount
    contributions: int
    row_count: int
    byte_count: int
    created: datetime | None
    due: datetime | None  # None: now
    last_error: str | None

    def is_due(self, now: datetime, settings: OutboxSettings) -> bool:
        """Return whether it is to be composed now: at its time, or since it has gathered too much."""
        return self.due is None or self.due <= now or self.is_large(settings)

    def is_large(self, settings: OutboxSettings) -> bool:
        # One that could not be composed waits for its next time.
        too_much = self.row_count > settings.digest_rows or self.byte_count > settings.digest_bytes
        return too_much and self.last_error is None


class DamagedContribution(msgspec.Struct, frozen=True):
    """A contribution that cannot be read, and why."""

    key: str
    reason: str


class _Overtaken(Exception):  # noqa: N818  # no error: a way out of a transaction
    """Another process has composed the digest."""


class DigestTable:
    """The digests of the database of an outbox."""

    def __init__(self, outbox: OutboxTable) -> None:
        self._outbox = outbox

    async def gathering(self) -> list[GatheringDigest]:
        """Return all digests, the oldest first."""
        return await self._outbox.on(gathering)

    async def due(self, now: datetime, settings: OutboxSettings) -> list[GatheringDigest]:
        """Return the digests that are to be composed now, the oldest first."""
        return [digest for digest in await self.gathering() if digest.is_due(now, settings)]

    async def contributions(self, digest: str) -> list[DigestContribution | DamagedContribution]:
        """Return all contributions to a digest, the oldest first."""
        rows = await self._fetch(
            f"SELECT {', '.join(READ)} FROM {DIGESTS} WHERE digest = {{}} ORDER BY created, place, key",
            digest,
        )
        return [_read(row) for row in rows]

    async def recipe(self, digest: str) -> str:
        """Return the recipe of a digest, as it is stored."""
        rows = await self._fetch(f"SELECT min(recipe) FROM {DIGESTS} WHERE digest = {{}}", digest)
        return text_of_cell(rows[0][0]) or ""

    async def compose(self, contributions: Sequence[DigestContribution], messages: Batch) -> bool:
        """Put messages into the outbox in place of contributions; whether no other process was faster.

        Of several processes one deletes all contributions, and the others find that they are gone.
        """
        keys = [(each.key,) for each in contributions]

        async def work(connection: Connection) -> bool:
            sql = bound(connection.dialect, f"DELETE FROM {DIGESTS} WHERE key = {{}}")
            try:
                async with connection.transaction("write"):
                    if await connection.run_each(sql, keys) != len(keys):
                        raise _Overtaken
                    await connection.load(OUTBOX, STAGED, [messages])
                    _COMPOSED()
            except _Overtaken:
                return False
            _COMMITTED()
            return True

        return await self._outbox.on(work)

    async def put_off(self, keys: Iterable[str], until: datetime, reason: str) -> None:
        """Have contributions composed at another time, and note why they could not be."""
        rows = [(stamp(until), stamp(until), reason, key) for key in keys]

        async def work(connection: Connection) -> int:
            sql = f"UPDATE {DIGESTS} SET due = {{}}, latest = {{}}, last_error = {{}} WHERE key = {{}}"
            return await connection.run_each(bound(connection.dialect, sql), rows)

        await self._outbox.on(work)

    async def explain(self, digest: str, reason: str) -> None:
        """Note why a digest that is due is not composed."""
        await self._run(
            f"UPDATE {DIGESTS} SET last_error = {{}} WHERE digest = {{}} "
            "AND (last_error IS NULL OR last_error <> {})",
            *(reason, digest, reason),
        )

    # --- for people -------------------------------------------------------------------------------

    async def matching(self, prefix: str) -> list[str]:
        """Return the digests whose keys begin so; no more than a few."""
        rows = await self._fetch(
            f"SELECT DISTINCT digest FROM {DIGESTS} WHERE substr(digest, 1, {len(prefix)}) = {{}} "
            "ORDER BY 1 LIMIT 3",
            prefix,
        )
        return [digest for (digest,) in rows if isinstance(digest, str)]

    async def retry(self, digest: str) -> bool:
        """Have a digest composed by the next process that delivers."""
        return (
            await self._run(
                f"UPDATE {DIGESTS} SET due = '{AT_ONCE}', latest = '{AT_ONCE}', last_error = NULL "
                "WHERE digest = {}",
                digest,
            )
            > 0
        )

    async def drop(self, digest: str) -> bool:
        """Delete the contributions to a digest; whether there were any."""
        return await self._run(f"DELETE FROM {DIGESTS} WHERE digest = {{}}", digest) > 0

    async def _run(self, sql: str, *values: Any) -> int:
        return await self._outbox.on(
            lambda connection: connection.run(bound(connection.dialect, sql), values)
        )

    async def _fetch(self, sql: str, *values: Any) -> list[Row]:
        return await self._outbox.on(
            lambda connection: connection.fetch(bound(connection.dialect, sql), values)
        )


async def gathering(connection: Connection) -> list[GatheringDigest]:
    """Return all digests of a database, the oldest first."""
    return [_digest(row) for row in await connection.fetch(_GROUPS)]


def _digest(row: Row) -> GatheringDigest:
    key, channel, account, contributions, rows, size, created, due, latest, error = row
    times = [moment_of(due), moment_of(latest)]
    return GatheringDigest(
        text_of_cell(key) or "",
        OutboxAccount(text_of_cell(channel) or "", text_of_cell(account) or ""),
        contributions,
        rows or 0,
        size or 0,
        moment_of(created),
        # A damaged time would never come.
        None if None in times else min(time for time in times if time is not None),
        text_of_cell(error),
    )


def _read(row: Row) -> DigestContribution | DamagedContribution:
    try:
        return contribution_of(row)
    except DamageError as error:
        return DamagedContribution(text_of_cell(row[0]) or "", str(error))
