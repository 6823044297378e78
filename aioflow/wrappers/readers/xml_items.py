"""The elements at a simple path of an XML text, while it arrives; what was read is let go of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aioflow.wrappers.loop_time import limit_text
from aioflow.wrappers.readers.xml_guard import SafeParser
from aioflow.wrappers.readers.xml_path import SimpleSteps

# An item of which paths ask for all text is heavy when it is so many times shorter than any other.
_TEXT_WEIGHT = 16


class ItemParser:
    """Feed it, then take the items: each is whole, and gone when the next one is asked for."""

    def __init__(self, steps: SimpleSteps, *, is_text_wanted: bool = False) -> None:
        self._steps = steps
        self._weight = _TEXT_WEIGHT if is_text_wanted else 1
        self._parser = SafeParser(("start", "end"), steps.tags[-1])
        self._open: list[Any] = []  # items that have begun, one inside of the other
        self._has_inner = False
        self._kept = 0  # text since the last item: what it became is let go of with the next one
        self.root: Any = None  # known at the end

    def feed(self, text: str) -> Iterator[Any]:
        self._kept += len(text)
        limit_text(self._kept * self._weight)
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
                # An item inside of another comes after it, as it does in the text.
                if not self._open:
                    yield from self._with_inner(element)
                    _let_go(element)
                    self._kept = 0

    def _with_inner(self, element: Any) -> Iterator[Any]:
        if not self._has_inner:
            yield element
            return
        self._has_inner = False
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
