"""The text reader: items and fields by regular expressions in linear time (RE2).

EACH is searched in the whole text. With `lines` or `paragraphs` an item is a line, or a block between blank
lines, in which EACH is found; such items leave while the rest of the page arrives. `^` and `$` are ends of
lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Literal, TypeAlias

from aioflow.errors import SettingError, suggestion
from aioflow.relation import Row, Type, Value
from aioflow.values.counters import UncomputableError
from aioflow.values.patterns import Pattern, compiled
from aioflow.web.errors import ExtractionError
from aioflow.web.urls import without_userinfo
from aioflow.wrappers.charsets import TextDecoder, check_charset
from aioflow.wrappers.definition import Extraction, Field
from aioflow.wrappers.loop_fairness import check, limit_text, weigh
from aioflow.wrappers.page import Page, PageFindings
from aioflow.wrappers.readers.base import (
    CompiledExtractor,
    Frame,
    RowLayout,
    Slot,
    Traits,
    check_options,
    compile_extraction,
    is_flag,
    response_value,
)
from aioflow.wrappers.readers.reader import Found, PageHead

_EXCERPT = 200


class Block:
    """A piece of text, where it begins, and the match that it was found by."""

    __slots__ = ("match", "start", "text")

    def __init__(self, text: str, start: int, match: Any = None) -> None:
        self.text = text
        self.start = start
        self.match = match

    def place_of(self, pattern: Pattern | None, group: int) -> tuple[int, int] | None:
        """Where in the whole text a group of a pattern is found, or of the match of the block itself."""
        if pattern is None:
            if self.match is None:
                return self.start, self.start + len(self.text)
            # A block is its own match, or a line in which one was found.
            before = self.match.start() if self.match.group() == self.text else 0
            start, end = self.match.span(group)
            return None if start < 0 else (self.start + start - before, self.start + end - before)
        try:
            found = pattern.search(self.text)
        except UncomputableError:
            return None
        if found is None or found.start(group) < 0:
            return None
        start, end = found.span(group)
        return self.start + start, self.start + end


class _Split:
    """The lines of a text that comes in pieces, blank ones too, and where each begins."""

    def __init__(self) -> None:
        self._parts: list[str] = []  # of the line that has not ended
        self._size = 0
        self._start = 0

    def feed(self, text: str) -> Iterator[tuple[str, int]]:
        """The lines that have ended."""
        if "\n" not in text:
            if text:
                self._parts.append(text)
                self._size += len(text)
                limit_text(self._size)
            return
        lines = "".join([*self._parts, text]).split("\n")
        self._parts = [lines.pop()]
        self._size = len(self._parts[0])
        for line in lines:
            yield line.removesuffix("\r"), self._start
            self._start += len(line) + 1

    def end(self) -> Iterator[tuple[str, int]]:
        """The last line."""
        yield "".join(self._parts).removesuffix("\r"), self._start


class Lines:
    """The lines of a text that are not blank."""

    def __init__(self) -> None:
        self._split = _Split()

    def feed(self, text: str) -> Iterator[Block]:
        """The lines that have ended."""
        return _not_blank(self._split.feed(text))

    def end(self) -> Iterator[Block]:
        """The last line."""
        return _not_blank(self._split.end())


def _not_blank(lines: Iterator[tuple[str, int]]) -> Iterator[Block]:
    return (Block(line, start) for line, start in lines if line and not line.isspace())


class Paragraphs:
    """Lines that no blank line parts, together."""

    def __init__(self) -> None:
        self._split = _Split()
        self._open: list[str] = []
        self._size = 0
        self._start = 0

    def feed(self, text: str) -> Iterator[Block]:
        """The paragraphs that have ended."""
        for line, start in self._split.feed(text):
            yield from self._add(line, start)

    def end(self) -> Iterator[Block]:
        """The last paragraph."""
        for line, start in self._split.end():
            yield from self._add(line, start)
        yield from self._close()

    def _add(self, line: str, start: int) -> Iterator[Block]:
        if not line or line.isspace():
            yield from self._close()
            return
        if not self._open:
            self._start = start
        self._open.append(line)
        self._size += len(line)
        limit_text(self._size)

    def _close(self) -> Iterator[Block]:
        if self._open:
            lines, self._open, self._size = self._open, [], 0
            yield Block("\n".join(lines), self._start)


def lines_text(text: str, start: int, end: int) -> str:
    """`line 3`, or `lines 3-5`, for a place in a text."""
    first = text.count("\n", 0, start) + 1
    last = first + text.count("\n", start, end)
    return f"line {first}" if first == last else f"lines {first}-{last}"


def excerpt(text: str) -> str:
    """The beginning of an item."""
    text = " ".join(text.split())
    return text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 1]}…"


Mode: TypeAlias = Literal["whole", "lines", "paragraphs"]
_OPTIONS = {"lines": ("lines", is_flag), "paragraphs": ("paragraphs", is_flag)}


class TextReader:
    """Reads text."""

    name: ClassVar[str] = "text"
    content_types: ClassVar[tuple[str, ...]] = ("text/plain",)
    default_type: ClassVar[Type | None] = Type.CHAR

    def compile(self, extraction: Extraction) -> TextExtractor:
        return TextExtractor(extraction)


class TextSelector:
    """A pattern to search in an item, or a group of the pattern that the item was found by, or all of it."""

    __slots__ = ("group", "pattern")

    def __init__(self, pattern: Pattern | None) -> None:
        self.pattern = pattern
        self.group: int = min(pattern.regexp.groups, 1) if pattern is not None else 0

    def values(self, block: Block) -> Iterator[str | None]:
        """Every match in an item."""
        if self.pattern is None:
            yield block.text if block.match is None else block.match.group(self.group)
            return
        weigh(self.pattern.steps(block.text))
        for found in self.pattern.regexp.finditer(self.pattern.checked(block.text)):
            check()
            yield found.group(self.group)

    def first(self, block: Block) -> str | None:
        if self.pattern is None:
            return next(self.values(block))
        weigh(self.pattern.steps(block.text))
        found = self.pattern.search(block.text)
        value: str | None = None if found is None else found.group(self.group)
        return value

    def is_in(self, block: Block) -> bool:
        """Return whether there is a match; a text that is too long for the pattern has none."""
        if self.pattern is None:
            return False
        weigh(self.pattern.steps(block.text))
        try:
            return self.pattern.found(block.text)
        except UncomputableError:
            return False


def _select(field: Field) -> TextSelector:
    if not field.selector:
        return TextSelector(None)
    try:
        compiled(field.selector)
    except SettingError as error:
        raise SettingError(error.message, offset=_offset(field.selector, error.message)) from None
    return TextSelector(compiled(f"(?m){field.selector}"))


def _offset(pattern: str, message: str) -> int | None:
    """Where the part of a pattern stands that RE2 quotes at the end of its message."""
    place = pattern.rfind(message.rpartition(": ")[2])
    return place if place >= 0 else None


class TextExtractor(CompiledExtractor[TextSelector]):
    """Patterns, compiled."""

    def __init__(self, extraction: Extraction) -> None:
        check_options("text", extraction.options, _OPTIONS)
        if len(extraction.options) > 1:
            raise SettingError("a text is read by lines or by paragraphs, not by both", setting="READ")
        if extraction.charset is not None:
            check_charset(extraction.charset)
        super().__init__(extraction, compile_extraction(extraction, _select, Traits(collapse=True)))
        self.mode: Mode = "whole"
        if extraction.options:
            self.mode = "lines" if "lines" in extraction.options else "paragraphs"
        layout, following = self.compiled.layout, self.compiled.next_page
        needs_whole = layout.needs_page or following is not None or bool(extraction.empty)
        self.is_incremental = self.mode != "whole" and not needs_whole
        each = self.compiled.each
        _bind(layout, each.pattern if each else None, "", is_part=self.mode != "whole")
        if following is not None and following.selector.pattern is None:
            raise SettingError("the next page needs a pattern", setting=following.name)

    def open(self, page: PageHead) -> TextReading:
        return TextReading(self, page)

    def explain(self, page: PageHead, body: bytes) -> Iterator[Found]:
        return _Explanation(self, page).run(body)

    def blocks(self) -> Lines | Paragraphs:
        return Paragraphs() if self.mode == "paragraphs" else Lines()


def _bind(layout: RowLayout[TextSelector], each: Pattern | None, path: str, *, is_part: bool) -> None:
    """Give each field without a pattern its group: the one of its name in the pattern of its item."""
    for slot in layout.slots:
        if slot.nested is not None:
            _bind(slot.nested, slot.selector.pattern, f"{path}{slot.name}.", is_part=False)
        elif slot.selector is not None and slot.selector.pattern is None:
            _bind_group(slot, each, path, is_part)


def _bind_group(slot: Slot[TextSelector], each: Pattern | None, path: str, is_part: bool) -> None:
    groups = each.regexp.groupindex if each is not None and slot.field.scope == "item" else {}
    names = list(groups)
    if slot.name in groups:
        slot.selector.group = groups[slot.name]
    elif each is not None or not is_part or slot.field.scope != "item":
        hint = suggestion(slot.name, names) or (f" (its groups: {', '.join(names)})" if names else "")
        where = "EACH has no group of its name" if each is not None else "there is no EACH with a group"
        message = f"field {slot.name!r} needs a pattern, as {where}{hint}"
        raise SettingError(message, setting=f"{path}{slot.name}")


# --- finding -------------------------------------------------------------------------------------


class _Finder:
    """Finds in blocks of text; what is too long for a pattern is noted as unreadable."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def find(self, slot: Slot[TextSelector], node: Any) -> Value:
        try:
            if slot.conversion.matches == "first":
                return slot.selector.first(node)
            found = [value for value in slot.selector.values(node) if value is not None]
        except UncomputableError:
            self._page.note_unreadable(slot.name)
            return None
        return found if slot.conversion.matches == "all" else found[-1] if found else None

    def each(self, slot: Slot[TextSelector], node: Any) -> Iterable[Block]:
        pattern = slot.selector.pattern
        assert pattern is not None
        return self.matches(pattern, node, slot.name)

    def matches(self, pattern: Pattern, block: Block, name: str) -> Iterator[Block]:
        """The matches of a pattern, each an item."""
        weigh(pattern.steps(block.text))
        try:
            text = pattern.checked(block.text)
        except UncomputableError:
            raise self._too_long(name, len(block.text)) from None
        for found in pattern.regexp.finditer(text):
            check()
            yield Block(found.group(), block.start + found.start(), found)

    def kept(self, pattern: Pattern | None, blocks: Iterable[Block]) -> Iterator[Block]:
        """The blocks in which EACH is found."""
        for block in blocks:
            if pattern is None:
                yield block
                continue
            weigh(pattern.steps(block.text))
            try:
                found = pattern.search(block.text)
            except UncomputableError:
                self._page.note_unreadable("EACH")
                self._page.cuts.append(f"{len(block.text):,} characters are too many for the pattern of EACH")
                continue
            if found is not None:
                yield Block(block.text, block.start, found)

    def _too_long(self, name: str, length: int) -> ExtractionError:
        url = without_userinfo(self._page.head.url)
        return ExtractionError(
            f"{url}: the text has {length:,} characters, too many for the pattern of {name}; "
            "read it by lines or paragraphs"
        )


class TextReading(PageFindings):
    """One text on its way in."""

    def __init__(self, extractor: TextExtractor, head: PageHead) -> None:
        self._extractor = extractor
        self._page = Page(head)
        self._finder = _Finder(self._page)
        self._decoder = TextDecoder(head.content_type, extractor.extraction.charset, markup=False)
        self._blocks = extractor.blocks()
        self._held: list[str] = []
        self._frame: Frame | None = None
        self._next_page: Value = None
        self._made = 0

    @property
    def notes(self) -> list[str]:
        """Return notes about the page, for people."""
        charset = self._decoder.charset
        return [charset.note] if charset is not None and charset.note else []

    def feed(self, data: bytes) -> list[Row]:
        text = self._decoder.feed(data)
        if self._extractor.is_incremental:
            return self._rows(self._blocks.feed(text))
        self._held.append(text)
        return []

    def end(self) -> list[Row]:
        rest = self._decoder.end()
        if self._extractor.is_incremental:
            rows = self._rows([*self._blocks.feed(rest), *self._blocks.end()])
            self._page.has_items = bool(self._made)
            return rows or self._outer()
        whole = Block("".join([*self._held, rest]), 0)
        self._held.clear()
        compiled = self._extractor.compiled
        self._frame = compiled.layout.frame(self._page, whole, self._finder)
        if compiled.next_page is not None:
            slot = compiled.next_page
            self._next_page = slot.convert(self._finder.find(slot, whole), self._page)
        rows = self._made_of(items_of(self._extractor, whole, self._finder))
        if not rows:
            self._page.has_items = False
            self._page.is_proven_empty = any(proof.is_in(whole) for proof in compiled.empty)
        return rows or self._outer()

    def _rows(self, blocks: Iterable[Block]) -> list[Row]:
        each = self._extractor.compiled.each
        return self._made_of(self._finder.kept(each.pattern if each else None, blocks))

    def _made_of(self, items: Iterable[Block]) -> list[Row]:
        layout = self._extractor.compiled.layout
        frame = self._framed()
        rows = [layout.row(item, frame, self._page, self._finder) for item in items]
        self._made += len(rows)
        return rows

    def _framed(self) -> Frame:
        if self._frame is None:
            self._frame = self._extractor.compiled.layout.frame(self._page, Block("", 0), self._finder)
        return self._frame

    def _outer(self) -> list[Row]:
        """The tuple of a page without items, if it is to have one."""
        if self._made or not self._extractor.extraction.outer:
            return []
        return [tuple(self._framed().values)]


def items_of(extractor: TextExtractor, whole: Block, finder: _Finder) -> Iterator[Block]:
    """The items of a text that is there as a whole."""
    each = extractor.compiled.each
    pattern = each.pattern if each else None
    if extractor.mode == "whole":
        if pattern is None:
            yield whole
        else:
            yield from finder.matches(pattern, whole, "EACH")
        return
    blocks = extractor.blocks()
    yield from finder.kept(pattern, [*blocks.feed(whole.text), *blocks.end()])


# --- for people ----------------------------------------------------------------------------------


class _Explanation:
    """In which line of a text each value was found."""

    def __init__(self, extractor: TextExtractor, head: PageHead) -> None:
        self._extractor = extractor
        self._page = Page(head)
        self._finder = _Finder(self._page)
        self._whole = Block("", 0)

    def run(self, body: bytes) -> Iterator[Found]:
        head, charset = self._page.head, self._extractor.extraction.charset
        decoder = TextDecoder(head.content_type, charset, markup=False)
        self._whole = Block(decoder.feed(body) + decoder.end(), 0)
        layout = self._extractor.compiled.layout
        for row, item in enumerate(items_of(self._extractor, self._whole, self._finder)):
            for slot in layout.slots:
                yield from self._of_slot(row, slot, item, "")

    def _of_slot(self, row: int, slot: Slot[TextSelector], item: Block, path: str) -> Iterator[Found]:
        name, scope = f"{path}{slot.name}", slot.field.scope
        if scope == "constant":
            yield Found(row, name, "constant", "", slot.conversion.default)
        elif scope == "response":
            value = slot.convert(response_value(slot.field, self._page.head), self._page)
            yield Found(row, name, f"response {slot.field.selector}", "", value)
        elif slot.nested is not None:
            for inner in self._finder.each(slot, item if scope == "item" else self._whole):
                for field in slot.nested.slots:
                    yield from self._of_slot(row, field, inner, f"{name}.")
        else:
            yield self._found(row, name, slot, item if scope == "item" else self._whole)

    def _found(self, row: int, name: str, slot: Slot[TextSelector], block: Block) -> Found:
        value = slot.convert(self._finder.find(slot, block), self._page)
        place = block.place_of(slot.selector.pattern, slot.selector.group)
        if place is None:
            return Found(row, name, "", excerpt(block.text), value)
        start, end = place
        return Found(row, name, lines_text(self._whole.text, start, end), excerpt(block.text), value)
