"""`crawl`: every tuple behind a search form, by few queries, and a report on whether it is every one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from types import TracebackType
from typing import Any

from aioflow.errors import InputError
from aioflow.hidden.algorithms.choice import Algorithm, check_algorithm, first_step, roots
from aioflow.hidden.attributes import Attribute, checked_attributes
from aioflow.hidden.form_crawler import FormCrawler, Query
from aioflow.hidden.knowledge import Knowledge
from aioflow.hidden.known import Known, compared
from aioflow.hidden.report import CrawlReport
from aioflow.hidden.space import Space

# Tuples that wait for their reader; workers wait when there are more.
_WAITING_AT_MOST = 10_000


class Crawl(AsyncIterator[tuple[Any, ...]]):
    """The tuples of a source, each as soon as it is certain. `report` is kept up to date.

    The crawl begins with the first tuple that is asked for. A reader that stops early calls `aclose`, or uses
    the crawl as a context manager.
    """

    def __init__(
        self,
        query: Query,
        space: Space,
        report: CrawlReport,
        dependencies: Iterable[str],
        workers: int,
        known: Known,
        keep: bool,
    ) -> None:
        self.report = report
        self._known = known
        self._found: list[tuple[Any, ...]] = []  # kept only to be compared
        self._space = space
        self._crawler = FormCrawler(
            *(query, space, report, Knowledge(space, dependencies), self._send, workers, known),
            keeps_answers=keep,
        )
        self._workers = workers
        self._waiting: deque[tuple[Any, ...]] = deque()
        self._changed = asyncio.Event()  # for the reader
        self._has_room = asyncio.Event()  # for the workers
        self._has_room.set()
        self._work: asyncio.Task[None] | None = None
        self._is_closed = False

    def __aiter__(self) -> Crawl:
        return self

    async def __anext__(self) -> tuple[Any, ...]:
        while not self._waiting:
            self._has_room.set()
            if self._is_closed:
                raise StopAsyncIteration
            if self._work is None:
                self._work = asyncio.create_task(self._run(), name="crawl of a hidden database")
            if self._work.done():
                self._work.result()
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        return self._waiting.popleft()

    @property
    def has_waiting(self) -> bool:
        """True if the next tuple is there already."""
        return bool(self._waiting)

    async def aclose(self) -> None:
        """End the crawl and its queries."""
        self._is_closed = True
        self._waiting.clear()
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait([self._work])
            if not self._work.cancelled():
                self._work.exception()  # it was raised to the reader, or nobody reads any more

    async def __aenter__(self) -> Crawl:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _send(self, rows: list[tuple[Any, ...]]) -> None:
        self._waiting += rows
        if len(self._known):
            self._found += rows
        self._changed.set()
        if len(self._waiting) > _WAITING_AT_MOST:
            self._has_room.clear()
            await self._has_room.wait()

    async def _run(self) -> None:
        crawler, name = self._crawler, self.report.algorithm
        begin = roots(self._space, self._space.whole)

        async def next_root() -> None:
            root = next(begin, None)
            if root is not None:
                crawler.add(first_step(name, crawler, root), next_root)

        crawler.add(next_root)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._workers):
                    group.create_task(crawler.work())
            await crawler.finish()
            if len(self._known):
                self.report.added, self.report.removed = compared(self._known.rows, self._found)
                self._found = []
        except BaseExceptionGroup as errors:
            raise _first(errors) from None
        finally:
            self._changed.set()


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def crawl(
    query: Query,
    attributes: Sequence[Attribute],
    *,
    k: int | None = None,
    algorithm: Algorithm = "auto",
    workers: int = 1,
    dependencies: Iterable[str] = (),
    known: Iterable[Sequence[Any]] = (),
    keep: bool = True,
) -> Crawl:
    """Extract every tuple behind a form that shows at most k tuples a query.

    `query` is called with conditions by attribute: `(low, high)` with None for an open end, or one value; an
    attribute that is absent is left open. It returns at most k tuples in the order of the attributes, and
    True or False, their total number, or None if the source does not say whether there are more. Values
    after those of the attributes are passed on. With k of None, the longest answer so far is taken for full.

    `workers` queries are under way at once. `dependencies` such as `make = BMW excludes body = truck` spare
    queries that cannot find anything. `known` are the tuples of an earlier crawl: where nothing has changed,
    fewer queries are needed, and the report lists what was added and removed.

    Answers are kept in memory where a query can be spared by them. If `keep` is false, none is, but for the
    tuples of the first answer and of unresolved regions, and a region a query: then more queries are needed,
    of which the report counts the `repeated` ones apart, and changes of the source are not noticed.
    """
    if not callable(query):
        raise InputError(f"a query is an async function, not {query!r}")
    if k is not None and not _is_count(k):
        raise InputError(f"k is the number of tuples that an answer can have, so at least 1, not {k!r}")
    if not _is_count(workers):
        raise InputError(f"at least one worker is needed, not {workers!r}")
    if isinstance(dependencies, str):
        raise InputError(f"dependencies are a list of texts, not {dependencies!r}")
    space = Space(checked_attributes(attributes))
    check_algorithm(algorithm, space)
    return Crawl(
        query, space, CrawlReport(space, k, algorithm), dependencies, workers, Known(space, known), keep
    )
