"""The marks of values in XML: `xsi:type`, `xsi:nil` and those of our own, as `writing` sets them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from aioflow.errors import SettingError
from aioflow.relation import LIST, Document, Relation, Schema, Value
from aioflow.values.text import LONGEST_NUMBER, read_date
from aioflow.xml.documents import element_text
from aioflow.xml.guard import etree
from aioflow.xml.names import attribute_name
from aioflow.xml.paths import split_tag
from aioflow.xml.writing import OWN, SCHEMA, SCHEMA_INSTANCE, unescaped

_TYPE = f"{{{SCHEMA_INSTANCE}}}type"
_NIL = f"{{{SCHEMA_INSTANCE}}}nil"
_ESCAPED = f"{{{OWN}}}escaped"
_ATTRIBUTES = f"{{{OWN}}}attributes"


_USUAL = {"xs": SCHEMA, "aioflow": OWN}


def marked_value(element: Any) -> Value:
    """Return the value of an element: a text, unless it is marked.

    Raises a SettingError for a text that is not of its type.
    """
    if not element.keys():
        return text_of(element)
    mark = element.get(_TYPE)
    if mark is None:
        if element.get(_NIL) in ("true", "1"):
            return None
        return _text(element)
    prefix, _, name = mark.rpartition(":")
    # A query that leaves unused namespaces out takes the one of the mark for unused.
    namespace = element.nsmap.get(prefix or None) or _USUAL.get(prefix)
    if element.get(_NIL) in ("true", "1"):
        return None
    if namespace == OWN and name in _OWN_TYPES:
        return _OWN_TYPES[name](element)
    text = _text(element)
    return typed_value(name, text) if namespace == SCHEMA else text


def typed_value(type_name: str, text: str) -> Value:
    """Return the value that a text has in a type of XML Schema; one of a type that we lack is the text.

    Raises a SettingError for a text that is not of its type.
    """
    read = _TYPES.get(type_name)
    if read is None:
        return text
    try:
        value = read(text.strip())
    except (ValueError, ArithmeticError):
        value = None
    if value is None:
        raise SettingError(f"{text[:60]!r} is no xs:{type_name}")
    return value


def text_of(element: Any) -> str:
    """Return the text in an element."""
    text: str = _string(element) if len(element) else element.text or ""
    return text


# Comments have no part in it, but the texts after them do.
_string = etree.XPath("string()", smart_strings=False)


def _text(element: Any) -> str:
    text = text_of(element)
    return unescaped(text) if element.get(_ESCAPED) == "true" else text


# --- types of XML Schema ------------------------------------------------------------------------


def _integer(text: str) -> int | None:
    return int(text) if len(text) <= LONGEST_NUMBER and text.isascii() and "_" not in text else None


def _decimal(text: str) -> Decimal | None:
    return Decimal(text) if len(text) <= LONGEST_NUMBER and text.isascii() and "_" not in text else None


def _double(text: str) -> float | None:
    if text in _SPECIAL:
        return _SPECIAL[text]
    value = float(text)
    return value if math.isfinite(value) and "_" not in text else None


_SPECIAL = {"NaN": math.nan, "INF": math.inf, "+INF": math.inf, "-INF": -math.inf}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_INTEGERS = (
    *("integer", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger"),
    *("nonPositiveInteger", "negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort"),
    "unsignedByte",
)
_ZONE = re.compile(r"(?:Z|[+-]\d\d:\d\d)$")  # a day of ours has no time zone
_FURTHER_DIGITS = re.compile(r"(\.\d{6})\d+")  # of a second
_TYPES: dict[str, Callable[[str], Value]] = {
    **dict.fromkeys(_INTEGERS, _integer),
    "decimal": _decimal,
    "double": _double,
    "float": _double,
    "boolean": _BOOLEANS.get,
    "date": lambda text: read_date(_ZONE.sub("", text)),
    "dateTime": lambda text: read_date(_FURTHER_DIGITS.sub(r"\1", text)),
}


# --- types of our own ---------------------------------------------------------------------------


def _relation(element: Any) -> Relation:
    rows = [
        {_name(cell): marked_value(cell) for cell in row.iterchildren("*")}
        for row in element.iterchildren("*")
    ]
    told = map(attribute_name, element.get(_ATTRIBUTES, "").split())
    names = tuple(dict.fromkeys((*told, *(name for row in rows for name in row))))
    return Relation(Schema(names), [tuple([row.get(name) for name in names]) for row in rows])


def _name(element: Any) -> str:
    return attribute_name(split_tag(element.tag)[1])


def _list(element: Any) -> Relation:
    return Relation(LIST, [(marked_value(value),) for value in element.iterchildren("*")], is_list=True)


def _xml(element: Any) -> Document:
    root = next(element.iterchildren("*"), None)
    return Document(_text(element) if root is None else element_text(root), "xml")


_OWN_TYPES: dict[str, Callable[[Any], Value]] = {
    "relation": _relation,
    "list": _list,
    "xml": _xml,
    "html": lambda element: Document(_text(element), "html"),
    "json": lambda element: Document(_text(element), "json"),
}
