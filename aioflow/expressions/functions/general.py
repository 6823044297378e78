"""Functions on values of any kind. `coalesce`, `if` and `nullif` are compiled by `calls`: they choose."""

from __future__ import annotations

from aioflow.expressions.functions.table import expression_function
from aioflow.expressions.operations import kind_of
from aioflow.relation import Document, Relation, Value
from aioflow.values.counters import NOT_A_BOOLEAN, NOT_A_RELATION, NOT_A_TEXT, UncomputableError
from aioflow.values.text import to_text

_TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "off", "0"})


@expression_function("general", "char(value any) char", "char(12.50) = '12.5'", "char(true) = 'true'")
def char(value: Value) -> str:
    """The value as text; dates as in ISO 8601."""
    text = to_text(value)
    if text is None:
        raise UncomputableError(NOT_A_TEXT)
    return text


@expression_function("general", "boolean(value any) boolean", "boolean('yes')", "not boolean(0)")
def boolean(value: Value) -> bool:
    """true, yes, on, t, y, 1 as true; false, no, off, f, n, 0 as false; other numbers than 0 as true."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str | Document):
        word = str(value).strip().lower()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
    elif kind_of(value) == "number":
        return bool(value != 0)
    raise UncomputableError(NOT_A_BOOLEAN)


@expression_function(
    "general", "type(value any) char", "type(1) = 'number'", "type(null) = 'null'", takes_null=True
)
def type_name(value: Value) -> str:
    """char, number, boolean, date, relation, document or null."""
    return "null" if value is None else str(kind_of(value))


@expression_function("general", "cardinality(value relation) number")
def cardinality(value: Relation) -> int:
    """The number of tuples of an embedded relation."""
    if not isinstance(value, Relation):
        raise UncomputableError(NOT_A_RELATION)
    return len(value)


# --- compiled by calls --------------------------------------------------------------------------


@expression_function("general", "coalesce(value any …) same", "coalesce(null, 2, 3) = 2")
def coalesce(*values: Value) -> Value:
    """The first value that is not null."""


@expression_function(
    "general", "nullif(value any, other any) same", "nullif(0, 0) is null", "nullif(1, 0) = 1"
)
def nullif(value: Value, other: Value) -> Value:
    """Null if the two are equal, else the first."""


@expression_function("general", "if(condition boolean, then any, else any) same", "if(1 < 2, 'a', 'b') = 'a'")
def if_(condition: Value, then: Value, otherwise: Value) -> Value:
    """The second if the first is true, else the third."""


@expression_function("number", "greatest(value any …) same", "greatest(1, 3, 2) = 3")
def greatest(*values: Value) -> Value:
    """The greatest of the values; null if one is null."""


@expression_function("number", "least(value any …) same", "least(1, 3, 2) = 1")
def least(*values: Value) -> Value:
    """The least of the values; null if one is null."""
