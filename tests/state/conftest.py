"""A schema in a shared PostgreSQL database is made in a moment; a database of one's own takes a while."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.servers.postgres import Postgres

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def postgres_database(postgres: Postgres) -> Iterator[str]:
    """The URL of a database that the tests of a module share."""
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture
def schema_url(postgres_database: str) -> str:
    """The URL of an empty schema, this test's own, which is all that a connection sees."""
    from tests.servers.postgres import query

    name = f"schema_{next(_NUMBERS)}"
    asyncio.run(query(postgres_database, f"create schema {name}"))
    return f"{postgres_database}?search_path={name}"
