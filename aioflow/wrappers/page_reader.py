"""The reader of pages: on the event loop where that is quick, else in a process with limits."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from time import thread_time

import msgspec

from aioflow.authoring.context import Context
from aioflow.errors import ProcessError
from aioflow.relation import Batch, Value
from aioflow.values.quantities import byte_text
from aioflow.web.http import Response
from aioflow.web.settings import HttpSettings
from aioflow.wrappers.definition import Extraction
from aioflow.wrappers.loop_fairness import HeavyPageError, on_the_loop
from aioflow.wrappers.readers.reader import Extractor, PageHead, Reading, compiled

# What is read bit by bit, in bits that do not keep the loop waiting.
SLICE_BYTES = 64 * 1024
# A large page has a second more to be read in for so many bytes.
READ_BYTES_A_SECOND = 500_000
# Rows that come from another process at a time: they are unpacked where everything else waits.
PIECE_ROWS = 1000
# Of the memory that reading a page may take, its rows may take this share: they come back to the engine.
_ROWS_SHARE = 8
# However long the network took, some time is left for reading.
_LEAST_SECONDS = 1.0


class PageRows(msgspec.Struct, frozen=True):
    """The content of a whole page; `packed` are the rows if another process read it."""

    rows: Batch
    next_page: Value
    unreadable: Mapping[str, int]
    notes: Sequence[str]
    cuts: Sequence[str]
    has_items: bool
    is_proven_empty: bool
    packed: Sequence[bytes] = ()


class RowsTooLargeError(Exception):
    """The rows of a page take more memory than they may."""


class PackedRows:
    """The rows of a page that was read in another process, piece by piece: there may be millions.

    Whoever takes them lets others have their turn after each piece. `look` is called with each.
    """

    __slots__ = ("_look", "_page")

    def __init__(self, page: PageRows, look: Callable[[Batch], None]) -> None:
        self._page = page
        self._look = look

    def batches(self) -> Iterator[Batch]:
        for rows in (*map(_unpacked, self._page.packed), self._page.rows):
            self._look(rows)
            yield rows


def _unpacked(piece: bytes) -> Batch:
    rows: Batch = pickle.loads(piece)  # made by `read_page_aside`
    return rows


def read_page(extractor: Extractor, head: PageHead, body: bytes) -> PageRows:
    """Read a page at once, in whatever thread or process."""
    reading = extractor.open(head)
    rows = reading.feed(body)
    rows = rows + reading.end() if rows else reading.end()
    return _ended(reading, rows)


def read_page_aside(
    extractor: Extractor, head: PageHead, body: bytes, given: int, most_bytes: int
) -> PageRows:
    """Read a page in another process; its first rows were given before, the others take at most `most_bytes`.

    A RowsTooLargeError is raised where they would take more.
    """
    page = read_page(extractor, head, body)
    packed: list[bytes] = []
    size = 0
    for start in range(given, len(page.rows), PIECE_ROWS):
        packed.append(pickle.dumps(page.rows[start : start + PIECE_ROWS], protocol=5))
        size += len(packed[-1])
        if size > most_bytes:
            raise RowsTooLargeError
    return PageRows(
        [],
        page.next_page,
        page.unreadable,
        page.notes,
        page.cuts,
        page.has_items,
        page.is_proven_empty,
        packed,
    )


def _ended(reading: Reading, rows: Batch) -> PageRows:
    return PageRows(
        rows,
        reading.next_page,
        reading.unreadable,
        reading.notes,
        reading.cuts,
        reading.has_items,
        reading.is_proven_empty,
    )


class PageReader:
    """Reads the pages of one statement."""

    def __init__(
        self, extraction: Extraction, settings: HttpSettings, context: Context, total_seconds: float
    ) -> None:
        self._extraction = extraction
        self._extractor: Extractor = compiled(extraction)
        self._settings = settings
        self._context = context
        self._total_seconds = total_seconds  # of a request, with reading its answer

    async def whole(self, response: Response, body: bytes) -> PageRows:
        """Return what is in a page; an ExtractionError when that cannot be told, or not within the limits."""
        self._check_is_text(response, body, len(body))
        # Asked just before: a reader that had to parse the page to know keeps that for reading.
        if not self._extractor.is_heavy(body):
            try:
                with on_the_loop():
                    return read_page(self._extractor, head_of(response), body)
            except HeavyPageError:
                pass
        return await self._aside(response, body, 0)

    async def batches(self, response: Response) -> AsyncGenerator[Batch | PageRows, None]:
        """Give the rows of a page as it is read, and at last a PageRows with the rest of them."""
        if not self._extractor.is_incremental:
            page = await self.whole(response, await response.read())
            async for rows in _in_pieces(page):
                yield rows
            return
        given = 0
        try:
            async with aclosing(self._in_slices(response)) as slices:
                async for rows in slices:
                    given += len(rows.rows if isinstance(rows, PageRows) else rows)
                    yield rows
            return
        except HeavyPageError:
            body = response.held()
            if body is None:
                raise self._too_heavy_to_stream(response) from None
        page = await self._aside(response, body, given)
        async for rows in _in_pieces(page):
            yield rows

    async def _in_slices(self, response: Response) -> AsyncGenerator[Batch | PageRows, None]:
        reading = self._extractor.open(head_of(response))
        seconds, size = 0.0, 0
        async with aclosing(self._looked_at(response)) as chunks:
            async for chunk in chunks:
                size += len(chunk)
                for start in range(0, len(chunk), SLICE_BYTES):
                    if start:
                        await asyncio.sleep(0)  # a stored answer comes in one piece, however long
                    started = thread_time()
                    with on_the_loop():
                        rows = reading.feed(chunk[start : start + SLICE_BYTES])
                    seconds += thread_time() - started
                    if seconds > (limit := min(self._seconds_for(size), self._seconds_left(response))):
                        raise self._late(response, limit)
                    if rows:
                        yield rows
        with on_the_loop():
            rest = reading.end()
        yield _ended(reading, rest)

    async def _looked_at(self, response: Response) -> AsyncGenerator[bytes, None]:
        """The body piece by piece; what its first bytes show to be no text is refused."""
        from aioflow.wrappers.media import SNIFFED_BYTES, is_undecided

        start, held = b"", b""
        async with aclosing(response.chunks()) as chunks:
            async for chunk in chunks:
                held += chunk
                if len(start) < SNIFFED_BYTES:
                    start += chunk[:SNIFFED_BYTES]
                    if is_undecided(start):
                        continue
                    self._check_is_text(response, start, _size_bytes(response))
                yield held
                held = b""
        if held:
            self._check_is_text(response, start, len(start))
            yield held

    def _check_is_text(self, response: Response, start: bytes, size_bytes: int | None) -> None:
        """Refuse a page that no reader can read; it has so many bytes, if that is known."""
        from aioflow.web.errors import WebError
        from aioflow.wrappers.media import check_is_text

        try:
            check_is_text(self._extraction, head_of(response), start, size_bytes)
        except WebError as error:
            error.attempts = response.attempts
            raise

    async def _aside(self, response: Response, body: bytes, given: int) -> PageRows:
        # Headers as aiohttp has them cannot go to another process.
        head = PageHead(response.url, response.status, dict(response.headers))
        memory = self._settings.read_memory_bytes
        try:
            return await self._context.in_process(
                read_page_aside,
                self._extractor,
                head,
                body,
                given,
                memory // _ROWS_SHARE,
                seconds=self._seconds_left(response),
                processor_seconds=self._seconds_for(len(body)),
                memory_bytes=memory,
            )
        except ProcessError as error:
            if error.is_late:
                limit = min(self._seconds_for(len(body)), self._seconds_left(response))
                raise self._late(response, limit) from error
            raise _unread(response, f"the page was not read: {error}") from error
        except RowsTooLargeError as error:
            most = f"{byte_text(memory // _ROWS_SHARE)}, an eighth of http.read_memory_bytes"
            raise _unread(response, f"the rows of the page take more than {most}") from error
        except MemoryError as error:
            most = f"http.read_memory_bytes ({byte_text(memory)})"
            raise _unread(response, f"reading the page takes more memory than {most}") from error

    def _seconds_for(self, size: int) -> float:
        """Return how much of the processor's time a page of some size may take."""
        return self._settings.read_seconds + size / READ_BYTES_A_SECOND

    def _seconds_left(self, response: Response) -> float:
        """Return how long reading may take: together with the network, no longer than the whole request."""
        timing = response.timing
        return max(_LEAST_SECONDS, self._total_seconds - (timing.total_seconds - timing.waited_seconds))

    def _late(self, response: Response, seconds: float) -> Exception:
        hint = "try selectors with fewer steps, or http.read_seconds"
        return _unread(response, f"the page was not read within {seconds:.1f} seconds; {hint}")

    def _too_heavy_to_stream(self, response: Response) -> Exception:
        limit = f"http.hold_bytes ({byte_text(self._settings.hold_bytes)})"
        what = "an item is too large, or takes too long to read"
        return _unread(response, f"{what}, in a page that is read as it comes, being larger than {limit}")


async def _in_pieces(page: PageRows) -> AsyncGenerator[Batch | PageRows, None]:
    """Give the rows of a page that come in pieces, and at last the page with the rest of them."""
    for piece in page.packed:
        yield _unpacked(piece)
        await asyncio.sleep(0)
    yield page


def _unread(response: Response, what: str) -> Exception:
    # Imported late: this is read with the operators.
    from aioflow.web.errors import ExtractionError
    from aioflow.web.urls import without_userinfo

    return ExtractionError(f"{without_userinfo(response.url)}: {what}")


def _size_bytes(response: Response) -> int | None:
    """Return how large a body is that is still on its way, if its host tells."""
    if isinstance(response.body, bytes):
        return len(response.body)
    said = response.headers.get("Content-Length", "")
    return int(said) if said.isdecimal() and "Content-Encoding" not in response.headers else None


def head_of(response: Response) -> PageHead:
    return PageHead(response.url, response.status, response.headers)
