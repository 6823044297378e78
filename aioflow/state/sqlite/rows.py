"""Writing many rows to SQLite, on the thread of a connection."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import length_hint
from typing import Any, TypeVar

from aioflow.relation import Batch, Row
from aioflow.state.driver import quote_name
from aioflow.state.sqlite.errors import conflict, is_about_a_row
from aioflow.state.sqlite.values import (
    PARAMETERS,
    Encoders,
    UnfitError,
    bind,
    bind_batch,
    encoders_for,
)

T = TypeVar("T")

_FEW_ROWS = 256
_ROWS_TOGETHER = 64
_MOST_VARIABLES = sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER
_COLUMNS = "SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid"


def columns_of(database: sqlite3.Connection, table: str) -> list[tuple[str, str]]:
    """Return the name and declared type of each column, or nothing when there is no such table."""
    return database.execute(_COLUMNS, (table,)).fetchall()


def folded(name: str) -> str:
    """Return a column's name as SQLite compares it: it folds ASCII letters only."""
    return name.translate(_SMALL)


_SMALL = {letter: letter + 32 for letter in range(ord("A"), ord("Z") + 1)}


def atomically(database: sqlite3.Connection, work: Callable[[], T]) -> T:
    """Do the work in a transaction, unless one is open already."""
    if database.in_transaction:
        return work()
    database.execute("BEGIN IMMEDIATE")
    try:
        result = work()
        database.execute("COMMIT")
        return result
    finally:
        if database.in_transaction:
            database.execute("ROLLBACK")


def quoted(name: str) -> str:
    try:
        return quote_name(name)
    except ValueError as error:
        raise UnfitError(str(error)) from error


def insert_into(table: str, columns: Sequence[str]) -> str:
    if not columns:
        raise UnfitError(f"table {table!r}: rows without attributes cannot be stored")
    names = ", ".join(map(quoted, columns))
    return f"INSERT INTO {quoted(table)} ({names}) VALUES ({', '.join('?' * len(columns))})"


class Insertion:
    """A statement that is executed for many rows."""

    def __init__(
        self, database: sqlite3.Connection, shown: str, sql: str, check_stopped: Callable[[], None]
    ) -> None:
        self._database = database
        self._shown = shown
        self._sql = sql
        self._check_stopped = check_stopped
        self._table = ""
        self._names: Sequence[str] = ()
        self._encoders: Sequence[Encoders] | None = None
        self._handed_over = 0
        self._find_target()

    def _find_target(self) -> None:
        """Find the columns of a plain INSERT, so that each value is bound as its column needs it."""
        found = _INSERT.fullmatch(self._sql)
        if found is None:
            return
        self._table = _unquoted(found["table"])
        declared = columns_of(self._database, self._table)
        if found["columns"]:
            self._names = [_unquoted(name) for name in _NAME.findall(found["columns"])]
        else:
            self._names = [name for name, _ in declared]
        known = {folded(name): encoders_for(kind) for name, kind in declared}
        self._encoders = [known.get(folded(name), PARAMETERS) for name in self._names]

    def bound(self, values: Row | Sequence[Any]) -> tuple[Any, ...]:
        """Return the values to bind for one row."""
        return bind(values, self._encoders_for(values)) if values else ()

    def _encoders_for(self, row: Row | Sequence[Any]) -> Sequence[Encoders]:
        if self._encoders is not None and len(self._encoders) == len(row):
            return self._encoders
        return [PARAMETERS] * len(row)

    def run(self, batches: Iterable[Batch]) -> int:
        """Execute the statement for every row. Return the number of rows that it changed."""
        changed = 0
        for batch in _large(batches):
            self._check_stopped()
            changed += self._run_singly(batch, self._bound_batch(batch), 0)
            self._handed_over += len(batch)
        return changed

    def insert(self, batches: Iterable[Batch]) -> int:
        """Insert rows as `run` does, for the statement of `insert_into`. Each execution takes many rows."""
        together = min(_ROWS_TOGETHER, self._database.getlimit(_MOST_VARIABLES) // len(self._names))
        places = f"({', '.join('?' * len(self._names))})"
        longer = f"{self._sql}{f', {places}' * (together - 1)}"
        for batch in _large(batches):
            self._check_stopped()
            bound = self._bound_batch(batch)
            done = self._run_together(bound, longer, together)
            if done < len(batch):
                self._run_singly(batch, bound, done)
            self._handed_over += len(batch)
        return self._handed_over

    def _run_together(self, bound: Batch, sql: str, together: int) -> int:
        """Insert rows, `together` at a time. Return how many were inserted before one was refused."""
        end = len(bound) - len(bound) % together
        for start in range(0, end, together):
            try:
                self._database.execute(sql, list(chain.from_iterable(bound[start : start + together])))
            except sqlite3.Error as error:
                if not is_about_a_row(error):
                    raise
                return start  # SQLite took none of these: one by one it will tell which it refuses
        return end

    def _run_singly(self, batch: Batch, bound: Batch, start: int) -> int:
        before = self._database.total_changes
        remaining = iter(bound[start:])
        try:
            cursor = self._database.executemany(self._sql, remaining)
        except sqlite3.Error as error:
            if not is_about_a_row(error):
                raise
            raise self._refused(error, batch, len(batch) - length_hint(remaining) - 1) from error
        return cursor.rowcount if cursor.rowcount >= 0 else self._database.total_changes - before

    def _bound_batch(self, batch: Batch) -> Batch:
        encoders = self._encoders_for(batch[0])
        try:
            return bind_batch(batch, encoders)
        except UnfitError:
            for place, row in enumerate(batch):
                try:
                    bind(row, encoders)
                except UnfitError as error:
                    raise self._refused(error, batch, place) from error
            raise

    def _refused(self, error: Exception, batch: Batch, place: int) -> Exception:
        number = self._handed_over + place + 1
        return conflict(error, self._shown, self._table, number, self._names, batch[place])


_QUOTED = r'"(?:[^"]|"")+"|\w+'
_NAME = re.compile(_QUOTED)
_INSERT = re.compile(
    rf"\s*(?:INSERT|REPLACE)(?:\s+OR\s+\w+)?\s+INTO\s+(?P<table>{_QUOTED})\s*"
    rf"(?:\((?P<columns>\s*(?:{_QUOTED})(?:\s*,\s*(?:{_QUOTED}))*\s*)\))?\s*"
    r"VALUES\s*\(\s*\?(?:\s*,\s*\?)*\s*\)[^?]*",
    re.IGNORECASE,
)


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _large(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield batches without empty or small ones, which are joined: each costs a call."""
    joined: Batch = []
    for batch in batches:
        if not joined and len(batch) >= _FEW_ROWS:
            yield batch
            continue
        joined += batch
        if len(joined) >= _FEW_ROWS:
            yield joined
            joined = []
    if joined:
        yield joined
