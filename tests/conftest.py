"""Runs `async def` tests on a fresh event loop, and under AIOFLOW_TEST_ALL=1 turns skips into failures."""

import asyncio
import inspect
import os
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from aioflow.config import masking

# A loaded machine is no failure.
settings.register_profile("aioflow", deadline=None)
settings.load_profile("aioflow")

if TYPE_CHECKING:
    from tests.servers.postgres import Postgres

# anyio keeps this task until the loop closes, once a process pool was used; it is not ours to await.
_KEPT_BY_ANYIO = "AnyIO process pool shutdown task"


async def _run_and_expect_no_tasks(pyfuncitem: pytest.Function) -> None:
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    await pyfuncitem.obj(**arguments)
    left = [
        task for task in asyncio.all_tasks() - {asyncio.current_task()} if task.get_name() != _KEPT_BY_ANYIO
    ]
    if left:
        pytest.fail("tasks left running: " + ", ".join(sorted(map(repr, left))), pytrace=False)


@pytest.fixture(autouse=True)
def _secrets_are_forgotten() -> Iterator[None]:
    """What one test reveals is no secret in the next: short ones stand in any data."""
    yield
    for known in (masking._lasting, masking._passing, masking._forms):
        known.clear()


@pytest.fixture(autouse=True)
def _sqlite_connections_are_closed() -> Iterator[None]:
    """A thread of aiosqlite is no daemon: a connection that stays open keeps the process from ending."""
    yield
    left = [thread for thread in threading.enumerate() if "_connection_worker_thread" in thread.name]
    for thread in left:
        thread.join(5)
    if any(thread.is_alive() for thread in left):
        pytest.fail("a SQLite connection was left open", pytrace=False)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an `async def` test to its end; it must leave no task running."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    asyncio.run(_run_and_expect_no_tasks(pyfuncitem))
    return True


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    # An expected failure is reported as skipped too, but it did run.
    if os.environ.get("AIOFLOW_TEST_ALL") != "1" or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"{report.nodeid}: skipped, which AIOFLOW_TEST_ALL=1 forbids: {reason}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that skips itself."""
    report = yield
    _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail a module that skips itself as a whole."""
    report = yield
    _fail_if_skipped(report)
    return report


@pytest.fixture(scope="session")
def postgres() -> "Iterator[Postgres]":
    """A PostgreSQL that all tests share, started when the first one asks for it."""
    from tests.servers.postgres import postgres_server  # only tests that need it pay for the import

    with postgres_server() as server:
        yield server


@pytest.fixture(scope="module")
def own_postgres() -> "Iterator[Postgres]":
    """A PostgreSQL that the tests of a module may stop, kill and start; what it committed it keeps."""
    from tests.servers.postgres import postgres_server

    with postgres_server(durable=True) as server:
        yield server


@pytest.fixture
def postgres_url(postgres: "Postgres") -> Iterator[str]:
    """The URL of an empty PostgreSQL database, this test's own."""
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, this test's own: one of each kind."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'test.db'}"
    return str(request.getfixturevalue("postgres_url"))
