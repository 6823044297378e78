"""Where in an HTML page each value came from, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aioflow.wrappers.page import Page
from aioflow.wrappers.readers.compiled import Slot, response_value
from aioflow.wrappers.readers.css import TEXT
from aioflow.wrappers.readers.html_nodes import css_path, excerpt_of, first
from aioflow.wrappers.reading import Found, PageHead

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

    from aioflow.wrappers.readers.html import HtmlExtractor, Taken


class Explanation:
    """Where in a page each value came from."""

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
