"""The interface that a database driver implements.

A driver is found by the scheme of a database's URL, which is the name of its entry point among
`aioflow.databases` (`sqlite = "aioflow.state.sqlite.driver:SQLITE"`). Values that come out are those of the
language, equal to those that went in. The rest of aioflow writes SQL that the two dialects share, with names
quoted by `quote_name` and values bound by `Dialect.placeholder`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import msgspec
from msgspec.structs import replace

from aioflow.relation import Batch, Row, Schema, Type

Kind: TypeAlias = Literal["write", "snapshot"]


class Column(msgspec.Struct, frozen=True):
    """A column of an existing table. `declared` is the database's name for its type."""

    name: str
    kind: Type | None
    declared: str


class ColumnNeed(msgspec.Struct):
    """The needs of a column: the attribute's type, and the classes of the values themselves."""

    name: str
    kind: Type | None = None
    classes: set[type[Any]] = msgspec.field(default_factory=set)  # without NoneType
    is_wide: bool = False  # some int takes more than 64 bits
    largest: int | None = None  # the greatest magnitude of an int, where that was looked at
    zoned: set[bool] = msgspec.field(default_factory=set)  # True: datetimes with a zone; False: without

    def copy(self) -> ColumnNeed:
        return replace(self, classes=set(self.classes), zoned=set(self.zoned))


class Dialect(msgspec.Struct, frozen=True):
    """The SQL that is peculiar to a kind of database."""

    name: str
    placeholder: str  # "?" or "${}", which is formatted with the number of the value, from 1
    now: str = "current_timestamp"
    # The identity of a row, which stays the same while the row is unchanged: in conditions, in the list of a
    # SELECT, the type of the selected value, and that value in comparisons.
    row_id: str = "_rowid_"
    row_id_shown: str = '_rowid_ AS "aioflow-row-id"'
    row_id_type: str = "bigint"
    row_id_value: str = "{}"
    row_id_spare: tuple[str, ...] = ("rowid", "oid")  # other names for it, if a column hides the first
    row_ids_grow: bool = True  # if it is a number, and that of a new row is the greatest
    # True if a write transaction keeps all other writers out by itself.
    locks_database: bool = True
    # True if one column can hold dates, and times with and without a zone, and tell them apart.
    mixes_dates: bool = True

    def beside(self, columns: Sequence[str]) -> Dialect:
        """Return this dialect with a name for the ids of rows that no column of a table hides."""
        taken = {name.lower() for name in columns}
        if self.row_id not in taken:
            return self
        free = next((name for name in self.row_id_spare if name not in taken), None)
        if free is None:
            raise ValueError(f"its columns hide the identity of its rows: {', '.join(sorted(taken))}")
        return msgspec.structs.replace(
            self, row_id=free, row_id_shown=self.row_id_shown.replace(self.row_id, free)
        )

    def placeholders(self, count: int, first: int = 1) -> str:
        """Return `?, ?` or `$1, $2`."""
        return ", ".join(self.placeholder.format(first + number) for number in range(count))


class Connection(Protocol):
    """One connection, used by one task at a time. Every method raises the errors of `state.errors`.

    A cancelled call returns only after the database is at rest. The connection can be closed then.
    """

    @property
    def dialect(self) -> Dialect: ...

    async def tolerate_damage(self) -> None:
        """Return values that no relation can carry as bytes from now on, instead of failing."""
        ...

    async def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Execute one statement; the number of rows that it changed."""
        ...

    async def run_each(self, sql: str, rows: Sequence[Row]) -> int:
        """Execute one statement for each row of values; the number of rows that they changed."""
        ...

    async def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a query that has few."""
        ...

    def select(self, sql: str, values: Sequence[Any] = ()) -> AsyncGenerator[Schema | Batch, None]:
        """Yield the schema of a query's result, then its rows as the scan finds them, batch by batch."""
        ...

    async def load(
        self,
        table: str,
        columns: Sequence[str],
        batches: Iterable[Batch],
        needs: Sequence[ColumnNeed] = (),
    ) -> int:
        """Insert many rows in the fastest way there is. Raise a ConflictError that names the row refused.

        `batches` is walked on another thread, or between other work of the loop. `needs`, one for each
        column, describe the values for a driver that would otherwise look at them once more.
        """
        ...

    async def columns(self, table: str) -> tuple[Column, ...] | None:
        """Return the columns of a table or view, or None when there is none."""
        ...

    async def create_table(
        self, table: str, needs: Sequence[ColumnNeed], *, temporary: bool = False
    ) -> None: ...

    async def add_columns(self, table: str, needs: Sequence[ColumnNeed]) -> None: ...

    async def widen(self, table: str, needs: Sequence[ColumnNeed]) -> None:
        """Make existing columns hold such values, where the database has narrower types for some.

        Raise a ConflictError that names an attribute which can never fit, such as a char in a column of
        booleans.
        """
        ...

    def transaction(self, kind: Kind) -> AbstractAsyncContextManager[None]:
        """Begin a transaction, which is committed as a whole or not at all.

        `write` does not wait: it raises a BusyError when the lock is taken. A `snapshot` cannot write, and
        sees the database as it was when it began.
        """
        ...

    def savepoint(self) -> AbstractAsyncContextManager[None]:
        """Begin a part of a transaction that can be undone by itself."""
        ...

    async def close(self) -> None: ...


class Driver(Protocol):
    """A kind of database."""

    def check(self, address: Address) -> None:
        """Raise an error for a wrong address or a missing extra, before anything is opened."""
        ...

    async def connect(self, address: Address) -> Connection:
        """Open a connection. A missing file is made; a missing database of a server is not."""
        ...

    def unstorable(self, schema: Schema, batch: Batch) -> Sequence[tuple[int, int, str]]:
        """Return the rows that no table can hold: the number of each, the place of a value, and the reason.

        The reason is the end of a sentence that names the value.
        """
        ...

    async def copy_before_upgrade(self, connection: Connection, address: Address, version: int) -> str:
        """Copy the system tables, and return where the copy is, for people."""
        ...


@dataclass(frozen=True)
class Address:
    """The address of a database: the URL with its secrets filled in, and the text that may be shown."""

    name: str
    url: str = field(repr=False)
    shown: str = ""
    path: Path | None = None  # of a database that is a file

    @property
    def is_missing(self) -> bool:
        """Return whether the database is a file that does not exist."""
        return self.path is not None and not self.path.exists()


def quote_name(name: str) -> str:
    """Return the name of a table or column, quoted for SQL."""
    if not name or "\0" in name:
        raise ValueError(f"{name!r} cannot be the name of a table or column")
    return '"' + name.replace('"', '""') + '"'
