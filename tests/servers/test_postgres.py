"""The PostgreSQL of other tests: each has a database of its own; a killed server keeps what it committed."""

from collections.abc import Callable

import asyncpg
import pytest

from tests.servers.postgres import GUARDED_PASSWORD, GUARDED_USER, Postgres, query


@pytest.mark.parametrize("turn", [1, 2])
async def test_each_test_finds_an_empty_database(postgres_url: str, turn: int) -> None:
    await query(postgres_url, "create table seen (turn int)")
    await query(postgres_url, "insert into seen values ($1)", turn)
    assert await query(postgres_url, "select turn from seen") == [(turn,)]


async def test_a_user_may_have_to_tell_a_password(postgres: Postgres) -> None:
    url = postgres.url(user=GUARDED_USER)
    with pytest.raises(asyncpg.InvalidPasswordError):
        await query(url.replace("@", ":wrong@"), "select 1")
    assert await query(url.replace("@", f":{GUARDED_PASSWORD.replace(' ', '%20')}@"), "select 1") == [(1,)]


@pytest.mark.parametrize("end", [Postgres.kill, Postgres.stop])
def test_what_was_committed_is_there_after_a_restart(
    own_postgres: Postgres, end: Callable[[Postgres], None]
) -> None:
    url = own_postgres.create_database()
    own_postgres.run("create table kept as select 7 as number", url=url)
    end(own_postgres)
    with pytest.raises(OSError, match=str(own_postgres.port)):
        own_postgres.run("select 1")
    own_postgres.start()
    assert own_postgres.run("select number from kept", url=url) == [(7,)]
    own_postgres.drop_database(url)
