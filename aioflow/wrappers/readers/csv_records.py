"""The records of a CSV text, while it arrives: read by the standard library, once they are complete."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any, NamedTuple

from aioflow.dataclass import dataclass
from aioflow.wrappers.loop_time import limit_text
from aioflow.wrappers.readers.pieces import BadPageError

# A record that is not complete is tried again with each piece; beyond this size only when it has doubled.
_PATIENCE = 4096
# The standard library has one limit for the whole process, which others may have set to anything.
_LONGEST_VALUE = 131_072
_TOO_LONG = f"a value of more than {_LONGEST_VALUE:,} characters; is a quote left open?"


@dataclass(frozen=True)
class CsvForm:
    """How a text separates its values. Without `quote` no character keeps a separator inside a value."""

    delimiter: str = ","
    quote: str | None = '"'
    skip: int = 0  # lines before the first record


class Record(NamedTuple):
    """The values of a record, and the line that it begins on."""

    values: list[str]
    line: int


class BadCsvError(BadPageError):
    """A text is no CSV; the message says where and why."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"the CSV cannot be read: line {line:,}: {reason}")


class _NoMore(Exception):  # noqa: N818  # no error
    """The lines are used up. Were they to end, a record would be taken for complete that is not."""


class CsvRecords:
    """A text on its way in."""

    def __init__(self, form: CsvForm) -> None:
        self._form = form
        self._skip = form.skip
        self._lines = 0  # that were read for good
        self._parts: list[str] = []  # from the beginning of the first record that is not complete
        self._size = 0
        self._wanted = 0  # size that makes another attempt worth while
        self._is_quoted = False  # a quote was opened in that record

    def feed(self, text: str) -> list[Record]:
        """The records that are complete."""
        self._parts.append(text)
        self._size += len(text)
        limit_text(self._size)
        if self._size < self._wanted or not self._may_be_complete(text):
            return []
        whole = "".join(self._parts)
        # Behind a carriage return a line feed may follow.
        end = max(whole.rfind("\n"), whole.rfind("\r", 0, -1)) + 1
        lines = list(io.StringIO(whole[:end], newline=""))
        records, used = self._read(lines)
        self._keep("".join(lines[used:]) + whole[end:])
        self._is_quoted = used < len(lines)
        self._check_size()
        return records

    def end(self) -> list[Record]:
        """The rest; a BadCsvError when a quote is still open."""
        lines = list(io.StringIO("".join(self._parts), newline=""))
        records, used = self._read(lines)
        if used < len(lines):
            self._is_quoted = True
            self._keep("".join(lines[used:]))
            self._check_size()
            raise BadCsvError(self._lines + 1, "a value in quotes that begins here does not end")
        self._keep("")
        return records

    def _check_size(self) -> None:
        if self._is_quoted and self._size > _LONGEST_VALUE:
            raise BadCsvError(self._lines + 1, _TOO_LONG)

    def _may_be_complete(self, text: str) -> bool:
        if self._is_quoted:
            return self._form.quote is not None and self._form.quote in text
        # The return that the last piece ended with is known for a line's end now.
        return "\n" in text or "\r" in text or (len(self._parts) > 1 and self._parts[-2].endswith("\r"))

    def _keep(self, rest: str) -> None:
        self._parts = [rest] if rest else []
        self._size = len(rest)
        self._wanted = 2 * self._size if self._size > _PATIENCE else 0

    def _read(self, lines: list[str]) -> tuple[list[Record], int]:
        """The records in these lines, and how many lines they take."""
        skipped = min(self._skip, len(lines))
        self._skip -= skipped
        used, records = skipped, []
        may_be_long = self._size > _LONGEST_VALUE
        reader = _reader(self._form, lines[skipped:])
        try:
            for values in reader:
                if may_be_long and max(map(len, values), default=0) > _LONGEST_VALUE:
                    raise BadCsvError(self._lines + used + 1, _TOO_LONG)
                if values:
                    records.append(Record(values, self._lines + used + 1))
                used = skipped + reader.line_num
        except _NoMore:
            pass
        except csv.Error as error:
            raise BadCsvError(self._lines + used + 1, _reason(error)) from None
        self._lines += used
        return records, used


def _reader(form: CsvForm, lines: list[str]) -> Any:
    if form.quote is None:
        return csv.reader(_source(lines), delimiter=form.delimiter, quoting=csv.QUOTE_NONE)
    return csv.reader(_source(lines), delimiter=form.delimiter, quotechar=form.quote)


def _source(lines: list[str]) -> Iterator[str]:
    yield from lines
    raise _NoMore


def _reason(error: csv.Error) -> str:
    return _TOO_LONG if "field limit" in str(error) else str(error)
