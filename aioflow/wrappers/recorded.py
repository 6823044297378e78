"""Calls of a wrapper under a job: a call that has a record makes no request."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from itertools import chain
from typing import Any, cast

from aioflow.authoring.context import Context, Release
from aioflow.jobs.recording import JobRecords, RecordingContext, note_page, record_key, recorded_call
from aioflow.relation import Batch, Row, Schema
from aioflow.wrappers.calls import Rows, WrapperSession, called_once, calls_of
from aioflow.wrappers.definition import Wrapper
from aioflow.wrappers.health import Tally
from aioflow.wrappers.page_reader import PackedRows
from aioflow.wrappers.wrapper_item import AnyWrapper


class RecordedCalls:
    """The calls of one statement.

    The key of a call is made of the wrapper as a whole, so that another version of the plan that reads pages
    in another way asks again, and of the values of its inputs. Requests with effects are told apart by the
    statement and by their number as well: two equal orders are two orders.
    """

    def __init__(
        self, wrapper: AnyWrapper, schema: Schema, session: WrapperSession, context: Context
    ) -> None:
        self._context = RecordingContext.around(context)
        self._records = context.service(JobRecords)
        self._calls = calls_of(wrapper, schema, session, self._context)
        self._tally = self._calls.tally
        self._calls.tally = cast(Tally, _NotingTally(self._tally))
        self._called = self._calls.caller()
        self.window = self._calls.window
        self._stage = _stage_of(wrapper)
        self._needed = [place for place, given in enumerate(wrapper.inputs) if not given.optional]
        self._repeats: Counter[bytes] | None = None
        if wrapper.has_effects:
            self._stage = f"{self._stage}\0{context.number_in_plan('name')}"
            self._repeats = Counter()

    def caller(self) -> Any:
        return self._rows

    def once(self) -> AsyncGenerator[list[tuple[Row, Batch | PackedRows]] | Release, None]:
        return called_once(self._rows, self._context)

    async def end(self, *, outer: bool) -> None:
        await self._calls.end(outer=outer)

    async def _rows(self, row: Row) -> Batch:
        values = self._calls.values(row)
        if any(values[place] is None for place in self._needed):
            return await self._made(row)  # it makes no request
        key = record_key(self._stage, values)
        if self._repeats is not None:
            self._repeats[key] += 1
            key = record_key(self._stage, (*values, self._repeats[key]))
        rows, found = await recorded_call(self._records, key, lambda: self._made(row), self._context)
        if found is not None:
            for url, has_items in found.pages:
                self._calls.page_found(url, has_items=has_items)
            if any(has_items for _, has_items in found.pages):
                self._tally.add(rows)
        return rows

    async def _made(self, row: Row) -> Batch:
        """Return the rows of a call that is made now; they are whole before any of them leaves."""
        called = self._called(row)
        if not inspect.isasyncgen(called):
            rows = await cast("Awaitable[Batch | PackedRows]", called)
            return list(chain.from_iterable(rows.batches())) if isinstance(rows, PackedRows) else rows
        made: Batch = []
        async with aclosing(cast(Rows, called)) as batches:
            async for batch in batches:
                if not isinstance(batch, Release):
                    made += batch
        return made


def _stage_of(wrapper: AnyWrapper) -> str:
    if isinstance(wrapper, Wrapper):
        return f"{wrapper.request!r}{wrapper.extraction!r}{wrapper.paging!r}"
    return f"{wrapper.name} {wrapper.schema}"


class _NotingTally:
    """A tally that has the record of the present call take down pages too."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tally, name)

    def add_page(self, url: str, *, has_items: bool) -> None:
        note_page(url, has_items)
        self._tally.add_page(url, has_items=has_items)
