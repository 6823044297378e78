"""One site for all tests that only ask it."""

from collections.abc import Iterator

import pytest

from aioflow.demo.running import Site, running_site


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    with running_site() as running:
        yield running
