"""The text formats, in UTF-8: JSON lines, CSV, tab-separated values and JSON.

JSON is one array with an object for each tuple. All of them are read and written as they stream.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, BinaryIO

from aioflow import InputError, Row, Schema, SettingError
from aioflow.operators.formats import Format, Types, formats
from aioflow.relation import Batch, Type, Value, picker
from aioflow.values.cells import cell, json_names, json_object, neutral_cell, read_value
from aioflow.values.coercion import row_of_mapping, value_of

_CHUNK_BYTES = 1 << 16
_LINE_ENDS = "; lines end with a line feed, not with a carriage return alone"
_LONGEST_CELL = 1 << 27  # embedded documents are long
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
PLAIN = frozenset({str, int, float, bool, type(None)})


def lines_of(file: BinaryIO, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of a file with their ends as they arrive, in lists with the first line's number."""
    number, pieces = 1, [b""]
    while chunk := file.read(_CHUNK_BYTES):
        pieces.append(chunk)
        complete, newline, rest = chunk.rpartition(b"\n")
        if not newline:
            yield number, []
            continue
        pieces[-1] = complete + newline
        lines = _decoded(b"".join(pieces), name, number)
        pieces = [rest]
        yield number, lines
        number += len(lines)
    if rest := b"".join(pieces):
        yield number, _decoded(rest, name, number)


def _decoded(data: bytes, name: str, number: int) -> list[str]:
    if number == 1:
        data = data.removeprefix(_BYTE_ORDER_MARK)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = number + data.count(b"\n", 0, error.start)
        raise InputError(f"{name}:{line}: not UTF-8 text: byte {data[error.start]:#04x}") from None
    # Not splitlines, which also splits at characters that are allowed inside lines.
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


class Typed:
    """Converts values to the types that a plan declares."""

    def __init__(self, schema: Schema, types: Types) -> None:
        self._names = schema.names
        found = [(place, types.get(name)) for place, name in enumerate(schema.names)]
        self._columns = [(place, kind) for place, kind in found if kind is not None]

    def row(self, row: Row) -> Row:
        if not self._columns:
            return row
        values = list(row)
        for position, kind in self._columns:
            try:
                values[position] = read_value(values[position], kind)
            except SettingError as error:
                raise SettingError(f"attribute {self._names[position]!r}: {error.message}") from None
        return tuple(values)


# --- JSON lines ---------------------------------------------------------------------------------


def read_json_lines(file: BinaryIO, name: str, types: Types) -> Iterator[Schema | Batch]:
    """Read an object per line. The first portion of the file and `types` determine the attributes."""
    reading: Objects | None = None
    for first, lines in lines_of(file, name):
        found = [
            (number, _object(line, f"{name}:{number}"))
            for number, line in enumerate(lines, first)
            if not line.isspace()
        ]
        if reading is None and found:
            reading = Objects.told_by((mapping for _, mapping in found), types)
            yield reading.schema
        yield (
            [] if reading is None else [reading.row(mapping, f"{name}:{number}") for number, mapping in found]
        )


def _object(line: str, place: str) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except RecursionError:
        raise InputError(f"{place}: this JSON is nested too deeply") from None
    except ValueError as error:
        hint = _LINE_ENDS if "\r" in line.rstrip() else ""
        raise InputError(f"{place}: not JSON: {error}{hint}") from None
    if not isinstance(content, dict):
        raise InputError(f"{place}: expected a JSON object, found {line.strip()[:60]}")
    return content


class Objects:
    """Makes tuples of JSON objects."""

    def __init__(self, schema: Schema, types: Types) -> None:
        self.schema = schema
        self._typed = Typed(schema, types)

    @classmethod
    def told_by(cls, mappings: Iterable[dict[str, Any]], types: Types) -> Objects:
        """Make one with the attributes of the first objects, and those with a type in `types`."""
        names = tuple(dict.fromkeys(chain(*mappings, types)))
        return cls(Schema(names, tuple(map(types.get, names))), types)

    def row(self, mapping: dict[str, Any], place: str) -> Row:
        try:
            row = row_of_mapping(self.schema, mapping)
            if not PLAIN.issuperset(map(type, row)):
                row = tuple(map(value_of, row))
            return self._typed.row(row)
        except SettingError as error:
            raise InputError(f"{place}: {error.message}") from None


class JsonLinesWriter:
    """Writes an object per line."""

    def __init__(self, file: BinaryIO, schema: Schema, beginning: bytes) -> None:
        self._file = file
        self._names = json_names(schema.names)

    def write(self, batch: Batch) -> None:
        names = self._names
        text = "".join([f"{json_object(names, row)}\n" for row in batch])
        self._file.write(encoded(text))

    def end(self) -> None:
        pass


def encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Half a surrogate pair, which UTF-8 cannot write; JSON's escape is the best name for it.
        return text.encode(errors="backslashreplace")


# --- CSV ----------------------------------------------------------------------------------------


class _Separated:
    """Values with a separator between them, after a header.

    Spreadsheets open such files. A text that a spreadsheet would take for a formula gets an apostrophe in
    front, unless the values are written `as_they_are`.
    """

    def __init__(self, separator: str, *, as_they_are: bool = False) -> None:
        self._separator = separator
        self._cell = cell if as_they_are else neutral_cell

    def read(self, file: BinaryIO, name: str, types: Types) -> Iterator[Schema | Batch]:
        """Read rows; an empty cell is null, and every other cell is a text unless a type is given."""
        csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
        schema: Schema | None = None
        for first, lines in self._records(file, name):
            reader = csv.reader(lines, delimiter=self._separator, strict=True)
            batch: Batch = []
            try:
                if schema is None and lines:
                    schema = _header(next(reader), types)
                    typed = Typed(schema, types)
                    yield schema
                width = len(schema or ())
                for cells in reader:
                    if cells:
                        batch.append(typed.row(_cells(cells, width)))
            except (csv.Error, SettingError) as error:
                is_ended_wrongly = str(error).startswith("new-line character seen")
                what = f"this is not one record{_LINE_ENDS}" if is_ended_wrongly else error
                raise InputError(f"{name}:{first + reader.line_num - 1}: {what}") from None
            yield batch

    def _records(self, file: BinaryIO, name: str) -> Iterator[tuple[int, list[str]]]:
        """Yield lines that make whole records; a quoted cell may extend over many lines."""
        first, open_quote = 1, False
        held: list[str] = []
        for _, lines in lines_of(file, name):
            held += lines
            whole = 0
            for place, line in enumerate(lines, len(held) - len(lines) + 1):
                open_quote ^= bool(line.count('"') % 2)
                if not open_quote:
                    whole = place
            yield first, held[:whole]
            first += whole
            held = held[whole:]
        if held:
            yield first, held

    def write(self, file: BinaryIO, schema: Schema, beginning: bytes) -> SeparatedWriter:
        return SeparatedWriter(file, schema, beginning, self._separator, self._cell)


def _header(cells: list[str], types: Types) -> Schema:
    schema = Schema(tuple(cells), tuple(types.get(name, Type.CHAR) for name in cells))
    for name in types:
        schema.position(name)
    return schema


def _cells(cells: list[str], width: int) -> Row:
    if len(cells) != width:
        raise SettingError(f"{len(cells)} cells under {width} columns")
    return tuple([cell or None for cell in cells])


class SeparatedWriter:
    """Writes rows after a header; a file that is continued has its header already."""

    def __init__(
        self,
        file: BinaryIO,
        schema: Schema,
        beginning: bytes,
        separator: str,
        cell: Callable[[Value], str] = neutral_cell,
    ) -> None:
        self._file = file
        self._separator = separator
        self._cell = cell
        self._pick = picker(range(len(schema)))
        if not beginning:
            self._put([list(map(cell, schema.names))])
            return
        found = next(csv.reader([beginning.decode("utf-8-sig", "replace")], delimiter=separator), [])
        named = {cell(name): name for name in schema.names}
        header = [named.get(name, name) for name in found]
        listed = schema.listing(*header)
        if sorted(header) != sorted(listed.names):
            names = ", ".join(schema.names)
            raise InputError(
                f"the file to append to has the columns {', '.join(header)}; the tuples have {names}"
            )
        pick, nulls = (
            picker([listed.position(name) for name in header]),
            (None,) * (len(listed) - len(schema)),
        )
        self._pick = pick if not nulls else lambda row: pick(row + nulls)

    def write(self, batch: Batch) -> None:
        self._put([list(map(self._cell, self._pick(row))) for row in batch])

    def end(self) -> None:
        pass

    def _put(self, rows: Sequence[Sequence[str]]) -> None:
        text = io.StringIO()
        # The csv module quotes only its own line ends, but reads a carriage return as one too.
        has_returns = any("\r" in cell for row in rows for cell in row)
        writer = csv.writer(
            text,
            delimiter=self._separator,
            lineterminator="\n",
            quoting=csv.QUOTE_ALL if has_returns else csv.QUOTE_MINIMAL,
        )
        writer.writerows(rows)
        self._file.write(encoded(text.getvalue()))


def _separated(name: str, suffix: str, separator: str) -> Format:
    neutral, plain = _Separated(separator), _Separated(separator, as_they_are=True)
    with_formulas = Format(name, (suffix,), plain.read, plain.write)
    return Format(name, (suffix,), neutral.read, neutral.write, with_formulas=with_formulas)


formats.add(Format("jsonl", (".jsonl", ".ndjson"), read_json_lines, JsonLinesWriter, is_json=True))
formats.add(_separated("csv", ".csv", ","))
formats.add(_separated("tsv", ".tsv", "\t"))


# A shorter object that is incomplete is parsed again whenever more of it has arrived. A longer one is parsed
# again only when it has doubled, since parsing takes time in proportion to its length.
_SHORT_CHARACTERS = 1 << 20
# The error of an object that is cut off is in its last few characters, at the latest in `\ud83d\ude0`.
_MOST_CUT_CHARACTERS = 16
_BLANKS = " \t\r\n"


# --- reading ------------------------------------------------------------------------------------


def read_json(file: BinaryIO, name: str, types: Types) -> Iterator[Schema | Batch]:
    """Read an array or a sequence of objects. The first ones, and `types`, determine the attributes."""
    scan = _Scan(name)
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    reading: Objects | None = None
    number, at_end = 1, False
    while not at_end:
        chunk = file.read(_CHUNK_BYTES)
        at_end = not chunk
        try:
            found = scan.objects(decoder.decode(chunk, at_end), at_end=at_end)
        except UnicodeDecodeError as error:
            raise InputError(f"{name}: not UTF-8 text: byte {error.object[error.start]:#04x}") from None
        if reading is None and found:
            reading = Objects.told_by(found, types)
            yield reading.schema
        rows = enumerate(found, number)
        yield [] if reading is None else [reading.row(each, f"{name}, row {row}") for row, each in rows]
        number += len(found)


class _Scan:
    """Finds the objects of a text that arrives in portions."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._decoder = json.JSONDecoder()
        self._text = ""
        self._place = 0
        self._next_look = 0  # the length from which the text is parsed again
        self._in_array: bool | None = None  # None if nothing was found yet
        self._has_ended = False
        self._needs_comma = False
        self._count = 0

    def objects(self, text: str, *, at_end: bool) -> list[dict[str, Any]]:
        """Return the objects that are complete by now."""
        self._text = self._text[self._place :] + text
        self._place = 0
        if len(self._text) < self._next_look and not at_end:
            return []
        found: list[dict[str, Any]] = []
        while self._begin() and (each := self._object(at_end)) is not None:
            found.append(each)
        if at_end:
            self._check_end()
        return found

    def _begin(self) -> bool:
        """Go to the beginning of the next object; return False if there is none yet, or no more."""
        while self._skip_blanks():
            sign = self._text[self._place]
            if self._has_ended:
                raise self._error(f"found {sign!r} after the end of the array")
            if self._in_array is None:
                self._in_array = sign == "["
                self._place += self._in_array
            elif self._in_array and sign == "]":
                if self._count and not self._needs_comma:
                    raise self._error("expected a JSON object, found ]")
                self._has_ended = True
                self._place += 1
            elif self._in_array and self._needs_comma:
                if sign != ",":
                    raise self._error(f"expected ',' or ']', found {sign!r}")
                self._needs_comma = False
                self._place += 1
            elif sign != "{":
                raise self._error(f"expected a JSON object, found {self._text[self._place :][:60]}")
            else:
                return True
        return False

    def _skip_blanks(self) -> bool:
        rest = self._text[self._place : self._place + 64]
        while rest and not rest.strip(_BLANKS):
            self._place += len(rest)
            rest = self._text[self._place : self._place + 64]
        self._place += len(rest) - len(rest.lstrip(_BLANKS))
        return bool(rest)

    def _object(self, at_end: bool) -> dict[str, Any] | None:
        """Return the object that begins here; None if it is incomplete."""
        try:
            found, self._place = self._decoder.raw_decode(self._text, self._place)
        except json.JSONDecodeError as error:
            is_cut = error.msg.startswith("Unterminated") or (
                len(self._text) - error.pos <= _MOST_CUT_CHARACTERS
            )
            if at_end or not is_cut:
                raise self._error(f"not JSON: {error.msg}") from None
            length = len(self._text) - self._place
            self._next_look = 2 * length if length > _SHORT_CHARACTERS else 0
            return None
        except (ValueError, RecursionError) as error:
            raise self._error(f"not JSON: {error}") from None
        self._next_look = 0
        self._count += 1
        self._needs_comma = True
        assert isinstance(found, dict)
        return found

    def _check_end(self) -> None:
        if self._in_array and not self._has_ended:
            raise self._error("the array does not end")

    def _error(self, message: str) -> InputError:
        return InputError(f"{self._name}, row {self._count + 1}: {message}")


# --- writing ------------------------------------------------------------------------------------


class JsonArrayWriter:
    """Writes an array with an object per line; without tuples, an empty array."""

    def __init__(self, file: BinaryIO, schema: Schema, beginning: bytes) -> None:
        self._file = file
        self._names = json_names(schema.names)
        self._between = "[\n"

    def write(self, batch: Batch) -> None:
        if not batch:
            return
        text = ",\n".join([json_object(self._names, row) for row in batch])
        self._file.write(encoded(self._between + text))
        self._between = ",\n"

    def end(self) -> None:
        self._file.write(b"[]\n" if self._between == "[\n" else b"\n]\n")


formats.add(
    Format("json", (".json",), read_json, JsonArrayWriter, appends=False, is_json=True, has_frame=True)
)
