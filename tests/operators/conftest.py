"""Databases that operators are tested on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.postgres import Postgres


@pytest.fixture(scope="module")
def shared_postgres_url(postgres: Postgres) -> Iterator[str]:
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database; on PostgreSQL one for all tests, each in a fresh schema: that is much faster."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'test.db'}"
    url = str(request.getfixturevalue("shared_postgres_url"))
    server: Postgres = request.getfixturevalue("postgres")
    server.run("drop schema public cascade", url=url)
    server.run("create schema public", url=url)
    return url
