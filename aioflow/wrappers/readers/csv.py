"""The CSV reader: fields by the name or number of a column. Rows leave while the rest of the page arrives.

Options: `delimiter ";"`, `quote "'"` or `quote no`, `header no`, `skip 2` (lines before the header). An empty
value is null. The standard library reads the records, each when it is complete.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, NamedTuple

import msgspec

from aioflow.errors import SettingError, suggestion
from aioflow.relation import Row, Type, Value
from aioflow.wrappers.charsets import TextDecoder, check_charset
from aioflow.wrappers.definition import Extraction, Field
from aioflow.wrappers.loop_fairness import limit_text
from aioflow.wrappers.page import Page
from aioflow.wrappers.readers.base import CompiledExtractor, Slot, Traits, check_options, compile_extraction
from aioflow.wrappers.readers.incremental import (
    BadPageError,
    PieceReading,
    Take,
    explained,
    unreadable,
    whole_text,
)
from aioflow.wrappers.readers.reader import Found, PageHead

# A record that is not complete is tried again with each piece; beyond this size only when it has doubled.
_PATIENCE = 4096
# The standard library has one limit for the whole process, which others may have set to anything.
_LONGEST_VALUE = 131_072
_TOO_LONG = f"a value of more than {_LONGEST_VALUE:,} characters; is a quote left open?"


class CsvForm(msgspec.Struct, frozen=True):
    """The dialect of a CSV text. Without `quote`, a value cannot contain the separator."""

    delimiter: str = ","
    quote: str | None = '"'
    skip: int = 0  # lines before the first record


class CsvRecord(NamedTuple):
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

    def feed(self, text: str) -> list[CsvRecord]:
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

    def end(self) -> list[CsvRecord]:
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

    def _read(self, lines: list[str]) -> tuple[list[CsvRecord], int]:
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
                    records.append(CsvRecord(values, self._lines + used + 1))
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


_NUMBER = re.compile(r"\s*(#?)\s*([1-9]\d{0,5})\s*")
_TAB = ("tab", "\t")
_SHOWN_COLUMNS = 30
_SHOWN_CHARACTERS = 40


class CsvReader:
    """Reads CSV."""

    name: ClassVar[str] = "csv"
    content_types: ClassVar[tuple[str, ...]] = ("text/csv", "application/csv", "text/tab-separated-values")
    default_type: ClassVar[Type | None] = Type.CHAR

    def compile(self, extraction: Extraction) -> CsvExtractor:
        return CsvExtractor(extraction)


class CsvColumn(msgspec.Struct, frozen=True):
    """A column by its name, or by its number from 1; a number may be a name as well."""

    name: str | None
    number: int | None
    may_be_missing: bool

    def place_in(self, header: list[str]) -> int | None:
        """Where the column stands; None when it is not there."""
        if self.name is not None and self.name in header:
            return header.index(self.name)
        if self.number is not None and self.number <= len(header):
            return self.number - 1
        return None


class CsvExtractor(CompiledExtractor[CsvColumn]):
    """Columns, compiled."""

    is_incremental = True

    def __init__(self, extraction: Extraction) -> None:
        check_options("csv", extraction.options, _OPTIONS)
        if extraction.charset is not None:
            check_charset(extraction.charset)
        if extraction.each is not None:
            raise SettingError("the rows of CSV are its items: leave out EACH", setting="EACH")
        if extraction.next_page is not None:
            raise SettingError("CSV has no link to a next page", setting=extraction.next_page.name)
        if extraction.empty:
            message = "CSV has no page around its rows: EMPTY can name statuses only"
            raise SettingError(message, setting="EMPTY")
        self.has_header = extraction.options.get("header", True)
        super().__init__(extraction, compile_extraction(extraction, self._select, Traits()))
        self.form = _form(extraction.options)

    def _select(self, field: Field) -> CsvColumn:
        if field.fields:
            raise SettingError("CSV has no relations inside of its rows")
        if field.scope == "page":
            raise SettingError("CSV has no page around its rows: leave out 'page'")
        selector = field.selector or field.name
        number = _NUMBER.fullmatch(selector)
        if number is None and not self.has_header:
            raise SettingError(
                'without a header columns have numbers only: write "1" for the first', offset=0
            )
        is_name = self.has_header and not (number and number[1])
        may_be_missing = field.default is not None or any(
            word.name.lower() in ("optional", "default") for word in field.processing
        )
        return CsvColumn(
            selector.strip() if is_name else None, int(number[2]) if number else None, may_be_missing
        )

    def open(self, page: PageHead) -> CsvReading:
        return CsvReading(self, page)

    def explain(self, page: PageHead, body: bytes) -> Iterator[Found]:
        decoder = TextDecoder(page.content_type, self.extraction.charset, markup=False)
        records = CsvRecords(self.form)
        finder = ColumnFinder()
        try:
            text = whole_text(decoder, body).replace("\0", "")
            rows = _Rows(self, finder)
            items = [*rows.of(records.feed(text)), *rows.of(records.end())]
            rows.check_end()
        except BadPageError as error:
            raise unreadable(page, error) from None
        return explained(self.compiled.layout, Page(page), _Places(finder, rows.header), None, items)


def _is_character(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 1 and value not in "\r\n\0"


_OPTIONS = {
    "delimiter": ('delimiter ";"', lambda value: _is_character(value) or value == _TAB[0]),
    "quote": ('quote "\'" or quote no', lambda value: _is_character(value) or value is False),
    "header": ("header no", lambda value: isinstance(value, bool)),
    "skip": ("skip 2", lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 0),
}


def _form(options: Any) -> CsvForm:
    delimiter, quote = options.get("delimiter", ","), options.get("quote", '"')
    if delimiter == quote:
        raise SettingError("'delimiter' and 'quote' cannot be the same character", setting="READ")
    return CsvForm(_TAB[1] if delimiter == _TAB[0] else delimiter, quote or None, options.get("skip", 0))


# --- reading -------------------------------------------------------------------------------------


class ColumnFinder:
    """The search by positions of columns, which the header tells. Empty values are null."""

    def __init__(self) -> None:
        self.places: dict[int, int | None] = {}

    def find(self, slot: Slot[CsvColumn], node: Any) -> Value:
        return self.taker(slot)(node)

    def taker(self, slot: Slot[CsvColumn]) -> Take:
        """Return the function that takes the value of one field, as `find` does."""
        places, own = self.places, slot.place

        def take(node: Any) -> Value:
            values, place = node.values, places[own]
            return (values[place] or None) if place is not None and place < len(values) else None

        return take if slot.conversion.matches != "all" else lambda node: [take(node)]

    def each(self, slot: Slot[CsvColumn], node: Any) -> list[Any]:
        return []  # there are no relations inside of rows


class _Rows:
    """Tells the header from the rows, and finds the columns in it."""

    def __init__(self, extractor: CsvExtractor, finder: ColumnFinder) -> None:
        self._has_header = extractor.has_header
        self._slots = extractor.compiled.layout.item
        self._finder = finder
        self.header: list[str] | None = None
        self.longer = 0  # rows with more values than columns

    def of(self, records: list[CsvRecord]) -> list[CsvRecord]:
        """The records that are rows."""
        if not self._has_header:
            if not self._finder.places:
                self._finder.places.update(
                    {slot.place: (slot.selector.number or 1) - 1 for slot in self._slots}
                )
            return records
        if self.header is None and records:
            self._take_header(records[0].values)
            records = records[1:]
        if records:
            width = len(self.header or ())
            self.longer += sum(1 for record in records if len(record.values) > width)
        return records

    def check_end(self) -> None:
        if self._has_header and self.header is None:
            raise BadPageError("the CSV cannot be read: it is empty, there is no header")

    @property
    def notes(self) -> list[str]:
        header = self.header or []
        named = {slot.selector.name for slot in self._slots}
        twice = sorted({name for name in header if name in named and header.count(name) > 1})
        notes = [f"several columns are named {name!r}: the first one is read" for name in twice]
        if self.longer:
            notes.append(f"{self.longer:,} rows have more values than there are columns; those are left out")
        return notes

    def _take_header(self, values: list[str]) -> None:
        self.header = header = [" ".join(name.split()) for name in values]
        for slot in self._slots:
            place = slot.selector.place_in(header)
            if place is None and not slot.selector.may_be_missing:
                raise BadPageError(_no_column(slot, header, values[0]))
            self._finder.places[slot.place] = place


def _no_column(slot: Slot[CsvColumn], header: list[str], first: str) -> str:
    column = slot.selector
    wanted = repr(column.name) if column.name is not None else f"number {column.number}"
    shown = ", ".join(name[:_SHOWN_CHARACTERS] for name in header[:_SHOWN_COLUMNS])
    more = ", …" if len(header) > _SHOWN_COLUMNS else ""
    hint = suggestion(column.name or "", header)
    signs = [sign for sign in (";", "\t", "|", ",") if sign in first] if len(header) == 1 else []
    if signs:
        hint = f"; is the delimiter {'tab' if signs[0] == _TAB[1] else signs[0]!r}?"
    return f"there is no column {wanted}{hint} (there are: {shown}{more})"


class CsvReading(PieceReading[CsvColumn]):
    """Rows leave as they come."""

    def __init__(self, extractor: CsvExtractor, head: PageHead) -> None:
        decoder = TextDecoder(head.content_type, extractor.extraction.charset, markup=False)
        finder = ColumnFinder()
        takers = {slot.place: finder.taker(slot) for slot in extractor.compiled.layout.item}
        super().__init__(extractor, head, decoder, finder, takers)
        self._records = CsvRecords(extractor.form)
        self._told = _Rows(extractor, finder)
        self._nulls = 0
        self._know_page(None)

    def _taken(self, text: str) -> list[Row]:
        if "\0" in text:
            self._nulls += text.count("\0")
            text = text.replace("\0", "")
        return self._rows(self._told.of(self._records.feed(text)))

    def _rest(self) -> list[Row]:
        rows = self._rows(self._told.of(self._records.end()))
        self._told.check_end()
        self._page.notes.extend(self._told.notes)
        if self._nulls:
            self._page.notes.append(f"{self._nulls:,} NUL characters were left out; is it another CHARSET?")
        return rows


# --- explaining ----------------------------------------------------------------------------------


class _Places:
    """Nodes are records."""

    def __init__(self, finder: ColumnFinder, header: list[str] | None) -> None:
        self._finder = finder
        self._header = header

    def found(self, slot: Slot[CsvColumn], node: Any) -> list[tuple[str, str]]:
        place = self._finder.places[slot.place]
        if place is None or place >= len(node.values):
            return []
        name = self._header[place] if self._header else f"{place + 1}"
        return [(f"line {node.line}, column {name}", node.values[place])]

    def inner(self, slot: Slot[CsvColumn], node: Any) -> Iterable[Any]:
        return ()

    def value(self, slot: Slot[CsvColumn], node: Any) -> Value:
        return self._finder.find(slot, node)
