"""Outboxes in both kinds of databases; those in PostgreSQL share one, each in a schema of its own."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.servers.postgres import Postgres

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def messages_database(postgres: Postgres) -> Iterator[str]:
    """The URL of a database that the tests of this folder share."""
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, or of a schema that is all of one for who connects with it."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'test.db'}"
    from tests.servers.postgres import query

    url = str(request.getfixturevalue("messages_database"))
    name = f"schema_{next(_NUMBERS)}"
    asyncio.run(query(url, f"create schema {name}"))
    return f"{url}?search_path={name}"
