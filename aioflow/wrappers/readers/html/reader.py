"""The HTML reader: fields by CSS selectors, `css @attribute`, or by XPath. Lexbor parses the whole page.

A selector that begins with `/`, `./`, `../` or `(` is an XPath; with `READ: html xpath` all are. Inside an
item, selectors find its descendants, not the item itself; `@attribute` and `@text` alone belong to the item.
Text is collapsed to single spaces, and blank text is null, unless a field says `raw`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec.structs import replace

from aioflow.errors import SettingError
from aioflow.relation import Row, Type, Value
from aioflow.wrappers.charsets import UTF8, check_charset, decode_as, detect, says_utf8
from aioflow.wrappers.conversions import WORDS
from aioflow.wrappers.definition import Extraction, Field, Processing
from aioflow.wrappers.loop_fairness import check
from aioflow.wrappers.page import Page, PageFindings
from aioflow.wrappers.processing import Conversion, Convert, is_only_url
from aioflow.wrappers.readers.base import (
    HEAVY_BYTES,
    Compiled,
    CompiledExtractor,
    Frame,
    RowLayout,
    Slot,
    Traits,
    check_options,
    compile_extraction,
    inside_items,
    is_flag,
    response_value,
)
from aioflow.wrappers.readers.html.css import MARKUP, TEXT, Selector, parse_each, parse_selector
from aioflow.wrappers.readers.html.deep_markup import DEEPEST, flattened, has_long_tag, tags_about
from aioflow.wrappers.readers.html.nodes import (
    NodeValue,
    SelectorCost,
    Take,
    css_path,
    every,
    excerpt_of,
    find_first,
    first,
    taker,
    value_taker,
)
from aioflow.wrappers.readers.incremental import BadPageError, unreadable
from aioflow.wrappers.readers.reader import Found, PageHead

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

    from aioflow.wrappers.readers.html.xpath import HtmlTree
    from aioflow.wrappers.readers.xml.path import XmlPath


# Selecting takes its time for pages of many tags; where selectors count siblings much earlier: 20,000 of them
# take two seconds.
_MANY_TAGS, _MANY_TAGS_IF_COUNTING = 20_000, 3000
_BOM = b"\xef\xbb\xbf"


class HtmlReader:
    """Reads HTML."""

    name: ClassVar[str] = "html"
    content_types: ClassVar[tuple[str, ...]] = ("text/html", "application/xhtml+xml")
    default_type: ClassVar[Type | None] = Type.CHAR

    def compile(self, extraction: Extraction) -> HtmlExtractor:
        return HtmlExtractor(extraction)


class Taken:
    """A selector or a path with the function `take`, which returns the value of a find for its field."""

    __slots__ = ("in_page", "path", "selector", "take", "tree")

    def __init__(self, selector: Selector, path: XmlPath | None = None, tree: HtmlTree | None = None) -> None:
        self.selector = selector  # of nothing, where there is a path
        self.path = path
        self.tree = tree
        self.in_page = False
        self.take: Take = _nothing

    def every(self, node: LexborNode) -> list[LexborNode]:
        if self.path is not None and self.tree is not None:
            return self.tree.every(self.path, node)
        return every(self.selector, node, in_page=self.in_page)

    def bind(self, conversion: Conversion, *, in_page: bool) -> None:
        self.in_page = in_page
        if self.path is not None and self.tree is not None:
            self.take = self.tree.taker(self.path, conversion)
        else:
            self.take = taker(self.selector, conversion, in_page=in_page)


def _nothing(node: LexborNode) -> None:
    return None


class HtmlExtractor(CompiledExtractor[Taken]):
    """Selectors, compiled."""

    content_types = HtmlReader.content_types

    def __init__(self, extraction: Extraction) -> None:
        from selectolax.lexbor import LexborHTMLParser

        self._parser = LexborHTMLParser
        check_options("html", extraction.options, {"xpath": ("xpath", is_flag)})
        if extraction.charset is not None:
            check_charset(extraction.charset)
        meant = replace(extraction, fields=tuple(map(_with_document, extraction.fields)))
        selecting = _Selecting(meant)
        compiled = compile_extraction(meant, selecting, Traits(collapse=True))
        super().__init__(extraction, compiled)
        self.tree = selecting.tree
        self._paths = [taken.path for taken in compiled.selectors() if taken.path is not None]
        self._counts = False
        self._latest: LexborHTMLParser | None = None
        self._parsed: tuple[bytes, LexborHTMLParser] | None = None
        self._bind(compiled.layout, in_page=compiled.each is None)
        if compiled.next_page is not None:
            self._bind_slot(compiled.next_page, in_page=True)
        if compiled.each is not None:
            compiled.each.in_page = True
            self._counts |= compiled.each.selector.counts
        for text, proof in zip(extraction.empty, compiled.empty, strict=True):
            _check_proof(text, proof.selector)
            proof.in_page = True
            self._counts |= proof.selector.counts
        self._steepness = SelectorCost.of(taken.selector for taken in compiled.selectors())
        self.rows = _row_maker(compiled)
        # The same for all pages where every field is of the item, and a value.
        is_plain = all(slot.field.scope == "item" and slot.nested is None for slot in compiled.layout.slots)
        self.plain_frame = Frame([None] * len(compiled.layout.slots), {}) if is_plain else None

    def _bind(self, layout: RowLayout[Taken], *, in_page: bool) -> None:
        for slot in layout.slots:
            if slot.selector is not None:
                self._bind_slot(slot, in_page=in_page or slot.field.scope == "page")
            if slot.nested is not None:
                self._bind(slot.nested, in_page=False)

    def _bind_slot(self, slot: Slot[Taken], *, in_page: bool) -> None:
        taken, selector = slot.selector, slot.selector.selector
        is_bare = not selector.css and selector.taken == TEXT and taken.path is None
        if in_page and is_bare and slot.nested is None:
            message = f"field {slot.name!r} needs a selector: only an item has a text of its own"
            raise SettingError(message, setting=slot.name)
        taken.bind(slot.conversion, in_page=in_page)
        self._counts |= selector.counts

    def open(self, page: PageHead) -> HtmlReading:
        return HtmlReading(self, page)

    def explain(self, page: PageHead, body: bytes) -> Iterator[Found]:
        from aioflow.wrappers.readers.html.reader import Explanation

        return Explanation(self, page, body).run()

    def is_heavy(self, body: bytes) -> bool:
        if super().is_heavy(body):
            return True
        most = _MANY_TAGS_IF_COUNTING if self._counts else _MANY_TAGS
        if (len(body) > 3 * most and tags_about(body) > most) or has_long_tag(body):
            return True
        if self.tree is not None and self.tree.is_steep(self._paths, body):
            return True
        return self._steepness is not None and self._is_too_deep(body, self._steepness)

    def _is_too_deep(self, body: bytes, steepness: SelectorCost) -> bool:
        """Return whether the depth of a page makes selecting slow. The tree is kept for reading."""
        tags = steepness.tags(body)
        if not tags:
            return False
        if b"\0" in body[:64] or flattened(body) is not None:  # in UTF-16 no tags are seen here
            return True
        parser = self._parse(body)
        self._parsed = body, parser
        return parser.root is not None and steepness.is_exceeded_by(parser.root, tags)

    def parse(self, page: Page, body: bytes) -> LexborHTMLParser:
        """The tree of a page, its links relative to what it says itself."""
        body = self._utf8(page, body)
        parsed, self._parsed = self._parsed, None
        if parsed is not None and parsed[0] is body:
            parser = parsed[1]
        else:
            flat = flattened(body)
            if flat is not None:
                note = f"nested more than {DEEPEST} levels deep; deeper elements were flattened"
                page.notes.append(note)
                page.cuts.append(note)
                body = flat
            parser = self._parse(body)
        # The tree before this one is let go of only now: with nothing left of them in between, the memory for
        # every single page would be given back to the system and asked for again, page by page.
        self._latest = parser if len(body) < HEAVY_BYTES else None
        page.find_base = lambda: _base_of(parser, body)
        if self.tree is not None and parser.root is not None:
            self.tree.open(parser.root)
        return parser

    def _parse(self, body: bytes) -> LexborHTMLParser:
        from selectolax.lexbor import SelectolaxError

        try:
            return self._parser(body)
        except SelectolaxError as error:  # all pages are HTML to Lexbor: it fails only for want of memory
            raise MemoryError from error

    def _utf8(self, page: Page, body: bytes) -> bytes:
        """The page in the only encoding that Lexbor reads; what it cannot read there it replaces."""
        if self.extraction.charset is None and body[:1] == b"<" and says_utf8(page.head.content_type):
            return body
        charset = detect(body, page.head.content_type, self.extraction.charset)
        if charset.note is not None:
            page.notes.append(charset.note)
        if charset.codec == UTF8 and (charset.said_by != "nobody" or _is_utf8(body)):
            return body.removeprefix(_BOM)
        return decode_as(body, charset).encode()


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _base_of(parser: LexborHTMLParser, body: bytes) -> str | None:
    """Return the address in the <base> of the page's head, if it has one."""
    end = body.find(b"</head")
    if b"<base" not in body[: end if end >= 0 else None].lower() or parser.head is None:
        return None
    found = find_first("base[href]", parser.head)
    return None if found is None else found.attributes.get("href")


class _Selecting:
    """Compiles the selectors of an extraction; `tree` is what its paths are looked for in, if it has any."""

    def __init__(self, extraction: Extraction) -> None:
        self._are_paths = "xpath" in extraction.options
        self._inside = inside_items(extraction)
        self.tree: HtmlTree | None = None

    def __call__(self, field: Field) -> Taken:
        if self._are_paths or _PATH.match(field.selector):
            return self._path(field)
        if field.fields or field.name == "EACH":
            return Taken(parse_each(field.selector))
        return Taken(parse_selector(field.selector))

    def _path(self, field: Field) -> Taken:
        from aioflow.wrappers.readers.html.xpath import HtmlTree
        from aioflow.wrappers.readers.xml.path import check_use, compile_xpath

        if self.tree is None:
            self.tree = HtmlTree()
        path = check_use(compile_xpath(field.selector or ".", {}), field, is_inside=id(field) in self._inside)
        return Taken(_NO_SELECTOR, path, self.tree)


# No CSS begins so, but for a comment.
_PATH = re.compile(r"\s*(?:\.{0,2}/(?!\*)|\(|\.{1,2}\s*$)")
_NO_SELECTOR = Selector("")


def _check_proof(text: str, selector: Selector) -> None:
    """EMPTY is about elements of the page."""
    if selector.taken != TEXT:
        message = "EMPTY looks for an element, without '@'"
        raise SettingError(message, setting="EMPTY", offset=text.rindex("@"))


def _with_document(field: Field) -> Field:
    """A field that selects `@html` is a document, unless it says what else it is."""
    if field.fields:
        return replace(field, fields=tuple(map(_with_document, field.fields)))
    if field.scope not in ("item", "page") or not field.selector.rstrip().lower().endswith(MARKUP):
        return field
    if any(word.name.lower() in WORDS and WORDS[word.name.lower()].is_type for word in field.processing):
        return field
    return replace(field, processing=(Processing("html"), *field.processing))


# --- rows ----------------------------------------------------------------------------------------


class _Finder:
    """Finds by what is bound to each slot."""

    def find(self, slot: Slot[Taken], node: Any) -> Value:
        return slot.selector.take(node)

    def each(self, slot: Slot[Taken], node: Any) -> Iterable[Any]:
        return slot.selector.every(node)


_FINDER = _Finder()
_RowMaker = Callable[["list[LexborNode]", Frame, Page], list[Row]]
_Step = tuple[int, NodeValue, Convert, Slot[Taken]]


def _row_maker(compiled: Compiled[Taken]) -> _RowMaker:
    """A function from items to rows: the shortest way for the fields that there are."""
    layout = compiled.layout
    if len(layout.slots) == 1 and len(layout.item) == 1:
        slot = layout.item[0]
        selector = slot.selector.selector
        if not selector.css and selector.attribute is not None and is_only_url(slot.conversion):
            return _links(selector.attribute, slot)
    return _Rows(layout, in_page=compiled.each is None).make


class _Rows:
    """Makes rows of items. Fields that select the same element share the search for it."""

    def __init__(self, layout: RowLayout[Taken], *, in_page: bool) -> None:
        self._layout = layout
        self._in_page = in_page
        shared: dict[Selector, list[_Step]] = {}
        self._others: list[Slot[Taken]] = []
        for slot in layout.item:
            selector = slot.selector.selector
            is_path = slot.selector.path is not None
            if (
                slot.nested is not None
                or slot.conversion.matches != "first"
                or selector.is_relative
                or is_path
            ):
                self._others.append(slot)
                continue
            step = (slot.place, value_taker(selector, slot.conversion), slot.convert, slot)
            shared.setdefault(replace(selector, taken=TEXT), []).append(step)
        self._searches = [(selector, selector.css, steps) for selector, steps in shared.items()]

    def make(self, items: list[LexborNode], frame: Frame, page: Page) -> list[Row]:
        made: list[Row] = []
        shared, searches, others, in_page = frame.values, self._searches, self._others, self._in_page
        found: LexborNode | None
        for item in items:
            check()
            values = shared.copy()
            own = None if in_page else item.mem_id
            for selector, css, steps in searches:
                found = find_first(css, item) if css else item
                if css and found is not None and found.mem_id == own:  # it is about what is inside
                    found = first(selector, item, in_page=False)
                for place, value_of, convert, slot in steps:
                    value = convert(None if found is None else value_of(found), page)
                    if value is None and slot.required:
                        raise slot.missing(page)
                    values[place] = value
            for slot in others:
                values[slot.place] = self._layout.value(slot, item, frame, page, _FINDER)
            made.append(tuple(values))
            page.rows += 1
        return made


def _links(name: str, slot: Slot[Taken]) -> _RowMaker:
    """Nothing but links: what a crawler reads thousands of a second."""
    attribute = value_taker(slot.selector.selector, slot.conversion)

    def rows(items: list[LexborNode], frame: Frame, page: Page) -> list[Row]:
        links: list[str | None]
        try:
            links = [item.attrs[name] for item in items]
        except KeyError:
            links = [attribute(item) for item in items]
        found = [link for link in links if link and not link.isspace()]
        if len(found) == len(links):
            made: list[Row] = list(zip(page.resolver.resolve_all(found)))
        else:
            resolve = page.resolver.resolve
            made = [(resolve(link) if link and not link.isspace() else None,) for link in links]
        if slot.required and (None,) in made:
            page.rows = made.index((None,))
            raise slot.missing(page)
        return made

    return rows


class HtmlReading(PageFindings):
    """One page: kept until it has ended."""

    def __init__(self, extractor: HtmlExtractor, head: PageHead) -> None:
        self._extractor = extractor
        self._page = Page(head)
        self._chunks: list[bytes] = []
        self._next_page: Value = None

    def feed(self, data: bytes) -> list[Row]:
        self._chunks.append(data)
        return []

    def end(self) -> list[Row]:
        body = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        extractor, page = self._extractor, self._page
        root = extractor.parse(page, body).root
        if root is None:
            page.has_items = False
            return []
        try:
            return self._read(root)
        except BadPageError as error:
            raise unreadable(page.head, error) from None
        finally:
            if extractor.tree is not None:
                extractor.tree.close()

    def _read(self, root: LexborNode) -> list[Row]:
        extractor, page = self._extractor, self._page
        compiled = extractor.compiled
        frame = extractor.plain_frame or compiled.layout.frame(page, root, _FINDER)
        items = [root] if compiled.each is None else compiled.each.every(root)
        if compiled.next_page is not None:
            slot = compiled.next_page
            self._next_page = slot.convert(slot.selector.take(root), page)
        if items:
            rows = extractor.rows(items, frame, page)
        else:
            page.has_items = False
            page.is_proven_empty = any(proof.every(root) for proof in compiled.empty)
            rows = [tuple(frame.values)] if extractor.extraction.outer else []
        is_odd = (compiled.each is None or not items) and not page.is_proven_empty
        if is_odd and extractor.found_nothing(rows):
            extractor.note_nothing(page)
        return rows


class Explanation:
    """The origin of each value in a page."""

    def __init__(self, extractor: HtmlExtractor, head: PageHead, body: bytes) -> None:
        self._compiled = extractor.compiled
        self._page = Page(head)
        self._root = extractor.parse(self._page, body).root

    def run(self) -> Iterator[Found]:
        each, layout = self._compiled.each, self._compiled.layout
        if self._root is None:
            return
        items = [self._root] if each is None else each.every(self._root)
        for row, item in enumerate(items):
            for slot in layout.slots:
                yield from self._of_slot(row, slot, item, "")

    def _of_slot(self, row: int, slot: Slot[Taken], item: LexborNode, path: str) -> Iterator[Found]:
        name = f"{path}{slot.name}"
        if slot.field.scope in ("constant", "response"):
            yield self._given(row, name, slot)
            return
        node = item if slot.field.scope == "item" or self._root is None else self._root
        if slot.nested is not None:
            for inner in slot.selector.every(node):
                for field in slot.nested.slots:
                    yield from self._of_slot(row, field, inner, f"{name}.")
            return
        value = slot.convert(slot.selector.take(node), self._page)
        found = self._nodes(slot, node)
        for each in found:
            yield Found(row, name, self._path(slot, each), excerpt_of(each), value)
        if not found:
            yield Found(row, name, "", "", value)

    def _nodes(self, slot: Slot[Taken], node: LexborNode) -> list[LexborNode]:
        taken = slot.selector
        if taken.path is not None and taken.tree is not None:
            several = taken.tree.owners(taken.path, node)
            matches = slot.conversion.matches
            return several if matches == "all" else several[-1:] if matches == "last" else several[:1]
        if slot.conversion.matches == "first":
            found = first(slot.selector.selector, node, in_page=slot.selector.in_page)
            return [] if found is None else [found]
        several = slot.selector.every(node)
        return several[-1:] if slot.conversion.matches == "last" else several

    def _path(self, slot: Slot[Taken], node: LexborNode) -> str:
        if slot.selector.path is not None:
            return f"{css_path(node)} ({slot.selector.path.text})"
        taken = slot.selector.selector.taken
        if taken == TEXT:
            return css_path(node)
        return f"{css_path(node)} {taken if taken.startswith('@') else f'@{taken}'}"

    def _given(self, row: int, name: str, slot: Slot[Taken]) -> Found:
        if slot.field.scope == "constant":
            return Found(row, name, "constant", "", slot.conversion.default)
        value = slot.convert(response_value(slot.field, self._page.head), self._page)
        return Found(row, name, f"response {slot.field.selector}", "", value)
