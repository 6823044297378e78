"""The form of rows on their way out: a file format of the library, or a table for people.

A table is written while rows stream. The first rows decide the widths of its columns.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from decimal import Decimal
from typing import Protocol

from aioflow.errors import InputError, SettingError, suggestion
from aioflow.files import Formulas
from aioflow.operators.formats import Format, Writer, formats
from aioflow.relation import UNTOLD, Record, Row, Schema, Value
from aioflow.values.cells import cell, json_names, json_object
from aioflow.values.display import visible, visible_json

TABLE = "table"
JSON_LINES = "jsonl"


class Presentation(Protocol):
    """Makes bytes of rows. It may hold some rows back, to see what is coming, until `release`."""

    def rows(self, output: str, records: Sequence[Record]) -> bytes: ...

    def release(self) -> bytes: ...

    def end(self, schema: Schema | None = None) -> bytes:
        """Return the last bytes; the schema is that of the only output, if it is known."""
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
    """Return the format of a file by its ending, as `write` has it; JSON lines for a name without one."""
    try:
        return formats.for_path(path).name
    except SettingError as error:
        raise InputError(error.message.replace("FORMAT", "--format")) from None


def appends(name: str) -> bool:
    """Return whether a format can go on with a file that has rows already."""
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
        from aioflow.cli.output.formats import Table

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


# So many rows are looked at before the first is shown, unless the next is long in coming.
SAMPLE_ROWS = 20
LEAST_WIDTH = 6
GAP = "  "

_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


class Table:
    """A table for each output; with several, a heading tells where one output's rows follow another's."""

    def __init__(self, *, several_outputs: bool, width: int | None) -> None:
        self._several = several_outputs
        self._width = width
        self._columns: dict[str, Columns] = {}
        self._held: dict[str, list[Row]] = {}
        self._names: dict[str, Sequence[str]] = {}
        self._latest: str | None = None

    def rows(self, output: str, records: Sequence[Record]) -> bytes:
        rows = [record.row for record in records]
        if output in self._columns:
            text = self._heading(output) + "".join(map(self._columns[output].line, rows))
            return _encoded(text)
        self._names[output] = records[0].schema.names
        held = self._held.setdefault(output, [])
        held += rows
        return _encoded(self._settle(output)) if len(held) >= SAMPLE_ROWS else b""

    def release(self) -> bytes:
        return _encoded("".join([self._settle(output) for output in tuple(self._held)]))

    def end(self, schema: Schema | None = None) -> bytes:
        return self.release()

    def _settle(self, output: str) -> str:
        rows = self._held.pop(output)
        columns = self._columns[output] = Columns(self._names[output], rows, self._width)
        return self._heading(output) + columns.header() + "".join(map(columns.line, rows))

    def _heading(self, output: str) -> str:
        if not self._several or output == self._latest:
            return ""
        first = self._latest is None
        self._latest = output
        text = f"{_BOLD}{visible(output)}{_PLAIN}" if self._width else visible(output)
        return f"{text}\n" if first else f"\n{text}\n"


class Columns:
    """The columns of one output, their widths fixed by its first rows and the terminal."""

    def __init__(self, names: Sequence[str], rows: Sequence[Sequence[Value]], width: int | None) -> None:
        from rich.cells import cell_len, set_cell_size  # imported late: other formats do without it

        self._length, self._cut = cell_len, set_cell_size
        self._names = [visible(name) for name in names]
        self._coloured = width is not None
        self._limited = width is not None
        cells = [[visible(cell(value)) for value in row] for row in rows]
        self._right = [_are_numbers([row[place] for row in rows]) for place in range(len(names))]
        widths = [
            max([cell_len(name), *(cell_len(row[place]) for row in cells)])
            for place, name in enumerate(self._names)
        ]
        self._room = width - len(GAP) * (len(widths) - 1) if width else 0
        self._widths = self._with_reserve(_fit(widths, self._room)) if width else widths

    def _with_reserve(self, widths: list[int]) -> list[int]:
        """Texts that come later may be longer: a third more for them, where the terminal has room."""
        texts = [place for place, right in enumerate(self._right[:-1]) if not right]
        for place in texts:
            spare = (self._room - sum(widths)) // len(texts)
            widths[place] += max(0, min(spare, widths[place] // 3, 10))
        return widths

    def header(self) -> str:
        names = GAP.join(map(self._placed, self._names, self._widths, self._right)).rstrip()
        rule = GAP.join("─" * width for width in self._widths)
        if self._coloured:
            names, rule = f"{_BOLD}{names}{_PLAIN}", f"{_DIM}{rule}{_PLAIN}"
        return f"{names}\n{rule}\n"

    def line(self, values: Sequence[Value]) -> str:
        cells = [visible(cell(value)) for value in values]
        if self._limited:
            self._widen(cells)
        return GAP.join(map(self._placed, cells, self._widths, self._right)).rstrip() + "\n"

    def _widen(self, cells: Sequence[str]) -> None:
        """Let a column grow for a later cell, while the terminal has room for it."""
        for place, text in enumerate(cells):
            missing = self._length(text) - self._widths[place]
            if missing > 0:
                self._widths[place] += max(0, min(missing, self._room - sum(self._widths)))

    def _placed(self, text: str, width: int, right: bool) -> str:
        length = self._length(text)
        if length > width:
            return self._cut(text, width - 1) + "…" if self._limited else text
        return " " * (width - length) + text if right else text + " " * (width - length)


def _encoded(text: str) -> bytes:
    return text.encode(errors="replace")


def _are_numbers(values: Sequence[Value]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(
        isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in present
    )


def _fit(widths: list[int], available: int) -> list[int]:
    """Return the widths of columns, with the widest ones narrowed one cell at a time."""
    fitted = [min(width, max(available, LEAST_WIDTH)) for width in widths]
    while sum(fitted) > available and (widest := max(fitted)) > LEAST_WIDTH:
        fitted[fitted.index(widest)] -= 1
    return fitted
