"""How rows look on their way out: in a file format of the library, or a table for people."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Protocol

from aioflow.errors import InputError, suggestion
from aioflow.operators.encoding import json_names, json_object
from aioflow.operators.formats import Format, Writer, formats
from aioflow.relation import Record

TABLE = "table"
JSON_LINES = "jsonl"


class Presentation(Protocol):
    """Makes bytes of rows. It may hold some rows back, to see what is coming, until `release`."""

    def rows(self, output: str, records: Sequence[Record]) -> bytes: ...

    def release(self) -> bytes: ...

    def end(self) -> bytes: ...


class InFormat:
    """The rows of one output in a file format."""

    def __init__(self, format: Format, beginning: bytes) -> None:
        self._format = format
        self._beginning = beginning
        self._buffer = io.BytesIO()
        self._writer: Writer | None = None

    def rows(self, output: str, records: Sequence[Record]) -> bytes:
        if self._writer is None:
            self._writer = self._format.write(self._buffer, records[0].schema, self._beginning)
        self._writer.write([record.row for record in records])
        return self._taken()

    def release(self) -> bytes:
        return b""

    def end(self) -> bytes:
        if self._writer is not None:
            self._writer.end()
        return self._taken()

    def _taken(self) -> bytes:
        data = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return data


class NamedJsonLines:
    """Rows of several outputs: `{"output": name, "row": {…}}` a line."""

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}

    def rows(self, output: str, records: Sequence[Record]) -> bytes:
        names = self._names.setdefault(output, json_names([output, *records[0].schema.names]))
        start = f'{{"output": {names[0]}, "row": '
        lines = [f"{start}{json_object(names[1:], record.row)}}}\n" for record in records]
        return "".join(lines).encode(errors="backslashreplace")

    def release(self) -> bytes:
        return b""

    def end(self) -> bytes:
        return b""


def format_names() -> list[str]:
    return [TABLE, *formats.names()]


def format_for(path: str) -> str:
    """The format of a file by its ending; JSON lines when that tells nothing."""
    for name in formats.names():
        known = formats.get(name)
        if known is not None and path.lower().endswith(known.suffixes):
            return name
    return JSON_LINES


def present(
    name: str, *, several_outputs: bool, beginning: bytes = b"", width: int | None = None
) -> Presentation:
    """`beginning` is that of a file to go on with, `width` that of the terminal, if output goes to one."""
    if name.lower() == TABLE:
        from aioflow.cli.table import Table

        return Table(several_outputs=several_outputs, width=width)
    format = formats.get(name)
    if format is None:
        known = format_names()
        near = suggestion(name, known)
        raise InputError(f"--format {name}: there is no such format{near} (formats: {', '.join(known)})")
    if several_outputs and format.name == JSON_LINES:
        return NamedJsonLines()
    if several_outputs:
        raise InputError(f"{format.name} holds one output, the plan has several: choose one with --output")
    if beginning and not format.appends:
        raise InputError(f"{format.name} cannot be appended to: use -O to overwrite")
    return InFormat(format, beginning)
