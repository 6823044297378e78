"""What an operator may yield, made into rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aioflow.outlet import Outlet
from aioflow.relation import Batch, Schema
from aioflow.rows import row_of_mapping


def rows_of(item: Any, outlet: Outlet, operator: str) -> Batch:
    """Rows from what an operator yielded: a row, a list of rows, or a mapping."""
    rows = item if isinstance(item, list) else [item]
    if rows and isinstance(rows[0], Mapping):
        if outlet.schema is None:
            outlet.open(Schema(tuple(rows[0])))
        assert outlet.schema is not None
        return [row_of_mapping(outlet.schema, mapping) for mapping in rows]
    if rows and not isinstance(rows[0], tuple):
        raise TypeError(f"{operator} yields {rows[0]!r}: a row is a tuple, a mapping, or a list of these")
    if outlet.schema is None and rows:
        raise TypeError(
            f"{operator} yields tuples without saying their attributes: give @operator a schema rule, "
            "or yield mappings or a Schema first"
        )
    if rows and outlet.schema is not None and len(rows[0]) != len(outlet.schema):
        raise TypeError(
            f"{operator} yields a row of {len(rows[0])} values, but its schema has {len(outlet.schema)} "
            f"attributes: {', '.join(outlet.schema.names)}"
        )
    return rows
