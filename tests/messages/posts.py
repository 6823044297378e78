"""An outbox in a database of its own, a channel that does as it is told, and a clock that is set by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from aioflow.messages.channels import Channels
from aioflow.messages.outbox.courier import Courier
from aioflow.messages.outbox.message import Delivery, Message
from aioflow.messages.outbox.rows import OutboxEntry
from aioflow.messages.outbox.settings import OutboxSettings
from aioflow.messages.outbox.table import AT_ONCE, STAGED, OutboxTable, as_json
from aioflow.state.databases import driver_for
from aioflow.state.driver import Address, Connection
from aioflow.state.system_tables import OUTBOX, prepare, stamp

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SETTINGS = OutboxSettings(lease_seconds=100, retry_base_seconds=10, retry_most_seconds=600, most_attempts=5)
STATES = ("waiting", "sending", "sent", "dead", "dropped")


class Clock:
    """Stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class ScriptedChannel:
    """Remembers what it was given; `does` may raise, wait, or return an answer."""

    def __init__(self, does: Callable[[Message], Awaitable[str | None]] | None = None) -> None:
        self.does = does
        self.delivered: list[Message] = []
        self.missing: dict[str, str] = {}  # problems by account
        self.closed = 0

    def problems(self, account: str | None) -> list[str]:
        name = account or ""
        return [self.missing[name]] if name in self.missing else []

    async def deliver(self, message: Message) -> str:
        self.delivered.append(message)
        answer = await self.does(message) if self.does is not None else None
        return answer or "taken"

    async def close(self) -> None:
        self.closed += 1

    @property
    def subjects(self) -> list[str]:
        return [str(message.content["subject"]) for message in self.delivered]


def failing(*errors: BaseException | None) -> Callable[[Message], Awaitable[None]]:
    """Fail so at the first, second, … delivery, and then no more."""
    left = list(errors)

    async def does(message: Message) -> None:
        error = left.pop(0) if left else None
        if error is not None:
            raise error

    return does


def address_of(url: str) -> Address:
    path = Path(url.partition(":")[2]) if url.startswith("sqlite") else None
    return Address("default", url, "the database", path)


class Post:
    """The outbox of a database, and couriers for it that share a clock and a channel named `test`."""

    def __init__(self, url: str, settings: OutboxSettings = SETTINGS) -> None:
        self.address = address_of(url)
        self.settings = settings
        self.clock = Clock()
        self.channel = ScriptedChannel()
        self.told: list[str] = []
        self.tables: list[OutboxTable] = []
        self._places = 0

    async def connect(self) -> Connection:
        return await driver_for(self.address.url).connect(self.address)

    def table(self, connect: Callable[[], Awaitable[Connection]] | None = None) -> OutboxTable:
        table = OutboxTable(connect or self.connect)
        self.tables.append(table)
        return table

    def courier(self, table: OutboxTable | None = None, **changes: Any) -> Courier:
        channels = Channels({}, {"test": lambda configuration: self.channel})
        given = {"clock": self.clock, "random": lambda: 0.0, **changes}
        return Courier(
            table or self.table(), channels, self.settings, self.address, self.told.append, **given
        )

    async def put(
        self,
        *subjects: str,
        account: str = "main",
        channel: str = "test",
        delivery: Delivery = "at-least-once",
    ) -> list[str]:
        """Messages as the transaction of a run leaves them; their keys."""
        rows = [self._row(subject, account, channel, delivery) for subject in subjects]
        connection = await self.connect()
        try:
            await connection.load(OUTBOX, STAGED, [rows])
        finally:
            await connection.close()
        return [row[0] for row in rows]

    def _row(self, subject: str, account: str, channel: str, delivery: str) -> tuple[Any, ...]:
        self._places += 1
        content = as_json({"to": ["a@example.org"], "subject": subject})
        created = stamp(self.clock.now)
        return (
            *(uuid4().hex, channel, account, content, delivery, "waiting", 0, created, self._places),
            *(AT_ONCE, "{}", "run", "plan:3", None),
        )

    async def entries(self) -> list[OutboxEntry]:
        table = OutboxTable(self.connect)
        try:
            return [entry async for entry in table.entries()]
        finally:
            await table.close()

    async def states(self) -> dict[str, str]:
        return {str(entry.message.content["subject"]): entry.state for entry in await self.entries()}

    async def only(self) -> OutboxEntry:
        (entry,) = await self.entries()
        return entry


@asynccontextmanager
async def opened_post(url: str, settings: OutboxSettings = SETTINGS) -> AsyncIterator[Post]:
    """An outbox that is empty."""
    post = Post(url, settings)
    connection = await post.connect()
    try:
        await prepare(connection, driver_for(url), post.address, post.told.append)
    finally:
        await connection.close()
    try:
        yield post
    finally:
        for table in post.tables:
            await table.close()


class Changed:
    """A connection of which some attributes are others."""

    def __init__(self, connection: Connection, **changes: Any) -> None:
        self._connection = connection
        self._changes = changes

    def __getattr__(self, name: str) -> Any:
        return self._changes.get(name) or getattr(self._connection, name)
