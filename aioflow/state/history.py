"""The history of the tables that diff compares: their changes, newest first, and the history of each row.

`aioflow.state.diff.log` writes it. Readers make and upgrade nothing: without system tables, or with those of
an older aioflow, the history is empty. A reader that asks several questions does so in one snapshot.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import msgspec

from aioflow.errors import InputError
from aioflow.relation import Row, Value, picker
from aioflow.state.diff.suspects import NEW, fingerprints
from aioflow.state.driver import Connection, quote_name
from aioflow.state.system_tables import CHANGE_SETS, CHANGES, HELD, TRACKED, from_stamp, stamp
from aioflow.values.json import decode_row

ChangeKind: TypeAlias = Literal["added", "changed", "removed"]

_SETS_AT_ONCE = 64
_CHANGES_AT_ONCE = 1000


class TrackedTable(msgspec.Struct, frozen=True):
    """A table that diff compares. `since` is the time of its baseline, `seen` that of the last whole run.

    Changes up to `forgotten` may be missing, because only so many are kept.
    """

    table: str
    task_id: str
    plan: str
    run_id: str
    key: tuple[str, ...]
    since: datetime
    seen: datetime | None
    all_seen: datetime | None  # the last whole run that missed no row
    forgotten: datetime | None


class RowChange(msgspec.Struct, frozen=True):
    """A change of one row. `before` and `after` are the whole row, None where there was or is none.

    `columns` are those in which a changed row differs. A change that is not told was applied without a
    message. The `cursor` is the position among all changes.
    """

    table: str
    row_key: str
    kind: ChangeKind
    noticed: datetime
    run_id: str
    task_id: str
    place: int
    is_told: bool
    columns: tuple[str, ...]
    before: Mapping[str, Value] | None
    after: Mapping[str, Value] | None
    cursor: str

    @property
    def row(self) -> Mapping[str, Value]:
        """Return the row after the change, or the last one that there was."""
        return (self.before if self.after is None else self.after) or {}


class ValueChange(msgspec.Struct, frozen=True):
    """A change of one value of a row."""

    noticed: datetime
    column: str
    before: Value
    after: Value


class RowHistory(msgspec.Struct, frozen=True):
    """A row from first to last sight. It is `gone` since a moment, or still there.

    A row that `is_missing` was not found by the latest run, but may not be gone. `absences` are the times
    from which and to which it was gone before. If changes of the table were forgotten, the row may have been
    seen after `first_seen` only: `is_first_known` is false then.
    """

    row: Mapping[str, Value]
    row_key: str
    first_seen: datetime
    last_seen: datetime
    gone: datetime | None
    changes: tuple[ValueChange, ...]
    absences: tuple[tuple[datetime, datetime], ...]
    is_missing: bool
    is_first_known: bool
    cursor: str


# --- tables ---------------------------------------------------------------------------------------


async def tracked_tables(connection: Connection, task_id: str | None = None) -> list[TrackedTable]:
    """Return the tables that diff compares, by name. With `task_id`, only those of that task."""
    if await connection.columns(TRACKED) is None:
        return []
    question = _Conditions(connection)
    if task_id is not None:
        question.add("task_id = {}", task_id)
    rows = await connection.fetch(
        "SELECT table_name, task_id, plan, run_id, key_names, since, seen, all_seen, forgotten "
        f"FROM {TRACKED}{question.where} ORDER BY table_name, task_id",
        question.values,
    )
    return [_tracked(row) for row in rows]


def _tracked(row: Row) -> TrackedTable:
    table, task_id, plan, run_id, key, since, *others = row
    seen, all_seen, forgotten = (from_stamp(text) if text else None for text in others)
    return TrackedTable(
        *(table, task_id, plan, run_id, tuple(json.loads(key)), from_stamp(since)),
        *(seen, all_seen, forgotten),
    )


# --- changes --------------------------------------------------------------------------------------


async def read_changes(
    connection: Connection,
    *,
    task_id: str | None = None,
    tables: Collection[str] | None = None,
    run_id: str | None = None,
    after: datetime | None = None,
    before: datetime | None = None,
    kinds: Collection[ChangeKind] | None = None,
    include_quiet: bool = False,
    cursor: str | None = None,
    limit: int = 100,
) -> list[RowChange]:
    """Return changes, the newest first.

    `after` and `before` are exclusive limits of the time at which a change was noticed. Changes that were
    applied without a message come only with `include_quiet`. With the `cursor` of a change the answer begins
    after that change, whatever was added meanwhile.
    """
    if await connection.columns(CHANGE_SETS) is None:
        return []
    question = _Conditions(connection)
    for name, value in (("task_id", task_id), ("run_id", run_id)):
        if value is not None:
            question.add(f"{name} = {{}}", value)
    if tables is not None:
        question.add_choice("table_name", tables)
    if after is not None:
        question.add("noticed > {}", stamp(after))
    if before is not None:
        question.add("noticed < {}", stamp(before))
    wanted = _WantedChanges(connection, kinds, include_quiet, _position(cursor))
    found: list[RowChange] = []
    async for group in _groups(connection, question, wanted.position, limit):
        found += await wanted.fetch(group, limit - len(found))
        if len(found) >= limit:
            break
    return found


class _ChangeSet(msgspec.Struct, frozen=True):
    set_id: int
    table: str
    task_id: str
    run_id: str
    noticed: str
    first_place: int
    last_place: int
    attributes: str
    table_columns: str

    @property
    def size(self) -> int:
        return self.last_place - self.first_place + 1


_Position: TypeAlias = tuple[str, int, int]  # when a change was noticed, its set, its place


def _position(cursor: str | None) -> _Position | None:
    if cursor is None:
        return None
    try:
        noticed, set_id, place = cursor.split("/")
        return stamp(from_stamp(noticed)), int(set_id), int(place)
    except ValueError:
        raise InputError(f"{cursor!r:.80} is no cursor of a change") from None


async def _groups(
    connection: Connection, question: _Conditions, start: _Position | None, limit: int
) -> AsyncGenerator[list[_ChangeSet], None]:
    """Yield sets, the newest first, as many at a time as can be read at once."""
    position = start
    group: list[_ChangeSet] = []
    while True:
        sets = await _next_sets(connection, question, position, includes=position is start)
        for each in sets:
            if group and _size(group) + each.size > max(limit, _CHANGES_AT_ONCE):
                yield group
                group = []
            group.append(each)
            if _size(group) >= limit:
                yield group
                group = []
        if len(sets) < _SETS_AT_ONCE:
            break
        position = (sets[-1].noticed, sets[-1].set_id, 0)
    if group:
        yield group


def _size(sets: Sequence[_ChangeSet]) -> int:
    return sum(each.size for each in sets)


async def _next_sets(
    connection: Connection, question: _Conditions, position: _Position | None, *, includes: bool
) -> list[_ChangeSet]:
    """Return the sets that follow a position, also the one that it is in if that `includes` more."""
    question = question.copy()
    if position is not None:
        question.add(f"(noticed, set_id) {'<=' if includes else '<'} ({{}}, {{}})", *position[:2])
    rows = await connection.fetch(
        f"SELECT {', '.join(_SET_FIELDS)} FROM {CHANGE_SETS}{question.where} "
        f"ORDER BY noticed DESC, set_id DESC LIMIT {_SETS_AT_ONCE}",
        question.values,
    )
    return [_ChangeSet(*row) for row in rows]


_SET_FIELDS = (
    *("set_id", "table_name", "task_id", "run_id", "noticed", "first_place", "last_place"),
    *("attributes", "table_columns"),
)
_CHANGE_FIELDS = ("place", "row_key", "kind", "told", "column_names", "seen", "row_before", "row_after")


class _WantedChanges:
    """The changes that a reader asks for, of any set."""

    def __init__(
        self,
        connection: Connection,
        kinds: Collection[ChangeKind] | None,
        include_quiet: bool,
        position: _Position | None,
    ) -> None:
        self.position = position
        self._connection = connection
        self._kinds = kinds
        self._include_quiet = include_quiet

    async def fetch(self, sets: Sequence[_ChangeSet], limit: int) -> list[RowChange]:
        """Return the newest changes of some sets, in the order of the sets."""
        question = _Conditions(self._connection)
        question.add_choice("set_id", [each.set_id for each in sets])
        if self._kinds is not None:
            question.add_choice("kind", self._kinds)
        if not self._include_quiet:
            question.add("told = {}", 1)
        if self.position is not None:
            _, set_id, place = self.position
            question.add("(set_id <> {} OR place < {})", set_id, place)
        # Several sets are few changes; of one set that is large, only so many are read.
        cut = f" LIMIT {limit}" if len(sets) == 1 else ""
        rows = await self._connection.fetch(
            f"SELECT set_id, {', '.join(_CHANGE_FIELDS)} FROM {CHANGES}{question.where} "
            f"ORDER BY set_id DESC, place DESC{cut}",
            question.values,
        )
        by_set: dict[int, list[Row]] = {each.set_id: [] for each in sets}
        for set_id, *change in rows:
            by_set[set_id].append(tuple(change))
        ordered = [(each, row) for each in sets for row in by_set[each.set_id]]
        return [_row_change(each, row) for each, row in ordered[:limit]]


def _row_change(found: _ChangeSet, row: Row) -> RowChange:
    place, row_key, kind, told, names, _, before, after = row
    old_names = found.table_columns if kind == "removed" else found.attributes
    return RowChange(
        *(found.table, row_key, kind, from_stamp(found.noticed), found.run_id, found.task_id, place),
        *(bool(told), tuple(json.loads(names)) if names else ()),
        _mapping(old_names, before),
        _mapping(found.attributes, after),
        f"{found.noticed}/{found.set_id}/{place}",
    )


def _mapping(names: str, row: str | None) -> dict[str, Value] | None:
    return None if row is None else dict(zip(json.loads(names), decode_row(row), strict=True))


# --- rows -----------------------------------------------------------------------------------------


async def read_rows(
    connection: Connection,
    table: str,
    *,
    include_present: bool = True,
    include_gone: bool = True,
    cursor: str | None = None,
    limit: int = 100,
    most_changes: int = 100,
) -> list[RowHistory]:
    """Return the rows of a table with their history, and then those that are gone, the latest first.

    With the `cursor` of a row the answer begins after it. Of each row only the last `most_changes` are given.
    If the table was dropped, all of its rows that have a change are gone.
    """
    tracked = [each for each in await tracked_tables(connection) if each.table == table]
    if not tracked:
        return []
    part, _, start = (cursor or "").partition("/")
    if part not in ("", "present", "gone"):
        raise InputError(f"{cursor!r:.80} is no cursor of a row")
    reader = _RowReader(connection, max(tracked, key=_seen_last), most_changes)
    found: list[RowHistory] = []
    if include_present and part != "gone":
        found = await reader.present(start, limit)
    if include_gone and len(found) < limit:
        found += await reader.gone(start if part == "gone" else "", limit - len(found))
    return found


def _seen_last(tracked: TrackedTable) -> tuple[bool, datetime]:
    return tracked.seen is not None, tracked.seen or tracked.since


class _Record(msgspec.Struct, frozen=True):
    """A change of a row as the log has it, with the set that it is part of."""

    noticed: datetime
    attributes: str
    table_columns: str
    place: int
    kind: ChangeKind
    columns: tuple[str, ...]
    seen: str | None
    before: str | None
    after: str | None

    @property
    def row(self) -> dict[str, Value]:
        after = _mapping(self.attributes, self.after)
        return after or _mapping(self.table_columns, self.before) or {}

    def values(self) -> Iterable[ValueChange]:
        """Yield the changes of values."""
        before, after = _mapping(self.attributes, self.before), _mapping(self.attributes, self.after)
        if before is not None and after is not None:
            for name in self.columns:
                yield ValueChange(self.noticed, name, before[name], after[name])


_RECORD_FIELDS = (
    "row_key, noticed, attributes, table_columns, place, kind, column_names, seen, row_before, row_after"
)


class _RowReader:
    """Reads rows of one table with their history."""

    def __init__(self, connection: Connection, tracked: TrackedTable, most_changes: int) -> None:
        self._connection = connection
        self._tracked = tracked
        self._most_changes = most_changes

    async def present(self, start: str, limit: int) -> list[RowHistory]:
        """Return rows that the table has, the newest first, after the one with the id `start`."""
        names, rows = await self._stored(start, limit)
        keys = self._keys(names, rows)
        records = await self._records(keys)
        missing = await self._missing(keys)
        found = []
        for row_key, (*values, row_id) in zip(keys, rows, strict=True):
            row, own = dict(zip(names, values, strict=True)), records.get(row_key, [])
            is_missing = row_key in missing
            seen = self._tracked.all_seen if is_missing else self._tracked.seen
            last_seen = max(each for each in (seen, self._tracked.since, *_times(own)) if each is not None)
            cursor = f"present/{row_id}"
            found.append(self._history(row, row_key, own, last_seen, cursor, is_missing=is_missing))
        return found

    async def _stored(self, start: str, limit: int) -> tuple[list[str], list[Row]]:
        """Return the columns and rows of the table, each row with its id."""
        columns = await self._connection.columns(self._tracked.table)
        names = [column.name for column in columns or ()]
        if not names:
            return [], []
        dialect = self._connection.dialect.beside(names)
        question = _Conditions(self._connection)
        if start:
            value = _row_id(start) if dialect.row_id_type == "bigint" else start
            question.add(f"stored.{dialect.row_id} < {dialect.row_id_value}", value)
        # The id is qualified: PostgreSQL would sort by its text, which is shown under the same name.
        rows = await self._connection.fetch(
            f"SELECT {', '.join(map(quote_name, names))}, {dialect.row_id_shown} "
            f"FROM {quote_name(self._tracked.table)} AS stored{question.where} "
            f"ORDER BY stored.{dialect.row_id} DESC LIMIT {int(limit)}",
            question.values,
        )
        return names, rows

    def _keys(self, names: Sequence[str], rows: Sequence[Row]) -> list[str]:
        """Return the keys of stored rows, "" if the table has no longer the columns of the key."""
        if not set(self._tracked.key) <= set(names):
            return [""] * len(rows)
        return fingerprints(list(map(picker([names.index(name) for name in self._tracked.key]), rows)))

    async def _missing(self, keys: Sequence[str]) -> set[str]:
        """Return those of the keys that the latest run did not find, and that are held back."""
        if not keys:
            return set()
        question = _Conditions(self._connection)
        question.add("table_name = {}", self._tracked.table)
        question.add("runs > {}", NEW)
        question.add_choice("row_key", keys)
        rows = await self._connection.fetch(f"SELECT row_key FROM {HELD}{question.where}", question.values)
        return {key for (key,) in rows}

    async def gone(self, start: str, limit: int) -> list[RowHistory]:
        """Return rows that are gone, the latest first, after the one that left at the place `start`."""
        is_dropped = await self._connection.columns(self._tracked.table) is None
        question = self._of_table()
        if not is_dropped:
            question.add("change.kind = {}", "removed")
        if start:
            question.add("change.place < {}", _row_id(start))
        question.add(
            f"NOT EXISTS (SELECT 1 FROM {CHANGES} AS later JOIN {CHANGE_SETS} AS later_set "
            "ON later_set.set_id = later.set_id WHERE later.row_key = change.row_key "
            "AND later_set.table_name = {} AND later.place > change.place)",
            self._tracked.table,
        )
        keys = await self._connection.fetch(
            f"SELECT change.row_key {_CHANGES_OF_SETS}{question.where} "
            f"ORDER BY change.place DESC LIMIT {int(limit)}",
            question.values,
        )
        records = await self._records([key for (key,) in keys])
        return [self._gone(key, records[key]) for (key,) in keys]

    def _gone(self, row_key: str, records: Sequence[_Record]) -> RowHistory:
        *earlier, last = records
        gone, known = last.noticed, [*_times(earlier), self._tracked.since]
        if last.kind == "removed":
            last_seen = from_stamp(last.seen) if last.seen else self._tracked.since
        else:  # the table was dropped
            gone = last_seen = max(last.noticed, self._tracked.seen or last.noticed)
        return self._history(
            *(last.row, row_key, records, max(last_seen, *known)), f"gone/{last.place}", gone=gone
        )

    def _of_table(self) -> _Conditions:
        question = _Conditions(self._connection)
        question.add("change_set.table_name = {}", self._tracked.table)
        question.add("change_set.noticed >= {}", stamp(self._tracked.since))
        return question

    async def _records(self, keys: Sequence[str]) -> dict[str, list[_Record]]:
        """Return the first change and the last ones of rows, by key."""
        if not keys:
            return {}
        question = self._of_table()
        question.add_choice("change.row_key", keys)
        by_key = "row_number() OVER (PARTITION BY change.row_key ORDER BY change.place"
        rows = await self._connection.fetch(
            f"SELECT {_RECORD_FIELDS} FROM (SELECT change.*, change_set.noticed, change_set.attributes, "
            f"change_set.table_columns, {by_key}) AS from_first, {by_key} DESC) AS from_last "
            f"{_CHANGES_OF_SETS}{question.where}) AS numbered "
            f"WHERE from_first = 1 OR from_last <= {int(self._most_changes)} ORDER BY place",
            question.values,
        )
        found: dict[str, list[_Record]] = {}
        for row_key, noticed, attributes, columns, place, kind, names, *rest in rows:
            changed = tuple(json.loads(names)) if names else ()
            record = _Record(from_stamp(noticed), attributes, columns, place, kind, changed, *rest)
            found.setdefault(row_key, []).append(record)
        return found

    def _history(
        self,
        row: Mapping[str, Value],
        row_key: str,
        records: Sequence[_Record],
        last_seen: datetime,
        cursor: str,
        *,
        gone: datetime | None = None,
        is_missing: bool = False,
    ) -> RowHistory:
        since, forgotten = self._tracked.since, self._tracked.forgotten
        is_first = bool(records) and records[0].kind == "added"
        return RowHistory(
            *(row, row_key, records[0].noticed if is_first else since, last_seen, gone),
            tuple(value for each in records for value in each.values()),
            tuple(
                (one.noticed, other.noticed)
                for one, other in pairwise(records)
                if one.kind == "removed" and other.kind == "added"
            ),
            is_missing,
            is_first or forgotten is None or forgotten < since,
            cursor,
        )


_CHANGES_OF_SETS = (
    f"FROM {CHANGES} AS change JOIN {CHANGE_SETS} AS change_set ON change_set.set_id = change.set_id"
)


def _times(records: Iterable[_Record]) -> list[datetime]:
    return [each.noticed for each in records]


def _row_id(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{text!r:.80} is no cursor of a row") from None


# --- questions ------------------------------------------------------------------------------------


class _Conditions:
    """The conditions of a query, with the values that they need."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._texts: list[str] = []
        self.values: list[Any] = []

    def add(self, text: str, *values: Any) -> None:
        """Add a condition that has `{}` for each value."""
        first = len(self.values) + 1
        places = [self._connection.dialect.placeholders(1, first + at) for at in range(len(values))]
        self._texts.append(text.format(*places))
        self.values += values

    def add_choice(self, name: str, values: Collection[Any]) -> None:
        """Add the condition that a column has one of these values."""
        wanted = list(dict.fromkeys(values))
        self.add(f"{name} IN ({', '.join(['{}'] * len(wanted))})" if wanted else "1 = 0", *wanted)

    def copy(self) -> _Conditions:
        copied = _Conditions(self._connection)
        copied._texts, copied.values = list(self._texts), list(self.values)
        return copied

    @property
    def where(self) -> str:
        return f" WHERE {' AND '.join(self._texts)}" if self._texts else ""
