"""File formats as plug-ins: each reads tuples from a file and writes them to one.

A package adds a format by an entry point in the group `aioflow.formats` that names a `Format`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from io import BytesIO
from pathlib import PurePath
from threading import Lock
from typing import Any, BinaryIO, ClassVar, Protocol, TypeAlias

import msgspec
from msgspec.structs import replace

from aioflow import Document, InputError, Schema, SettingError
from aioflow.config.entry_points import installed
from aioflow.errors import suggestion
from aioflow.files import Formulas
from aioflow.operators.settings import attributes_of
from aioflow.relation import Batch, Type, Value
from aioflow.values.display import visible, visible_json, visible_lines

# The modules that register the formats of the library.
_LIBRARY = (
    "aioflow.operators.text_formats",
    "aioflow.operators.parquet",
)
# By attribute; None for an attribute of any type that must be present.
Types: TypeAlias = Mapping[str, Type | None]
# (file, its name for messages, types of attributes) -> first the schema, then batches, on a worker thread.
# Each step reads at most once: it yields an empty batch rather than read twice.
Read: TypeAlias = Callable[[BinaryIO, str, Types], Iterator[Schema | Batch]]


class Writer(Protocol):
    """Writes the tuples of one relation; its methods are called on a worker thread."""

    def write(self, batch: Batch) -> None: ...
    def end(self) -> None: ...


class Format(msgspec.Struct, frozen=True):
    """A file format. `appends` says whether its `write` can go on with a file that has tuples already.

    `write` gets the file, the schema, and the beginning of the file that it continues, if any. For a relation
    that ended empty before its attributes were known, it is called only if the format `has_frame`, which
    means that a file without tuples is not empty. A format that `is_text` may be shown on a terminal. One
    that `is_json` has escapes of its own for control characters. A format for spreadsheets keeps texts from
    being taken for formulas; `with_formulas` is the same format without that.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Read
    write: Callable[[BinaryIO, Schema, bytes], Writer]
    appends: bool = True
    is_text: bool = True
    is_json: bool = False
    has_frame: bool = False
    with_formulas: Format | None = None

    def keeping(self, formulas: Formulas) -> Format:
        """Return the variant of the format with this treatment of formulas."""
        return self if formulas == "neutral" or self.with_formulas is None else self.with_formulas

    def for_terminal(self) -> Format:
        """Return the variant of the format for a terminal; raise an InputError if it is not text."""
        if not self.is_text:
            raise InputError(f"{self.name} is not for a terminal: write it to a file")
        return replace(self, write=lambda file, schema, start: _TerminalWriter(self, file, schema, start))


class _TerminalWriter:
    """Writes tuples for a terminal: values on one line, without control characters."""

    def __init__(self, format: Format, file: BinaryIO, schema: Schema, beginning: bytes) -> None:
        self._file = file
        self._buffer = BytesIO()
        self._is_json = format.is_json
        self._writer = format.write(self._buffer, schema, beginning)

    def write(self, batch: Batch) -> None:
        self._writer.write(batch if self._is_json else [tuple(map(_on_one_line, row)) for row in batch])
        self._hand_on()

    def end(self) -> None:
        self._writer.end()
        self._hand_on()

    def _hand_on(self) -> None:
        text = self._buffer.getvalue().decode(errors="replace")
        self._buffer.seek(0)
        self._buffer.truncate()
        self._file.write((visible_json if self._is_json else visible_lines)(text).encode())


def _on_one_line(value: Value) -> Value:
    if isinstance(value, Document):
        return visible(value.text)
    return visible(value) if isinstance(value, str) else value


class Formats:
    """The formats by name and by file extension."""

    def __init__(self) -> None:
        self._formats: dict[str, Format] = {}
        self._is_loaded = False
        self._loading = Lock()  # plans are checked on threads as well

    def add(self, added: Format) -> None:
        self._formats[added.name.lower()] = added

    def names(self) -> list[str]:
        self._load()
        return sorted(self._formats)

    def get(self, name: str) -> Format | None:
        self._load()
        return self._formats.get(name.lower())

    def for_path(self, path: str) -> Format:
        """Return the format for a file extension; JSON lines for names without one, and for `-`."""
        self._load()
        suffix = PurePath(path).suffix.lower()
        if not suffix:
            return self._formats["jsonl"]
        for known in self._formats.values():
            if suffix in known.suffixes:
                return known
        endings = ", ".join(suffix for known in self._formats.values() for suffix in known.suffixes)
        raise SettingError(
            f"no format is known by the ending of {path!r} (there are: {endings}); name one with FORMAT"
        )

    def _load(self) -> None:
        if self._is_loaded:
            return
        with self._loading:
            if not self._is_loaded:
                for module in _LIBRARY:
                    import_module(module)  # registers formats
                for entry_point in installed("aioflow.formats"):
                    self.add(entry_point.load())
                self._is_loaded = True


formats = Formats()


class FormatName:
    """A setting that names a format; the operator gets the Format."""

    kind_name: ClassVar[str] = "the name of a file format"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Format:
        found = formats.get(value) if isinstance(value, str) else None
        if found is None:
            known = formats.names()
            raise SettingError(
                f"unknown format {value!r}{suggestion(str(value), known)} (there are: {', '.join(known)})"
            )
        return found


class TypeList(dict[str, Type | None]):
    """A setting that gives types to attributes: `"price number, seen date"`."""

    kind_name: ClassVar[str] = "a list of attributes with their types"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> TypeList:
        return cls(attributes_of(value, cls.kind_name, typed=True))
