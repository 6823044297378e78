"""The other process: SaxonC evaluates queries and stylesheets in it, sealed from everything else.

The first call loads SaxonC and then seals the process: neither a query nor SaxonC can open a file or
connect from then on. SaxonC refuses all protocols as well, so that a query hears why.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from functools import cache, lru_cache
from secrets import token_hex
from typing import Any, NamedTuple, TypeVar

from aioflow.processes.sealing import seal
from aioflow.xml.errors import BadXmlError
from aioflow.xml.guard import DEPTH_LIMIT, parse_xml, plain_xml

T = TypeVar("T")

_COMPILED_AT_MOST = 64
# Documents that several queries read one after the other are parsed once.
_DOCUMENTS_AT_MOST = 4


class XmlText(NamedTuple):
    """A document, as the value of a variable."""

    text: str


class XQueryTask(NamedTuple):
    """A query or a stylesheet, the document it is about, and values of its variables."""

    program: str
    document: str | None = None
    variables: tuple[tuple[str, Any], ...] = ()
    is_stylesheet: bool = False
    root: str | None = None  # the element that is put around the results
    is_value: bool = False  # the result is one value, not a document
    most_bytes: int = 1 << 30


class XQueryAnswer(NamedTuple):
    """The result as text, with the type that XML Schema has for it if it `is_value`; or a problem.

    Without result, there is no text.
    """

    text: str | None = None
    type_name: str | None = None
    problem: str | None = None
    line: int = 0
    column: int = 0


class _RefusedError(Exception):
    """The query or its result cannot be used."""


def answer(task: XQueryTask) -> XQueryAnswer:
    """Evaluate a query or a stylesheet."""
    return _answered(_transformed if task.is_stylesheet else _evaluated, task)


def mistake(task: XQueryTask) -> XQueryAnswer:
    """Return the mistake that makes a program none at all, as a problem with its place; else no problem.

    SaxonC compiles a query only to evaluate it. Without a document and values, most end with an error at
    once, which is not a mistake.
    """
    found = _answered(_compiled_stylesheet_of if task.is_stylesheet else _evaluated, task)
    is_mistake = task.is_stylesheet or found.type_name == _STATIC or _PROHIBITED in (found.problem or "")
    return found if is_mistake else XQueryAnswer()


def _answered(act: Callable[[XQueryTask], XQueryAnswer], task: XQueryTask) -> XQueryAnswer:
    saxon = _saxon()
    try:
        return act(task)
    except (_RefusedError, BadXmlError) as error:
        return XQueryAnswer(problem=str(error))
    except saxon.error as error:
        return _problem(str(error))


# --- SaxonC -------------------------------------------------------------------------------------


class _Saxon:
    """SaxonC in this process, which is sealed from then on."""

    def __init__(self) -> None:
        import saxonche

        os.environ.clear()  # SaxonC takes a copy of it
        self.error = saxonche.PySaxonApiError
        self.processor = saxonche.PySaxonProcessor(license=False)
        for name, value in _PROPERTIES.items():
            self.processor.set_configuration_property(f"http://saxon.sf.net/feature/{name}", value)
        self.builder = self.processor.new_document_builder()
        # What is loaded at the first use is loaded now.
        self.builder.parse_xml(xml_text="<a/>")
        query = self.processor.new_xquery_processor()
        query.set_query_content(
            "parse-xml('<a/>'), format-dateTime(current-dateTime(), '[Y]'), matches('a', 'a')"
        )
        query.run_query_to_string()
        seal()


# Java's parser refuses ordinary documents: those with 200 attributes at an element, or many `&amp;`. These
# limits are for entities, which need a document type, and it refuses those as we do: also in `parse-xml`.
_PROPERTIES = {
    "allowedProtocols": "",
    "allow-external-functions": "false",
    "parserFeature?uri=http://apache.org/xml/features/disallow-doctype-decl": "true",
    "parserProperty?uri=http://javax.xml.XMLConstants/property/accessExternalDTD": "",
    "parserProperty?uri=jdk.xml.maxElementDepth": str(DEPTH_LIMIT),
    "parserProperty?uri=jdk.xml.elementAttributeLimit": "0",
    "parserProperty?uri=jdk.xml.maxXMLNameLimit": "0",
    "parserProperty?uri=jdk.xml.maxGeneralEntitySizeLimit": "0",
    "parserProperty?uri=jdk.xml.totalEntitySizeLimit": "0",
}


@cache
def _saxon() -> Any:
    return _Saxon()


@lru_cache(_DOCUMENTS_AT_MOST)
def _parsed(text: str, variable: str | None = None) -> Any:
    """Return a document, which is another one for each variable, even if it has the same text."""
    try:
        return _saxon().builder.parse_xml(xml_text=plain_xml(text).removeprefix("\ufeff"))
    except UnicodeEncodeError:
        raise BadXmlError("it has half a surrogate pair, which is no character") from None
    except _saxon().error as error:
        parse_xml(text)  # it says where
        found = _problem(str(error))
        raise BadXmlError(str(found.problem)) from None


def _value(value: Any, variable: str | None = None) -> Any:
    """Return a value as SaxonC has it."""
    processor = _saxon().processor
    if value is None:
        return processor.empty_sequence()
    if isinstance(value, XmlText):
        return _parsed(value.text, variable)
    # SaxonC would end a text at U+0000, and write other characters that no XML can have.
    if isinstance(value, str) and (found := _FORBIDDEN.search(value)):
        raise _RefusedError(f"a variable has the character U+{ord(found[0]):04X}, which XML forbids")
    make = next(make for kind, make in _MAKERS if isinstance(value, kind))
    return make(processor, value)


_MAKERS: tuple[tuple[type, Callable[[Any, Any], Any]], ...] = (
    (str, lambda processor, value: processor.make_string_value(value)),
    (bool, lambda processor, value: processor.make_boolean_value(value)),
    (int, lambda processor, value: processor.make_atomic_value("integer", str(value))),
    (float, lambda processor, value: processor.make_double_value(value)),
    (Decimal, lambda processor, value: _decimal(processor, value)),
    (datetime, lambda processor, value: processor.make_atomic_value("dateTime", value.isoformat())),
    (date, lambda processor, value: processor.make_atomic_value("date", value.isoformat())),
)


_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def _decimal(processor: Any, value: Decimal) -> Any:
    if value.is_finite():
        return processor.make_atomic_value("decimal", f"{value:f}")
    return processor.make_double_value(float(value))


# --- queries ------------------------------------------------------------------------------------

# Texts with it would be torn apart, so it is different each time.
_SEPARATOR = f"\ue000{token_hex(8)}\ue000"
_OUTPUT = {"method": "xml", "indent": "no", "omit-xml-declaration": "yes", "encoding": "UTF-8"}
# Words of queries that may make a document with several root elements.
_MANY_ROOTS = re.compile(r"document|fragment|transform|snapshot")
# Words of queries from which SaxonC 13.1 loses items, unless it serialises the result itself.
_LOSES_ITEMS = re.compile(r"\bwindow\b|\ballowing\b")


@lru_cache(_COMPILED_AT_MOST)
def _query(text: str) -> Any:
    query = _saxon().processor.new_xquery_processor()
    query.set_query_base_uri("urn:aioflow:query")
    query.set_query_content(text)
    for name, value in _OUTPUT.items():
        query.set_property(f"!{name}", value)
    return query


def _evaluated(task: XQueryTask) -> XQueryAnswer:
    query = _query(task.program)
    query.clear_parameters()
    for name, value in task.variables:
        query.set_parameter(name, _value(value, name))
    if task.document is not None:
        query.set_context(xdm_item=_parsed(task.document))
    if task.is_value:
        return _as_text(query) if _LOSES_ITEMS.search(task.program) else _as_value(query.run_query_to_value())
    try:
        return _as_document(query, task)
    except _saxon().error as error:
        if not any(code in str(error) for code in _NEEDS_VALUES):
            raise
        return _from_values(query.run_query_to_value(), task)


def _as_document(query: Any, task: XQueryTask) -> XQueryAnswer:
    if task.root is not None:
        return _limited(_around(task.root, _serialised(query)), task)
    text = _serialised(query, _SEPARATOR)
    if _is_element(text) and not (_MANY_ROOTS.search(task.program) and _has_many_roots(text)):
        return _limited(text, task)
    if text.startswith("<!DOCTYPE"):
        raise _RefusedError("its options ask for a document type, which no document here has")
    if not text and query.run_query_to_value() is None:
        return XQueryAnswer()
    return _limited(_around("result", _serialised(query)), task)


def _serialised(query: Any, separator: str | None = None) -> str:
    if separator is None:
        query.set_property("!item-separator", "#absent")
    else:
        query.set_property("!item-separator", separator)
    return query.run_query_to_string() or ""


# SaxonC serialises a result while it is computed. Two errors come of that: an attribute cannot stand alone,
# though it can belong to a root element, and `try` cannot take back what was written before an error.
_NEEDS_VALUES = ("SENR0001", "XTDE3530")


def _from_values(items: Any, task: XQueryTask) -> XQueryAnswer:
    """Return a result that is computed first and then serialised, which takes more memory."""
    if items is None and task.root is None:
        return XQueryAnswer()
    is_node = items is not None and items.size == 1 and items.item_at(0).is_node
    is_root = is_node and items.item_at(0).node_kind_str in ("element", "document")
    construct = _query(_CONSTRUCT)
    construct.clear_parameters()
    construct.set_parameter("root", _value(None if is_root and task.root is None else task.root or "result"))
    construct.set_parameter("items", _value(None) if items is None else items)
    try:
        return _limited(_serialised(construct), task)
    except _saxon().error as error:  # its place is not one of the query
        raise _RefusedError(_problem(str(error)).problem) from None


_CONSTRUCT = """declare variable $root external; declare variable $items external;
if (empty($root)) then $items else element {$root} {$items}"""


def _is_element(text: str) -> bool:
    """Return whether the only result is an element or a document."""
    return text.startswith("<") and not text.startswith(("<!", "<?")) and _SEPARATOR not in text


def _has_many_roots(text: str) -> bool:
    try:
        parse_xml(text)
    except BadXmlError:
        return True
    return False


def _around(root: str, text: str) -> str:
    return f"<{root}>{text}</{root}>" if text else f"<{root}/>"


def _limited(text: str, task: XQueryTask) -> XQueryAnswer:
    if len(text) * 4 > task.most_bytes and (size := len(text.encode())) > task.most_bytes:
        raise _RefusedError(
            f"its result of {size:,} bytes is larger than {task.most_bytes:,} (xquery.result_bytes)"
        )
    return XQueryAnswer(text)


def _as_text(query: Any) -> XQueryAnswer:
    """Return the result as a text without a type."""
    query.set_property("!method", "text")
    try:
        items = _serialised(query, _SEPARATOR).split(_SEPARATOR)
    finally:
        query.set_property("!method", "xml")
    if len(items) != 1:
        raise _many_items(len(items))
    return XQueryAnswer(items[0], "untypedAtomic") if items[0] else XQueryAnswer()


def _many_items(number: int) -> _RefusedError:
    return _RefusedError(f"it gives {number:,} items, and a value is one; join them, or leave out the type")


def _as_value(found: Any) -> XQueryAnswer:
    if found is None:
        return XQueryAnswer()
    if found.size != 1:
        raise _RefusedError(
            f"it gives {found.size:,} items, and a value is one; join them, or leave out the type"
        )
    item = found.item_at(0)
    if item.is_atomic:
        return XQueryAnswer(item.string_value, item.primitive_type_name.rpartition("}")[2])
    if item.is_node:
        return XQueryAnswer(item.string_value, "untypedAtomic")
    raise _RefusedError("it gives a map, an array or a function, which is no value; take one out of it")


# --- stylesheets --------------------------------------------------------------------------------


@lru_cache(_COMPILED_AT_MOST)
def _stylesheet(text: str) -> Any:
    compiler = _saxon().processor.new_xslt30_processor()
    return compiler.compile_stylesheet(stylesheet_text=plain_xml(text))


def _compiled_stylesheet_of(task: XQueryTask) -> XQueryAnswer:
    _stylesheet(task.program)
    return XQueryAnswer()


def _transformed(task: XQueryTask) -> XQueryAnswer:
    stylesheet = _stylesheet(task.program)
    stylesheet.clear_parameters()
    for name, value in task.variables:
        stylesheet.set_parameter(name, _value(value, name))
    stylesheet.set_property("!omit-xml-declaration", "yes")
    text = stylesheet.transform_to_string(xdm_node=_parsed(task.document or ""))
    if not text:
        return XQueryAnswer()
    if not task.is_value and not text.lstrip().startswith("<"):
        raise _RefusedError('it writes a text: say so with <xsl:output method="text"/>')
    return _limited(text, task)


# --- messages -----------------------------------------------------------------------------------

_STATIC = "static"
_PROHIBITED = "has been prohibited"  # such as modules to import, which are found when a query is compiled
# An error begins with its kind and place; warnings may stand before it. A place in the first line of a query
# is told by its offset alone.
_MESSAGE = re.compile(
    r"(?:^|\n)\s*(?P<static>Static )?(?:Type )?error\b(?P<place>[^\n]*)\n"
    r"\s*(?:(?P<code>[A-Za-z_][\w.:-]*)\s\s+)?(?P<reason>.*?)(?=\n\s*(?:Static |Type )?error\b|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_PLACE = re.compile(r"on line (?P<line>\d+)(?: at)? column (?P<column>\d+)|\} at char (?P<offset>\d+) of ")
_TRACE = re.compile(r"\n(?:java|javax|net\.sf|org)\.[\w.]+(?:Exception|Error).*", re.DOTALL)


def _problem(message: str) -> XQueryAnswer:
    """Return a message of SaxonC in one line; its place is `line` and `column`."""
    found = _MESSAGE.search(_TRACE.sub("", message))
    if found is None:
        return XQueryAnswer(problem=" ".join(message.split()))
    place = _PLACE.search(found["place"])
    line = int(place["line"] or 1) if place else 0
    column = int(place["column"] or int(place["offset"]) + 1) if place else 0
    reason = " ".join(found["reason"].split())
    code = f" ({found['code']})" if found["code"] else ""
    return XQueryAnswer(
        problem=f"{reason}{code}",
        type_name=_STATIC if found["static"] else None,
        line=line,
        column=column,
    )
