"""Versions of tables that aioflow keeps for itself: makes, checks, upgrades or refuses them.

Which tables there are is said by `own_tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import TypeAlias

from aioflow.dataclass import dataclass
from aioflow.state.driver import Address, Connection, Driver
from aioflow.state.errors import (
    BusyError,
    DamagedError,
    DatabaseError,
    DisconnectedError,
    DiskFullError,
    VersionError,
)
from aioflow.state.moments import moment
from aioflow.state.patience import Patience

Warn: TypeAlias = Callable[[str], None]

META = "aioflow_meta"

# For another process that makes the tables, or holds the lock for its own writes.
WAIT_SECONDS = 600.0
_COPIES_AT_MOST = 5
# What says nothing about the tables.
_ELSEWHERE = (DisconnectedError, BusyError, DiskFullError, DamagedError)

_COPIED = moment("tables copied", "a copy of older tables was made, they are still as they were")
_MADE = moment("tables made", "the tables were made or upgraded, their transaction is not committed")
_COMMITTED = moment("tables committed", "the tables were made or upgraded")


@dataclass(frozen=True)
class Tables:
    """Tables of one version: how to get there from any older one, and the columns that they have then.

    The first of `migrations` makes version 1 of nothing, the second version 2 of version 1, and so on.
    """

    migrations: tuple[tuple[str, ...], ...]
    columns: Mapping[str, tuple[str, ...]]

    @property
    def version(self) -> int:
        return len(self.migrations)

    @property
    def probe(self) -> str:
        """One query that gives the version, and fails unless every table and column is there."""
        others = [
            f"NOT EXISTS (SELECT {', '.join(columns)} FROM {table} WHERE 1 = 0)"
            for table, columns in self.columns.items()
        ]
        return f"SELECT version FROM {META} WHERE {' AND '.join(others)}"


async def prepare_tables(
    connection: Connection,
    driver: Driver,
    address: Address,
    warn: Warn,
    tables: Tables,
    wait_seconds: float = WAIT_SECONDS,
) -> None:
    """Have the tables there in their last version, whatever was there before; outside of a transaction."""
    found = await found_version(connection, address, tables)
    if found == tables.version:
        return
    patience = Patience(address, wait_seconds, warn)
    copy = await _copied(connection, driver, address, tables, patience) if found else None
    try:
        await _upgrade(connection, address, tables, patience)
    except _ELSEWHERE:
        raise
    except DatabaseError as error:
        # Another process may have done it a moment earlier.
        if await found_version(connection, address, tables) == tables.version:
            return
        raise DatabaseError(
            f"{_shown(address)}: aioflow's own tables could not be {'upgraded' if found else 'made'}, "
            f"nothing was changed{f' (a copy is {copy})' if copy else ''}: {error}"
        ) from error
    if copy:
        warn(
            f"{_shown(address)}: aioflow's own tables were upgraded from version {found} to "
            f"{tables.version}; a copy of what they held before is {copy}"
        )


async def _copied(
    connection: Connection, driver: Driver, address: Address, tables: Tables, patience: Patience
) -> str | None:
    """Where the copy of older tables is; None when another process has upgraded them meanwhile."""
    failures = 0
    while True:
        found = await found_version(connection, address, tables)
        if found == tables.version:
            return None
        try:
            copy = await driver.copy_before_upgrade(connection, address, found)
        except DatabaseError as error:
            # Two that copy at once may be in each other's way.
            failures += not isinstance(error, BusyError)
            if failures > _COPIES_AT_MOST or isinstance(
                error, DisconnectedError | DiskFullError | DamagedError
            ):
                raise
            await patience.pause(error)
        else:
            _COPIED()
            return copy


async def found_version(connection: Connection, address: Address, tables: Tables) -> int:
    """The version of the tables that are there, 0 when there are none; changes nothing.

    A VersionError when they are newer, a DamagedError when some are missing. Not within a transaction, which
    the failing query would end.
    """
    try:
        rows = await connection.fetch(tables.probe)
    except _ELSEWHERE:
        raise
    except DatabaseError:
        rows = []
    if rows == [(tables.version,)]:
        return tables.version
    return await _examine(connection, address, tables)


async def _upgrade(connection: Connection, address: Address, tables: Tables, patience: Patience) -> None:
    async with AsyncExitStack() as stack:
        await patience.enter(connection, stack)
        version = await _examine(connection, address, tables)
        if version == tables.version:
            return
        for statements in tables.migrations[version:]:
            for statement in statements:
                await connection.run(statement)
        await connection.run(f"DELETE FROM {META}")
        await connection.run(f"INSERT INTO {META} (id, version) VALUES (1, {tables.version})")
        _MADE()
    _COMMITTED()


async def _examine(connection: Connection, address: Address, tables: Tables) -> int:
    """The version, as `found_version` says it; slower, and without a query that fails."""
    try:
        return await _look(connection, address, tables)
    except DamagedError:
        # What is not there together may just have been made, between two questions about it.
        return await _look(connection, address, tables)


async def _look(connection: Connection, address: Address, tables: Tables) -> int:
    found = {table: await connection.columns(table) for table in (META, *tables.columns)}
    present = {
        table: {column.name for column in columns} for table, columns in found.items() if columns is not None
    }
    if not present:
        return 0
    if "version" not in present.get(META, ()):
        others = ", ".join(present.keys() - {META}) or "it has no version"
        raise _damaged(address, f"there is no proper {META} ({others})")
    rows = await connection.fetch(f"SELECT version FROM {META}")
    version = rows[0][0] if len(rows) == 1 else None
    if not isinstance(version, int) or version < 1:
        raise _damaged(address, f"{META} has {len(rows)} rows where one has the version")
    if version > tables.version:
        raise VersionError(
            f"{_shown(address)}: a newer version of aioflow made its own tables there (version {version}; "
            f"this one knows up to {tables.version}); nothing was changed: upgrade aioflow, or name another "
            "database"
        )
    if version == tables.version:
        _check_columns(address, present, tables)
    return version


def _check_columns(address: Address, present: Mapping[str, set[str]], tables: Tables) -> None:
    for table, columns in tables.columns.items():
        if table not in present:
            raise _damaged(address, f"there is no table {table}")
        missing = [column for column in columns if column not in present[table]]
        if missing:
            raise _damaged(address, f"{table} has no column {', '.join(missing)}")


def _damaged(address: Address, what: str) -> DamagedError:
    return DamagedError(
        f"{_shown(address)}: aioflow's own tables are damaged: {what}; nothing was changed: restore them "
        "from a copy, or name another database"
    )


def _shown(address: Address) -> str:
    return address.shown or address.name
