"""How rows look on their way out: in a file format of the library, or a table for people."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Protocol

from aioflow.display import visible_json
from aioflow.errors import InputError, SettingError, suggestion
from aioflow.files import Formulas
from aioflow.operators.encoding import json_names, json_object
from aioflow.operators.formats import Format, Writer, formats
from aioflow.relation import UNTOLD, Record, Schema

TABLE = "table"
JSON_LINES = "jsonl"


class Presentation(Protocol):
    """Makes bytes of rows. It may hold some rows back, to see what is coming, until `release`."""

    def rows(self, output: str, records: Sequence[Record]) -> bytes: ...

    def release(self) -> bytes: ...

    def end(self, schema: Schema | None = None) -> bytes:
        """What is left; the schema is that of the only output, if it is known."""
        ...


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

    def end(self, schema: Schema | None = None) -> bytes:
        is_known = schema is not None and bool(schema.names)
        if self._writer is None and not self._beginning and (is_known or self._format.has_frame):
            self._writer = self._format.write(self._buffer, schema or UNTOLD, b"")
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

    def __init__(self, *, on_terminal: bool) -> None:
        self._names: dict[str, list[str]] = {}
        self._on_terminal = on_terminal

    def rows(self, output: str, records: Sequence[Record]) -> bytes:
        names = self._names.setdefault(output, json_names([output, *records[0].schema.names]))
        start = f'{{"output": {names[0]}, "row": '
        lines = [f"{start}{json_object(names[1:], record.row)}}}\n" for record in records]
        text = "".join(lines)
        return (visible_json(text) if self._on_terminal else text).encode(errors="backslashreplace")

    def release(self) -> bytes:
        return b""

    def end(self, schema: Schema | None = None) -> bytes:
        return b""


def format_names() -> list[str]:
    return [TABLE, *formats.names()]


def format_for(path: str) -> str:
    """The format of a file by its ending, as `write` has it; JSON lines for a name without one."""
    try:
        return formats.for_path(path).name
    except SettingError as error:
        raise InputError(error.message.replace("FORMAT", "--format")) from None


def appends(name: str) -> bool:
    """Whether a format can go on with a file that has rows already."""
    format = formats.get(name)
    return format is None or format.appends


def present(
    name: str,
    *,
    several_outputs: bool,
    beginning: bytes = b"",
    width: int | None = None,
    formulas: Formulas = "neutral",
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
        return NamedJsonLines(on_terminal=width is not None)
    if several_outputs:
        raise InputError(
            f"{format.name} holds one output, the plan has several: choose one with --output, or take jsonl"
        )
    if beginning and not format.appends:
        raise InputError(
            f"a file in the format {format.name} cannot be appended to: -O replaces it; jsonl and csv can be"
        )
    format = format.keeping(formulas)
    return InFormat(format if width is None else format.for_terminal(), beginning)
