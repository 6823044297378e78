"""Tuples from XML: one for each iterating element, with the elements and attributes below it that paths name.

Values that `writing` marked have their types again; other elements are texts. An element that is missing is
null. Where elements are repeated, there is a tuple for each combination; elements that share the beginning of
their paths stay together. A document is read piece by piece, and what was read is released.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, product
from typing import Any

from aioflow.errors import SettingError
from aioflow.relation import Batch, Document, Row, Type, Value, type_of_value
from aioflow.values.cells import cell, read_text
from aioflow.xml.documents import element_text
from aioflow.xml.items import ItemParser
from aioflow.xml.marks import marked_value
from aioflow.xml.paths import AttributePath, ElementName, ItemPath, split_tag

_PIECE_CHARACTERS = 1 << 16
_BATCH_ROWS = 1024
_REMEMBERED_TAGS = 10_000  # a document may have another one at every element
_STRUCTURED = frozenset({Type.DOCUMENT, Type.RELATION})


class DocumentReader:
    """Reads documents: `item` leads to the iterating elements, `paths` from these to values."""

    def __init__(self, item: ItemPath, paths: Sequence[AttributePath]) -> None:
        self.item = item
        self.root = _node(paths, range(len(paths)), 0)
        places = list(self.root.places())
        self.order = [places.index(place) for place in range(len(paths))]

    def batches(self, text: str, misfits: Counter[str] | None = None) -> Iterator[Batch]:
        """Yield the tuples of a document, the number of the element first, in lists of bounded length.

        Between two lists not much of the text is read: some are empty. A text that is not of its type is
        null, and counted in `misfits` by what it is not. Raises a BadXmlError.
        """
        rows = _Reading(self, text, Counter() if misfits is None else misfits).rows()
        while True:
            batch: Batch = []
            for row in islice(rows, _BATCH_ROWS):
                if row is None:
                    break
                batch.append(row)
            else:
                if len(batch) < _BATCH_ROWS:
                    yield batch
                    return
            yield batch


class _Node:
    """An element that paths lead to or through.

    Its columns are its own value if that is asked for, then its attributes, then the columns of its children.
    """

    def __init__(self) -> None:
        self.own: list[tuple[int, Type | None]] = []
        self.attributes: list[tuple[int, ElementName, Type | None]] = []
        self.children: list[tuple[ElementName, _Node]] = []

    def places(self) -> Iterator[int]:
        """Yield the places of the columns among all paths."""
        yield from (place for place, _ in self.own)
        yield from (place for place, _, _ in self.attributes)
        yield from chain.from_iterable(child.places() for _, child in self.children)

    @property
    def is_leaf(self) -> bool:
        """True for an element that only its value is asked of."""
        return not self.attributes and not self.children and len(self.own) == 1


def _node(paths: Sequence[AttributePath], places: Iterable[int], depth: int) -> _Node:
    node = _Node()
    inner: dict[ElementName, list[int]] = {}
    for place in places:
        path = paths[place]
        if len(path.elements) > depth:
            inner.setdefault(path.elements[depth], []).append(place)
        elif path.attribute is not None:
            node.attributes.append((place, path.attribute, path.kind))
        else:
            node.own.append((place, path.kind))
    node.children = [(name, _node(paths, places, depth + 1)) for name, places in inner.items()]
    return node


class _Reading:
    """The reading of one document."""

    def __init__(self, reader: DocumentReader, text: str, misfits: Counter[str]) -> None:
        self._item = reader.item
        self._root = reader.root
        self._order = reader.order
        self._text = text
        self._misfits = misfits
        self._index = 0
        self._tag = self._home = ""  # of iterating elements
        # The children of each node that a tag names, if any.
        self._known: dict[tuple[_Node, str], list[int]] = {}
        root = reader.root
        is_flat = not root.own and not root.attributes and all(child.is_leaf for _, child in root.children)
        self._kinds = [child.own[0][1] for _, child in root.children] if is_flat else []
        self._flat: dict[str, int | None] = {}  # the only column that a tag is for
        self._is_in_order = self._order == list(range(len(self._order)))

    def rows(self) -> Iterator[Row | None]:
        """Yield the tuples, and None after each piece of the text."""
        items = ItemParser(self._item.steps, only_outermost=self._item.is_outermost, keeps_comments=True)
        for start in range(0, len(self._text), _PIECE_CHARACTERS):
            for element in items.feed(self._text[start : start + _PIECE_CHARACTERS]):
                yield from self._rows_of(element)
            yield None
        for element in items.end():
            yield from self._rows_of(element)

    def _rows_of(self, element: Any) -> Iterable[Row]:
        if not self._item.leads_to(element):
            return ()
        self._index += 1
        if element.tag != self._tag:
            self._tag = element.tag
            self._home, _ = split_tag(self._tag)
            self._flat.clear()
            self._known.clear()
        if self._kinds:
            row = self._flat_row(element)
            if row is not None:
                return (row,)
        return self._ordered(self._columns(self._root, element))

    def _flat_row(self, element: Any) -> Row | None:
        """Return the only tuple of an element whose children have the values; None if there are more."""
        values: list[Value] = [None] * len(self._kinds)
        flat, kinds, filled = self._flat, self._kinds, 0
        for child in element:
            try:
                place = flat[child.tag]
            except KeyError:
                place = self._flat_place(child)
            if place is None:
                continue
            if place < 0 or filled & (1 << place):
                return None
            filled |= 1 << place
            kind = kinds[place]
            if child.keys() or len(child) or kind in _STRUCTURED:
                values[place] = self._value(child, kind)
            elif kind is None:
                values[place] = child.text or ""
            else:
                values[place] = self._read(child.text or "", kind)
        if self._is_in_order:
            return (self._index, *values)
        return (self._index, *[values[place] for place in self._order])

    def _flat_place(self, child: Any) -> int | None:
        """Return the column that a child is for; None if it is for none, -1 if it is for several."""
        if len(self._flat) > _REMEMBERED_TAGS:
            self._flat.clear()
        places = self._children(self._root, child)
        place = None if not places else places[0] if len(places) == 1 else -1
        self._flat[child.tag] = place
        return place

    def _children(self, node: _Node, child: Any) -> list[int]:
        if len(self._known) > _REMEMBERED_TAGS:
            self._known.clear()
        known = self._known.get((node, child.tag))
        if known is None and not isinstance(child.tag, str):  # a comment, or a processing instruction
            known = self._known[node, child.tag] = []
        if known is None:
            known = self._known[node, child.tag] = [
                number for number, (name, _) in enumerate(node.children) if name.is_name_of(child, self._home)
            ]
        return known

    def _ordered(self, columns: Iterable[tuple[Value, ...]]) -> Iterator[Row]:
        index, order = self._index, self._order
        for values in columns:
            yield (index, *[values[place] for place in order])

    def _columns(self, node: _Node, element: Any) -> Iterable[tuple[Value, ...]]:
        """Return the values of a node's columns: one list for each combination of repeated elements."""
        own: list[Value] = [self._value(element, kind) for _, kind in node.own]
        for _, name, kind in node.attributes:
            own.append(self._as_kind(name.value_in(element), kind))
        if not node.children:
            return (tuple(own),)
        found: list[list[Any]] = [[] for _ in node.children]
        for child in element:
            for number in self._children(node, child):
                found[number].append(child)
        parts = [
            self._part(child, elements) for (_, child), elements in zip(node.children, found, strict=True)
        ]
        if len(parts) == 1:  # without a product these need not be held
            return ((*own, *part) for part in parts[0])
        return ((*own, *chain.from_iterable(combined)) for combined in product(*parts))

    def _part(self, node: _Node, elements: Sequence[Any]) -> Iterable[tuple[Value, ...]]:
        if not elements:
            return ((None,) * len(list(node.places())),)
        return chain.from_iterable(self._columns(node, element) for element in elements)

    # --- values ---------------------------------------------------------------------------------

    def _value(self, element: Any, kind: Type | None) -> Value:
        if kind is Type.DOCUMENT:
            value = marked_value(element) if element.keys() else None
            if value is None or isinstance(value, Document):
                return value or Document(element_text(element), "xml")
        try:
            value = marked_value(element)
        except SettingError:
            return self._misfit("its xsi:type")
        return self._as_kind(value, kind)

    def _as_kind(self, value: Value, kind: Type | None) -> Value:
        if kind is None or value is None or type_of_value(value) is kind:
            return value
        return self._read(cell(value), kind)

    def _read(self, text: str, kind: Type) -> Value:
        try:
            return read_text(text, kind)
        except SettingError:
            return self._misfit(f"a {kind}")

    def _misfit(self, kind: str) -> None:
        self._misfits[f"values that are not {kind}"] += 1
