"""The system tables, which aioflow keeps in a plan's database for itself: runs, outbox, suspects and health.

Their SQL is common to all dialects. A moment is a text of one width in UTC (`stamp`), so that moments compare
as texts. Structured values are JSON in a text. The tables have a version: they are made, checked and upgraded
here, and refused when they are newer or damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import msgspec

from aioflow.state.crash_points import moment
from aioflow.state.driver import Address, Connection, Dialect, Driver
from aioflow.state.errors import (
    BusyError,
    DamagedError,
    DatabaseError,
    DisconnectedError,
    DiskFullError,
    StaleRunError,
    VersionError,
)
from aioflow.state.lock_wait import LockWait

Warn: TypeAlias = Callable[[str], None]

META = "aioflow_meta"

# For another process that makes the tables, or holds the lock for its own writes.
WAIT_SECONDS = 600.0
_COPIES_AT_MOST = 5
# Failures that say nothing about the tables.
_ELSEWHERE = (DisconnectedError, BusyError, DiskFullError, DamagedError)

_COPIED = moment("tables copied", "a copy of older tables was made, they are still as they were")
_MADE = moment("tables made", "the tables were made or upgraded, their transaction is not committed")
_COMMITTED = moment("tables committed", "the tables were made or upgraded")


class Tables(msgspec.Struct, frozen=True):
    """System tables of one version: the columns they have, and the migrations from any older version.

    The first of `migrations` makes version 1 of nothing, the second version 2 of version 1, and so on.
    """

    migrations: tuple[tuple[str, ...], ...]
    columns: Mapping[str, tuple[str, ...]]
    meta: str = META  # the table with the version

    @property
    def version(self) -> int:
        return len(self.migrations)

    @property
    def probe(self) -> str:
        """Return a query that gives the version, and fails unless every table and column is there."""
        others = [
            f"NOT EXISTS (SELECT {', '.join(columns)} FROM {table} WHERE 1 = 0)"
            for table, columns in self.columns.items()
        ]
        return f"SELECT version FROM {self.meta} WHERE {' AND '.join(others)}"


async def prepare_tables(
    connection: Connection,
    driver: Driver,
    address: Address,
    warn: Warn,
    tables: Tables,
    wait_seconds: float = WAIT_SECONDS,
) -> None:
    """Make or upgrade the tables to their last version. Must not be called within a transaction."""
    found = await found_version(connection, address, tables)
    if found == tables.version:
        return
    lock_wait = LockWait(address, wait_seconds, warn)
    copy = await _copied(connection, driver, address, tables, lock_wait) if found else None
    try:
        await _upgrade(connection, address, tables, lock_wait)
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
    connection: Connection, driver: Driver, address: Address, tables: Tables, lock_wait: LockWait
) -> str | None:
    """Copy older tables.

    Return where the copy is, or None when another process has upgraded them meanwhile.
    """
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
            await lock_wait.pause(error)
        else:
            _COPIED()
            return copy


async def found_version(connection: Connection, address: Address, tables: Tables) -> int:
    """Return the version of the tables, or 0 when there are none. Change nothing.

    Raise a VersionError when they are newer, and a DamagedError when some are missing. Must not be called
    within a transaction, which the failing query would end.
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


async def _upgrade(connection: Connection, address: Address, tables: Tables, lock_wait: LockWait) -> None:
    async with AsyncExitStack() as stack:
        await lock_wait.enter(connection, stack)
        version = await _examine(connection, address, tables)
        if version == tables.version:
            return
        for statements in tables.migrations[version:]:
            for statement in statements:
                await connection.run(statement)
        await connection.run(f"DELETE FROM {tables.meta}")
        await connection.run(f"INSERT INTO {tables.meta} (id, version) VALUES (1, {tables.version})")
        _MADE()
    _COMMITTED()


async def _examine(connection: Connection, address: Address, tables: Tables) -> int:
    """Return the version as `found_version` does, slower, but without a query that fails."""
    try:
        return await _look(connection, address, tables)
    except DamagedError:
        # A table may have been made between two questions about it.
        return await _look(connection, address, tables)


async def _look(connection: Connection, address: Address, tables: Tables) -> int:
    found = {table: await connection.columns(table) for table in (tables.meta, *tables.columns)}
    present = {
        table: {column.name for column in columns} for table, columns in found.items() if columns is not None
    }
    if not present:
        return 0
    if "version" not in present.get(tables.meta, ()):
        others = ", ".join(present.keys() - {tables.meta}) or "it has no version"
        raise _damaged(address, f"there is no proper {tables.meta} ({others})")
    rows = await connection.fetch(f"SELECT version FROM {tables.meta}")
    version = rows[0][0] if len(rows) == 1 else None
    if not isinstance(version, int) or version < 1:
        raise _damaged(address, f"{tables.meta} has {len(rows)} rows where one has the version")
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


RUNS = "aioflow_runs"
OUTBOX = "aioflow_outbox"
SUSPECTS = "aioflow_suspects"
HELD = "aioflow_held"
HEALTH = "aioflow_health"
FENCES = "aioflow_fences"
TASK_REQUESTS = "aioflow_task_requests"
DIGESTS = "aioflow_digests"
CHANGE_SETS = "aioflow_change_sets"
CHANGES = "aioflow_changes"
TRACKED = "aioflow_tracked"

KEPT_RUN_DAYS = 90
KEPT_RUNS = 10_000

_VERSION_1 = (
    "CREATE TABLE aioflow_meta (id bigint PRIMARY KEY, version bigint NOT NULL)",
    "CREATE TABLE aioflow_runs ("
    "run_id text PRIMARY KEY, plan text NOT NULL, started text NOT NULL, committed text NOT NULL)",
    "CREATE INDEX aioflow_runs_committed ON aioflow_runs (committed)",
    "CREATE TABLE aioflow_outbox ("
    "key text PRIMARY KEY, channel text NOT NULL, account text NOT NULL, content text NOT NULL, "
    "delivery text NOT NULL, state text NOT NULL, attempts bigint NOT NULL, created text NOT NULL, "
    "place bigint NOT NULL, due text NOT NULL, leased_by text, leased_until text, progress text NOT NULL, "
    "last_error text, answer text, run_id text NOT NULL, statement text NOT NULL, sent_at text)",
    # Claims go account by account, the oldest message first.
    "CREATE INDEX aioflow_outbox_state ON aioflow_outbox (state, channel, account, created, place, due)",
    "CREATE INDEX aioflow_outbox_sent_at ON aioflow_outbox (sent_at)",
    "CREATE TABLE aioflow_suspects ("
    "table_name text PRIMARY KEY, run_id text NOT NULL, noticed text NOT NULL, vanishing bigint NOT NULL, "
    "total bigint NOT NULL, sample text NOT NULL, confirmed bigint NOT NULL)",
)

_VERSION_2 = (
    # Marks of version 1 name no rows: whatever they were about is noticed anew.
    "DROP TABLE aioflow_suspects",
    "CREATE TABLE aioflow_suspects ("
    "table_name text PRIMARY KEY, run_id text NOT NULL, noticed text NOT NULL, seen text NOT NULL, "
    "total bigint NOT NULL, gone bigint NOT NULL, added bigint NOT NULL, changed bigint NOT NULL, "
    "column_names text NOT NULL, reasons text NOT NULL, incomplete bigint NOT NULL, confirmed text NOT NULL)",
    # The keys of rows that seem to be gone, in how many runs they were missing, and when that last counted.
    "CREATE TABLE aioflow_held (table_name text NOT NULL, row_key text NOT NULL, runs bigint NOT NULL, "
    "counted text NOT NULL, PRIMARY KEY (table_name, row_key))",
    "CREATE TABLE aioflow_health ("
    "baseline text NOT NULL, run_id text NOT NULL, ended text NOT NULL, row_count bigint NOT NULL, "
    "page_count bigint NOT NULL, nulls text NOT NULL, is_good bigint NOT NULL, "
    "PRIMARY KEY (baseline, run_id))",
)

_VERSION_3 = (
    # A run of a task commits only if no later attempt has raised the fence of its occurrence meanwhile.
    "CREATE TABLE aioflow_fences (occurrence text PRIMARY KEY, fence bigint NOT NULL, raised text NOT NULL)",
    # Tasks that a run adds or removes. They wait here until a service takes them over.
    "CREATE TABLE aioflow_task_requests ("
    "request_id text PRIMARY KEY, run_id text NOT NULL, place bigint NOT NULL, created text NOT NULL, "
    "action text NOT NULL, task_id text NOT NULL, content text NOT NULL)",
    # Hours in which a message is not delivered, and the rows that wait to be told with others in a digest.
    "ALTER TABLE aioflow_outbox ADD COLUMN quiet text",
    "CREATE TABLE aioflow_digests ("
    "key text PRIMARY KEY, digest text NOT NULL, channel text NOT NULL, account text NOT NULL, "
    "row_count bigint NOT NULL, byte_count bigint NOT NULL, created text NOT NULL, place bigint NOT NULL, "
    "due text NOT NULL, latest text NOT NULL, run_id text NOT NULL, statement text NOT NULL, "
    "last_error text, doubt text NOT NULL, recipe text NOT NULL, content text NOT NULL)",
    "CREATE INDEX aioflow_digests_digest ON aioflow_digests (digest)",
    # The changes that diff wrote to one table in one run are a set. A place counts the changes of a table.
    "CREATE TABLE aioflow_change_sets (set_id bigint PRIMARY KEY, table_name text NOT NULL, "
    "task_id text NOT NULL, run_id text NOT NULL, noticed text NOT NULL, first_place bigint NOT NULL, "
    "last_place bigint NOT NULL, attributes text NOT NULL, table_columns text NOT NULL)",
    "CREATE INDEX aioflow_change_sets_task ON aioflow_change_sets (task_id, noticed, set_id)",
    "CREATE INDEX aioflow_change_sets_table ON aioflow_change_sets (table_name, last_place)",
    "CREATE INDEX aioflow_change_sets_noticed ON aioflow_change_sets (noticed, set_id)",
    "CREATE TABLE aioflow_changes (set_id bigint NOT NULL, place bigint NOT NULL, row_key text NOT NULL, "
    "kind text NOT NULL, told bigint NOT NULL, column_names text, seen text, row_before text, "
    "row_after text, PRIMARY KEY (set_id, place))",
    "CREATE INDEX aioflow_changes_row_key ON aioflow_changes (row_key)",
    # The tables that diff compares, and the moments that all of their rows share.
    "CREATE TABLE aioflow_tracked (table_name text NOT NULL, task_id text NOT NULL, plan text NOT NULL, "
    "run_id text NOT NULL, key_names text NOT NULL, since text NOT NULL, seen text NOT NULL, "
    "all_seen text NOT NULL, forgotten text NOT NULL, PRIMARY KEY (table_name, task_id))",
)

_VERSION_4 = (
    # Without it each run reads all earlier ones of its baseline, which lie all over the table.
    "CREATE INDEX aioflow_health_ended ON aioflow_health (baseline, ended)",
)

OWN_TABLES = Tables(
    (_VERSION_1, _VERSION_2, _VERSION_3, _VERSION_4),
    {
        RUNS: ("run_id", "plan", "started", "committed"),
        OUTBOX: (
            *("key", "channel", "account", "content", "delivery", "state", "attempts", "created", "place"),
            *("due", "leased_by", "leased_until", "progress", "last_error", "answer"),
            *("run_id", "statement", "sent_at", "quiet"),
        ),
        SUSPECTS: (
            *("table_name", "run_id", "noticed", "seen", "total", "gone", "added", "changed"),
            *("column_names", "reasons", "incomplete", "confirmed"),
        ),
        HELD: ("table_name", "row_key", "runs", "counted"),
        HEALTH: ("baseline", "run_id", "ended", "row_count", "page_count", "nulls", "is_good"),
        FENCES: ("occurrence", "fence", "raised"),
        TASK_REQUESTS: ("request_id", "run_id", "place", "created", "action", "task_id", "content"),
        DIGESTS: (
            *("key", "digest", "channel", "account", "row_count", "byte_count", "created", "place", "due"),
            *("latest", "run_id", "statement", "last_error", "doubt", "recipe", "content"),
        ),
        CHANGE_SETS: (
            *("set_id", "table_name", "task_id", "run_id", "noticed", "first_place", "last_place"),
            *("attributes", "table_columns"),
        ),
        CHANGES: (
            *("set_id", "place", "row_key", "kind", "told", "column_names", "seen"),
            *("row_before", "row_after"),
        ),
        TRACKED: (
            *("table_name", "task_id", "plan", "run_id", "key_names", "since", "seen", "all_seen"),
            "forgotten",
        ),
    },
)


async def prepare(
    connection: Connection,
    driver: Driver,
    address: Address,
    warn: Warn,
    tables: Tables = OWN_TABLES,
    wait_seconds: float = WAIT_SECONDS,
) -> None:
    """Make, check or upgrade the tables before something is written. Must not be called within a transaction.

    Newer tables are a VersionError, damaged ones a DamagedError, and nothing is changed then. `warn` is told
    where the copy of older tables is.
    """
    await prepare_tables(connection, driver, address, warn, tables, wait_seconds)


async def are_there(connection: Connection, address: Address, tables: Tables = OWN_TABLES) -> bool:
    """Return whether the tables can be read as they are. Readers make and upgrade nothing."""
    return await found_version(connection, address, tables) == tables.version


# --- moments --------------------------------------------------------------------------------------


def stamp(when: datetime) -> str:
    """Return a moment as the tables hold it: `2026-01-31T10:00:00.000000Z`, of one width and in UTC."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def from_stamp(text: str) -> datetime:
    """Return the moment of a `stamp`."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


# --- runs -----------------------------------------------------------------------------------------


async def note_run(
    connection: Connection, run_id: str, plan: str, started: datetime, committed: datetime
) -> None:
    """Note within the transaction of a run that it commits, and delete the rows of runs long ago.

    A run that commits as it streams has one row, that of its last commit.
    """
    places = connection.dialect.placeholders(4)
    await connection.run(
        f"INSERT INTO {RUNS} (run_id, plan, started, committed) VALUES ({places}) "
        "ON CONFLICT (run_id) DO UPDATE SET committed = excluded.committed",
        (run_id, plan, stamp(started), stamp(committed)),
    )
    await connection.run(
        f"DELETE FROM {RUNS} WHERE committed < {connection.dialect.placeholders(1)}",
        (stamp(committed - timedelta(days=KEPT_RUN_DAYS)),),
    )
    await connection.run(_without_the_latest(connection.dialect))


def _without_the_latest(dialect: Dialect) -> str:
    """Return the statement that deletes all runs but the latest.

    Row ids that grow tell which those are. Without them the latest are counted, which reads all of them.
    """
    if not dialect.row_ids_grow:
        return (
            f"DELETE FROM {RUNS} WHERE committed <= "
            f"(SELECT committed FROM {RUNS} ORDER BY committed DESC LIMIT 1 OFFSET {KEPT_RUNS})"
        )
    row_id = dialect.row_id
    last = f"(SELECT max({row_id}) - {KEPT_RUNS} FROM {RUNS})"
    # A run that commits as it streams keeps its row, and may have committed since the others began.
    return (
        f"DELETE FROM {RUNS} WHERE {row_id} <= {last} AND committed < "
        f"(SELECT committed FROM {RUNS} WHERE {row_id} > {last} ORDER BY {row_id} LIMIT 1)"
    )


async def was_committed(connection: Connection, run_id: str, committed: datetime) -> bool:
    """Return whether the commit that noted this moment for a run has happened."""
    one, two = (connection.dialect.placeholders(1, first) for first in (1, 2))
    found = await connection.fetch(
        f"SELECT 1 FROM {RUNS} WHERE run_id = {one} AND committed = {two}", (run_id, stamp(committed))
    )
    return bool(found)


async def has_committed(connection: Connection, run_id: str) -> bool:
    """Return whether a run has committed at least once."""
    one = connection.dialect.placeholders(1)
    return bool(await connection.fetch(f"SELECT 1 FROM {RUNS} WHERE run_id = {one}", (run_id,)))


async def check_fence(connection: Connection, occurrence: str, fence: int) -> None:
    """Raise an error if a later attempt at an occurrence has raised the fence. For the commit of a run."""
    one = connection.dialect.placeholders(1)
    found = await connection.fetch(f"SELECT fence FROM {FENCES} WHERE occurrence = {one}", (occurrence,))
    if found and found[0][0] > fence:
        raise StaleRunError(
            f"another attempt at {occurrence} has taken over while this one was held up; "
            "nothing of this run was stored"
        )


async def raise_fence(connection: Connection, occurrence: str, fence: int, now: datetime) -> None:
    """Keep earlier attempts at an occurrence from committing. Must hold the lock of the commits of runs."""
    await connection.run(
        f"INSERT INTO {FENCES} (occurrence, fence, raised) VALUES ({connection.dialect.placeholders(3)}) "
        "ON CONFLICT (occurrence) DO UPDATE SET fence = excluded.fence, raised = excluded.raised "
        f"WHERE {FENCES}.fence < excluded.fence",
        (occurrence, fence, stamp(now)),
    )
    await connection.run(
        f"DELETE FROM {FENCES} WHERE raised < {connection.dialect.placeholders(1)}",
        (stamp(now - timedelta(days=KEPT_RUN_DAYS)),),
    )


def run_lock(connection: Connection) -> str | None:
    """Return the statement that locks out other writers by one row; None if a transaction does so itself."""
    if connection.dialect.locks_database:
        return None
    return f"select version from {META} for update nowait"


async def latest_commit(connection: Connection) -> str | None:
    """Return the moment of the latest commit of a run, or None before the first."""
    if await connection.columns(RUNS) is None:
        return None
    ((latest,),) = await connection.fetch(f"SELECT max(committed) FROM {RUNS}")
    return None if latest is None else str(latest)
