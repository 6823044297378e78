"""The PostgreSQL driver against a real server: what all drivers do, and what is its own."""

import pytest

from aioflow.state.driver import Address, Connection
from aioflow.state.postgres import POSTGRES
from tests.state.driver_cases import CASES, Case, name_of

# Its writers wait for one another row by row, and not for all of the database.
SHARED = [each for each in CASES if name_of(each) != "a_second_writer_is_told_at_once_that_the_database_is_busy"]


def address(url: str) -> Address:
    return Address("default", url, "postgresql://the-server/test")


@pytest.mark.parametrize("case", SHARED, ids=name_of)
async def test_postgres_does_what_every_driver_does(case: Case, postgres_url: str) -> None:
    await case(lambda: POSTGRES.connect(address(postgres_url)))
