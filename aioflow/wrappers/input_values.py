"""Values of inputs as requests carry them: as one text, as several texts, or as JSON."""

from __future__ import annotations

import json
import math
from datetime import date
from decimal import Decimal
from typing import Any

from aioflow.relation import Document, Relation, Type, Value
from aioflow.values.coercion import shown
from aioflow.web.errors import RequestRefusedError


def refused(message: str) -> RequestRefusedError:
    """The error of a request that cannot be made of its values."""
    error = RequestRefusedError(message)
    error.attempts = 0
    return error


def misfit(name: str, value: Value, kind: Type) -> RequestRefusedError:
    """The error of an input whose value is not of its type."""
    return refused(f"the input {name!r} must be a {kind}, not {shown(value)}")


def value_text(value: Value, name: str) -> str:
    """A value as text: dates in ISO 8601's form, whole numbers without a point, null as nothing."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, Decimal) and value.is_finite():
        return format(value, "f")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Relation):
        raise refused(f"the input {name!r} is a relation, and only a whole value can be one")
    return str(value)


def value_texts(value: Value, name: str) -> str | list[str]:
    """The same; a relation with one attribute gives a text for each of its tuples that is not null."""
    if isinstance(value, Relation):
        return [value_text(each, name) for each in _column(value, name) if each is not None]
    return value_text(value, name)


def _column(relation: Relation, name: str) -> list[Value]:
    if len(relation.schema) != 1:
        names = ", ".join(relation.schema.names) or "none"
        raise refused(
            f"the input {name!r} is a relation with the attributes {names}; a list is made of a single one"
        )
    return [row[0] for row in relation.rows]


def value_json(value: Value, name: str) -> Any:
    """A value as JSON has it: numbers, booleans, objects and lists keep their kind."""
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise refused(f"the input {name!r} is {value}, a number that JSON does not have")
        return value
    if isinstance(value, Decimal):
        return _json_number(value, name)
    if isinstance(value, Relation):
        return _json_list(value, name)
    if isinstance(value, Document) and value.kind == "json":
        return json.loads(value.text)
    return value_text(value, name)


def _json_number(value: Decimal, name: str) -> int | float:
    if not value.is_finite():
        raise refused(f"the input {name!r} is {value}, a number that JSON does not have")
    return int(value) if value == value.to_integral_value() else float(value)


def _json_list(relation: Relation, name: str) -> list[Any]:
    names = relation.schema.names
    if len(names) == 1:
        return [value_json(row[0], name) for row in relation.rows]
    return [
        {key: value_json(each, name) for key, each in zip(names, row, strict=True)} for row in relation.rows
    ]
