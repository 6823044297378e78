"""Calls of a wrapper for tuples: request, answer, rows. What `map_concurrently` calls for each tuple."""

from __future__ import annotations

import asyncio
import inspect
import signal
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from time import perf_counter
from typing import Any, Protocol, TypeAlias

from aioflow.context import Context, Release
from aioflow.dataclass import dataclass
from aioflow.masking import mask
from aioflow.quantities import byte_text
from aioflow.relation import Batch, Row, Schema, Value, picker
from aioflow.web.errors import WebError
from aioflow.web.messages import Hold, Request, Response
from aioflow.wholeness import PROVEN_EMPTY, partial
from aioflow.wrappers.answers import accepted
from aioflow.wrappers.definition import Wrapper, WrapperInput
from aioflow.wrappers.naming import AnyWrapper
from aioflow.wrappers.paging import Pages
from aioflow.wrappers.python import PythonWrapper, Web
from aioflow.wrappers.reading import Extractor, PageHead, Reading
from aioflow.wrappers.registry import compiled
from aioflow.wrappers.requests import RequestMaker
from aioflow.wrappers.session import WrapperSession

Rows: TypeAlias = AsyncGenerator[Batch | Release, None]
Caller: TypeAlias = Callable[[Row], Awaitable[Batch] | Rows]
Values: TypeAlias = tuple[Any, ...]

# Larger pages, and others that their reader calls heavy, are read on a worker thread, or in a process if it
# asks for that: the loop goes on.
LARGE_PAGE_BYTES = 256 * 1024
# And what is read bit by bit, in bits that do not keep the loop waiting.
SLICE_BYTES = 64 * 1024
# What is read in a process has so long, and a second more for so many bytes.
READ_SECONDS = 10.0
READ_BYTES_A_SECOND = 500_000


class Calls(Protocol):
    """A wrapper made ready for the tuples of one statement."""

    window: int

    def caller(self) -> Caller: ...
    def once(self) -> AsyncGenerator[list[tuple[Row, Batch]] | Release, None]: ...
    async def end(self, *, outer: bool) -> None:
        """All tuples were worked on: say of the results what is known only now."""
        ...


def wrapper_calls(wrapper: AnyWrapper, schema: Schema, context: Context) -> Calls:
    """A wrapper made ready for tuples with these attributes."""
    session = context.service(WrapperSession)
    if isinstance(wrapper, PythonWrapper):
        return PythonCalls(wrapper, schema, session, context)
    return PageCalls(wrapper, schema, session, context)


def values_of(inputs: tuple[WrapperInput, ...], schema: Schema) -> Callable[[Row], Values]:
    """The values of a wrapper's inputs in a tuple; null where it has no such attribute."""
    if all(given.name in schema for given in inputs):
        return picker([schema.position(given.name) for given in inputs])
    positions = [schema.position(given.name) if given.name in schema else None for given in inputs]
    return lambda row: tuple(None if place is None else row[place] for place in positions)


class _Calls(ABC):
    """What all calls have in common: the values of inputs, and what a null among them means."""

    def __init__(
        self, wrapper: AnyWrapper, schema: Schema, session: WrapperSession, context: Context
    ) -> None:
        self.window = max(context.workers, session.settings.window_rows)
        self._session = session
        self._pauses = session.pauses
        self._context = context
        self._values = values_of(wrapper.inputs, schema)
        self._watch = session.watching.of(wrapper, context)
        self._tally = self._watch.tally
        self._request_settings: Mapping[str, Any] = {
            "permit": context.permit,
            "cookies": session.cookies,
            "urgent": context.urgent,
        }

    @abstractmethod
    def caller(self) -> Caller: ...

    async def once(self) -> AsyncGenerator[list[tuple[Row, Batch]] | Release, None]:
        """One call, for a statement without tuples."""
        called = self.caller()(())
        try:
            if isinstance(called, AsyncGenerator):
                async with aclosing(called):
                    async for rows in called:
                        yield rows if isinstance(rows, Release) else [((), rows)]
            else:
                yield [((), await called)]
        except Exception as error:
            self._context.fail((), error, getattr(error, "attempts", 1))
        else:
            self._context.fired()

    async def end(self, *, outer: bool) -> None:
        await self._session.watching.relation_ended(self._watch, self._context, outer=outer)

    def _no_request(self) -> Batch:
        self._context.count("null inputs")
        return []


# --- declared wrappers --------------------------------------------------------------------------


class PageCalls(_Calls):
    """Calls of a declared wrapper: its request is made, its pages are read."""

    def __init__(self, wrapper: Wrapper, schema: Schema, session: WrapperSession, context: Context) -> None:
        super().__init__(wrapper, schema, session, context)
        self._wrapper = wrapper
        self.extractor = compiled(wrapper.extraction)
        self.is_heavy: Callable[[bytes], bool] = getattr(self.extractor, "is_heavy", _is_large)
        self._has_items = False
        self._empty_pages = 0
        self._proven_pages = 0  # of those
        self._maker = RequestMaker(
            wrapper,
            secret=session.secret,
            streamed=self.extractor.is_incremental,
            hold=Hold(session.settings.hold_bytes, context.memory),
            **self._request_settings,
        )

    def caller(self) -> Caller:
        """Rows of one page come together; those of several, or of a page that is read in pieces, do not."""
        if self.extractor.is_incremental or self._wrapper.paging is not None:
            return self.page_by_page
        return self.at_once

    def _request(self, row: Row) -> Request | None:
        return self._maker.make(self._values(row))

    async def at_once(self, row: Row) -> Batch:
        request = self._request(row)
        if request is None:
            return self._no_request()
        response = await self._session.fetch(request)
        if response.status in self._wrapper.request.empty:
            return self._without_page(response)
        accepted(response)
        read = await self._read(response)
        if read.has_items:
            self._tally.add(read.rows)
        return read.rows

    async def end(self, *, outer: bool) -> None:
        if self._proven_pages and self._proven_pages == self._empty_pages and not self._has_items:
            self._context.mark(PROVEN_EMPTY)
        await super().end(outer=outer or self._wrapper.extraction.outer)

    async def page_by_page(self, row: Row) -> Rows:
        request = self._request(row)
        if request is None:
            yield self._no_request()
            return
        is_empty = True
        async with aclosing(self._pages(request)) as batches:
            async for rows in batches:
                is_empty = is_empty and isinstance(rows, Release)
                yield rows
        if is_empty:
            yield []

    async def _pages(self, request: Request) -> Rows:
        """The rows of a page, and of those that follow it, as far as there are any."""
        pages = Pages(self._wrapper)
        following: Request | None = request
        while following is not None:
            async with await self._session.fetch(following) as response:
                if response.status in self._wrapper.request.empty:
                    if following is request:  # otherwise the pages before it gave what there is
                        yield self._without_page(response)
                    return
                page = _Page(self, accepted(response))
                is_held = not response.overflows
                async with aclosing(page.batches()) as batches:
                    async for rows in batches:
                        if not is_held:
                            is_held = True
                            yield self._release()
                        if page.has_items:
                            self._tally.add(rows)
                        yield rows
            following = pages.following(following, response.url, page.next_page, page.rows)
        if pages.was_cut:
            self._note_cut(pages)

    def _release(self) -> Release:
        limit = byte_text(self._session.settings.hold_bytes)
        return Release(f"its rows had left, the body being larger than http.hold_bytes ({limit})")

    def _note_cut(self, pages: Pages) -> None:
        """A MAX_PAGES that the wrapper states says how much is meant; one that nobody stated loses rows."""
        self._context.count("pages cut")
        name = self._wrapper.name
        if pages.is_bounded:
            self._context.warn(f"{name} stopped at its MAX_PAGES of {pages.pages} pages")
            return
        text = f"{name} stopped after {pages.pages:,} pages; MAX_PAGES says how many there may be"
        self._context.warn(text)
        self._context.mark(partial(f"{self._context.where}: {text}"))

    def _without_page(self, response: Response) -> Batch:
        """The rows of an answer whose status means that there are no items: none, or one with OUTER."""
        self._empty_pages += 1
        self._proven_pages += 1
        if not self._wrapper.extraction.outer:
            return []
        # Imported late: `calls` is read with the operators, and readers take their time.
        from aioflow.wrappers.page import Page
        from aioflow.wrappers.readers.compiled import given_row

        page = Page(_head(response))
        row = given_row(self._wrapper.extraction)(page)
        self._count_unreadable(page.unreadable)
        return [row]

    async def _read(self, response: Response) -> PageRows:
        body = await response.read()
        self.check_is_text(response, body, len(body))
        if self._pauses.is_on and not self._context.urgent:
            await self._pauses.end()
        started = perf_counter()
        # Asked just before: a reader that had to parse the page to know keeps that for reading.
        if self.is_heavy(body):
            return await self.read_aside(response, body)
        page = read_page(self.extractor, _head(response), body)
        self.note_page(page, response)
        self._pauses.worked(perf_counter() - started)
        return page

    def check_is_text(self, response: Response, start: bytes, size_bytes: int | None) -> None:
        """Refuse a page that no reader can read; it has so many bytes, if that is known."""
        from aioflow.wrappers.media import check_is_text

        try:
            check_is_text(self._wrapper.extraction, _head(response), start, size_bytes)
        except WebError as error:
            error.attempts = response.attempts
            raise

    async def read_aside(self, response: Response, body: bytes) -> PageRows:
        """The rows of a large page, read off the loop."""
        # Headers as aiohttp has them cannot go to another process.
        head = PageHead(response.url, response.status, dict(response.headers))
        if self.extractor.prefers_process(len(body)):
            page = await self._read_in_process(head, body)
        else:
            page = await self._context.in_thread(read_page, self.extractor, head, body)
        self.note_page(page, response)
        return page

    async def _read_in_process(self, head: PageHead, body: bytes) -> PageRows:
        """There it takes its time, but not for ever: a page may be made to cost any selector dearly."""
        from anyio import BrokenWorkerProcess

        seconds = READ_SECONDS + len(body) / READ_BYTES_A_SECOND
        try:
            return await self._context.in_process(read_page_within, seconds, self.extractor, head, body)
        except BrokenWorkerProcess as error:
            if str(error):  # it could not be started
                raise
            from aioflow.web.errors import ExtractionError
            from aioflow.web.urls import without_userinfo

            reason = f"the page was not read within {seconds:.1f} seconds"
            hint = "try selectors with fewer steps, or with '>' between them"
            raise ExtractionError(f"{without_userinfo(head.url)}: {reason}; {hint}") from error

    def note_page(self, read: Reading | PageRows, response: Response) -> None:
        """Count a page that was read to its end, and what was odd about it: nothing is dropped silently."""
        if read.has_items:
            self._has_items = True
        else:
            self._empty_pages += 1
            self._proven_pages += read.is_proven_empty
        if not read.is_proven_empty:
            self._tally.add_page(response.url, has_items=read.has_items)
        if read.unreadable:
            self._count_unreadable(read.unreadable)
        for note in read.notes:
            self._context.count(note)
        if read.cuts:
            self._note_lost(response, read.cuts[0])

    def _note_lost(self, response: Response, what: str) -> None:
        from aioflow.web.urls import without_userinfo

        text = mask(f"{self._context.where}: {without_userinfo(response.url)}: {what}")
        self._context.mark(partial(text))

    def _count_unreadable(self, fields: Mapping[str, int]) -> None:
        for name, number in fields.items():
            self._context.count(f"unreadable {name}", number)


class _Page:
    """One page on its way in; `rows` and `next_page` are known when all its batches were taken."""

    def __init__(self, calls: PageCalls, response: Response) -> None:
        self._calls = calls
        self._response = response
        self.rows = 0
        self.has_items = True
        self.next_page: Any = None

    async def batches(self) -> AsyncGenerator[Batch, None]:
        body, extractor = self._response.body, self._calls.extractor
        if isinstance(body, bytes):
            self._calls.check_is_text(self._response, body, len(body))
        if isinstance(body, bytes) and not extractor.is_incremental and self._calls.is_heavy(body):
            page = await self._calls.read_aside(self._response, body)
            self.rows, self.next_page, self.has_items = len(page.rows), page.next_page, page.has_items
            if page.rows:
                yield page.rows
            return
        reading = extractor.open(_head(self._response))
        async with aclosing(self._looked_at()) as chunks:
            async for chunk in chunks:
                for start in range(0, len(chunk), SLICE_BYTES):
                    if start:
                        await asyncio.sleep(0)  # a stored answer comes in one piece, however long
                    if rows := reading.feed(chunk[start : start + SLICE_BYTES]):
                        self.rows += len(rows)
                        yield rows
        rest, self.next_page, self.has_items = reading.end(), reading.next_page, reading.has_items
        self.rows += len(rest)
        self._calls.note_page(reading, self._response)
        if rest:
            yield rest

    async def _looked_at(self) -> AsyncGenerator[bytes, None]:
        """The body piece by piece; what its first bytes show to be no text is refused."""
        from aioflow.wrappers.media import SNIFFED_BYTES, is_undecided

        start, held = b"", b""
        async with aclosing(self._response.chunks()) as chunks:
            async for chunk in chunks:
                held += chunk
                if len(start) < SNIFFED_BYTES:
                    start += chunk[:SNIFFED_BYTES]
                    if is_undecided(start):
                        continue
                    self._calls.check_is_text(self._response, start, _size_bytes(self._response))
                yield held
                held = b""
        if held:
            self._calls.check_is_text(self._response, start, len(start))
            yield held


def _size_bytes(response: Response) -> int | None:
    """How large a body is that is still on its way, if its host tells."""
    said = response.headers.get("Content-Length", "")
    return int(said) if said.isdecimal() and "Content-Encoding" not in response.headers else None


def _is_large(body: bytes) -> bool:
    return len(body) >= LARGE_PAGE_BYTES


def _head(response: Response) -> PageHead:
    return PageHead(response.url, response.status, response.headers)


@dataclass(frozen=True)
class PageRows:
    """What was read of a whole page."""

    rows: Batch
    next_page: Value
    unreadable: Mapping[str, int]
    notes: Sequence[str]
    cuts: Sequence[str]
    has_items: bool
    is_proven_empty: bool


def read_page(extractor: Extractor, head: PageHead, body: bytes) -> PageRows:
    """Read a page at once, in whatever thread or process."""
    reading = extractor.open(head)
    rows = reading.feed(body)
    rows = rows + reading.end() if rows else reading.end()
    return PageRows(
        rows,
        reading.next_page,
        reading.unreadable,
        reading.notes,
        reading.cuts,
        reading.has_items,
        reading.is_proven_empty,
    )


def read_page_within(seconds: float, extractor: Extractor, head: PageHead, body: bytes) -> PageRows:
    """The same in a process of its own, which the system ends if it does not come back in time."""
    # Nothing in the process could: what takes so long does not let go of Python's lock.
    has_alarm = hasattr(signal, "setitimer")
    if has_alarm:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return read_page(extractor, head, body)
    finally:
        if has_alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)


# --- wrappers in Python -------------------------------------------------------------------------


class PythonCalls(_Calls):
    """Calls of a wrapper function."""

    def __init__(
        self, wrapper: PythonWrapper, schema: Schema, session: WrapperSession, context: Context
    ) -> None:
        super().__init__(wrapper, schema, session, context)
        self._wrapper = wrapper
        self._fit = wrapper.inputs_fitting.fitted
        self._web = Web(session.fetch, self._request_settings, self._tally)

    def _arguments(self, row: Row) -> Values | None:
        """What the function is called with; None when an input is null that must not be."""
        values = self._values(row)
        for given, value in zip(self._wrapper.inputs, values, strict=True):
            if value is None and not given.optional:
                return None
        return self._fit(values)

    def caller(self) -> Caller:
        return self.one_by_one if inspect.isasyncgenfunction(self._wrapper.call) else self.at_once

    async def at_once(self, row: Row) -> Batch:
        values = self._arguments(row)
        if values is None:
            return self._no_request()
        answer: Any = await self._wrapper.call(self._web, *values)  # type: ignore[misc]  # no generator
        return self._counted(self._wrapper.rows(answer))

    async def one_by_one(self, row: Row) -> AsyncGenerator[Batch, None]:
        values = self._arguments(row)
        if values is None:
            yield self._no_request()
            return
        is_empty = True
        results: Any = self._wrapper.call(self._web, *values)
        async with aclosing(results):
            async for result in results:
                is_empty = False
                yield self._counted([self._wrapper.row(result)])
        if is_empty:
            yield []

    def _counted(self, rows: Batch) -> Batch:
        self._tally.add(rows)
        return rows
