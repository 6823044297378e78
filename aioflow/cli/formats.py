"""How rows look on their way out: JSON lines, CSV, or a table for people."""

from __future__ import annotations

import csv
import io
from enum import StrEnum
from typing import Protocol

from aioflow.cli.encoding import cell, json_object
from aioflow.errors import InputError
from aioflow.relation import Record


class FormatName(StrEnum):
    TABLE = "table"
    JSONL = "jsonl"
    CSV = "csv"


class Format(Protocol):
    """Makes text of rows. It may hold some back, to see what is coming, until `release`."""

    def row(self, output: str, record: Record) -> str: ...

    def release(self) -> str: ...


class JsonLines:
    """A JSON object a line; with several outputs `{"output": name, "row": {…}}`."""

    def __init__(self, *, several_outputs: bool) -> None:
        self._several = several_outputs

    def row(self, output: str, record: Record) -> str:
        text = json_object(record)
        if self._several:
            return f'{{"output": "{output}", "row": {text}}}\n'
        return text + "\n"

    def release(self) -> str:
        return ""


class Csv:
    """Comma-separated values under a header; appended to a file that has the header already, rows only."""

    def __init__(self, existing_header: str = "") -> None:
        self._existing = next(csv.reader([existing_header])) if existing_header.strip() else None
        self._buffer = io.StringIO()
        self._writer = csv.writer(self._buffer, lineterminator="\n")
        self._started = False

    def row(self, output: str, record: Record) -> str:
        if not self._started:
            self._started = True
            self._start(list(record.schema.names))
        self._writer.writerow(map(cell, record.row))
        text = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return text

    def _start(self, names: list[str]) -> None:
        if self._existing is None:
            self._writer.writerow(names)
        elif self._existing != names:
            raise InputError(
                f"the file to append to has the columns {', '.join(self._existing)}; "
                f"the plan's output has {', '.join(names)}"
            )

    def release(self) -> str:
        return ""


def make_format(
    name: FormatName, *, several_outputs: bool, existing_start: str = "", width: int | None = None
) -> Format:
    """`width` is that of the terminal, if the output goes to one."""
    if name is FormatName.JSONL:
        return JsonLines(several_outputs=several_outputs)
    if name is FormatName.CSV:
        if several_outputs:
            raise InputError("CSV holds one output, the plan has several: choose one with --output")
        return Csv(existing_start)
    from aioflow.cli.table import Table

    return Table(several_outputs=several_outputs, width=width)
