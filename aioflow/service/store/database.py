"""The connection to the task database, and its transactions.

One connection serves a process. Its users take turns, and each turn is short. Times are those of the
database: of the machine for a file, and of the server otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from aioflow.relation import Row
from aioflow.service.store.tables import META, SERVICE_TABLES
from aioflow.state.databases import Databases, driver_for
from aioflow.state.driver import Address, Connection
from aioflow.state.errors import DisconnectedError, StateError
from aioflow.state.lock_wait import LockWait
from aioflow.state.system_tables import prepare


class Statements:
    """The statements of one turn. `{}` in a text stands for a value; `now` is the time of the database."""

    def __init__(self, connection: Connection, now: datetime) -> None:
        self.connection = connection
        self.now = now

    async def run(self, sql: str, *values: Any) -> int:
        """Execute a statement; return the number of rows that it changed."""
        return await self.connection.run(self._bound(sql), values)

    async def fetch(self, sql: str, *values: Any) -> list[Row]:
        return await self.connection.fetch(self._bound(sql), values)

    def _bound(self, sql: str) -> str:
        dialect = self.connection.dialect
        return sql.format(*(dialect.placeholder.format(number) for number in range(1, sql.count("{}") + 1)))


class ServiceDatabase:
    """The task database of a service, or of a command."""

    def __init__(
        self,
        databases: Databases,
        address: Address,
        *,
        clock: Callable[[], datetime] | None = None,
        warn: Callable[[str], None] = lambda message: None,
        wait_seconds: float = 60.0,
    ) -> None:
        self.databases = databases
        self.address = address
        self._clock = clock or _now
        self._warn = warn
        self._wait_seconds = wait_seconds
        self._connection: Connection | None = None
        self._using = asyncio.Lock()

    async def close(self) -> None:
        async with self._using:
            await self._disconnect()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Statements]:
        """Take a turn for statements that are each atomic by themselves."""
        async with self._turn() as connection:
            yield Statements(connection, await self._time(connection))

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Statements]:
        """Take a turn with a transaction, which is committed as a whole or not at all."""
        async with self._turn() as connection, AsyncExitStack() as stack:
            wait = LockWait(self.address, self._wait_seconds, self._warn)
            lock = (
                None if connection.dialect.locks_database else f"select version from {META} for update nowait"
            )
            await wait.enter(connection, stack, lock)
            yield Statements(connection, await self._time(connection))

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[Connection]:
        async with self._using:
            connection = await self._connected()
            try:
                yield connection
            except BaseException as error:
                if isinstance(error, DisconnectedError) or not isinstance(error, StateError):
                    # Lost, or cancelled in the midst of it: the next turn begins with a new connection.
                    await self._disconnect()
                raise

    async def _connected(self) -> Connection:
        if self._connection is None:
            connection = await self.databases.connect(self.address)
            try:
                driver = driver_for(self.address.url)
                await prepare(
                    connection, driver, self.address, self._warn, SERVICE_TABLES, self._wait_seconds
                )
                await prepare(connection, driver, self.address, self._warn, wait_seconds=self._wait_seconds)
            except BaseException:
                await connection.close()
                raise
            self._connection = connection
        return self._connection

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(StateError):
                await connection.close()

    async def _time(self, connection: Connection) -> datetime:
        if self.address.path is not None:
            return self._clock()
        ((value,),) = await connection.fetch(f"SELECT {connection.dialect.now}")
        found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        return found if found.tzinfo else found.replace(tzinfo=UTC)


def _now() -> datetime:
    return datetime.now(UTC)
