"""Rows as a table on a terminal, while they stream: the first rows decide how wide the columns are."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rich.cells import cell_len, set_cell_size

from aioflow.display import visible
from aioflow.operators.encoding import cell
from aioflow.relation import Record, Row, Schema, Value

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
            missing = cell_len(text) - self._widths[place]
            if missing > 0:
                self._widths[place] += max(0, min(missing, self._room - sum(self._widths)))

    def _placed(self, text: str, width: int, right: bool) -> str:
        length = cell_len(text)
        if length > width:
            return set_cell_size(text, width - 1) + "…" if self._limited else text
        return " " * (width - length) + text if right else text + " " * (width - length)


def _encoded(text: str) -> bytes:
    return text.encode(errors="replace")


def _are_numbers(values: Sequence[Value]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(
        isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in present
    )


def _fit(widths: list[int], available: int) -> list[int]:
    """The widest columns give way, one cell at a time."""
    fitted = [min(width, max(available, LEAST_WIDTH)) for width in widths]
    while sum(fitted) > available and (widest := max(fitted)) > LEAST_WIDTH:
        fitted[fitted.index(widest)] -= 1
    return fitted
