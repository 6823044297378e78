"""The common parts of readers that read a page while it arrives, and their explanations of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from aioflow.relation import Row, Value
from aioflow.web.errors import ExtractionError
from aioflow.web.urls import without_userinfo
from aioflow.wrappers.charsets import Charset
from aioflow.wrappers.loop_fairness import check
from aioflow.wrappers.page import Page, PageFindings
from aioflow.wrappers.processing import Convert
from aioflow.wrappers.readers.base import (
    CompiledExtractor,
    Finder,
    Frame,
    RowLayout,
    Slot,
    response_value,
)
from aioflow.wrappers.readers.reader import Found, PageHead
from aioflow.xml.errors import BadXmlError

S = TypeVar("S")
Take: TypeAlias = Callable[[Any], Value]
EXCERPT_CHARACTERS = 200


class BadPageError(Exception):
    """A page cannot be read; the message says where and why."""


# The errors that say so of a page.
BAD_PAGE = (BadPageError, BadXmlError)


def unreadable(head: PageHead, error: Exception) -> ExtractionError:
    """Return the error for a page that cannot be read."""
    return ExtractionError(f"{without_userinfo(head.url)}: {error}")


class PageDecoder(Protocol):
    """From the bytes of a page to its text."""

    def feed(self, data: bytes) -> str: ...
    def end(self) -> str: ...


class PieceReading(PageFindings, Generic[S]):
    """One page on its way in. A subclass takes items out of its text.

    `takers` has for each field of the item, by its place, a function that finds what the Finder would;
    fields without one are left to the Finder.
    """

    def __init__(
        self,
        extractor: CompiledExtractor[S],
        head: PageHead,
        decoder: PageDecoder,
        finder: Finder[S],
        takers: Mapping[int, Take] | None = None,
    ) -> None:
        self._extractor = extractor
        self._compiled = extractor.compiled
        self._page = Page(head)
        self._decoder = decoder
        self._finder = finder
        self._steps = _steps(extractor.compiled.layout, takers or {})
        self._frame: Frame | None = None
        self._next_page: Value = None

    def feed(self, data: bytes) -> list[Row]:
        try:
            return self._taken(self._decoder.feed(data))
        except BAD_PAGE as error:
            raise unreadable(self._page.head, error) from None

    def end(self) -> list[Row]:
        try:
            rows = self._taken(self._decoder.end())
            rows.extend(self._rest())
        except BAD_PAGE as error:
            raise unreadable(self._page.head, error) from None
        charset: Charset | None = getattr(self._decoder, "charset", None)
        if charset is not None and charset.note is not None:
            self._page.notes.append(charset.note)
        if self._page.rows:
            return rows
        self._page.has_items = False
        self._page.is_proven_empty = any(map(self._shows, self._compiled.empty))
        if not self._page.is_proven_empty:
            self._extractor.note_nothing(self._page)
        if not self._extractor.extraction.outer:
            return rows
        assert self._frame is not None
        return [tuple(self._frame.values)]

    def _taken(self, text: str) -> list[Row]:
        """Return the rows that are complete with this text."""
        raise NotImplementedError

    def _rest(self) -> list[Row]:
        """Return the rows that were waiting for the end."""
        raise NotImplementedError

    def _shows(self, proof: S) -> bool:
        """Return whether a page that was read to its end has what a selector of EMPTY looks for."""
        raise NotImplementedError

    def _know_page(self, root: Any) -> None:
        """From now on what is the same for all rows is known."""
        self._frame = self._compiled.layout.frame(self._page, root, self._finder)

    def _find_next(self, root: Any) -> None:
        slot = self._compiled.next_page
        if slot is not None:
            self._next_page = slot.convert(self._finder.find(slot, root), self._page)

    def _rows(self, items: Iterable[Any]) -> list[Row]:
        frame, layout, page, finder = self._frame, self._compiled.layout, self._page, self._finder
        assert frame is not None
        shared, steps = frame.values, self._steps
        if steps is None:
            return [layout.row(item, frame, page, finder) for item in items]
        rows = []
        for item in items:
            check()
            values = shared.copy()
            for place, take, convert in steps:
                values[place] = take(item) if convert is None else convert(take(item), page)
            rows.append(tuple(values))
        page.rows += len(rows)
        return rows


def _steps(layout: RowLayout[S], takers: Mapping[int, Take]) -> list[tuple[int, Take, Convert | None]] | None:
    """Return the short way to a row, where every field has a taker and none is required."""
    steps: list[tuple[int, Take, Convert | None]] = []
    for slot in layout.item:
        if slot.place not in takers or slot.required or slot.nested is not None:
            return None
        is_plain = slot.conversion.is_plain and not slot.conversion.collapse
        steps.append((slot.place, takers[slot.place], None if is_plain else slot.convert))
    return steps


# --- for people ----------------------------------------------------------------------------------


class NodeLocator(Protocol[S]):
    """The locator of nodes, of a reader's own kind, in a page."""

    def found(self, slot: Slot[S], node: Any) -> list[tuple[str, str]]:
        """Return the path and the text in the page of each match that a field's value is made of."""
        ...

    def inner(self, slot: Slot[S], node: Any) -> Iterable[Any]:
        """Return the items of an embedded relation."""
        ...

    def value(self, slot: Slot[S], node: Any) -> Value:
        """Return the value that a Finder finds for a field."""
        ...


def explained(
    layout: RowLayout[S], page: Page, origins: NodeLocator[S], root: Any, items: Iterable[Any]
) -> Iterator[Found]:
    """Yield the origin of each value in a page: a Found for each match, or one without a path if none."""
    try:
        for row, item in enumerate(items):
            for slot in layout.slots:
                yield from _of_slot(row, slot, item, root, "", page, origins)
    except BAD_PAGE as error:
        raise unreadable(page.head, error) from None


def whole_text(decoder: PageDecoder, body: bytes) -> str:
    return decoder.feed(body) + decoder.end()


def _of_slot(
    row: int, slot: Slot[S], item: Any, root: Any, path: str, page: Page, origins: NodeLocator[S]
) -> Iterator[Found]:
    name, scope = f"{path}{slot.name}", slot.field.scope
    node = root if scope == "page" else item
    if scope == "constant":
        yield Found(row, name, "constant", "", slot.conversion.default)
    elif scope == "response":
        value = slot.convert(response_value(slot.field, page.head), page)
        yield Found(row, name, f"response {slot.field.selector}", "", value)
    elif slot.nested is not None:
        for inner in origins.inner(slot, node):
            for field in slot.nested.slots:
                yield from _of_slot(row, field, inner, root, f"{name}.", page, origins)
    else:
        value = slot.convert(origins.value(slot, node), page)
        for place, text in origins.found(slot, node) or [("", "")]:
            yield Found(row, name, place, text[:EXCERPT_CHARACTERS], value)
