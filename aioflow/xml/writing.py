"""Relations as XML: an element for each tuple, with an element for each of its attributes.

Types and nulls are marked as XML Schema has it, with `xsi:type` and `xsi:nil`; a value without a mark is
a text. Types that XML Schema lacks have names of our own: `aioflow:relation` and `aioflow:list` have tuples
and values as elements, `aioflow:xml` has the root element of a document, `aioflow:html` and `aioflow:json` a
text. Texts with characters that XML forbids carry `aioflow:escaped="true"` and write them as JSON does.
`reading` turns all of it back into values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from itertools import repeat
from math import isnan

from aioflow.errors import SettingError
from aioflow.relation import Batch, Document, Relation, Schema, Value
from aioflow.values.text import plain_decimal
from aioflow.xml.documents import nested_markup
from aioflow.xml.errors import BadXmlError
from aioflow.xml.names import element_name, is_element_name

ROOT = "relation"
ROW = "row"
VALUE = "value"  # of a list
SCHEMA_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
SCHEMA = "http://www.w3.org/2001/XMLSchema"
OWN = "urn:aioflow:xml"

_SCHEMA_MARKS = f' xmlns:xsi="{SCHEMA_INSTANCE}" xmlns:xs="{SCHEMA}"'
_OWN_MARKS = f' xmlns:aioflow="{OWN}"'
_PIECE_ROWS = 1024
# Separates the texts of a column while they are escaped together; no escaped text contains it.
_SEPARATOR = "\x00"
_SPECIAL = re.compile("[&<>\r]")


def relation_text(relation: Relation, root: str = ROOT, row: str = ROW) -> str:
    """Return a relation as the text of an XML document."""
    writer = RelationWriter(relation.schema, root, row)
    rows = iter(relation.rows)
    while piece := [row for row, _ in zip(rows, range(_PIECE_ROWS), strict=False)]:
        writer.add(piece)
    return writer.text()


class RelationWriter:
    """Writes the tuples of a relation, batch by batch."""

    def __init__(
        self, schema: Schema, root: str = ROOT, row: str = ROW, *, omits_nulls: bool = False
    ) -> None:
        for name in (root, row):
            if not is_element_name(name):
                raise SettingError(f"{name!r} is no name of an XML element")
        self._root = root
        self._between = f"</{row}>\n<{row}>"
        self._begin, self._end = f"<{row}>", f"</{row}>\n"
        self._columns = [_Column(element_name(name), omits_nulls) for name in schema.names]
        self._parts: list[str] = []
        self.characters = 0

    def add(self, rows: Batch) -> None:
        """Write some tuples."""
        if not rows:
            return
        if self._columns:
            columns = [
                column.write(values)
                for column, values in zip(self._columns, zip(*rows, strict=True), strict=True)
            ]
            lines: Iterable[str] = map("".join, zip(*columns, strict=True))
        else:
            lines = repeat("", len(rows))
        text = f"{self._begin}{self._between.join(lines)}{self._end}"
        self._parts.append(text)
        self.characters += len(text)

    def text(self) -> str:
        """Return the document."""
        marks = _SCHEMA_MARKS if any(column.has_marks for column in self._columns) else ""
        if any(column.has_own_marks for column in self._columns):
            marks = f"{marks}{_OWN_MARKS}"
        begin = f"<{self._root}{marks}>"
        return "".join((begin, "\n" if self._parts else "", *self._parts, f"</{self._root}>"))


class _Column:
    """The elements of one attribute."""

    def __init__(self, name: str, omits_nulls: bool = False) -> None:
        self._name = name
        self._omits_nulls = omits_nulls
        self._begin, self._end = f"<{name}>", f"</{name}>"
        self._null = "" if omits_nulls else f'<{name} xsi:nil="true"/>'
        self.has_marks = False
        self.has_own_marks = False

    def write(self, values: Sequence[Value]) -> list[str]:
        kinds = set(map(type, values))
        if kinds == {str}:
            return self._texts(values)
        self.has_marks = True
        if len(kinds) == 1 and (plain := _PLAIN.get(kinds.pop())) is not None:
            mark, write = plain
            begin, end = f'<{self._name} xsi:type="{mark}">', self._end
            return [f"{begin}{write(value)}{end}" for value in values]
        return list(map(self._element, values))

    def _texts(self, texts: Sequence[str]) -> list[str]:
        """Write texts, all at once when there is little to escape in them."""
        begin, end = self._begin, self._end
        joined = _SEPARATOR.join(texts)
        if joined.count(_SEPARATOR) == len(texts) - 1 and not _forbidden().search(joined):
            if _SPECIAL.search(joined):
                texts = _escaped(joined).split(_SEPARATOR)
            return [f"{begin}{text}{end}" for text in texts]
        return list(map(self._element, texts))

    def _element(self, value: Value) -> str:
        """Return the element of one value of any type."""
        if value is None:
            return self._null
        if isinstance(value, str):
            if not _has_forbidden(value):
                return f"{self._begin}{_escaped(value)}{self._end}"
            self.has_own_marks = True
            return f'<{self._name} aioflow:escaped="true">{_escaped(_as_json_does(value))}{self._end}'
        if (plain := _PLAIN.get(type(value))) is not None:
            mark, write = plain
            return f'<{self._name} xsi:type="{mark}">{write(value)}{self._end}'
        if isinstance(value, Relation | Document):
            self.has_own_marks = True
            return self._relation(value) if isinstance(value, Relation) else self._document(value)
        mark, write = next(_PLAIN[kind] for kind in _BASES if isinstance(value, kind))
        return f'<{self._name} xsi:type="{mark}">{write(value)}{self._end}'

    def _relation(self, relation: Relation) -> str:
        if relation.is_list:
            values = _Column(VALUE)
            content = "".join([values._element(value) for (value,) in relation.rows])
            return f'<{self._name} xsi:type="aioflow:list">{content}{self._end}'
        names = [element_name(name) for name in relation.schema.names]
        # Without tuples, or without nulls, nothing else would tell the attributes.
        is_telling = len(relation) and not self._omits_nulls
        attributes = "" if is_telling else f' aioflow:attributes="{" ".join(names)}"'
        content = "".join(_rows(names, relation, self._omits_nulls))
        return f'<{self._name} xsi:type="aioflow:relation"{attributes}>{content}{self._end}'

    def _document(self, document: Document) -> str:
        mark = f'xsi:type="aioflow:{document.kind}"'
        if document.kind == "xml":
            try:
                return f"<{self._name} {mark}>{nested_markup(document.text)}{self._end}"
            except BadXmlError:
                pass  # it is no XML after all, so it is written as a text
        if _has_forbidden(document.text):
            text = _escaped(_as_json_does(document.text))
            return f'<{self._name} {mark} aioflow:escaped="true">{text}{self._end}'
        return f"<{self._name} {mark}>{_escaped(document.text)}{self._end}"


def _rows(names: Sequence[str], relation: Relation, omits_nulls: bool) -> Iterator[str]:
    columns = [_Column(name, omits_nulls) for name in names]
    for row in relation.rows:
        cells = [column._element(value) for column, value in zip(columns, row, strict=True)]
        yield f"<{ROW}>{''.join(cells)}</{ROW}>"


# --- values -------------------------------------------------------------------------------------


def _float(value: float) -> str:
    if isnan(value):
        return "NaN"
    return float.__repr__(value) if value not in _INFINITE else _INFINITE[value]


_INFINITE = {float("inf"): "INF", float("-inf"): "-INF"}


def _decimal(value: Decimal) -> str:
    return plain_decimal(value) if value.is_finite() else _float(float("nan" if value.is_nan() else value))


_PLAIN: dict[type, tuple[str, Callable[[Value], str]]] = {
    bool: ("xs:boolean", lambda value: "true" if value else "false"),
    int: ("xs:integer", int.__repr__),
    float: ("xs:double", _float),
    Decimal: ("xs:decimal", _decimal),
    datetime: ("xs:dateTime", datetime.isoformat),
    date: ("xs:date", date.isoformat),
}
# Values of other classes are of one that is derived from these.
_BASES: tuple[type, ...] = (bool, int, float, Decimal, datetime, date)


# --- texts --------------------------------------------------------------------------------------


@cache
def _forbidden() -> re.Pattern[str]:
    """Return a pattern for what no XML can have; U+0000 separates the texts of a column."""
    return re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def _has_forbidden(text: str) -> bool:
    return _SEPARATOR in text or _forbidden().search(text) is not None


def _escaped(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # Readers of XML take a carriage return for a line feed, unless it is written so.
    return text.replace("\r", "&#13;")


def _as_json_does(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace(_SEPARATOR, "\\u0000")
    return _forbidden().sub(lambda found: f"\\u{ord(found[0]):04x}", escaped)


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)


def unescaped(text: str) -> str:
    """Return a text that carries `aioflow:escaped` as it was."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], text)
