"""Files that go with a message: all tuples of a relation as CSV, JSON or XML.

The caller says how values are written, since plans write files in the same way.
"""

from __future__ import annotations

import base64
import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from html import escape
from typing import Any, Literal, TypeAlias

import msgspec

from aioflow.errors import AioflowError
from aioflow.files import neutral
from aioflow.relation import Batch, Relation, Row, Schema, Value
from aioflow.values.quantities import byte_text

FileKind: TypeAlias = Literal["csv", "json", "xml"]

_BYTE_ORDER_MARK = "\ufeff"


class TooLargeError(AioflowError):
    """The attachments are larger than messages may be."""


class ValueEncoding(msgspec.Struct, frozen=True):
    """The forms of values: as the text of a cell, and as JSON."""

    cell: Callable[[Value], str]
    json: Callable[[Value], str]


class File(msgspec.Struct, frozen=True):
    """A file of one kind, made of a relation."""

    kind: FileKind
    name: str
    data: bytes

    def as_json(self) -> dict[str, Any]:
        """As the content of a message has it."""
        return {
            "name": self.name,
            "type": _TYPES[self.kind],
            "base64": base64.b64encode(self.data).decode("ascii"),
        }


def make_file(
    kind: FileKind,
    stem: str,
    schema: Schema,
    batches: Iterable[Batch],
    encoding: ValueEncoding,
    most_bytes: int,
    used_bytes: int = 0,
) -> File:
    """A relation as a file; a TooLargeError when with those used already it takes more than so many bytes."""
    data = bytearray()
    name = f"{stem}.{kind}"
    for text in _WRITERS[kind](schema, batches, encoding):
        data += text.encode(errors="replace")
        if used_bytes + len(data) > most_bytes:
            raise TooLargeError(
                f"with the attachment {name} the message is larger than {byte_text(most_bytes)}: attach "
                "fewer tuples, or allow more with most_bytes in the table [email.…] of the configuration"
            )
    return File(kind, name, bytes(data))


# --- CSV ----------------------------------------------------------------------------------------


def _csv(schema: Schema, batches: Iterable[Batch], encoding: ValueEncoding) -> Iterator[str]:
    # By the mark spreadsheets know that it is UTF-8.
    yield _BYTE_ORDER_MARK + _csv_lines([[neutral(name) for name in schema.names]])
    for batch in batches:
        yield _csv_lines([[_csv_cell(value, encoding) for value in row] for row in batch])


def _csv_cell(value: Value, encoding: ValueEncoding) -> str:
    return neutral(encoding.cell(value).replace("\x00", "\ufffd"))


def _csv_lines(rows: list[list[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(
        text,
        lineterminator="\r\n",
        quoting=csv.QUOTE_ALL if _has_returns(rows) else csv.QUOTE_MINIMAL,
    )
    writer.writerows(rows)
    return text.getvalue()


def _has_returns(rows: list[list[str]]) -> bool:
    # The csv module reads a carriage return as the end of a line, and yet writes it without quotes.
    return any("\r" in cell for row in rows for cell in row)


# --- JSON ---------------------------------------------------------------------------------------


def _json(schema: Schema, batches: Iterable[Batch], encoding: ValueEncoding) -> Iterator[str]:
    names = [encoding.json(name) for name in schema.names]
    between = "[\n"
    for batch in batches:
        for row in batch:
            fields = ", ".join(
                f"{name}: {encoding.json(value)}" for name, value in zip(names, row, strict=True)
            )
            yield f"{between}{{{fields}}}"
            between = ",\n"
    yield "[]\n" if between == "[\n" else "\n]\n"


# --- XML ----------------------------------------------------------------------------------------


def _xml(schema: Schema, batches: Iterable[Batch], encoding: ValueEncoding) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<relation>\n'
    for batch in batches:
        for row in batch:
            yield f"  {_xml_row(schema, row, encoding)}\n"
    yield "</relation>\n"


def _xml_row(schema: Schema, row: Row, encoding: ValueEncoding) -> str:
    fields = (
        _xml_field(name, value, encoding)
        for name, value in zip(schema.names, row, strict=True)
        if value is not None
    )
    return f"<row>{''.join(fields)}</row>"


def _xml_field(name: str, value: Value, encoding: ValueEncoding) -> str:
    if isinstance(value, Relation) and value.is_list:
        text = "".join(_xml_field("value", each, encoding) for (each,) in value.rows)
    elif isinstance(value, Relation):
        text = "".join(_xml_row(value.schema, row, encoding) for row in value.rows)
    else:
        text = _xml_text(encoding.cell(value))
    if _xml_name().fullmatch(name):
        return f"<{name}>{text}</{name}>"
    return f'<attribute name="{_xml_text(name)}">{text}</attribute>'


def _xml_text(text: str) -> str:
    # Readers of XML take a carriage return for a line feed, unless it is written so.
    return escape(_no_xml().sub("\ufffd", text)).replace("\r", "&#13;")


# The two patterns are made when a file needs them: their large ranges take milliseconds.
@cache
def _xml_name() -> re.Pattern[str]:
    # Those of which all editions of XML say that they are names, so that every reader takes them.
    letters = "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u0131\u4e00-\u9fa5\uac00-\ud7a3"
    return re.compile(rf"(?![xX][mM][lL])[{letters}][{letters}0-9.-]*")


@cache
def _no_xml() -> re.Pattern[str]:
    return re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


_TYPES: dict[FileKind, str] = {"csv": "text/csv", "json": "application/json", "xml": "application/xml"}
_WRITERS: dict[FileKind, Callable[[Schema, Iterable[Batch], ValueEncoding], Iterator[str]]] = {
    "csv": _csv,
    "json": _json,
    "xml": _xml,
}
