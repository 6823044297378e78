"""Calls of a wrapper: for each tuple a request, its response, and the rows of the page.

`WrapperSession` holds the client, the cookies and the health figures that the wrappers of one run share.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from aioflow.authoring.context import Context, Release, RunInfo
from aioflow.authoring.services import AccountEntry, Scope, ServiceHost
from aioflow.config.configuration import Configuration
from aioflow.config.masking import MASK, mask
from aioflow.config.secrets import Secret, Secrets
from aioflow.relation import Batch, Row, Schema, Value, picker
from aioflow.values.quantities import byte_text
from aioflow.web.errors import HttpStatusError, status_text
from aioflow.web.http import Hold, Request, Response
from aioflow.wholeness import PROVEN_EMPTY, partial
from aioflow.wrappers.definition import Wrapper, WrapperInput
from aioflow.wrappers.health import HealthWatch
from aioflow.wrappers.loop_fairness import LoopPauses
from aioflow.wrappers.page_reader import PackedRows, PageReader, PageRows, head_of
from aioflow.wrappers.python import PythonWrapper, Web
from aioflow.wrappers.readers.reader import compiled
from aioflow.wrappers.requests import Pages, RequestMaker
from aioflow.wrappers.wrapper_item import AnyWrapper

if TYPE_CHECKING:
    from aioflow.web.cookies import CookieStore
    from aioflow.web.settings import HttpSettings
    from aioflow.web.traffic import Traffic


_PAGES_BELOW = 300  # redirects were followed; what else says 3xx brings no page
_PART_OF_A_PAGE = 206  # which nobody asked for


def accepted(response: Response) -> Response:
    """The answer, if its status says that there is a page."""
    if response.status < _PAGES_BELOW and response.status != _PART_OF_A_PAGE:
        return response
    raise status_error(response)


def status_error(response: Response) -> HttpStatusError:
    from aioflow.web.urls import without_userinfo

    message = f"{without_userinfo(response.url)}: {status_text(response.status)}"
    error = HttpStatusError(message, response.status)
    error.attempts = response.attempts
    return error


class WrapperSession:
    """A service of each run: its cookies are its own, and its extraction is compared with earlier runs'."""

    scope: ClassVar[Scope] = "run"

    def __init__(
        self,
        traffic: Traffic,
        settings: HttpSettings,
        cookies: CookieStore | None,
        host: ServiceHost,
    ) -> None:
        self.fetch = traffic.fetch
        self.watch = traffic.watch
        self.settings = settings
        self.cookies = cookies
        self.pauses = LoopPauses()
        assert host.run is not None, "a session belongs to a run"
        self.watching = HealthWatch(host, host.run, is_kept=_keeps_health(settings, host, host.run))
        self._secrets = Secrets()

    @classmethod
    def open_service(cls, host: ServiceHost) -> WrapperSession:
        from aioflow.web.cookies import CookieStore
        from aioflow.web.settings import web_settings
        from aioflow.web.traffic import Traffic

        settings = web_settings(host.configuration).http
        return cls(host.service(Traffic), settings, CookieStore() if settings.cookies else None, host)

    def secret(self, name: str) -> str:
        """Return the value of a secret that a wrapper refers to. A replay needs none."""
        if self.settings.replay is not None:
            # What stands in is what the recording has in place of secrets: so requests equal recorded ones.
            return Secret(name, MASK).reveal()
        return self._secrets.get(name).reveal()

    async def conclude(self) -> None:
        """Compare a run that has ended well with those before it."""
        await self.watching.conclude()

    def account(self) -> AccountEntry | None:
        worse = self.watching.worse
        return AccountEntry("health", {"worse": list(worse)}) if worse else None

    async def close(self) -> None:
        """The client belongs to the engine, and the rest needs no release."""


def _keeps_health(settings: HttpSettings, host: ServiceHost, run: RunInfo) -> bool:
    """Return whether a run is compared with earlier ones, and leaves figures for later ones.

    It is where it writes to a database anyway, and in what people run with the settings of their machine. A
    program that gives an engine none, or a few tables of its own, has to ask for it: a test must not leave
    files in anybody's folders. What was replayed or stored says nothing of the site as it is.
    """
    if settings.replay is not None or settings.offline or not settings.health:
        return False
    tables = host.configuration
    return run.writes or isinstance(tables, Configuration) or "health" in tables.get("http", {})


Rows: TypeAlias = AsyncGenerator[Batch | Release, None]
Caller: TypeAlias = Callable[[Row], Awaitable[Batch | PackedRows] | Rows]
Values: TypeAlias = tuple[Any, ...]


class WrapperCalls(Protocol):
    """A wrapper made ready for the tuples of one statement."""

    window: int

    def caller(self) -> Caller: ...
    def once(self) -> AsyncGenerator[list[tuple[Row, Batch | PackedRows]] | Release, None]: ...
    async def end(self, *, outer: bool) -> None:
        """All tuples were worked on: say of the results what is known only now."""
        ...


def wrapper_calls(wrapper: AnyWrapper, schema: Schema, context: Context) -> WrapperCalls:
    """A wrapper made ready for tuples with these attributes."""
    session = context.service(WrapperSession)
    if context.run.is_job:
        from aioflow.wrappers.recorded import RecordedCalls  # few runs are jobs

        return RecordedCalls(wrapper, schema, session, context)
    return calls_of(wrapper, schema, session, context)


def calls_of(
    wrapper: AnyWrapper, schema: Schema, session: WrapperSession, context: Context
) -> PageCalls | PythonCalls:
    if isinstance(wrapper, PythonWrapper):
        return PythonCalls(wrapper, schema, session, context)
    return PageCalls(wrapper, schema, session, context)


def values_of(inputs: tuple[WrapperInput, ...], schema: Schema) -> Callable[[Row], Values]:
    """The values of a wrapper's inputs in a tuple; null where it has no such attribute."""
    if all(given.name in schema for given in inputs):
        return picker([schema.position(given.name) for given in inputs])
    positions = [schema.position(given.name) if given.name in schema else None for given in inputs]
    return lambda row: tuple(None if place is None else row[place] for place in positions)


async def called_once(
    caller: Caller, context: Context
) -> AsyncGenerator[list[tuple[Row, Batch | PackedRows]] | Release, None]:
    """One call, for a statement without tuples."""
    called = caller(())
    try:
        if isinstance(called, AsyncGenerator):
            async with aclosing(called):
                async for rows in called:
                    yield rows if isinstance(rows, Release) else [((), rows)]
        else:
            yield [((), await called)]
    except Exception as error:
        context.fail((), error, getattr(error, "attempts", 1))
    else:
        context.fired()


class _Calls(ABC):
    """The common part of all calls: the values of inputs, and the meaning of a null among them."""

    def __init__(
        self, wrapper: AnyWrapper, schema: Schema, session: WrapperSession, context: Context
    ) -> None:
        self.window = max(context.workers, session.settings.window_rows)
        self._session = session
        self._pauses = session.pauses
        self._context = context
        self.values = values_of(wrapper.inputs, schema)
        self._watch = session.watching.of(wrapper, context)
        self.tally = self._watch.tally
        self._request_settings: Mapping[str, Any] = {
            "kind": wrapper.name,
            "permit": context.permit,
            "watch": session.watch(context),
            "cookies": session.cookies,
            "urgent": context.urgent,
        }

    @abstractmethod
    def caller(self) -> Caller: ...

    def once(self) -> AsyncGenerator[list[tuple[Row, Batch | PackedRows]] | Release, None]:
        return called_once(self.caller(), self._context)

    async def end(self, *, outer: bool) -> None:
        await self._session.watching.relation_ended(self._watch, self._context, outer=outer)

    def page_found(self, url: str, *, has_items: bool) -> None:
        """Take a page into account that an earlier attempt at a job has read."""
        self.tally.add_page(url, has_items=has_items)

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
        total_seconds = wrapper.request.timeout_seconds or session.settings.total_seconds
        self.reader = PageReader(wrapper.extraction, session.settings, context, total_seconds)
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

    def page_found(self, url: str, *, has_items: bool) -> None:
        self._has_items = self._has_items or has_items
        self._empty_pages += not has_items
        super().page_found(url, has_items=has_items)

    def _request(self, row: Row) -> Request | None:
        return self._maker.make(self.values(row))

    async def at_once(self, row: Row) -> Batch | PackedRows:
        request = self._request(row)
        if request is None:
            return self._no_request()
        response = await self._session.fetch(request)
        if response.status in self._wrapper.request.empty:
            return self._without_page(response)
        accepted(response)
        read = await self._read(response)
        if read.packed:
            return PackedRows(read, self.tally.add)
        if read.has_items:
            self.tally.add(read.rows)
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
                            self.tally.add(rows)
                        yield rows
            following = pages.following(following, response.url, page.next_page, page.rows)
        if pages.was_cut:
            self._note_cut(pages)

    def _release(self) -> Release:
        limit = byte_text(self._session.settings.hold_bytes)
        return Release(f"its rows had left, the body being larger than http.hold_bytes ({limit})")

    def _note_cut(self, pages: Pages) -> None:
        """Note a cut by MAX_PAGES. One that the wrapper states is meant; the default one loses rows."""
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
        from aioflow.wrappers.readers.base import given_row

        page = Page(head_of(response))
        row = given_row(self._wrapper.extraction)(page)
        self._count_unreadable(page.unreadable)
        return [row]

    async def _read(self, response: Response) -> PageRows:
        body = await response.read()
        if self._pauses.is_on and not self._context.urgent:
            await self._pauses.end()
        started = perf_counter()
        page = await self.reader.whole(response, body)
        self.note_page(page, response)
        self._pauses.worked(perf_counter() - started)
        return page

    def note_page(self, read: PageRows, response: Response) -> None:
        """Count a page that was read to its end, and what was odd about it: nothing is dropped silently."""
        if read.has_items:
            self._has_items = True
        else:
            self._empty_pages += 1
            self._proven_pages += read.is_proven_empty
        if not read.is_proven_empty:
            self.tally.add_page(response.url, has_items=read.has_items)
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
        self.next_page: Value = None

    async def batches(self) -> AsyncGenerator[Batch, None]:
        async with aclosing(self._calls.reader.batches(self._response)) as batches:
            async for batch in batches:
                rows = self._ended(batch) if isinstance(batch, PageRows) else batch
                self.rows += len(rows)
                if rows:
                    yield rows

    def _ended(self, read: PageRows) -> Batch:
        self.next_page, self.has_items = read.next_page, read.has_items
        self._calls.note_page(read, self._response)
        return read.rows


# --- wrappers in Python -------------------------------------------------------------------------


class PythonCalls(_Calls):
    """Calls of a wrapper function."""

    def __init__(
        self, wrapper: PythonWrapper, schema: Schema, session: WrapperSession, context: Context
    ) -> None:
        super().__init__(wrapper, schema, session, context)
        self._wrapper = wrapper
        self._fit = wrapper.inputs_fitting.fitted
        self._web = Web(session.fetch, self._request_settings, self.tally)

    def _arguments(self, row: Row) -> Values | None:
        """Return the arguments of the function, or None if an input is null that must not be."""
        values = self.values(row)
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
        self.tally.add(rows)
        return rows
