"""Connections to the PostgreSQL of tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aioflow.state.driver import Address, Connection
from aioflow.state.postgres.driver import POSTGRES
from tests.servers.postgres import query

SHOWN = "postgresql://the-server/test"


def address(url: str) -> Address:
    return Address("default", url, SHOWN)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Connection]:
    connection = await POSTGRES.connect(address(url))
    try:
        yield connection
    finally:
        await connection.close()


async def make(connection: Connection, *statements: str) -> None:
    for sql in statements:
        await connection.run(sql)


async def waits_for_a_lock(url: str) -> None:
    """Look until some connection of this database waits for another one's transaction."""
    sql = (
        "select count(*) from pg_stat_activity "
        "where wait_event_type = 'Lock' and datname = current_database()"
    )
    while await query(url, sql) == [(0,)]:
        pass  # the question itself lets others work


async def at_work(url: str) -> None:
    """Look until some connection of this database has something under way."""
    while await is_idle(url):
        pass  # the question itself lets others work


async def is_idle(url: str) -> bool:
    """Whether no other connection to this database has anything under way."""
    sql = (
        "select count(*) from pg_stat_activity where datname = current_database() "
        "and backend_type = 'client backend' and pid <> pg_backend_pid() "
        "and (state <> 'idle' or backend_xid is not null)"
    )
    return await query(url, sql) == [(0,)]
