"""The tables that plans write to: made from the attributes of relations, checked against them, given keys.

The statements of one run agree on the attributes of a table before anything is written. The checker finds
disagreements where it knows the schemas; `Shapes` finds those that only the run shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import aclosing
from hashlib import sha256
from typing import Any, ClassVar

import msgspec

from aioflow.errors import SettingError, suggestion
from aioflow.relation import Document, Relation, Schema, Type
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.spill import OwnedItems, RowBuffer
from aioflow.state.driver import Column, ColumnNeed, Connection, Dialect, quote_name
from aioflow.state.errors import CommitError, ConflictError, DatabaseError, DisconnectedError, DiskFullError

OWN_PREFIX = "aioflow_"
_RESERVED = (OWN_PREFIX, "sqlite_")
_POSTGRES_NAME_BYTES = 63
_FITTING = "aioflow_fitting"
# The queries for the names of tables, for suggestions. Other databases give none.
_TABLES = {
    "sqlite": "select name from sqlite_master where type in ('table', 'view')",
    "postgresql": "select table_name from information_schema.tables "
    "where table_schema = any(current_schemas(false))",
}


# --- names --------------------------------------------------------------------------------------


class TableName(str):
    """A setting that names a table."""

    __slots__ = ()

    kind_name: ClassVar[str] = "the name of a table"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> TableName:
        if not isinstance(value, str):
            raise SettingError(f"must be {cls.kind_name}, not {'null' if value is None else repr(value)}")
        if not value or "\0" in value:
            raise SettingError(f"{value!r} cannot be the name of a table")
        return cls(value)


class WrittenTableName(TableName):
    """A setting that names a table to be written to."""

    __slots__ = ()

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> TableName:
        name = super().bind(value, inputs)
        for prefix in _RESERVED:
            if name.lower().startswith(prefix):
                whose = "aioflow's own tables" if prefix == OWN_PREFIX else "the database's own tables"
                raise SettingError(f"names that begin with {prefix!r} are for {whose}")
        return name


def check_names(dialect: Dialect, table: str, names: Iterable[str]) -> None:
    """Raise a ConflictError for names that this database cannot tell apart or would cut."""
    folded: dict[bytes, str] = {}
    for name in names:
        if not name or "\0" in name:
            raise ConflictError(f"{name!r} cannot be the name of a column of the table {table!r}")
        other = folded.setdefault(name.encode("utf-8", "replace").lower(), name)
        if other != name and dialect.name == "sqlite":
            raise ConflictError(
                f"{other!r} and {name!r} cannot both be columns of the table {table!r}: "
                "SQLite does not tell capitals from small letters"
            )
    if dialect.name == "postgresql":
        for name in (table, *folded.values()):
            if len(name.encode("utf-8", "replace")) > _POSTGRES_NAME_BYTES:
                raise ConflictError(
                    f"{name!r} is too long for a name: PostgreSQL keeps {_POSTGRES_NAME_BYTES} bytes"
                )


async def table_names(connection: Connection) -> list[str]:
    """Return the names of the tables, without aioflow's own, as far as this database can be asked."""
    query = _TABLES.get(connection.dialect.name)
    rows = await connection.fetch(query) if query is not None else []
    return [name for (name,) in rows if not name.startswith(_RESERVED)]


async def missing_table(connection: Connection, table: str) -> str:
    """Return the message for a table that does not exist."""
    known = await table_names(connection)
    shown = ", ".join(sorted(known)[:20]) or "none"
    return f"there is no table {table!r}{suggestion(table, known)} (tables: {shown})"


# --- columns ------------------------------------------------------------------------------------


async def fit_table(connection: Connection, table: str, needs: Sequence[ColumnNeed], *, evolve: bool) -> bool:
    """Make a table, or add and widen its columns, so that it holds all of `needs`.

    Return whether the table was made.
    """
    check_names(connection.dialect, table, [need.name for need in needs])
    columns = await connection.columns(table)
    if columns is None:
        await connection.create_table(table, needs)
        return True
    known = {column.name for column in columns}
    new = [need for need in needs if need.name not in known]
    if new:
        check_names(connection.dialect, table, [*known, *(need.name for need in new)])
        if not evolve:
            raise ConflictError(_unknown_column(table, new[0].name, columns))
        await connection.add_columns(table, new)
    await connection.widen(table, [need for need in needs if need.name in known])
    return False


async def refit_table(
    connection: Connection, table: str, needs: Sequence[ColumnNeed], memory: MemoryBudget
) -> None:
    """Rebuild a table that was made for the first rows of a relation, so that it suits all rows so far."""
    names = [need.name for need in needs]
    columns = await connection.columns(table) or ()
    if [column.name for column in columns] != names:
        return  # it was changed since
    await connection.create_table(_FITTING, needs, temporary=True)
    fitting = await connection.columns(_FITTING) or ()
    await connection.run(f"drop table {_FITTING}")
    if [column.declared for column in columns] == [column.declared for column in fitting]:
        return
    with RowBuffer(memory) as rows:
        async with aclosing(connection.select(f"select * from {quote_name(table)}")) as parts:
            async for part in parts:
                if not isinstance(part, Schema):
                    rows.append(part)
        await connection.run(f"drop table {quote_name(table)}")
        await connection.create_table(table, needs)
        await connection.load(table, names, OwnedItems(rows, rows.batches()), needs)


def _unknown_column(table: str, name: str, columns: Sequence[Column]) -> str:
    known = [column.name for column in columns]
    return (
        f"the table {table!r} has no column for the attribute {name!r}{suggestion(name, known)} "
        f"(it has: {', '.join(known)}); the option EVOLVE adds columns"
    )


def quoted(names: Iterable[str]) -> str:
    """Return names as a list in SQL."""
    return ", ".join(map(quote_name, names))


# --- keys ---------------------------------------------------------------------------------------


def check_key(schema: Schema, key: Sequence[str]) -> None:
    """Raise a SettingError for attributes by which rows of a table cannot be told apart."""
    for name in key:
        kind = schema.type_of(name)
        if kind in (Type.RELATION, Type.DOCUMENT):
            raise SettingError(f"a {kind} cannot be a key: {name!r}", setting="key")


async def ensure_key(
    connection: Connection, table: str, key: Sequence[str], needs: Sequence[ColumnNeed]
) -> None:
    """Make a unique index on a table. Raise a ConflictError if its rows do not allow that."""
    for need in needs:
        if need.name in key and need.classes & {Relation, Document}:
            raise ConflictError(f"a relation or document cannot be a key: {need.name!r}")
    if await _has_key(connection, table, key):
        return
    columns = {column.name: column for column in await connection.columns(table) or ()}
    for name in key:
        if columns[name].declared.lower() == "json":
            raise ConflictError(f"{name!r} cannot be a key: its column holds values of several types")
    await _expect_unique(connection, table, key)
    index = quote_name(key_index(table, key))
    await connection.run(f"create unique index {index} on {quote_name(table)} ({quoted(key)})")


def key_index(table: str, key: Sequence[str]) -> str:
    """Return the name of the index of a key: always the same, and short enough for every database."""
    digest = sha256("\0".join((table, *key)).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    readable = "_".join((table, *key)).encode("ascii", "replace").decode()[:24]
    return f"{OWN_PREFIX}key_{digest}_{readable}".replace("\0", "_")


async def _has_key(connection: Connection, table: str, key: Sequence[str]) -> bool:
    """Return whether a unique index has just these columns: only then can the statement be planned."""
    names, target = quoted(key), quote_name(table)
    try:
        async with connection.savepoint():
            await connection.fetch(
                f"explain insert into {target} ({names}) select {names} from {target} where 1 = 0 "
                f"on conflict ({names}) do nothing"
            )
    except (DisconnectedError, DiskFullError):
        raise
    except DatabaseError:
        return False
    return True


async def _expect_unique(connection: Connection, table: str, key: Sequence[str]) -> None:
    names = quoted(key)
    found = await connection.fetch(
        f"select {names}, count(*) from {quote_name(table)} group by {names} having count(*) > 1 limit 1"
    )
    for *values, count in found:
        shown = ", ".join(f"{name}={value!r}" for name, value in zip(key, values, strict=True))
        raise ConflictError(
            f"{', '.join(key)} cannot be the key of the table {table!r}: it has {count} rows with {shown}"
        )


class Shape(msgspec.Struct, frozen=True):
    """The attributes that a statement gives a table. With `evolves`, they may add to those of others."""

    where: str
    table: str
    names: tuple[str, ...]
    evolves: bool = False


class Shapes:
    """The shapes that a run has met, by table. Equal shapes are noted once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bool, frozenset[str]], Shape] = {}
        self._tables: dict[str, list[Shape]] = {}

    def add(self, shape: Shape, *, capitals_differ: bool) -> None:
        """Note what a statement gives a table. Raise a CommitError when another statement disagrees.

        Where the database does not tell capitals from small letters, unlike names may mean one table.
        """
        table = shape.table if capitals_differ else _small(shape.table)
        key = (table, shape.evolves, frozenset(shape.names))
        if key in self._known:
            return
        for other in self._tables.get(table, ()):
            lacking = sorted(set(other.names) - set(shape.names))
            added = sorted(set(shape.names) - set(other.names))
            if (lacking and not other.evolves) or (added and not shape.evolves):
                one = "" if shape.table == other.table else f", which is {other.table!r} too"
                why = one and "; SQLite does not tell capitals from small letters"
                raise CommitError(
                    f"unlike relations for the table {shape.table!r}{one}: {shape.where} gives it "
                    f"{', '.join(shape.names)}, {other.where} {', '.join(other.names)}{why}; "
                    "nothing of this run was stored"
                )
        self._known[key] = shape
        self._tables.setdefault(table, []).append(shape)


def _small(name: str) -> str:
    """Return a name as SQLite compares it: only ASCII letters have small ones."""
    return name.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
