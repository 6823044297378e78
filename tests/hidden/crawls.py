"""Crawls to their end, their queries in a form that can be compared, and the attributes of data sets."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from aioflow.hidden import Categorical, CrawlReport, Numeric, crawl
from tests.hidden.forms import CATEGORICAL, Form, read_data

Attribute = Numeric | Categorical
Row = tuple[Any, ...]
# Between low and high, or either of them None.
Shown = tuple[tuple[str, Any], ...]


class Extracted(msgspec.Struct, frozen=True):
    """The tuples of a crawl that has ended, and its report."""

    rows: list[Row]
    report: CrawlReport

    @property
    def bag(self) -> Counter[Row]:
        return Counter(self.rows)


async def extract(query: Any, attributes: Sequence[Attribute], **options: Any) -> Extracted:
    source = crawl(query, attributes, **options)
    return Extracted([row async for row in source], source.report)


def extracted(query: Any, attributes: Sequence[Attribute], **options: Any) -> Extracted:
    """Crawl a form to its end, on a loop of its own."""
    return asyncio.run(extract(query, attributes, **options))


def comparable(queries: Iterable[Mapping[str, Any]]) -> Counter[Shown]:
    """Return queries as values that can be counted."""
    return Counter(tuple(query.items()) for query in queries)


class SlowForm:
    """A form whose answers take their time, and that counts the queries under way."""

    def __init__(self, form: Any, seconds: float) -> None:
        self._form = form
        self._seconds = seconds
        self._under_way = 0
        self.most_under_way = 0

    async def __call__(self, query: dict[str, Any]) -> Any:
        self._under_way += 1
        self.most_under_way = max(self.most_under_way, self._under_way)
        try:
            await asyncio.sleep(self._seconds)
        finally:
            self._under_way -= 1
        return await self._form(query)


@cache
def data_set(name: str, first: int = 0) -> tuple[tuple[str, ...], list[Row], list[Numeric | Categorical]]:
    """Return the columns of a data set from `first` on: names, tuples, and attributes that describe them."""
    names, rows = read_data(name)
    parts = [row[first:] for row in rows] if first else list(rows)
    attributes = [
        Categorical(each, sorted({row[place] for row in rows}))
        if place < CATEGORICAL[name]
        else Numeric(each)
        for place, each in enumerate(names)
    ]
    return names[first:], parts, attributes[first:]


def data_form(name: str, k: int, first: int = 0, **options: Any) -> tuple[Form, list[Numeric | Categorical]]:
    """Return a form over columns of a data set, and its attributes."""
    names, rows, attributes = data_set(name, first)
    return Form(names, rows, k, **options), attributes
