"""The types of PostgreSQL: what the language has for each, and which one a column needs for its values."""

from __future__ import annotations

from collections.abc import Set
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from aioflow.dataclass import dataclass
from aioflow.relation import Document, Relation, Type
from aioflow.state.driver import ColumnNeed

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


@dataclass(frozen=True)
class TableColumn:
    """A column of a table that is there; `is_listed` if its values are arrays or rows of others."""

    name: str
    declared: str
    oid: int
    is_listed: bool = False
    is_untyped: bool = False

    @property
    def kind(self) -> Type | None:
        return kind_of(self.oid, self.is_listed)


def kind_of(oid: int, is_listed: bool) -> Type | None:
    """The type of the values that come out of a column; what the language has no type for comes as text."""
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
    """The type of a new column, and whether it is a guess, since there are no values."""
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
    """The narrowest type that holds such numbers exactly."""
    if is_wide or Decimal in classes:
        return "numeric"
    if float not in classes:
        return "bigint"
    fits = int not in classes or (largest is not None and largest <= LARGEST_EXACT)
    return "double precision" if fits else "numeric"
