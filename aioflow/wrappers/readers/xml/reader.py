"""The XML reader: fields by XPath 1.0. Items leave while the rest of the page arrives.

Namespaces are named by options, `READ: xml namespace "a" "http://www.w3.org/2005/Atom"`; with `READ: xml
strip-namespaces` a name without prefix means elements and attributes of that name in any namespace. Relative
paths start from the item, or from the root element of the page. Elements that were read are released.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from aioflow.errors import SettingError
from aioflow.relation import Row, Type, Value
from aioflow.wrappers.charsets import TextDecoder, check_charset
from aioflow.wrappers.definition import Extraction, Field
from aioflow.wrappers.loop_fairness import checked, limit_text
from aioflow.wrappers.page import Page
from aioflow.wrappers.readers.base import (
    CompiledExtractor,
    RowLayout,
    Slot,
    Traits,
    check_options,
    compile_extraction,
    inside_items,
    is_flag,
)
from aioflow.wrappers.readers.incremental import (
    BAD_PAGE,
    BadPageError,
    PieceReading,
    Take,
    explained,
    unreadable,
    whole_text,
)
from aioflow.wrappers.readers.reader import Found, PageHead
from aioflow.wrappers.readers.xml.path import XmlPath, check_use, compile_xpath, is_steep
from aioflow.xml.guard import SafeParser, etree
from aioflow.xml.items import ItemParser, SimpleSteps

# An item of which paths ask for all text is heavy when it is so many times shorter than any other.
_TEXT_WEIGHT = 16


# Elements inside of each other, of which paths ask for all text, may have as much as so many bytes times the
# deepest nesting, which is more than the event loop is to wait for.
_MOST_TEXT_BYTES = 64 * 1024
_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_PREFIX = re.compile(r"[^\W\d][\w.-]*")
_NAME = re.compile(r"(?:[^\W\d][\w.-]*:)?[^\W\d][\w.-]*")


class XmlReader:
    """Reads XML."""

    name: ClassVar[str] = "xml"
    content_types: ClassVar[tuple[str, ...]] = (
        "application/xml",
        "text/xml",
        "application/rss+xml",
        "application/atom+xml",
        "application/rdf+xml",
    )
    default_type: ClassVar[Type | None] = Type.CHAR

    def compile(self, extraction: Extraction) -> XmlExtractor:
        return XmlExtractor(extraction)


def _are_namespaces(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(prefix, str) and isinstance(uri, str) and uri and _PREFIX.fullmatch(prefix)
        for prefix, uri in value.items()
    )


_OPTIONS = {
    "namespace": ('namespace "prefix" "uri"', _are_namespaces),
    "strip-namespaces": ("strip-namespaces", is_flag),
}


class XmlExtractor(CompiledExtractor[XmlPath]):
    """XPaths, compiled; pages are read in pieces where no path leads out of its item."""

    content_types = XmlReader.content_types

    def __init__(self, extraction: Extraction) -> None:
        check_options("xml", extraction.options, _OPTIONS)
        if extraction.charset is not None:
            check_charset(extraction.charset)
        traits = Traits(collapse=True, document="xml")
        super().__init__(extraction, compile_extraction(extraction, _Selecting(extraction), traits))
        each, layout = self.compiled.each, self.compiled.layout
        stays_inside = self.compiled.next_page is None and not layout.needs_page and _stays_inside(layout)
        self._degree = max((path.degree for path in self.compiled.selectors()), default=0)
        self.texts = max((path.texts for path in self.compiled.selectors()), default=0)
        is_cheap = stays_inside and self._degree <= 1
        self.steps = each.steps if each is not None and is_cheap else None
        self.is_incremental = self.steps is not None
        self.takers = {slot.place: _taker(slot) for slot in layout.item if slot.selector.gives_nodes}

    def open(self, page: PageHead) -> XmlReading:
        return WholeXmlReading(self, page) if self.steps is None else XmlStreamReading(self, page, self.steps)

    def is_heavy(self, body: bytes) -> bool:
        if super().is_heavy(body) or self.texts * len(body) > _MOST_TEXT_BYTES:
            return True
        return is_steep(body.count(b"<") + body.count(b"="), self._degree)

    def explain(self, page: PageHead, body: bytes) -> Iterator[Found]:
        try:
            text = whole_text(TextDecoder(page.content_type, self.extraction.charset), body)
            return _explained(self, Page(page), text)
        except BAD_PAGE as error:
            raise unreadable(page, error) from None


def _stays_inside(layout: RowLayout[XmlPath]) -> bool:
    """Return whether nothing outside of an item is looked at for it."""
    return all(
        slot.selector.is_inner and (slot.nested is None or _stays_inside(slot.nested)) for slot in layout.item
    )


class _Selecting:
    """Compiles the selectors of an extraction."""

    def __init__(self, extraction: Extraction) -> None:
        self._namespaces = extraction.options.get("namespace", {})
        self._any_namespace = "strip-namespaces" in extraction.options
        self._inside = inside_items(extraction)

    def __call__(self, field: Field) -> XmlPath:
        return check_use(self._compiled(field), field, is_inside=id(field) in self._inside)

    def _compiled(self, field: Field) -> XmlPath:
        if not field.selector and not _NAME.fullmatch(field.name):
            raise SettingError(f"{field.name!r} is no name of an element: write an XPath for it")
        return compile_xpath(field.selector or field.name, self._namespaces, self._any_namespace)


# --- finding -------------------------------------------------------------------------------------


class XmlFinder:
    """Texts of elements, attributes and values; for documents the elements as they are written."""

    def find(self, slot: Slot[XmlPath], node: Any) -> Value:
        conversion = slot.conversion
        found = slot.selector.find(node)
        if not isinstance(found, list):
            found = [shown_value(found)]
        if conversion.matches == "all":
            return [_text_of(each, conversion.source) for each in checked(found)]
        return (
            _text_of(found[-1 if conversion.matches == "last" else 0], conversion.source) if found else None
        )

    def each(self, slot: Slot[XmlPath], node: Any) -> list[Any]:
        return _elements(slot.name, slot.selector.find(node))


def _elements(name: str, found: list[Any]) -> list[Any]:
    if not all(map(etree.iselement, found)):
        raise BadPageError(f"{name!r} leads to attributes or texts and not to elements")
    return found


def _text_of(found: Any, source: str) -> Value:
    if isinstance(found, str) or found is None:
        return found
    if isinstance(found, tuple):  # a namespace: its prefix and what it stands for
        return found[1]
    if source == "markup":
        return etree.tostring(found, encoding="unicode", with_tail=False)
    return "".join(found.itertext()) if len(found) else found.text


def shown_value(value: Any) -> str | None:
    """A number, text or truth value of XPath as text; null for what is no number."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return None if value != value else str(int(value)) if value.is_integer() else str(value)
    return str(value)


_FINDER = XmlFinder()


def _taker(slot: Slot[XmlPath]) -> Take:
    """As `find`, for paths to nodes."""
    if slot.conversion.matches != "first":
        return lambda node: _FINDER.find(slot, node)
    find, source = slot.selector.find, slot.conversion.source

    def take(node: Any) -> Value:
        found = find(node)
        return _text_of(found[0], source) if found else None

    return take


# --- reading -------------------------------------------------------------------------------------


class XmlReading(PieceReading[XmlPath]):
    """The common part of reading whole pages and pages that arrive in pieces."""

    def __init__(self, extractor: XmlExtractor, head: PageHead) -> None:
        decoder = TextDecoder(head.content_type, extractor.extraction.charset)
        super().__init__(extractor, head, decoder, _FINDER, extractor.takers)
        self._root: Any = None  # known at the end

    def _shows(self, proof: XmlPath) -> bool:
        # Without items nothing of the page was let go of. As in XPath, not every value counts as true.
        try:
            return bool(proof.find(self._root))
        except etree.XPathError as error:
            raise BadPageError(f"EMPTY cannot be looked for: {error}") from None

    def _rows(self, items: Iterable[Any]) -> list[Row]:
        try:
            return super()._rows(items)
        except etree.XPathError as error:
            raise BadPageError(f"a value cannot be found: {error}") from None

    def _note_namespace(self, root: Any) -> None:
        """Nothing was found: names without a prefix mean no element that is in a namespace."""
        options = self._extractor.extraction.options
        uri = root.nsmap.get(None) or etree.QName(root).namespace
        if uri and "strip-namespaces" not in options and uri not in options.get("namespace", {}).values():
            hint = "say READ: xml strip-namespaces"
            self._page.notes.append(f"nothing was found: its elements are in the namespace {uri!r}; {hint}")


class XmlStreamReading(XmlReading):
    """Items leave as they come."""

    def __init__(self, extractor: XmlExtractor, head: PageHead, steps: SimpleSteps) -> None:
        super().__init__(extractor, head)
        weight = _TEXT_WEIGHT if extractor.texts else 1
        self._items = ItemParser(steps, when_kept=lambda characters: limit_text(characters * weight))
        self._know_page(None)

    def _taken(self, text: str) -> list[Row]:
        return self._rows(self._noticed(self._items.feed(text)))

    def _rest(self) -> list[Row]:
        rows = self._rows(self._noticed(self._items.end()))
        self._root = self._items.root
        if not self._page.rows:
            self._note_namespace(self._root)
        return rows

    def _noticed(self, items: Iterator[Any]) -> Iterator[Any]:
        for item in items:
            if self._page.find_base is None:
                self._page.find_base = _base_of(item.getroottree().getroot())
            yield item


class WholeXmlReading(XmlReading):
    """The page is read when all of it is there."""

    def __init__(self, extractor: XmlExtractor, head: PageHead) -> None:
        super().__init__(extractor, head)
        self._parser = SafeParser()

    def _taken(self, text: str) -> list[Row]:
        self._parser.feed(text)
        return []

    def _rest(self) -> list[Row]:
        root = self._root = self._parser.close()
        self._page.find_base = _base_of(root)
        self._know_page(root)
        self._find_next(root)
        rows = self._rows(_items(self._compiled.each, root))
        if self._extractor.found_nothing(rows):
            self._note_namespace(root)
        return rows


def _base_of(root: Any) -> Callable[[], str | None]:
    """Return the base of the page's links that the page itself declares."""
    base: str | None = root.get(_BASE)
    return lambda: base


def _items(each: XmlPath | None, root: Any) -> list[Any]:
    return [root] if each is None else _elements("EACH", each.find(root))


# --- explaining ----------------------------------------------------------------------------------


class _Places:
    """Nodes are elements."""

    def found(self, slot: Slot[XmlPath], node: Any) -> list[tuple[str, str]]:
        found = slot.selector.trace(node)
        if not isinstance(found, list):
            return [(slot.selector.text, shown_value(found) or "")]
        matches = slot.conversion.matches
        chosen = found if matches == "all" else found[-1:] if matches == "last" else found[:1]
        return [(shown_path(each), _text_of(each, "markup") or "") for each in chosen]

    def inner(self, slot: Slot[XmlPath], node: Any) -> list[Any]:
        return _FINDER.each(slot, node)

    def value(self, slot: Slot[XmlPath], node: Any) -> Value:
        return _FINDER.find(slot, node)


def _explained(extractor: XmlExtractor, page: Page, text: str) -> Iterator[Found]:
    parser = SafeParser()
    parser.feed(text)
    root = parser.close()
    page.find_base = _base_of(root)
    return explained(extractor.compiled.layout, page, _Places(), root, _items(extractor.compiled.each, root))


def shown_path(found: Any) -> str:
    """`/feed/entry[2]/title`, `/feed/link/@href`"""
    if isinstance(found, tuple):
        return "namespace::*"
    if isinstance(found, str):
        origin: Any = found  # one of lxml's texts, which know where they come from
        name = f"@{_local(origin.attrname)}" if origin.is_attribute else "text()"
        return f"{shown_path(origin.getparent())}/{name}"
    steps = []
    while found is not None:
        same = sum(1 for _ in found.itersiblings(found.tag, preceding=True))
        alone = not same and next(found.itersiblings(found.tag), None) is None
        steps.append(_local(found.tag) if alone else f"{_local(found.tag)}[{same + 1}]")
        found = found.getparent()
    return "/" + "/".join(reversed(steps))


def _local(name: str) -> str:
    return name.rpartition("}")[2]
