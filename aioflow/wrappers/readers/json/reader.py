"""The JSON reader: fields by path. Items leave while the rest of the page arrives. Also `READ: json lines`.

Items are the elements of the array that EACH leads to; without EACH, those of the page if it is an array. Any
other value found there is the only item.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from aioflow.errors import SettingError
from aioflow.relation import Document, Row, Type, Value
from aioflow.wrappers.charsets import check_charset
from aioflow.wrappers.definition import Extraction, Field
from aioflow.wrappers.page import Page
from aioflow.wrappers.readers.base import (
    CompiledExtractor,
    RowLayout,
    Slot,
    Traits,
    check_options,
    compile_extraction,
    is_flag,
)
from aioflow.wrappers.readers.incremental import (
    BadPageError,
    PieceReading,
    Take,
    explained,
    unreadable,
    whole_text,
)
from aioflow.wrappers.readers.json.path import JsonPath, compile_path, is_steep, own_name, shown_place
from aioflow.wrappers.readers.json.stream import PathNode, ValueStream, plan_stream
from aioflow.wrappers.readers.json.text import JsonDecoder, JsonLines, dump, parse
from aioflow.wrappers.readers.reader import Found, PageHead

_ROOT = compile_path("$")
_PLAIN = frozenset({str, int, float, bool, type(None)})


class JsonReader:
    """Reads JSON."""

    name: ClassVar[str] = "json"
    content_types: ClassVar[tuple[str, ...]] = (
        "application/json",
        "application/ld+json",
        "application/geo+json",
        "application/x-ndjson",
        "application/jsonl",
        "text/json",
    )
    default_type: ClassVar[Type | None] = None

    def compile(self, extraction: Extraction) -> JsonExtractor:
        return JsonExtractor(extraction)


class JsonExtractor(CompiledExtractor[JsonPath]):
    """Paths, compiled; `stream` is what to look for while a page arrives, None if it is read whole."""

    content_types = JsonReader.content_types

    def __init__(self, extraction: Extraction) -> None:
        check_options("json", extraction.options, {"lines": ("lines", is_flag)})
        if extraction.charset is not None:
            check_charset(extraction.charset)
        super().__init__(extraction, compile_extraction(extraction, _select, Traits(None, document="json")))
        self.has_lines = "lines" in extraction.options
        self.items = self.compiled.each or _ROOT
        self.page_paths = {path.query: path for path in _page_paths(self.compiled.layout)}
        captures = dict(self.page_paths)
        if self.compiled.next_page is not None:
            captures[self.compiled.next_page.selector.query] = self.compiled.next_page.selector
        captures |= {path.query: path for path in self.compiled.empty}
        if self.has_lines:
            _refuse_page_fields(self)
        self._degree = max((path.degree for path in self.compiled.selectors()), default=0)
        self.stream: PathNode | None = None if self._degree else plan_stream(self.items, captures)
        self.is_incremental = not self._degree and (self.has_lines or self.stream is not None)
        self.takers = {slot.place: _taker(slot) for slot in self.compiled.layout.item if _is_quick(slot)}

    def open(self, page: PageHead) -> JsonReading:
        if self.has_lines:
            return LinesReading(self, page)
        return (
            WholeJsonReading(self, page)
            if self.stream is None
            else JsonStreamReading(self, page, self.stream)
        )

    def explain(self, page: PageHead, body: bytes) -> Iterator[Found]:
        try:
            text = whole_text(JsonDecoder(page.content_type, self.extraction.charset), body)
            return _explained(self, Page(page), text)
        except BadPageError as error:
            raise unreadable(page, error) from None

    def is_heavy(self, body: bytes) -> bool:
        return super().is_heavy(body) or is_steep(_values_about(body), self._degree)


def _values_about(body: bytes) -> int:
    """Return how many values a page has at most."""
    return 1 + sum(map(body.count, (b",", b":", b"[", b"{")))


def _select(field: Field) -> JsonPath:
    return compile_path(field.selector) if field.selector else own_name(field.name)


def _page_paths(layout: RowLayout[JsonPath]) -> Iterator[JsonPath]:
    """Yield the paths that are looked for in the page around the items."""
    for slot in layout.slots:
        if slot.field.scope == "page":
            yield slot.selector
        if slot.nested is not None:
            yield from _page_paths(slot.nested)


def _refuse_page_fields(extractor: JsonExtractor) -> None:
    for slot in extractor.compiled.layout.slots:
        if slot.field.scope == "page" or (slot.nested is not None and slot.nested.needs_page):
            message = "lines of JSON have no page around them: leave out 'page'"
            raise SettingError(message, setting=slot.name)
    if extractor.compiled.next_page is not None:
        message = "lines of JSON have no page around them, and so no link to the next one"
        raise SettingError(message, setting=extractor.compiled.next_page.name)
    if extractor.compiled.empty:
        message = "lines of JSON have no page around them: EMPTY can name statuses only"
        raise SettingError(message, setting="EMPTY")


# --- finding -------------------------------------------------------------------------------------


class Captured:
    """A page of which only some values were kept, by the paths that led to them."""

    __slots__ = ("values",)

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values


class JsonFinder:
    """Values as relations carry them; objects and arrays are documents."""

    def find(self, slot: Slot[JsonPath], node: Any) -> Value:
        conversion = slot.conversion
        if conversion.matches == "first":
            value = _captured(slot, node) if node.__class__ is Captured else slot.selector.first(node)
            if value.__class__ in _PLAIN and conversion.source == "text":
                return value
            return _carried(value, conversion.source)
        every = [_carried(value, conversion.source) for value in self.each(slot, node)]
        if conversion.matches == "all":
            return every
        return every[-1] if every else None

    def each(self, slot: Slot[JsonPath], node: Any) -> list[Any]:
        if node.__class__ is not Captured:
            return slot.selector.every(node)
        value = _captured(slot, node)
        if isinstance(value, list):
            return value
        return [value] if slot.selector.query in node.values else []


def _captured(slot: Slot[JsonPath], node: Captured) -> Any:
    return node.values.get(slot.selector.query)


def _carried(value: Any, source: str) -> Value:
    if source == "markup":
        return None if value is None else dump(value)
    return Document(dump(value), "json") if isinstance(value, dict | list) else value


_FINDER = JsonFinder()


def _is_quick(slot: Slot[JsonPath]) -> bool:
    return slot.conversion.matches == "first" and slot.conversion.source == "text"


def _taker(slot: Slot[JsonPath]) -> Take:
    first = slot.selector.first

    def take(node: Any) -> Value:
        value = first(node)
        return value if value.__class__ in _PLAIN else _carried(value, "text")

    return take


# --- reading -------------------------------------------------------------------------------------


class JsonReading(PieceReading[JsonPath]):
    """The common part of reading whole pages, pages that arrive in pieces, and lines."""

    def __init__(self, extractor: JsonExtractor, head: PageHead) -> None:
        decoder = JsonDecoder(head.content_type, extractor.extraction.charset)
        super().__init__(extractor, head, decoder, _FINDER, extractor.takers)
        self._root: Any = None  # known at the end, as far as it is kept

    def _shows(self, proof: JsonPath) -> bool:
        root = self._root
        found = root.values.get(proof.query) if root.__class__ is Captured else proof.first(root)
        return found is not None and found is not False


class JsonStreamReading(JsonReading):
    """Items leave as they come, once all values of the page around them are known."""

    def __init__(self, extractor: JsonExtractor, head: PageHead, wanted: PathNode) -> None:
        super().__init__(extractor, head)
        self._stream = ValueStream(wanted)
        self._needed = extractor.page_paths.keys()
        self._held: list[Any] = []
        if not self._needed:
            self._know_page(None)

    def _taken(self, text: str) -> list[Row]:
        items = self._stream.feed(text)
        if self._frame is not None:
            return self._rows(items)
        self._held.extend(items)
        if not self._needed <= self._stream.captured.keys():
            return []
        self._know_page(Captured(self._stream.captured))
        return self._released()

    def _released(self) -> list[Row]:
        held, self._held = self._held, []
        return self._rows(held)

    def _rest(self) -> list[Row]:
        self._held.extend(self._stream.end())
        root = self._root = Captured(self._stream.captured)
        if self._frame is None:
            self._know_page(root)
        self._find_next(root)
        return self._released()


class WholeJsonReading(JsonReading):
    """The page is read when all of it is there."""

    def __init__(self, extractor: JsonExtractor, head: PageHead) -> None:
        super().__init__(extractor, head)
        self._items = extractor.items
        self._parts: list[str] = []

    def _taken(self, text: str) -> list[Row]:
        self._parts.append(text)
        return []

    def _rest(self) -> list[Row]:
        root = self._root = parse("".join(self._parts))
        self._know_page(root)
        self._find_next(root)
        return self._rows(self._items.every(root))


class LinesReading(JsonReading):
    """Each line is a value of its own."""

    def __init__(self, extractor: JsonExtractor, head: PageHead) -> None:
        super().__init__(extractor, head)
        self._lines = JsonLines()
        self._know_page(None)

    def _taken(self, text: str) -> list[Row]:
        return self._rows_of(self._lines.feed(text))

    def _rest(self) -> list[Row]:
        return self._rows_of(self._lines.end())

    def _rows_of(self, values: list[Any]) -> list[Row]:
        each = self._compiled.each
        return self._rows(
            values if each is None else (item for value in values for item in each.every(value))
        )


# --- explaining ----------------------------------------------------------------------------------


class _Places:
    """Nodes are values with their places: the line, if there are lines, and the way from its top."""

    def found(self, slot: Slot[JsonPath], node: Any) -> list[tuple[str, str]]:
        line, place, value = node
        matches = slot.conversion.matches
        places = slot.selector.places(value, spread=matches != "first")
        chosen = places if matches == "all" else places[-1:] if matches == "last" else places[:1]
        return [(f"{line}{shown_place((*place, *way))}", dump(found)) for way, found in chosen]

    def inner(self, slot: Slot[JsonPath], node: Any) -> list[Any]:
        return _located(slot.selector, node)

    def value(self, slot: Slot[JsonPath], node: Any) -> Value:
        return _FINDER.find(slot, node[2])


def _located(path: JsonPath, node: Any) -> list[Any]:
    line, place, value = node
    return [(line, (*place, *way), found) for way, found in path.places(value)]


def _explained(extractor: JsonExtractor, page: Page, text: str) -> Iterator[Found]:
    each = extractor.compiled.each
    if extractor.has_lines:
        root: Any = ("", (), None)
        lines = [(f"line {number}: ", (), value) for number, value in JsonLines().numbered(text)]
        items = lines if each is None else [item for line in lines for item in _located(each, line)]
    else:
        root = ("", (), parse(text))
        items = _located(extractor.items, root)
    return explained(extractor.compiled.layout, page, _Places(), root, items)
