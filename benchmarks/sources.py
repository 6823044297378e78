"""Ends of a plan inside the engine: rows that come from a list, and a count of rows that arrive.

With them no mapping is made for a row, neither on its way in nor on its way out.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from aioflow import Row, Schema, SettingError, Stream, operator
from aioflow.authoring.operator import Settings, attributes
from aioflow.relation import Batch

_BATCH_ROWS = 256

_offered: dict[str, tuple[Schema, Sequence[Row]]] = {}


def offer(name: str, schema: Schema, rows: Sequence[Row]) -> None:
    """Have the operator `offered` give these rows under a name."""
    _offered[name] = schema, rows


def _offered_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema:
    try:
        return _offered[settings["name"]][0]
    except KeyError:
        raise SettingError(f"nothing is offered under the name {settings['name']!r}") from None


@operator(schema=_offered_schema)
async def offered(*, name: str) -> AsyncGenerator[Batch, None]:
    """Give the rows that a benchmark offers under a name."""
    rows = _offered[name][1]
    for start in range(0, len(rows), _BATCH_ROWS):
        yield list(rows[start : start + _BATCH_ROWS])


@operator(schema=attributes(count="number"), firing="end")
async def counted(rel: Stream) -> AsyncGenerator[Row, None]:
    """Give the number of tuples."""
    count = 0
    async for batch in rel.batches():
        count += len(batch)
    yield (count,)
