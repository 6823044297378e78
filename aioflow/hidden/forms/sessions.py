"""Crawls of forms in a run: queries by way of a wrapper, stored answers, quotas, and what people are told."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, ClassVar

from aioflow.authoring.context import Context, Release
from aioflow.authoring.services import AccountEntry, Scope, ServiceHost
from aioflow.errors import AioflowError
from aioflow.hidden.attributes import Attribute, Categorical
from aioflow.hidden.crawling import Crawl, crawl
from aioflow.hidden.forms.answer_store import AnswerStore, StoredCrawl
from aioflow.hidden.forms.circles import circle_around
from aioflow.hidden.forms.definition import FormField
from aioflow.hidden.forms.resolution import AskedForm, numeric_of
from aioflow.hidden.forms.restriction import excludes_within, restricted
from aioflow.hidden.report import CrawlReport
from aioflow.plan import PlanPart
from aioflow.relation import Row, Schema, Value
from aioflow.values.json import decode_row, encode_json, encode_rows
from aioflow.values.quantities import count_text
from aioflow.wrappers import AnyWrapper, PackedRows, wrapper_calls


class QuotaReachedError(AioflowError):
    """The queries of a day are used up."""


class StoredAnswers:
    """The store of answers, which all runs of an engine share."""

    scope: ClassVar[Scope] = "engine"

    def __init__(self, store: AnswerStore, clock: Callable[[], float]) -> None:
        self.store = store
        self.clock = clock

    @classmethod
    def open_service(cls, host: ServiceHost) -> StoredAnswers:
        return cls(AnswerStore(clock=time.time), time.time)

    async def close(self) -> None:
        await self.store.close()


class HiddenCrawls:
    """The crawls of a run, for its progress and its account."""

    scope: ClassVar[Scope] = "run"

    def __init__(self) -> None:
        self._reports: list[tuple[str, CrawlReport]] = []

    @classmethod
    def open_service(cls, host: ServiceHost) -> HiddenCrawls:
        return cls()

    async def close(self) -> None:
        """Crawls are ended by their statements."""

    def add(self, name: str, report: CrawlReport) -> None:
        self._reports.append((name, report))

    def account(self) -> AccountEntry | None:
        if not self._reports:
            return None
        reports = [_figures(name, report) for name, report in self._reports]
        lines = tuple(_line(name, report) for name, report in self._reports[-5:])
        return AccountEntry("hidden", {"crawls": reports}, lines)


def _figures(name: str, report: CrawlReport) -> dict[str, Any]:
    size = report.estimate()
    return {
        "form": name,
        "tuples": report.tuples,
        "queries": report.queries,
        "share": round(size.share, 4),
        "tuples-estimated": round(size.tuples),
        "complete": report.complete,
    }


def _line(name: str, report: CrawlReport) -> str:
    """Return `a: 9 tuples of about 50 (40 to 60), 18 % resolved, 5 queries of about 28, at most 99 ...`."""
    if report.is_finished:
        return f"{name}: {report.statement()}"
    size = report.estimate()
    parts = [f"{name}: {count_text(report.tuples, 'tuple')}"]
    if size.share:
        parts[0] += f" of about {size.tuples:,.0f}"
        if size.high < 1e15:
            parts[0] += f" ({size.low:,.0f} to {size.high:,.0f})"
        parts.append(f"{100 * size.share:.0f} % resolved")
    queries = count_text(report.queries, "query", "queries")
    if not size.share:
        return ", ".join([*parts, queries])
    expected = f"{queries} of about {report.queries / size.share:,.0f}"
    return ", ".join([*parts, expected, f"at most {report.bound():,} by theorem 1"])


class FormCrawl:
    """The crawl of a form for one tuple of the plan, which fills the inputs that no query fills."""

    def __init__(self, asked: AskedForm, schema: Schema, row: Row, context: Context) -> None:
        self._asked = asked
        self._form = asked.form
        self._context = context
        self._given = dict(zip(schema.names, row, strict=True))
        self._fields = [restricted(field, self._given) for field in self._form.fields]
        self._answers = context.service(StoredAnswers)
        names = asked.wrapper.schema.names
        self._of_tuple = [names.index(name) for name in asked.schema.names]
        self._places = [asked.schema.names.index(field.name) for field in self._fields]
        self._inputs = Schema(tuple(given.name for given in asked.wrapper.inputs))
        self._fixed = {
            name: self._given.get(name) for name in self._inputs.names if name not in asked.form_inputs
        }
        self._ask = _Caller(asked.wrapper, self._inputs, context)
        self._digest = self._digest_of_form()
        self._quota = _Quota(self._answers, self._digest, self._form.quota)
        self._stored: StoredCrawl | None = None
        self._texts: list[str] = []
        self.report: CrawlReport | None = None

    @property
    def lacks_input(self) -> bool:
        """True if an input is null that must not be: then no query can be asked."""
        inputs = [each for each in self._asked.wrapper.inputs if each.name in self._fixed]
        return any(self._fixed[each.name] is None and not each.optional for each in inputs)

    def _digest_of_form(self) -> str:
        """Return what tells this form and these inputs from others, from run to run."""
        wrapper, form = self._asked.wrapper, self._form
        # With another request or extraction, stored answers would be others.
        source = repr(wrapper) if isinstance(wrapper, PlanPart) else wrapper.name
        fields = [
            [each.name, each.kind, *each.inputs, str(each.low), str(each.high), str(each.step)]
            for each in self._fields
        ]
        asked = {name for field in self._form.fields for name in field.inputs}
        by_tuple = {name: value for name, value in self._given.items() if name in asked and value is not None}
        fixed = {name: encode_json(value) for name, value in (self._fixed | by_tuple).items()}
        parts = [form.name, source, fields, list(self._asked.schema.names), fixed, form.limit, form.algorithm]
        text = json.dumps([*parts, form.total, form.more, repr(form.near)], sort_keys=True)
        return blake2b(text.encode(), digest_size=16).hexdigest()

    async def batches(self) -> AsyncGenerator[list[Row], None]:
        """Yield the tuples behind the form, as soon as they are certain."""
        store = self._answers.store
        self._stored = await store.begin(self._digest)
        if self._stored.is_resumed and self._stored.answers:
            number = count_text(len(self._stored.answers), "stored answer")
            self._context.note(f"{self._form.name} goes on with {number}")
        found = await self._crawl()
        self.report = found.report
        self._context.service(HiddenCrawls).add(self._form.name, found.report)
        try:
            async with found:
                batch: list[Row] = []
                async for row in found:
                    self._texts.append(row[-1])
                    batch.append(decode_row(row[-1]))
                    if not found.has_waiting:
                        yield batch
                        batch = []
                if batch:
                    yield batch
        except QuotaReachedError as error:
            found.report.doubts.append(str(error))
            return
        await store.end(self._digest, self._stored.id, self._texts)

    async def _crawl(self) -> Crawl:
        assert self._stored is not None
        attributes = [await self._attribute(field) for field in self._fields]
        known = [self._library_row(decode_row(text), text) for text in self._stored.known]
        return crawl(
            self._query,
            attributes,
            k=self._form.limit,
            algorithm=self._form.algorithm,
            workers=self._context.workers,
            dependencies=excludes_within(self._form.excludes, self._fields),
            known=known,
        )

    def _library_row(self, row: Row, text: str) -> tuple[Any, ...]:
        """Return the attributes of the form, and the whole tuple as text, which is compared as a whole."""
        return (*(row[place] for place in self._places), text)

    # --- attributes ---------------------------------------------------------------------------------

    async def _attribute(self, field: FormField) -> Attribute:
        if field.kind != "menu":
            return numeric_of(field)
        values: Sequence[Any] | None = field.values or None
        if field.menu_of is not None:
            values = await self._menu(field)
        return Categorical(field.name, values, field.required)

    async def _menu(self, field: FormField) -> list[Value]:
        """Return the values of a menu as the form shows them; an empty one is "any" and is left out."""
        wrapper = self._asked.menus[field.name]
        inputs = Schema(tuple(given.name for given in wrapper.inputs))
        row = tuple(self._given.get(name) for name in inputs.names)
        place = wrapper.schema.names.index(field.menu_attribute or "")
        found = [each[place] for each in await _Caller(wrapper, inputs, self._context)(row)]
        values = list(dict.fromkeys(value for value in found if value not in (None, "")))
        if not values:
            raise AioflowError(f"the menu of {field.name!r}: wrapper {wrapper.name!r} found no values")
        return values

    # --- queries ------------------------------------------------------------------------------------

    async def _query(self, query: dict[str, Any]) -> tuple[list[tuple[Any, ...]], bool | int | None]:
        assert self._stored is not None
        values = self._values(query)
        key = json.dumps({name: encode_json(value) for name, value in sorted(values.items())})
        stored = self._stored.answers.pop(key, None)
        if stored is None:
            texts, more = await self._new_answer(key, tuple(values[name] for name in self._inputs.names))
            self._context.count("queries")
        else:
            texts, more = json.loads(stored)
            self._context.count("stored answers")
        rows = [decode_row(text) for text in texts]
        found = [self._library_row(row, text) for row, text in zip(rows, texts, strict=True)]
        if self._form.near is None:
            return found, more
        return self._inside(query, found), self._circle_has_more(len(found), more)

    async def _new_answer(self, key: str, values: Row) -> tuple[list[str], bool | int | None]:
        """Ask a query; return the tuples as texts and what is known about further ones, once it is stored."""
        assert self._stored is not None
        async with self._quota:
            rows = await self._ask(values)
            more = self._more(rows)
            rows = [tuple([row[place] for place in self._of_tuple]) for row in rows]
            texts = encode_rows(rows) if rows else []
            await self._answers.store.add_answer(self._stored.id, key, json.dumps([texts, more]))
        return texts, more

    def _values(self, query: Mapping[str, Any]) -> dict[str, Value]:
        """Return the inputs of the wrapper for a query."""
        values: dict[str, Value] = dict.fromkeys(self._inputs.names) | self._fixed
        near = self._form.near
        if near is not None:
            sides = self._sides(query)
            place = (near.latitude, near.longitude, near.radius)
            values |= zip(place, circle_around(sides[0], sides[1], near.unit), strict=True)
        for field in self._fields[0 if near is None else 2 :]:
            wanted = query.get(field.name)
            ends = wanted if isinstance(wanted, tuple) else (wanted, wanted)
            if field.kind == "range":
                low, high = field.inputs
                values[low] = field.low if ends[0] is None else ends[0]
                values[high] = field.high if ends[1] is None else ends[1]
            elif field.kind == "at_least":
                values[field.inputs[0]] = ends[0]
            else:
                values[field.inputs[0]] = ends[1]
        return values

    def _sides(self, query: Mapping[str, Any]) -> list[tuple[Any, Any]]:
        """Return the sides of a region of the map."""
        fields = self._fields[:2]
        ends = [query.get(field.name, (None, None)) for field in fields]
        return [
            (field.low if low is None else low, field.high if high is None else high)
            for field, (low, high) in zip(fields, ends, strict=True)
        ]

    def _circle_has_more(self, found: int, more: bool | int | None) -> bool:
        """Return whether a circle has more tuples than its answer; in doubt it has."""
        if more is None:
            return self._form.limit is not None and found >= self._form.limit
        return more if isinstance(more, bool) else more > found

    def _inside(self, query: Mapping[str, Any], rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Leave out tuples of a circle that lie outside of the region within it."""
        (south, north), (west, east) = self._sides(query)
        return [row for row in rows if _is_between(row[0], south, north) and _is_between(row[1], west, east)]

    def _more(self, rows: Sequence[Row]) -> bool | int | None:
        """Return what an answer says about further tuples; without a word, k tuples mean that there are."""
        names = self._asked.wrapper.schema.names
        if self._form.total is not None:
            total = rows[0][names.index(self._form.total)] if rows else 0
            return None if total is None else int(total)
        if self._form.more is not None:
            value = rows[0][names.index(self._form.more)] if rows else None
            return value is not None and value is not False
        return None


def _is_between(value: Any, low: Any, high: Any) -> bool:
    return value is None or low <= value <= high


class _Quota:
    """The queries of a day. When they are used up, those under way are still answered, and stored."""

    def __init__(self, answers: StoredAnswers, digest: str, quota: int | None) -> None:
        self._answers = answers
        self._digest = digest
        self._quota = quota
        self._under_way = 0
        self._is_idle = asyncio.Event()

    async def __aenter__(self) -> None:
        self._under_way += 1
        self._is_idle.clear()
        try:
            await self._take()
        except QuotaReachedError:
            self._end_one()
            await self._is_idle.wait()
            raise
        except BaseException:
            self._end_one()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._end_one()

    def _end_one(self) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._is_idle.set()

    async def _take(self) -> None:
        if self._quota is None:
            return
        now = datetime.fromtimestamp(self._answers.clock(), UTC)
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        if not await self._answers.store.take_query(self._digest, self._quota, midnight.timestamp()):
            again = (midnight + timedelta(days=1)).isoformat()
            used = count_text(self._quota, "query", "queries")
            raise QuotaReachedError(f"the {used} of this day are used up; it goes on from {again}")


class _Caller:
    """Calls a wrapper with values of its inputs, and returns its tuples."""

    def __init__(self, wrapper: AnyWrapper, inputs: Schema, context: Context) -> None:
        self._call = wrapper_calls(wrapper, inputs, context).caller()

    async def __call__(self, row: Row) -> list[Row]:
        called = self._call(row)
        if not isinstance(called, AsyncGenerator):
            return _rows(await called)
        found: list[Row] = []
        async with aclosing(called):
            async for batch in called:
                if not isinstance(batch, Release):
                    found += _rows(batch)
        return found


def _rows(found: Any) -> list[Row]:
    if isinstance(found, PackedRows):
        return [row for batch in found.batches() for row in batch]
    return list(found)
