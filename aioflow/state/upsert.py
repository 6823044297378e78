"""Rows into a table with a key: existing rows stay as they are, or are updated.

The rows are loaded into a table of their own, with columns like those of the table, and moved from there.
Null equals null in a key, as everywhere in the language where tuples are compared. Unique indexes do not see
it so: rows with nulls in their key are moved by statements of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import MINYEAR, UTC, datetime, time, timedelta, timezone
from decimal import MAX_EMAX, MIN_EMIN, Decimal
from decimal import Context as Precision
from math import isinf
from typing import TypeAlias

from aioflow.relation import Batch, Row, Value, identity, picker
from aioflow.runtime.spill import OwnedItems, RowBuffer
from aioflow.state.driver import Connection, quote_name
from aioflow.state.errors import ConflictError
from aioflow.state.staged import batches_of
from aioflow.state.tables import quoted
from aioflow.values.json import LARGEST_INTEGER, SMALLEST_INTEGER, has_wide

Nulls: TypeAlias = tuple[bool, ...]  # which attributes of a key are null

_SHOWN_CHARACTERS = 80
_STAGED = "aioflow_staged"
_OUR_SQL = re.compile(r", in: (?:insert into|update) .*", re.DOTALL)
# Python knows of none that are farther from UTC than a second less.
_EASTERNMOST = timezone(timedelta(hours=24, seconds=-1))
_WESTERNMOST = timezone(-timedelta(hours=24, seconds=-1))
_MIDNIGHT = time()


class Upsert:
    """Writes rows into a table that has a unique index on its key."""

    def __init__(
        self, connection: Connection, table: str, names: Sequence[str], key: Sequence[str], *, updates: bool
    ) -> None:
        self._connection = connection
        self._table = table
        self._target = quote_name(table)
        self._names = tuple(names)
        self._key = tuple(key)
        self._updated = [name for name in names if name not in key] if updates else []
        self._number = self._unused_name("number")
        self._nulls: set[Nulls] = set()

    def _unused_name(self, name: str) -> str:
        while name in self._names:
            name += "_"
        return name

    async def write(self, buffers: Sequence[RowBuffer]) -> None:
        await self._make_staged()
        columns = (*self._names, self._number)
        try:
            staged = batches_of(buffers)
            numbered = OwnedItems(staged, self._numbered(staged))
            loaded = await self._connection.load(_STAGED, columns, numbered)
        except ConflictError as error:
            raise ConflictError(self._told(error)) from error
        for nulls in sorted(self._nulls):
            for sql in self._moves(nulls):
                await self._move(sql, loaded)
        await self._connection.run(f"drop table {_STAGED}")

    async def _make_staged(self) -> None:
        """Make a temporary table, which holds values in the same form as the table itself."""
        found = await self._connection.columns(self._table) or ()
        declared = {column.name: column.declared for column in found}
        columns = [f"{quote_name(name)} {declared[name]}" for name in self._names]
        columns.append(f"{quote_name(self._number)} bigint")
        await self._connection.run(f"create temporary table {_STAGED} ({', '.join(columns)})")

    def _numbered(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield the rows with their numbers, and note which nulls there are in keys."""
        positions = [self._names.index(name) for name in self._key]
        key_of = picker(positions)
        first = 1
        for batch in batches:
            if _are_plain(batch, positions):
                self._nulls.add((False,) * len(positions))
                rows = batch
            else:
                self._nulls.update(tuple([value is None for value in key_of(row)]) for row in batch)
                mixed = self._connection.dialect.mixes_dates
                rows = [comparable(row, positions, mixes_dates=mixed) for row in batch]
            yield [(*row, number) for number, row in enumerate(rows, first)]
            first += len(batch)

    # --- moving rows ----------------------------------------------------------------------------

    def _moves(self, nulls: Nulls) -> list[str]:
        """Return statements that move the rows with just these nulls in their key.

        Each takes a last number.
        """
        if not any(nulls):
            return [f"{self._insert(self._chosen(nulls))} {self._on_conflict()}"]
        there = f"select 1 from {self._target} as old where {self._same_key(nulls)}"
        inserts = self._insert(f"{self._chosen(nulls)} and not exists ({there})")
        return [self._update(nulls), inserts] if self._updated else [inserts]

    def _chosen(self, nulls: Nulls) -> str:
        """Return a query for one row of each key: the first one, or the last one when they are updates."""
        names, number, place = quoted(self._names), quote_name(self._number), self._unused_name("place")
        order = f"{number} desc" if self._updated else number
        conditions = [f"{number} <= {self._connection.dialect.placeholders(1)}"]
        for name, null in zip(self._key, nulls, strict=True):
            conditions.append(f"{quote_name(name)} is {'' if null else 'not '}null")
        wanted = f"from {_STAGED} where {' and '.join(conditions)}"
        if not any(nulls) and not self._updated:  # the others conflict with the first
            return f"select {names} {wanted} order by {number}"
        return (
            f"select {names} from (select *, row_number() over (partition by {quoted(self._key)} "
            f"order by {order}) as {quote_name(place)} {wanted}) as new where {quote_name(place)} = 1"
        )

    def _insert(self, rows: str) -> str:
        return f"insert into {self._target} ({quoted(self._names)}) {rows}"

    def _on_conflict(self) -> str:
        updates = self._sets("excluded")
        return f"on conflict ({quoted(self._key)}) do " + (f"update set {updates}" if updates else "nothing")

    def _update(self, nulls: Nulls) -> str:
        chosen, same_key = self._chosen(nulls), self._same_key(nulls)
        return f"update {self._target} as old set {self._sets('new')} from ({chosen}) as new where {same_key}"

    def _sets(self, source: str) -> str:
        return ", ".join(f"{quote_name(name)} = {source}.{quote_name(name)}" for name in self._updated)

    def _same_key(self, nulls: Nulls) -> str:
        """Return a condition that an index can help with."""
        return " and ".join(
            f"old.{quote_name(name)} is null" if null else f"old.{quote_name(name)} = new.{quote_name(name)}"
            for name, null in zip(self._key, nulls, strict=True)
        )

    # --- conflicts ------------------------------------------------------------------------------

    async def _move(self, sql: str, loaded: int) -> None:
        """Move rows. When one of them is refused, find out which."""
        try:
            async with self._connection.savepoint():
                await self._connection.run(sql, (loaded,))
        except ConflictError as error:
            row = await self._refused(sql, loaded)
            raise ConflictError(f"{self._told(error)}, for the row {self._shown(row)}") from error

    async def _refused(self, sql: str, loaded: int) -> Row:
        """Return the first row with which the others cannot be moved."""
        good, bad = 0, loaded
        while bad - good > 1:
            middle = (good + bad) // 2
            if await self._can_move(sql, middle):
                good = middle
            else:
                bad = middle
        names, number = quoted(self._names), quote_name(self._number)
        first = self._connection.dialect.placeholders(1)
        rows = await self._connection.fetch(f"select {names} from {_STAGED} where {number} = {first}", (bad,))
        return rows[0]

    async def _can_move(self, sql: str, last: int) -> bool:
        try:
            async with self._connection.savepoint():
                await self._connection.run(sql, (last,))
                raise _UndoError
        except _UndoError:
            return True
        except ConflictError:
            return False

    def _told(self, error: ConflictError) -> str:
        """Return the error's text without our own details: the temporary table, its numbers, our SQL."""
        text = _OUR_SQL.sub("", str(error)).replace(repr(_STAGED), repr(self._table), 1)
        return re.sub(rf", {re.escape(self._number)}=\d+(?=\))", "", text, count=1)

    def _shown(self, row: Row) -> str:
        pairs = zip(self._names, row, strict=True)
        return ", ".join(f"{name}={repr(value)[:_SHOWN_CHARACTERS]}" for name, value in pairs)


class _UndoError(Exception):
    """Undoes a savepoint."""


# --- keys that databases compare as the language does -------------------------------------------


def comparable(row: Row, positions: Sequence[int], *, mixes_dates: bool) -> Row:
    """Return a row whose values at `positions` are equal for a database when they are equal for us.

    A value is only ever replaced by an equal one: 1.0 or a Decimal by 1, a time by the same in UTC. Where a
    column takes dates of all forms, midnight is the date, and other times are without a zone.
    """
    for position in positions:
        value = row[position]
        if value.__class__ not in _COMPARED_RIGHTLY:
            row = (*row[:position], _comparable(value, mixes_dates), *row[position + 1 :])
    return row


_COMPARED_RIGHTLY = frozenset({str, bool, type(None)})
_PLAIN = frozenset({str, bool, int})


def _are_plain(batch: Batch, positions: Sequence[int]) -> bool:
    """Return whether all rows of a batch have plain values at `positions`, and no null."""
    for position in positions:
        column = [row[position] for row in batch]
        classes = set(map(type, column))
        if not classes <= _PLAIN or (int in classes and has_wide(column, classes)):
            return False
    return True


def _comparable(value: Value, mixes_dates: bool) -> Value:
    if isinstance(value, int | float | Decimal):
        return _comparable_number(value)
    if isinstance(value, datetime) and mixes_dates:
        (moment,) = identity((value,))
        if isinstance(moment, datetime):
            return moment if moment.time() != _MIDNIGHT else moment.date()
    if isinstance(value, datetime) and value.tzinfo is not None:
        return _in_utc(value)
    return value


def _in_utc(value: datetime) -> datetime:
    """Return the same moment in UTC.

    At the ends of the calendar, return it in the zone that always has it.
    """
    try:
        return value.astimezone(UTC)
    except OverflowError:
        zone = _EASTERNMOST if value.year == MINYEAR else _WESTERNMOST
        offset = value.utcoffset() or timedelta()
        return (value.replace(tzinfo=None) + (zone.utcoffset(None) - offset)).replace(tzinfo=zone)


def _comparable_number(value: float | Decimal) -> Value:
    """Return the equal integer of 64 bits, else the equal float, else a Decimal."""
    if value.is_nan() if isinstance(value, Decimal) else value != value:
        return float("nan")
    if SMALLEST_INTEGER <= value <= LARGEST_INTEGER and value == int(value):
        return int(value)
    (number,) = identity((value,))
    if isinstance(number, float):
        return number
    try:
        rounded = float(value)
    except OverflowError:
        rounded = float("inf")
    if rounded == value and (rounded.is_integer() or isinf(rounded)):
        return rounded
    return _shortest(Decimal(value))


def _shortest(value: Decimal) -> Decimal:
    """Return a number without zeros at its end. Python's default would also round it to 28 digits."""
    return value.normalize(Precision(prec=max(len(value.as_tuple().digits), 1), Emax=MAX_EMAX, Emin=MIN_EMIN))
