"""XPath in HTML pages: the tree of Lexbor as a tree of lxml, with the way back from each element.

XPath therefore sees the page as CSS does, by the rules of HTML 5, and a wrapper can use both. This module is
imported when a wrapper has a path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from aioflow.wrappers.loop_fairness import checked, weigh_texts
from aioflow.wrappers.processing import Conversion
from aioflow.wrappers.readers.html.css import TEXT, Selector
from aioflow.wrappers.readers.html.nodes import Take, value_taker
from aioflow.wrappers.readers.incremental import BadPageError
from aioflow.wrappers.readers.xml.path import XmlPath, is_steep
from aioflow.wrappers.readers.xml.reader import shown_value
from aioflow.xml.guard import etree

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

# What XML can name and carry; HTML can have more.
_NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_NAMELESS = "unnamed"


class HtmlTree:
    """The page that is being read, as lxml has it."""

    def __init__(self) -> None:
        self._root: LexborNode | None = None
        self._elements: dict[int, Any] = {}
        self._nodes: dict[Any, LexborNode] = {}
        self._nested_text = 0

    def open(self, root: LexborNode) -> None:
        """Begin with a page; its tree is made when the first path is looked for."""
        self._root = root

    def close(self) -> None:
        self._root = None
        self._elements.clear()
        self._nodes.clear()
        self._nested_text = 0

    def _build(self, root: LexborNode) -> None:
        elements, nodes = self._elements, self._nodes
        depths: dict[int, int] = {}
        for node in checked(root.traverse(include_text=True)):
            tag = node.tag or ""
            above = node.parent
            parent = None if above is None else elements.get(above.mem_id)
            if tag[:1] == "-":
                if tag == "-text" and parent is not None and above is not None:
                    text = _clean(node.text_content or "")
                    _add_text(parent, text)
                    # Whoever asks each element for all its text meets this one so often.
                    self._nested_text += len(text) * depths[above.mem_id]
                continue
            name, attributes = _name(tag), _attributes(node)
            made = etree.Element(name, attributes) if parent is None else None
            element = etree.SubElement(parent, name, attributes) if made is None else made
            elements[node.mem_id] = element
            nodes[element] = node
            depths[node.mem_id] = 1 if above is None else 1 + depths.get(above.mem_id, 0)

    def is_steep(self, paths: Iterable[XmlPath], body: bytes) -> bool:
        """Return whether one of the paths may take too long in a page for the event loop."""
        nodes = body.count(b"<") + body.count(b"=")
        return any(is_steep(nodes, path.degree) for path in paths)

    def find(self, path: XmlPath, node: LexborNode) -> Any:
        """Return the result of a path from a node: elements and texts, or a value."""
        if self._root is not None:
            root, self._root = self._root, None
            self._build(root)
        weigh_texts(path.texts * self._nested_text)
        try:
            return path.find(self._elements[node.mem_id])
        except etree.XPathError as error:
            raise BadPageError(f"a value cannot be found: {error}") from None

    def every(self, path: XmlPath, node: LexborNode) -> list[LexborNode]:
        """The nodes that a path leads to."""
        found = self.find(path, node)
        if not all(map(etree.iselement, found)):
            raise BadPageError(f"{path.text!r} leads to attributes or texts and not to elements")
        return [self._nodes[element] for element in found]

    def owners(self, path: XmlPath, node: LexborNode) -> list[LexborNode]:
        """The nodes that a path leads to, or that have the attributes and texts that it leads to."""
        self.find(path, node)
        found: Any = path.trace(self._elements[node.mem_id])
        if not isinstance(found, list):
            return [node]
        # Texts of lxml know the element that they are of.
        return [self._nodes[each if etree.iselement(each) else each.getparent()] for each in found]

    def taker(self, path: XmlPath, conversion: Conversion) -> Take:
        """A function from a node to what the conversion wants."""
        value_of = value_taker(Selector("", TEXT), conversion)

        def text(found: Any) -> str | None:
            return found if isinstance(found, str) else value_of(self._nodes[found])

        def take(node: LexborNode) -> str | list[str] | None:
            found = self.find(path, node)
            if not isinstance(found, list):
                return shown_value(found) if conversion.matches != "all" else _given([shown_value(found)])
            if conversion.matches == "all":
                return _given(map(text, checked(found)))
            return text(found[-1 if conversion.matches == "last" else 0]) if found else None

        return take


def _given(texts: Iterable[str | None]) -> list[str]:
    return [text for text in texts if text is not None]


def _name(tag: str) -> str:
    """The name of an element, without what only XML's namespaces could say."""
    local = tag.rpartition(":")[2]
    return local if _NAME.fullmatch(local) else _NAMELESS


def _attributes(node: LexborNode) -> dict[str, str]:
    """The attributes that a path can name."""
    given = node.attributes
    return (
        {name: _clean(text or "") for name, text in given.items() if _NAME.fullmatch(name)} if given else {}
    )


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("", text)


def _add_text(parent: Any, text: str) -> None:
    last = parent[-1] if len(parent) else None
    if last is None:
        parent.text = (parent.text or "") + text
    else:
        last.tail = (last.tail or "") + text
