"""The records of a parse as rows, to be shown as `aioflow run` shows rows."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from aioflow.cli.output.formats import JSON_LINES, TABLE, Presentation, present
from aioflow.grammars import ParsedSource, XmlElement
from aioflow.relation import Record, Schema, Value
from aioflow.values.cells import json_names, json_object
from aioflow.values.coercion import value_of


def records_of(parsed: ParsedSource) -> list[dict[str, Any]]:
    """Return the records: of a list its values, else the result or the variables of the start rule."""
    value = parsed.value
    if isinstance(value, str):
        lists = [each for each in parsed.variables.values() if isinstance(each, list)]
        if len(lists) == 1:
            value = lists[0]
        elif parsed.variables:
            value = parsed.variables
    values = value if isinstance(value, list) else [] if value is None else [value]
    return [each if isinstance(each, dict) else {"value": each} for each in values]


class ShownRecords:
    """Writes records to stdout: a table on a terminal, JSON lines elsewhere."""

    def __init__(self, *, several: bool, as_json: bool) -> None:
        on_terminal = sys.stdout.isatty()
        self._shown: Presentation = present(
            TABLE if on_terminal and not as_json else JSON_LINES,
            several_outputs=several,
            width=shutil.get_terminal_size().columns if on_terminal else None,
        )

    def add(self, name: str, records: Sequence[Mapping[str, Any]]) -> None:
        """Write the records of one source."""
        names = tuple(dict.fromkeys(chain.from_iterable(records)))
        schema = Schema(names)
        rows = [Record(schema, tuple(_value(each.get(name)) for name in names)) for each in records]
        if rows:
            _write(self._shown.rows(name, rows) + self._shown.release())

    def end(self) -> None:
        _write(self._shown.end())


def plain_json(record: Mapping[str, Any]) -> str:
    """Return a record as JSON."""
    return json_object(json_names(list(record)), tuple(_value(each) for each in record.values()))


def _write(data: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _value(value: Any) -> Value:
    return value_of(_plain(value))


def _plain(value: Any) -> Any:
    """Return a value of a parse without XML elements, which are shown as their text."""
    if isinstance(value, XmlElement):
        return "\n".join(value.lines())
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
