"""Tables of PostgreSQL: their columns, new ones, and how a column becomes wider without any loss."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from aioflow.relation import Document
from aioflow.state.driver import ColumnNeed, quote_name
from aioflow.state.errors import ConflictError, DatabaseError
from aioflow.state.postgres_types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    NUMBER_CLASSES,
    NUMBERS,
    TEXTS,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNTYPED,
    XML,
    TableColumn,
    type_for,
    type_of_numbers,
)

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
    """A name as SQL has it; a DatabaseError for one that the server would cut."""
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
    """The type that a column must get; None when it has one that will do, or one that is not ours to change.

    `largest` is the magnitude of the ints that are there. A ConflictError when no type holds both.
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
    """Whether it matters how large the ints of a column are."""
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
    """Give a type to a column that holds nothing but nulls."""
    done = f"comment on column {quoted(table)}.{quoted(column.name)} is null"
    if name == column.declared:  # the whole table would be written anew
        return [done]
    return [f"{_altering(table, column)} type {name} using null::{name}", done]


def widen_sql(table: str, column: TableColumn, name: str) -> list[str]:
    """Give another type to a column, and its values too."""
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
