"""The health of wrappers, run by run: figures that a successful run leaves in its database.

They are kept by baseline, a text that names plan, statement and task. What they mean is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any

import msgspec

from aioflow.state.databases import Databases
from aioflow.state.driver import Address, Connection
from aioflow.state.errors import BusyError, DamagedError, DisconnectedError, DiskFullError, StateError
from aioflow.state.lock_wait import LockWait
from aioflow.state.system_tables import HEALTH, from_stamp, stamp

KEPT_RUNS = 200  # of each baseline
_COLUMNS = "baseline, run_id, ended, row_count, page_count, nulls, is_good"
# Among the nulls by column: no column has this name.
_EMPTY_PAGES = ""
# A run that writes nothing else does not wait for others as long as one whose results are at stake.
_WAIT_SECONDS = 5.0


class RunHealth(msgspec.Struct, frozen=True):
    """The figures of a run. It is good when it may be a measure for later ones."""

    run_id: str
    rows: int
    pages: int = 0
    nulls: Mapping[str, int] = msgspec.field(default_factory=dict)
    empty_pages: int = 0  # without any item, and nothing that proves them to be empty
    is_good: bool = True
    ended: datetime | None = None

    def share(self, column: str) -> float:
        """Return the share of nulls in a column."""
        return self.nulls[column] / self.rows


# --- reading --------------------------------------------------------------------------------------


async def good_runs(databases: Databases, address: Address, baseline: str, most: int) -> list[RunHealth]:
    """Return the latest good runs of a baseline, the last one first; none where there is no database."""
    connection = await databases.connect_to_read(address)
    try:
        async with connection.transaction("snapshot"):
            if await connection.columns(HEALTH) is None:
                return []
            found = await connection.fetch(
                f"SELECT {_COLUMNS} FROM {HEALTH} WHERE baseline = {connection.dialect.placeholders(1)} "
                f"AND is_good = 1 ORDER BY ended DESC LIMIT {most}",
                (baseline,),
            )
    finally:
        await connection.close()
    return [_run_of(row, address) for row in found]


def _run_of(row: Any, address: Address) -> RunHealth:
    _, run_id, ended, rows, pages, nulls, is_good = row
    try:
        counts = {str(name): int(count) for name, count in json.loads(nulls).items()}
        empty = counts.pop(_EMPTY_PAGES, 0)
        return RunHealth(str(run_id), int(rows), int(pages), counts, empty, bool(is_good), from_stamp(ended))
    except (ValueError, TypeError, AttributeError):
        raise DamagedError(f"{address.shown}: {HEALTH} holds figures that aioflow did not write") from None


# --- writing --------------------------------------------------------------------------------------


class HealthWrite:
    """The figures of one run as one of its writes.

    A failure that concerns only them is told to `warn`, and the rest of the run's writes takes hold.
    """

    where = "health of wrappers"
    whole = True

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._runs: dict[str, RunHealth] = {}

    @property
    def is_empty(self) -> bool:
        return not self._runs

    def add(self, baseline: str, run: RunHealth) -> None:
        self._runs[baseline] = run

    def seal(self) -> None:
        """All figures are there when it is staged."""

    async def apply(self, connection: Connection) -> None:
        try:
            async with connection.savepoint():
                for baseline, run in self._runs.items():
                    await _save(connection, baseline, run)
        except (BusyError, DisconnectedError, DiskFullError, DamagedError):
            raise
        except StateError as error:
            self._warn(f"the health of wrappers was not stored: {error}")

    def forget(self) -> None:
        self._runs.clear()

    def close(self) -> None:
        self._runs.clear()


async def _save(connection: Connection, baseline: str, run: RunHealth) -> None:
    """Add the figures of a run, and let go of those of runs long ago."""
    ended = stamp(run.ended or datetime.now(UTC))
    counts = {**run.nulls, _EMPTY_PAGES: run.empty_pages}
    await connection.run(
        f"INSERT INTO {HEALTH} ({_COLUMNS}) VALUES ({connection.dialect.placeholders(7)})",
        (baseline, run.run_id, ended, run.rows, run.pages, json.dumps(counts), int(run.is_good)),
    )
    one, two = (connection.dialect.placeholders(1, first) for first in (1, 2))
    await connection.run(
        f"DELETE FROM {HEALTH} WHERE baseline = {one} AND ended <= "
        f"(SELECT ended FROM {HEALTH} WHERE baseline = {two} ORDER BY ended DESC LIMIT 1 OFFSET {KEPT_RUNS})",
        (baseline, baseline),
    )


async def store_alone(
    databases: Databases, address: Address, write: HealthWrite, warn: Callable[[str], None]
) -> None:
    """Store the figures of a run that writes nothing else, in a transaction of their own."""
    connection = await databases.connect(address)
    try:
        await databases.prepare(connection, address, warn)
        async with AsyncExitStack() as stack:
            await LockWait(address, _WAIT_SECONDS, lambda message: None).enter(connection, stack)
            await write.apply(connection)
    finally:
        await connection.close()


async def accept_baseline(connection: Connection, baseline: str) -> bool:
    """Make the latest run of a baseline its only measure; False if there is none. Within a transaction."""
    one, two = (connection.dialect.placeholders(1, first) for first in (1, 2))
    latest = await connection.fetch(
        f"SELECT run_id FROM {HEALTH} WHERE baseline = {one} ORDER BY ended DESC LIMIT 1", (baseline,)
    )
    if not latest:
        return False
    ((run_id,),) = latest
    await connection.run(
        f"DELETE FROM {HEALTH} WHERE baseline = {one} AND run_id <> {two}", (baseline, run_id)
    )
    await connection.run(f"UPDATE {HEALTH} SET is_good = 1 WHERE baseline = {one}", (baseline,))
    return True
