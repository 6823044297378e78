"""The log of changes that diff writes in the transaction of its table. `aioflow.state.history` reads it.

The changes of one table in one run are a set. Places number the changes of a table through all sets, so the
number of changes that are kept needs no counting.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import chain, islice
from operator import itemgetter

import msgspec

from aioflow.relation import Batch, Row
from aioflow.runtime.spill import OwnedItems
from aioflow.state.diff.settings import ChangeOrigin
from aioflow.state.diff.suspects import fingerprints
from aioflow.state.driver import Connection
from aioflow.state.system_tables import CHANGE_SETS, CHANGES, TRACKED, stamp
from aioflow.values.json import encode_rows

CHANGE_COLUMNS = (
    *("set_id", "place", "row_key", "kind", "told", "column_names", "seen", "row_before", "row_after"),
)
_SET_COLUMNS = (
    *("set_id", "table_name", "task_id", "run_id", "noticed", "first_place", "last_place"),
    *("attributes", "table_columns"),
)
_TRACKED_COLUMNS = (
    *("table_name", "task_id", "plan", "run_id", "key_names", "since", "seen", "all_seen", "forgotten"),
)
# Many changes are sorted by key in portions of this size: the index on keys then grows page by page.
_SORTED_ROWS = 4096
_MOST_DAYS = 365_000.0


class Sighting(msgspec.Struct, frozen=True):
    """The extent to which a run saw a table.

    The `is_first` run made the table; its rows are a baseline unless they are news. A run `is_whole` or
    partial, and `misses_none` if it found every row of the table or knows that the others are gone.
    """

    is_first: bool = False
    is_baseline: bool = False
    is_whole: bool = False
    misses_none: bool = False


class TableTimes(msgspec.Struct, frozen=True):
    """Moments of a table: its baseline, the last whole run, the last one that missed no row, and pruning.

    They are stamps. An empty text stands for never.
    """

    since: str
    seen: str = ""
    all_seen: str = ""
    forgotten: str = ""


class ChangeEncoder:
    """Turns rows that are to be written into rows of the log, without set and place."""

    def __init__(self, pick_key: Callable[[Row], Row], in_table_order: Callable[[Row], Row]) -> None:
        self._pick_key = pick_key
        self._in_table_order = in_table_order

    def added(self, rows: Batch, *, told: bool) -> Batch:
        texts = zip(self._keys(rows), encode_rows(rows), strict=True)
        return [(key, "added", int(told), None, None, None, text) for key, text in texts]

    def removed(self, rows: Batch, times: TableTimes) -> Batch:
        """Return changes for rows as they were read, each followed by whether it is told and was held."""
        before = encode_rows([self._in_table_order(row) for row in rows])
        return [
            (
                key,
                "removed",
                int(row[-2]),
                None,
                (times.all_seen if row[-1] else times.seen) or None,
                text,
                None,
            )
            for key, row, text in zip(self._keys(rows), rows, before, strict=True)
        ]

    def changed(self, rows: Batch, width: int) -> Batch:
        """Return changes for rows of new values, each followed by the row that was read, and a note."""
        noted = [row for row in rows if row[-1]]
        before = encode_rows([row[width : 2 * width] for row in noted])
        after = encode_rows([row[:width] for row in noted])
        return [
            (key, "changed", int(row[-1][0] == TOLD), row[-1][1:], None, old, new)
            for key, row, old, new in zip(self._keys(noted), noted, before, after, strict=True)
        ]

    def _keys(self, rows: Batch) -> list[str]:
        return fingerprints(list(map(self._pick_key, rows)))


TOLD, QUIET = "+", "-"


def changed_note(names: Sequence[str], *, told: bool) -> str:
    """Return the note of a changed row: whether it is told, and the columns that count. "" is not logged."""
    return f"{TOLD if told else QUIET}{json.dumps(names)}" if names else ""


# --- the table as a whole -------------------------------------------------------------------------


async def track_table(
    connection: Connection, table: str, key: Sequence[str], origin: ChangeOrigin, sighting: Sighting
) -> TableTimes:
    """Note that a run has compared a table. Return the times of the table before this run."""
    one, now = connection.dialect.placeholders(1), stamp(origin.noticed)
    found = await connection.fetch(
        "SELECT max(since), max(seen), max(all_seen), max(forgotten) "
        f"FROM {TRACKED} WHERE table_name = {one}",
        (table,),
    )
    before = TableTimes(*found[0]) if found[0][0] is not None else TableTimes(now)
    if sighting.is_first:
        before = TableTimes(now)
    after = TableTimes(
        before.since,
        now if sighting.is_whole else before.seen,
        now if sighting.is_whole and sighting.misses_none else before.all_seen,
        before.forgotten,
    )
    times = msgspec.structs.astuple(after)
    own = (table, origin.task_id, origin.plan, origin.run_id, json.dumps(key))
    places = connection.dialect.placeholders(len(_TRACKED_COLUMNS))
    updated = (f"{name} = excluded.{name}" for name in ("plan", "run_id"))
    await connection.run(
        f"INSERT INTO {TRACKED} ({', '.join(_TRACKED_COLUMNS)}) VALUES ({places}) "
        f"ON CONFLICT (table_name, task_id) DO UPDATE SET {', '.join(updated)}",
        (*own, *times),
    )
    shared = ("key_names", "since", "seen", "all_seen", "forgotten")
    sets = (f"{name} = {connection.dialect.placeholders(1, at)}" for at, name in enumerate(shared, 1))
    last = connection.dialect.placeholders(1, len(shared) + 1)
    await connection.run(
        f"UPDATE {TRACKED} SET {', '.join(sets)} WHERE table_name = {last}", (own[-1], *times, table)
    )
    return before


# --- changes --------------------------------------------------------------------------------------


class LoggedTable(msgspec.Struct, frozen=True):
    """A table whose changes are logged: the attributes of the relation, and the columns of the table."""

    name: str
    attributes: tuple[str, ...]
    columns: tuple[str, ...]


async def write_changes(
    connection: Connection,
    table: LoggedTable,
    origin: ChangeOrigin,
    count: int,
    changes: OwnedItems[Batch],
) -> None:
    """Log `count` changes as a set, and forget old ones. Of more changes than are kept, log the last ones."""
    dialect, most = connection.dialect, origin.settings.most_changes
    ((last_set,),) = await connection.fetch(f"SELECT max(set_id) FROM {CHANGE_SETS}")
    ((last_place,),) = await connection.fetch(
        f"SELECT max(last_place) FROM {CHANGE_SETS} WHERE table_name = {dialect.placeholders(1)}",
        (table.name,),
    )
    set_id, before, last = (last_set or 0) + 1, last_place or 0, (last_place or 0) + count
    skipped = max(0, count - most)
    if skipped < count:
        await connection.run(
            f"INSERT INTO {CHANGE_SETS} ({', '.join(_SET_COLUMNS)}) "
            f"VALUES ({dialect.placeholders(len(_SET_COLUMNS))})",
            (
                *(set_id, table.name, origin.task_id, origin.run_id, stamp(origin.noticed)),
                *(before + skipped + 1, last),
                *(json.dumps(table.attributes), json.dumps(table.columns)),
            ),
        )
        numbered = _numbered(changes, set_id, before, skipped)
        await connection.load(CHANGES, CHANGE_COLUMNS, OwnedItems(changes, numbered))
    if skipped:
        await _note_forgotten(connection, table.name, stamp(origin.noticed))
    await forget_many(connection, table.name, last - most)


def _numbered(changes: Iterable[Batch], set_id: int, before: int, skipped: int) -> Iterator[Batch]:
    """Yield changes with set and place. Of many changes, each full portion is in the order of keys."""
    rows = chain.from_iterable(changes)
    place = before + sum(1 for _ in islice(rows, skipped))
    while portion := list(islice(rows, _SORTED_ROWS)):
        if len(portion) == _SORTED_ROWS:
            portion.sort(key=itemgetter(0))
        yield [(set_id, at, *row) for at, row in enumerate(portion, place + 1)]
        place += len(portion)


# --- forgetting -----------------------------------------------------------------------------------


async def forget_many(connection: Connection, table: str, place: int) -> None:
    """Forget the changes of a table up to a place."""
    if place <= 0:
        return
    one, two, three = (connection.dialect.placeholders(1, at) for at in (1, 2, 3))
    old = f"FROM {CHANGE_SETS} WHERE table_name = {one} AND first_place <= {two}"
    ((noticed,),) = await connection.fetch(f"SELECT max(noticed) {old}", (table, place))
    if noticed is None:
        return
    await _note_forgotten(connection, table, noticed)
    await connection.run(
        f"DELETE FROM {CHANGES} WHERE set_id IN (SELECT set_id {old}) AND place <= {three}",
        (table, place, place),
    )
    await connection.run(
        f"DELETE FROM {CHANGE_SETS} WHERE table_name = {one} AND last_place <= {two}", (table, place)
    )
    await connection.run(
        f"UPDATE {CHANGE_SETS} SET first_place = {one} WHERE table_name = {two} AND first_place <= {three}",
        (place + 1, table, place),
    )


async def forget_old(connection: Connection, origin: ChangeOrigin) -> None:
    """Forget the changes of all tables that are older than the settings allow."""
    one, two = (connection.dialect.placeholders(1, at) for at in (1, 2))
    days = min(origin.settings.keep_days, _MOST_DAYS)
    limit = stamp(origin.noticed - timedelta(days=days))
    ((oldest,),) = await connection.fetch(f"SELECT min(noticed) FROM {CHANGE_SETS}")
    if oldest is None or oldest >= limit:
        return  # which the index tells; to group by tables reads all sets
    old = f"FROM {CHANGE_SETS} WHERE noticed < {one}"
    for table, noticed in await connection.fetch(
        f"SELECT table_name, max(noticed) {old} GROUP BY table_name", (limit,)
    ):
        await _note_forgotten(connection, table, noticed)
        for of in (CHANGES, CHANGE_SETS):
            await connection.run(
                f"DELETE FROM {of} WHERE set_id IN (SELECT set_id {old} AND table_name = {two})",
                (limit, table),
            )


async def _note_forgotten(connection: Connection, table: str, noticed: str) -> None:
    one, two, three = (connection.dialect.placeholders(1, at) for at in (1, 2, 3))
    await connection.run(
        f"UPDATE {TRACKED} SET forgotten = {one} WHERE table_name = {two} AND forgotten < {three}",
        (noticed, table, noticed),
    )
