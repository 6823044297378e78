"""Items of a document, one after the other, while its text comes in pieces: memory does not grow with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from aioflow.xml.guard import SafeParser


class SimpleSteps(msgspec.Struct, frozen=True):
    """`/rss/channel/item`, `item` or `//item`: tags in lxml's notation, from the top or at any depth."""

    tags: tuple[str, ...]
    is_anywhere: bool


class ItemParser:
    """Feed it, then take the items: each is whole, and gone when the next one is asked for.

    An item inside of another comes after it, as it does in the text, or not at all with `only_outermost`.
    `when_kept` is told how much text is kept because the item in it is not complete.
    """

    def __init__(
        self,
        steps: SimpleSteps,
        *,
        only_outermost: bool = False,
        keeps_comments: bool = False,
        when_kept: Callable[[int], None] | None = None,
    ) -> None:
        self._steps = steps
        self._only_outermost = only_outermost
        self._when_kept = when_kept
        self._parser = SafeParser(("start", "end"), steps.tags[-1], keeps_comments=keeps_comments)
        self._open: list[Any] = []  # items that have begun, one inside of the other
        self._has_inner = False
        self._kept = 0  # text since the last item: what it became is let go of with the next one
        self.root: Any = None  # known at the end

    def feed(self, text: str) -> Iterator[Any]:
        self._kept += len(text)
        if self._when_kept is not None:
            self._when_kept(self._kept)
        self._parser.feed(text)
        return self._items()

    def end(self) -> Iterator[Any]:
        """The rest; a BadXmlError when the text is not whole."""
        self.root = self._parser.close()
        return self._items()

    def _items(self) -> Iterator[Any]:
        for event, element in self._parser.events():
            if event == "start":
                if self._is_item(element):
                    self._has_inner = bool(self._open)
                    self._open.append(element)
            elif self._open and self._open[-1] is element:
                self._open.pop()
                if not self._open:
                    yield from self._with_inner(element)
                    _let_go(element)
                    self._kept = 0

    def _with_inner(self, element: Any) -> Iterator[Any]:
        if not self._has_inner or self._only_outermost:
            yield element
            return
        yield from filter(self._is_item, element.iter(self._steps.tags[-1]))

    def _is_item(self, element: Any) -> bool:
        node = element
        for tag in reversed(self._steps.tags):
            if node is None or not _is_called(node.tag, tag):
                return False
            node = node.getparent()
        return self._steps.is_anywhere or node is None


def _is_called(name: str, tag: str) -> bool:
    if not tag.startswith("{*}"):
        return name == tag
    return tag == "{*}*" or name.rpartition("}")[2] == tag[3:]


def _let_go(element: Any) -> None:
    """Empty an element, and drop all that was read before it. The parser still needs the element itself."""
    element.clear(keep_tail=True)
    while (parent := element.getparent()) is not None:
        while (before := element.getprevious()) is not None:
            parent.remove(before)
        element = parent
