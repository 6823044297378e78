"""Columns of PostgreSQL's tables: their types, new columns, and lossless widening."""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import msgspec

from aioflow.relation import Document, Relation, Type
from aioflow.state.driver import ColumnNeed, quote_name
from aioflow.state.errors import ConflictError, DatabaseError

# The numbers by which the server knows its types; they never change.
BOOLEAN: Final = 16
NAME: Final = 19
BIGINT: Final = 20
SMALLINT: Final = 21
INTEGER: Final = 23
TEXT: Final = 25
OID: Final = 26
JSON: Final = 114
XML: Final = 142
REAL: Final = 700
DOUBLE: Final = 701
BLANK_PADDED: Final = 1042
VARCHAR: Final = 1043
DATE: Final = 1082
TIMESTAMP: Final = 1114
TIMESTAMPTZ: Final = 1184
NUMERIC: Final = 1700
JSONB: Final = 3802

TEXTS = frozenset({TEXT, VARCHAR, BLANK_PADDED, NAME})
INTEGERS = {SMALLINT: 1 << 15, INTEGER: 1 << 31, BIGINT: 1 << 63}  # and what is too large for them
NUMBERS = frozenset({*INTEGERS, OID, REAL, DOUBLE, NUMERIC})
DATES = frozenset({DATE, TIMESTAMP, TIMESTAMPTZ})
JSONS = frozenset({JSON, JSONB})
PLAIN = TEXTS | NUMBERS | DATES | {BOOLEAN}  # of which asyncpg makes just what the language has

NUMBER_CLASSES: frozenset[type[Any]] = frozenset({int, float, Decimal})
# Up to here a double precision holds every int.
LARGEST_EXACT = 1 << 53
# On a column that was made before there was any value: its first values give it another type.
UNTYPED = "aioflow: nothing was stored here so far"


class TableColumn(msgspec.Struct, frozen=True):
    """A column of an existing table. `is_listed` says that its values are arrays or rows of others."""

    name: str
    declared: str
    oid: int
    is_listed: bool = False
    is_untyped: bool = False

    @property
    def kind(self) -> Type | None:
        return kind_of(self.oid, self.is_listed)


def kind_of(oid: int, is_listed: bool) -> Type | None:
    """Return the type of the values that come out of a column. Types unknown to the language come as text."""
    if oid in JSONS:
        return None
    if is_listed or oid == XML:
        return Type.DOCUMENT
    if oid in NUMBERS:
        return Type.NUMBER
    if oid in DATES:
        return Type.DATE
    return Type.BOOLEAN if oid == BOOLEAN else Type.CHAR


def type_for(need: ColumnNeed) -> tuple[str, bool]:
    """Return the type of a new column, and whether it is a guess for lack of values."""
    if need.kind in (Type.RELATION, Type.DOCUMENT):
        return "json", False
    if need.classes:
        return _type_of_classes(need), False
    match need.kind:
        case Type.CHAR:
            return "text", False
        case Type.BOOLEAN:
            return "boolean", False
        case Type.NUMBER:
            return "numeric", True
        case Type.DATE:
            return "date", True
    return "text", True


def _type_of_classes(need: ColumnNeed) -> str:
    classes: Set[type[Any]] = need.classes
    if classes <= NUMBER_CLASSES:
        return type_of_numbers(classes, need.is_wide, need.largest)
    if len(classes) > 1 or classes & {Relation, Document}:
        return "json"
    if datetime in classes:
        return {frozenset({True}): "timestamptz", frozenset({False}): "timestamp"}.get(
            frozenset(need.zoned), "json"
        )
    if date in classes:
        return "date"
    return "boolean" if bool in classes else "text"


def type_of_numbers(classes: Set[type[Any]], is_wide: bool, largest: int | None) -> str:
    """Return the narrowest type that holds such numbers exactly."""
    if is_wide or Decimal in classes:
        return "numeric"
    if float not in classes:
        return "bigint"
    fits = int not in classes or (largest is not None and largest <= LARGEST_EXACT)
    return "double precision" if fits else "numeric"


_NAME_BYTES = 63

# Of a table that is there, even if it has no columns: then one row of nulls.
DESCRIBE = f"""
select a.attname::text, format_type(a.atttypid, a.atttypmod),
  coalesce(nullif(t.typbasetype, 0), t.oid), t.typcategory in ('A', 'C'),
  coalesce(col_description(a.attrelid, a.attnum) = '{UNTYPED}', false)
from pg_class c
left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
left join pg_type t on t.oid = a.atttypid
where c.oid = to_regclass($1) and c.relkind in ('r', 'p', 'v', 'm', 'f')
order by a.attnum
"""

# The value that a double equals: as a text it is the shortest decimal, which a cast would round to fifteen
# digits. From 2^53 on it is a whole number m * 2^e, of which the text would not tell all digits.
_BITS = "('x' || encode(float8send({0}), 'hex'))::bit(64)::bigint"
_MANTISSA = f"(({_BITS} & 4503599627370495) + 4503599627370496)::numeric"
_POWER = f"((({_BITS} >> 52) & 2047) - 1075)"
_EQUAL_NUMERIC = (
    "case when abs({0}) < 9007199254740992 or abs({0}) in ('NaN', 'Infinity') then {0}::text::numeric "
    f"else sign({{0}})::numeric * {_MANTISSA} * 2::numeric ^ {_POWER}::numeric end"
)


def quoted(name: str) -> str:
    """Return a name, quoted for SQL. Raise a DatabaseError for one that the server would cut."""
    size = len(name.encode("utf-8", "replace"))
    if size > _NAME_BYTES:
        raise DatabaseError(
            f"{name!r} takes {size} bytes: PostgreSQL cuts names after {_NAME_BYTES}; take a shorter one"
        )
    try:
        return quote_name(name)
    except ValueError as error:
        raise DatabaseError(str(error)) from None


# --- new columns --------------------------------------------------------------------------------


def create_sql(table: str, needs: Sequence[ColumnNeed], *, temporary: bool) -> list[str]:
    types = [type_for(need) for need in needs]
    columns = ", ".join(f"{quoted(need.name)} {name}" for need, (name, _) in zip(needs, types, strict=True))
    kind = "temporary table" if temporary else "table"
    return [f"create {kind} {quoted(table)} ({columns})", *_comments(table, needs)]


def add_sql(table: str, needs: Sequence[ColumnNeed]) -> list[str]:
    columns = ", ".join(f"add column {quoted(need.name)} {type_for(need)[0]}" for need in needs)
    return [f"alter table {quoted(table)} {columns}", *_comments(table, needs)]


def _comments(table: str, needs: Sequence[ColumnNeed]) -> list[str]:
    return [
        f"comment on column {quoted(table)}.{quoted(need.name)} is '{UNTYPED}'"
        for need in needs
        if type_for(need)[1]
    ]


# --- wider columns ------------------------------------------------------------------------------


def wider_type(column: TableColumn, need: ColumnNeed, largest: int) -> str | None:
    """Return the wider type that a column must get, or None when it stays as it is.

    It stays when it will do, or is not ours to change. `largest` is the magnitude of the ints in the column.
    Raise a ConflictError when no type holds both.
    """
    classes = need.classes
    if not classes or _can_hold(column, need):
        return None
    if column.oid not in NUMBERS or not classes <= NUMBER_CLASSES:
        raise ConflictError(_refusal(column, need))
    if column.declared == "bigint":
        known = None if int in classes and need.largest is None else max(largest, need.largest or 0)
        return type_of_numbers(classes | {int}, need.is_wide, known)
    if column.declared == "double precision":
        name = type_of_numbers(classes | {float}, need.is_wide, need.largest)
        return None if name == column.declared else name
    return None


def asks_for_largest(column: TableColumn, need: ColumnNeed) -> bool:
    """Return whether the size of the ints in a column matters."""
    return column.declared == "bigint" and float in need.classes and need.classes <= {int, float}


def _can_hold(column: TableColumn, need: ColumnNeed) -> bool:
    classes: set[type[Any]] = need.classes
    if column.oid == BIGINT:
        return classes <= {int} and not need.is_wide
    if column.oid in NUMBERS:
        return classes <= NUMBER_CLASSES and column.declared != "double precision"
    if column.oid in TEXTS:
        return classes <= {str}
    if column.oid in (TIMESTAMP, TIMESTAMPTZ):
        return classes <= {datetime} and need.zoned <= {column.oid == TIMESTAMPTZ}
    exact = {BOOLEAN: bool, DATE: date, XML: Document}
    return column.oid not in exact or classes <= {exact[column.oid]}


def _refusal(column: TableColumn, need: ColumnNeed) -> str:
    classes = ", ".join(sorted(each.__name__ for each in need.classes))
    zones = (
        " with and without a zone" if len(need.zoned) > 1 else " with a zone" if True in need.zoned else ""
    )
    return (
        f"the column {column.name!r} is {column.declared} and cannot hold all values of the attribute, "
        f"which are {classes}{zones if datetime in need.classes else ''}"
    )


def largest_sql(table: str, column: TableColumn) -> str:
    return f"select coalesce(max(abs({quoted(column.name)}::numeric)), 0) from {quoted(table)}"


def has_values_sql(table: str, column: TableColumn) -> str:
    return f"select exists (select 1 from {quoted(table)} where {quoted(column.name)} is not null)"


def first_type_sql(table: str, column: TableColumn, name: str) -> list[str]:
    """Return statements that give a type to a column of nulls."""
    done = f"comment on column {quoted(table)}.{quoted(column.name)} is null"
    if name == column.declared:  # the whole table would be written anew
        return [done]
    return [f"{_altering(table, column)} type {name} using null::{name}", done]


def widen_sql(table: str, column: TableColumn, name: str) -> list[str]:
    """Return statements that give another type to a column and its values."""
    of_column = quoted(column.name)
    if column.oid == DOUBLE and name == "numeric":
        value = _EQUAL_NUMERIC.format(of_column)
        return [
            "set local extra_float_digits = 1",  # whatever the server is configured for
            f"{_altering(table, column)} type {name} using {value}",
        ]
    return [f"{_altering(table, column)} type {name} using {of_column}::{name}"]


def _altering(table: str, column: TableColumn) -> str:
    return f"alter table {quoted(table)} alter column {quoted(column.name)}"
