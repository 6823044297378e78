"""Queries and stylesheets as settings: their external variables, and their mistakes.

A mistake is found when the plan is checked: SaxonC compiles the program, in a process of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, ClassVar

import msgspec

from aioflow.errors import MissingExtraError, ProcessError, SettingError
from aioflow.processes.frames import Limits
from aioflow.processes.pool import call_once
from aioflow.relation import Schema
from aioflow.xml.errors import BadXmlError
from aioflow.xml.guard import parse_xml
from aioflow.xml.names import attribute_name
from aioflow.xquery.worker import XQueryAnswer, XQueryTask, mistake

# To compile takes a few milliseconds. A query without a document may go on to be evaluated, and is stopped.
_COMPILING = Limits(seconds=20, processor_seconds=2, memory_bytes=1 << 30)


class ExternalVariable(msgspec.Struct, frozen=True):
    """A variable of a program that gets its value from an attribute; its name in both places."""

    name: str
    attribute: str
    is_required: bool


class QueryText(msgspec.Struct, frozen=True):
    """A setting: an XQuery."""

    kind_name: ClassVar[str] = "an XQuery"
    is_stylesheet: ClassVar[bool] = False

    text: str
    variables: tuple[ExternalVariable, ...] = ()

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> QueryText:
        text = _program_text(value, cls.kind_name)
        _refuse_mistakes(text, cls.is_stylesheet)
        return cls(text, _bound(_externals(text), inputs[0]))


class StylesheetText(msgspec.Struct, frozen=True):
    """A setting: an XSLT stylesheet; `method` is the one of its output, if it says so."""

    kind_name: ClassVar[str] = "an XSLT stylesheet"
    is_stylesheet: ClassVar[bool] = True

    text: str
    variables: tuple[ExternalVariable, ...] = ()
    method: str = ""

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> StylesheetText:
        text = _program_text(value, cls.kind_name).strip()
        try:
            root = parse_xml(text)
        except BadXmlError as error:
            raise SettingError(str(error)) from None
        _refuse_mistakes(text, cls.is_stylesheet)
        methods = [each.get("method") for each in root.iterchildren(f"{_XSL}output")]
        method = next((each for each in methods if each), "")
        return cls(text, _bound(_parameters(root), inputs[0]), method)

    @property
    def writes_text(self) -> bool:
        return self.method not in ("", "xml", "html", "xhtml")


def _program_text(value: Any, kind_name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise SettingError(f"must be {kind_name}, not {value!r}")
    if "\0" in value:
        raise SettingError(f"{kind_name} has no character U+0000")
    if find_spec("saxonche") is None:
        raise SettingError(str(MissingExtraError("XQuery", "xquery")))
    return value


def _bound(variables: Iterable[ExternalVariable], schema: Schema | None) -> tuple[ExternalVariable, ...]:
    """Return the variables that have an attribute; raise a SettingError if one that needs it has none."""
    found = []
    for variable in variables:
        if (
            schema is not None
            and variable.attribute not in schema
            and not (schema.open or variable.is_required)
        ):
            continue
        if schema is not None and variable.is_required:
            try:
                schema.position(variable.attribute)
            except SettingError as error:
                raise SettingError(f"${variable.name}: {error.message}") from None
        found.append(variable)
    return tuple(found)


# --- variables ----------------------------------------------------------------------------------

_COMMENT = re.compile(r"\(:(?:[^:(]|:(?!\))|\((?!:))*:\)")
_EXTERNAL = re.compile(
    r"\bdeclare\s+(?:%[^\s]+\s+)*variable\s+\$(?P<name>[^\s:;]+(?::[^\s:;=]+)?)\s+"
    r"(?:as\s[^;]*?\s)?external\b\s*(?P<default>:=)?"
)
_XSL = "{http://www.w3.org/1999/XSL/Transform}"


def _externals(query: str) -> Iterator[ExternalVariable]:
    """Yield the external variables that a query declares; those in a namespace have no attribute."""
    while (shorter := _COMMENT.sub(" ", query)) != query:  # comments may be nested
        query = shorter
    for found in _EXTERNAL.finditer(query):
        if ":" not in found["name"] and "{" not in found["name"]:
            yield ExternalVariable(found["name"], attribute_name(found["name"]), found["default"] is None)


def _parameters(stylesheet: Any) -> Iterator[ExternalVariable]:
    for element in stylesheet.iterchildren(f"{_XSL}param"):
        name = element.get("name", "")
        if ":" not in name and "{" not in name:
            yield ExternalVariable(
                name, attribute_name(name), element.get("required") in ("yes", "true", "1")
            )


# --- mistakes -----------------------------------------------------------------------------------


def _refuse_mistakes(text: str, is_stylesheet: bool) -> None:
    found = _mistake(text, is_stylesheet)
    if found.problem is not None:
        raise SettingError(found.problem, offset=_offset(text, found.line, found.column))


@lru_cache(256)
def _mistake(text: str, is_stylesheet: bool) -> XQueryAnswer:
    try:
        return call_once(
            mistake, XQueryTask(text, is_stylesheet=is_stylesheet), limits=_COMPILING, is_bare=True
        )
    except (ProcessError, MemoryError):
        return XQueryAnswer()  # it was being evaluated, so it was compiled


def _offset(text: str, line: int, column: int) -> int | None:
    """Return the offset of a place; SaxonC counts lines and columns from 1."""
    lines = text.splitlines(keepends=True)
    if not 0 < line <= len(lines):
        return None
    return sum(map(len, lines[: line - 1])) + min(max(column - 1, 0), len(lines[line - 1].rstrip("\r\n")))
