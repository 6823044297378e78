"""The tables that aioflow keeps in a plan's database for itself: runs, outbox, suspects, health of wrappers.

Their SQL is what all dialects share: moments are texts of one width in UTC (`stamp`), which compare as texts,
and what is structured is JSON in a text. How versions are told apart is for `versions`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from aioflow.state.driver import Address, Connection, Driver
from aioflow.state.versions import WAIT_SECONDS, Tables, Warn, found_version, prepare_tables

RUNS = "aioflow_runs"
OUTBOX = "aioflow_outbox"
SUSPECTS = "aioflow_suspects"
HELD = "aioflow_held"
HEALTH = "aioflow_health"

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

OWN_TABLES = Tables(
    (_VERSION_1, _VERSION_2),
    {
        RUNS: ("run_id", "plan", "started", "committed"),
        OUTBOX: (
            *("key", "channel", "account", "content", "delivery", "state", "attempts", "created", "place"),
            *("due", "leased_by", "leased_until", "progress", "last_error", "answer"),
            *("run_id", "statement", "sent_at"),
        ),
        SUSPECTS: (
            *("table_name", "run_id", "noticed", "seen", "total", "gone", "added", "changed"),
            *("column_names", "reasons", "incomplete", "confirmed"),
        ),
        HELD: ("table_name", "row_key", "runs", "counted"),
        HEALTH: ("baseline", "run_id", "ended", "row_count", "page_count", "nulls", "is_good"),
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
    """Make, check or upgrade the tables before something is written; outside of a transaction.

    Newer ones are a VersionError, damaged ones a DamagedError, and nothing is changed. Where a copy of older
    ones was kept is told to `warn`.
    """
    await prepare_tables(connection, driver, address, warn, tables, wait_seconds)


async def are_there(connection: Connection, address: Address, tables: Tables = OWN_TABLES) -> bool:
    """Whether the tables can be read as they are: for those who only look. None are made or upgraded."""
    return await found_version(connection, address, tables) == tables.version


# --- moments --------------------------------------------------------------------------------------


def stamp(when: datetime) -> str:
    """A moment as the tables hold it: `2026-01-31T10:00:00.000000Z`, always as wide and in UTC."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def from_stamp(text: str) -> datetime:
    """The moment of a `stamp`."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


# --- runs -----------------------------------------------------------------------------------------


async def note_run(
    connection: Connection, run_id: str, plan: str, started: datetime, committed: datetime
) -> None:
    """Within the transaction of a run: say that it was committed. Rows of runs long ago are let go of.

    A run that commits as it streams has one row, of its last commit.
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
    await connection.run(
        f"DELETE FROM {RUNS} WHERE committed <= "
        f"(SELECT committed FROM {RUNS} ORDER BY committed DESC LIMIT 1 OFFSET {KEPT_RUNS})"
    )


async def was_committed(connection: Connection, run_id: str, committed: datetime) -> bool:
    """Whether the commit that noted this moment for a run did happen."""
    one, two = (connection.dialect.placeholders(1, first) for first in (1, 2))
    found = await connection.fetch(
        f"SELECT 1 FROM {RUNS} WHERE run_id = {one} AND committed = {two}", (run_id, stamp(committed))
    )
    return bool(found)


async def latest_commit(connection: Connection) -> str | None:
    """When a run last committed in this database; None before the first."""
    if await connection.columns(RUNS) is None:
        return None
    ((latest,),) = await connection.fetch(f"SELECT max(committed) FROM {RUNS}")
    return None if latest is None else str(latest)
