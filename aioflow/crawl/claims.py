"""The keys that a crawl has claimed, such as the URLs it has seen: `seen`.

`Claims` is all that operators know of it; the exchange of a job can take its place. Keys are in memory up to
the limit of the run, then on disk. Keys that are remembered between runs are rows of a table, which are
committed with the run.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Hashable, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import ClassVar, Protocol

from aioflow.authoring.context import Context
from aioflow.authoring.services import Scope, ServiceHost
from aioflow.errors import InputError
from aioflow.relation import Batch, Schema, Type
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.recursion import SeenValues
from aioflow.state import Append, Transaction, table_rows

KEY, CLAIMED_AT = "key", "seen-at"
_SCHEMA = Schema((KEY, CLAIMED_AT), (Type.CHAR, Type.DATE))


class Claims(Protocol):
    """A set of keys, each of which is new once."""

    async def claim(self, keys: Sequence[Hashable]) -> list[bool]:
        """Return for each key whether it is new. From now on it is known."""
        ...


class ClaimedKeys:
    """Keys of one run."""

    def __init__(self, memory: MemoryBudget) -> None:
        self._seen = SeenValues(memory)

    async def claim(self, keys: Sequence[Hashable]) -> list[bool]:
        known = self._seen.keys
        if known.is_on_disk:
            fresh = await self._seen.look_up(lambda: known.add_new(keys, range(len(keys))))
        else:
            fresh = known.add_new(keys, range(len(keys)))
        is_new = [False] * len(keys)
        for place in fresh:
            is_new[place] = True
        return is_new

    def close(self) -> None:
        self._seen.close()


class RememberedKeys:
    """Keys that a table remembers between runs. They are read when the first key is claimed.

    New keys are staged. The transaction takes them as complete when all statements have ended, and commits
    them with the run.
    """

    def __init__(self, table: str, database: str | None, seconds: float | None, context: Context) -> None:
        self.seconds = seconds
        self._table = table
        self._database = database
        self._context = context
        self._run = ClaimedKeys(context.memory)
        self._transaction = context.service(Transaction)
        self._write = Append(context.where, table, _SCHEMA, context.memory, key=(KEY,), updates=True)
        self._started = context.run.started
        self._opening = asyncio.Lock()
        self._is_open = False

    async def claim(self, keys: Sequence[Hashable]) -> list[bool]:
        async with self._opening:
            if not self._is_open:
                await self._open()
                self._is_open = True
        texts = list(map(key_text, keys))
        is_new = await self._run.claim(texts)
        rows: Batch = [(text, self._started) for text, new in zip(texts, is_new, strict=True) if new]
        if rows:
            self._write.add(rows)
            await self._write.settle()
        return is_new

    async def _open(self) -> None:
        self._transaction.stage(self._database, self._write, shape=self._write.shape)
        address = self._transaction.database_of(self._database)
        oldest = None if self.seconds is None else self._started - timedelta(seconds=self.seconds)
        async with (
            self._context.permit(label=f"read {self._table}"),
            self._transaction.snapshot(self._database) as connection,
            aclosing(table_rows(connection, address, self._table, may_miss=True)) as results,
        ):
            positions = 0, 1
            async for item in results:
                if isinstance(item, Schema):
                    positions = self._positions(item)
                else:
                    await self._run.claim(_young(item, *positions, oldest))

    def _positions(self, schema: Schema) -> tuple[int, int]:
        if set(schema.names) != {KEY, CLAIMED_AT}:
            raise InputError(
                f"the table {self._table!r} remembers no keys: it has {', '.join(schema.names)}, not "
                f"{KEY} and {CLAIMED_AT}"
            )
        return schema.position(KEY), schema.position(CLAIMED_AT)

    def close(self) -> None:
        self._run.close()


def _young(batch: Batch, key: int, claimed_at: int, oldest: datetime | None) -> list[Hashable]:
    """Return the keys of rows that are not forgotten."""
    if oldest is None:
        return [row[key] for row in batch]
    naive = oldest.replace(tzinfo=None)
    return [
        row[key]
        for row in batch
        if not isinstance(at := row[claimed_at], datetime) or at >= (oldest if at.tzinfo else naive)
    ]


def key_text(key: Hashable) -> str:
    """Return a key as a text that is the same in the next run."""
    return key if isinstance(key, str) else json.dumps(key, ensure_ascii=False, default=str)


class CrawlClaims:
    """The claimed keys of a run, a set for each name; a service of the run."""

    scope: ClassVar[Scope] = "run"

    def __init__(self) -> None:
        self._sets: dict[str, ClaimedKeys] = {}
        self._remembered: dict[tuple[str, str], RememberedKeys] = {}

    @classmethod
    def open_service(cls, host: ServiceHost) -> CrawlClaims:
        return cls()

    def of_run(self, name: str, context: Context) -> Claims:
        """Return the set of this name, which all statements and calls of the run share."""
        if name not in self._sets:
            self._sets[name] = ClaimedKeys(context.memory)
        return self._sets[name]

    def remembered(self, table: str, database: str | None, seconds: float | None, context: Context) -> Claims:
        """Return the set that a table remembers, for so many seconds after a key was claimed."""
        where = context.service(Transaction).database_of(database).url, table
        if where not in self._remembered:
            self._remembered[where] = RememberedKeys(table, database, seconds, context)
        found = self._remembered[where]
        if found.seconds != seconds:
            raise InputError(f"two statements remember in the table {table!r}, for different times")
        return found

    async def close(self) -> None:
        for own in self._sets.values():
            own.close()
        for keys in self._remembered.values():
            keys.close()
