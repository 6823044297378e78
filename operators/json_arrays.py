"""JSON: one array with an object for each tuple. It is read and written as it streams."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from aioflow import InputError, Schema
from aioflow.operators.encoding import json_names, json_object
from aioflow.operators.formats import Format, Types, formats
from aioflow.operators.text_formats import Objects, encoded
from aioflow.relation import Batch

_CHUNK_BYTES = 1 << 16
# Below this, an object that is not whole yet is looked at again whenever more of it has come; a longer one
# only when it has doubled, since looking at it takes time in proportion to its length.
_SHORT_CHARACTERS = 1 << 20
# An object that is cut off shows that in its last few characters, at the latest in `\ud83d\ude0`.
_MOST_CUT_CHARACTERS = 16
_BLANKS = " \t\r\n"


# --- reading ------------------------------------------------------------------------------------


def read_json(file: BinaryIO, name: str, types: Types) -> Iterator[Schema | Batch]:
    """An array of objects, or objects one after the other. The first ones, and types, tell the attributes."""
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
    """Finds the objects of a text that comes in portions."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._decoder = json.JSONDecoder()
        self._text = ""
        self._place = 0
        self._next_look = 0  # how long the text must be before it is worth looking at again
        self._in_array: bool | None = None  # None: nothing was found yet
        self._has_ended = False
        self._needs_comma = False
        self._count = 0

    def objects(self, text: str, *, at_end: bool) -> list[dict[str, Any]]:
        """Return the objects that are whole by now."""
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
        """Go to the beginning of the next object; False if there is none yet, or none any more."""
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
        """Return the object that begins here; None if it is not whole yet."""
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
    """An array with an object a line; an empty one without tuples."""

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
