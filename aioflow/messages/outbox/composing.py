"""Digests that are due become messages in the outbox. Channels write them; the courier delivers them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from aioflow.errors import AioflowError
from aioflow.messages.channels import Channels
from aioflow.messages.outbox.attempt import shown
from aioflow.messages.outbox.contributions import DigestContribution, joined
from aioflow.messages.outbox.digest_table import DamagedContribution, DigestTable, GatheringDigest
from aioflow.messages.outbox.message import ComposedContents, Composing
from aioflow.messages.outbox.rows import DAMAGED
from aioflow.messages.outbox.settings import OutboxSettings
from aioflow.messages.outbox.table import AT_ONCE, as_json
from aioflow.messages.timing import read_quiet
from aioflow.relation import Batch
from aioflow.state.system_tables import stamp

# Until a digest that cannot be composed is tried again: perhaps the configuration is mended by then.
_AGAIN = timedelta(hours=1)


class DigestComposer:
    """Composes the digests of one database that are due, or with `early` all of them."""

    def __init__(
        self,
        table: DigestTable,
        channels: Channels,
        settings: OutboxSettings,
        warn: Callable[[str], None],
        *,
        early: bool = False,
    ) -> None:
        self._table = table
        self._channels = channels
        self._settings = settings
        self._warn = warn
        self._early = early
        self._tried: set[str] = set()  # digests of accounts that cannot be used

    async def due(self, now: datetime) -> list[GatheringDigest]:
        """Return the digests that are to be composed now."""
        table = self._table
        found = await (table.gathering() if self._early else table.due(now, self._settings))
        return [digest for digest in found if digest.key not in self._tried]

    async def compose(self, digest: GatheringDigest, now: datetime) -> None:
        """Put the message about a digest into the outbox, unless another process does."""
        problems = self._problems(digest)
        if problems:
            self._tried.add(digest.key)
            await self._table.explain(digest.key, shown(problems))
            return
        found = await self._table.contributions(digest.key)
        damaged = [each for each in found if isinstance(each, DamagedContribution)]
        for each in damaged:
            await self._put_off(digest, [each.key], f"{DAMAGED}: {each.reason}", now)
        readable = [each for each in found if isinstance(each, DigestContribution)]
        if readable:
            await self._compose_some(digest, readable, now)

    def _problems(self, digest: GatheringDigest) -> str:
        channel, account = digest.account.channel, digest.account.account
        if not self._channels.knows(channel):
            return f"there is no channel {channel!r}: nothing that is installed brings one"
        problems = self._channels.problems(channel, account)
        if not problems and not isinstance(self._channels.get(channel), Composing):
            return f"the channel {channel!r} has no digests"
        return "; ".join(problems)

    async def _compose_some(
        self, digest: GatheringDigest, contributions: Sequence[DigestContribution], now: datetime
    ) -> None:
        """Compose one message, or two of half the contributions each where one is not possible."""
        try:
            composed = await asyncio.to_thread(self._contents, contributions)
        except Exception as error:
            if len(contributions) == 1:
                text = str(error) if isinstance(error, AioflowError) else f"{type(error).__name__}: {error}"
                await self._put_off(digest, [contributions[0].key], text, now)
                return
            middle = len(contributions) // 2
            await self._compose_some(digest, contributions[:middle], now)
            await self._compose_some(digest, contributions[middle:], now)
            return
        rows = self._rows(contributions, composed, now)
        if await self._table.compose(contributions, rows):
            for warning in composed.warnings:
                self._warn(f"{contributions[-1].statement}: {warning}")

    def _contents(self, contributions: Sequence[DigestContribution]) -> ComposedContents:
        """Return the contents of the messages; on a worker thread, since templates take their time."""
        last = contributions[-1]
        channel = self._channels.get(last.channel)
        assert isinstance(channel, Composing)
        doubts = [each.doubt for each in contributions if each.doubt]
        recipe = last.recipe["content"]
        return channel.compose(last.account, recipe, joined(contributions), doubts[0] if doubts else "")

    def _rows(
        self, contributions: Sequence[DigestContribution], composed: ComposedContents, now: datetime
    ) -> Batch:
        """Return the messages as rows of the outbox."""
        last = contributions[-1]
        quiet = last.recipe.get("quiet")
        due = AT_ONCE if self._early else _due(quiet, now)
        whose = (last.run_id, last.statement, quiet)
        return [
            (
                *(_key(contributions, place), last.channel, last.account, as_json(content)),
                *(last.recipe["delivery"], "waiting", 0, stamp(now), place, due, "{}", *whose),
            )
            for place, content in enumerate(composed.contents)
        ]

    async def _put_off(self, digest: GatheringDigest, keys: list[str], reason: str, now: datetime) -> None:
        self._tried.add(digest.key)
        await self._table.put_off(keys, now + _AGAIN, shown(reason))
        self._warn(f"a digest for {digest.account} could not be composed: {shown(reason)}")


def _due(quiet: str | None, now: datetime) -> str:
    end = now if quiet is None else read_quiet(quiet).end_after(now)
    return stamp(end) if end > now else AT_ONCE


def _key(contributions: Sequence[DigestContribution], place: int) -> str:
    """Return the key of a message, which is the same in every process that composes it."""
    names = "\n".join([*(each.key for each in contributions), str(place)])
    return hashlib.sha256(names.encode()).hexdigest()[:32]
