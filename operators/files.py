"""Operators for files: read and write. The formats of files are plug-ins in `formats`.

A relation is written to a file that appears whole at the end, to a device or pipe, or to standard output.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from aioflow import Context, InputError, Schema, SettingError, Stream, operator
from aioflow.authoring.operator import Settings
from aioflow.files import FileAccess, Formulas
from aioflow.operators.formats import Format, FormatName, TypeList, Types, Writer, formats
from aioflow.operators.settings import Declared, DeclaredSchema
from aioflow.relation import UNTOLD, Batch

_LONGEST_BEGINNING = 1 << 16


class Destination:
    """Takes tuples; `commit` puts them into place, and `abandon` without it leaves everything as it was.

    Methods that may take long (`start`, `write`, `end`) are for a worker thread. Methods that make or remove
    files are not: a thread may still be at work when its statement has been cancelled and cleaned up.
    """

    def __init__(self, path: str, target: Path | None, format: Format) -> None:
        self._path = path
        self._format = format
        self._target = target or Path()  # not used for standard output
        self._temporary: Path | None = None
        self._file: BinaryIO | None = None
        self._writer: Writer | None = None
        self._beginning = b""

    @property
    def _is_standard(self) -> bool:
        return self._path == "-"

    @property
    def _is_special(self) -> bool:
        """True for a device or pipe, which cannot be replaced."""
        return self._target.exists() and not self._target.is_file()

    def open(self) -> None:
        """Make the file, under another name until it is whole."""
        if self._is_standard or self._is_special:
            return
        temporary = self._target.with_name(f".{self._target.name}.{secrets.token_hex(4)}.part")
        try:
            self._file = temporary.open("xb")
            self._temporary = temporary
            if self._target.exists():
                shutil.copymode(self._target, temporary)
        except OSError as error:
            raise self._cannot_write(error) from error

    def start(self, append: bool) -> None:
        """Open a target that is written directly; with `append`, copy the content of the file first."""
        try:
            if self._is_standard:
                self._file = sys.stdout.buffer
                if sys.stdout.isatty():
                    self._format = self._format.for_terminal()
            elif self._file is None:
                self._file = self._target.open("wb")
            elif append and self._target.exists():
                self._take_over()
        except OSError as error:
            raise self._cannot_write(error) from error

    def _cannot_write(self, error: OSError) -> InputError:
        return InputError(f"cannot write {self._path!r}: {error.strerror}")

    def _take_over(self) -> None:
        assert self._file is not None
        with self._target.open("rb") as existing:
            self._beginning = existing.readline(_LONGEST_BEGINNING)
            existing.seek(0)
            shutil.copyfileobj(existing, self._file)
            self._file.write(missing_line_end(existing))

    def write(self, batch: Batch, schema: Schema) -> None:
        assert self._file is not None
        if self._writer is None:
            self._writer = self._format.write(self._file, schema, self._beginning)
        self._writer.write(batch)
        if self._temporary is None:
            self._file.flush()

    def end(self, schema: Schema | None) -> None:
        """Finish the file; there may have been no tuples."""
        assert self._file is not None
        if schema is not None or self._format.has_frame:
            self.write([], UNTOLD if schema is None else schema)
        if self._writer is not None:
            self._writer.end()
        self._file.flush()
        if self._temporary is not None:
            os.fsync(self._file.fileno())

    def commit(self) -> None:
        """Put the file in its place."""
        if self._temporary is not None and self._file is not None:
            self._file.close()
            os.replace(self._temporary, self._target)
            self._temporary = None

    def abandon(self) -> None:
        """Remove the file if it was not committed."""
        if self._file is not None and not self._is_standard:
            self._file.close()
        self._file = None
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)
            self._temporary = None


def missing_line_end(file: BinaryIO) -> bytes:
    """Return the bytes that a file needs at its end before another line can follow."""
    if not file.seek(0, os.SEEK_END):
        return b""
    file.seek(-1, os.SEEK_END)
    return b"" if file.read(1) == b"\n" else b"\n"


_STANDARD = "-"
_MOST_ROWS = 4096


# --- read ---------------------------------------------------------------------------------------


def _format_of(settings: Settings) -> Format:
    try:
        return cast(Format, settings["format"] or formats.for_path(settings["path"]))
    except SettingError as error:
        error.setting = "path"
        raise


def _read_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    _format_of(settings)
    if settings["schema"] is not None and settings["types"] is not None:
        raise SettingError("SCHEMA says the types as well", setting="types")
    schema: Schema | None = settings["schema"]
    return schema


@operator(schema=_read_schema)
async def read(
    *,
    path: str,
    format: FormatName | None = None,
    types: TypeList | None = None,
    schema: DeclaredSchema | None = None,
    context: Context,
) -> AsyncGenerator[Schema | Batch, None]:
    """Read the tuples of a file or of standard input, and pass them on as they are read.

    JSON lines have an object for each tuple. Arrays of objects become relations, other arrays and objects
    become documents, and dates stay texts unless TYPES says otherwise. The objects at the beginning of the
    file, and TYPES, determine the attributes. CSV files have a header. An empty cell is null, and every other
    cell is a text unless TYPES says otherwise; an apostrophe that `write` put before a formula stays. Parquet
    has types of its own.

    Arguments:
        path: the file, relative to the plan's; `-` is standard input. It lies in the folder of the plan, or
            where `allow` under `[files]` in the configuration says.
        format: jsonl, csv, tsv, json (an array of objects) or parquet; by default that of the file's name,
            and jsonl for standard input.
        types: types of attributes, such as `price number, seen date`.
        schema: all attributes with their types, such as `k char, price number`. The plan is checked with
            them, an empty file has them too, and other attributes in the file are an error.

    Examples:
        read ("houses.csv" : houses) {TYPES: "price number, seen date"}
        read ("-" : lines) {FORMAT: csv}
    """
    chosen = _format_of({"path": path, "format": format})
    name = "stdin" if path == _STANDARD else path
    access = context.service(FileAccess)
    with _opened(path, None if path == _STANDARD else access.find(path, context.folder, "read")) as file:
        declared = Declared(cast(Schema | None, schema), may_lack=True)
        batches = chosen.read(file, name, types or _types(declared.schema))
        given: Schema | Batch | None = []
        while given is not None:
            # The tuples that determined the schema follow it, without another read.
            if path == _STANDARD and not isinstance(given, Schema):
                await _readable(file.fileno())
            given = await context.in_thread(next, batches, None)
            if given is not None:
                yield declared.given(given)


def _types(schema: Schema | None) -> Types:
    return {} if schema is None else dict(zip(schema.names, schema.types, strict=True))


def _opened(path: str, target: Path | None) -> BinaryIO:
    """Open a file without a buffer, so that a read returns as soon as there are bytes."""
    try:
        if target is None:
            # A copy: closing it leaves standard input open, and several statements may wait for it.
            return cast(BinaryIO, open(os.dup(0), "rb", buffering=0))
        return cast(BinaryIO, open(target, "rb", buffering=0))
    except OSError as error:
        raise InputError(f"cannot read {path!r}: {error.strerror}") from error


async def _readable(descriptor: int) -> None:
    """Wait until a pipe or terminal has input, in a way that can be cancelled."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    try:
        loop.add_reader(descriptor, wake)
    except (OSError, NotImplementedError):
        return  # an ordinary file is always ready; some loops cannot watch one
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


# --- write --------------------------------------------------------------------------------------


def _write_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    chosen = _format_of(settings)
    if settings["append"] and not chosen.appends:
        raise SettingError(
            f"files in the format {chosen.name} cannot be appended to; jsonl and csv can", setting="append"
        )
    return inputs[0]


@operator(outputs=("written",), schema=_write_schema, firing="end", effects=True)
async def write(
    rel: Stream,
    *,
    path: str,
    format: FormatName | None = None,
    append: bool = False,
    formulas: Formulas | None = None,
    context: Context,
) -> AsyncGenerator[Batch, None]:
    """Write a relation to a file, or to standard output as it streams, and pass it on.

    The file replaces the previous one, as a whole, when the statement has ended successfully; otherwise
    nothing changes. An empty relation is written too. Decimals keep their digits, dates are in ISO 8601, NaN
    and the infinities are texts, and embedded relations are JSON. In CSV and TSV, a text that a spreadsheet
    would take for a formula gets an apostrophe in front.

    Arguments:
        rel: the tuples.
        path: the file, relative to the plan's; `-` is standard output. It lies in the folder of the plan, or
            where `allow` under `[files]` in the configuration says.
        format: jsonl, csv, tsv, json (one array) or parquet; by default that of the file's name, and jsonl
            for standard output.
        append: keep the content of the file and add to it; not for json and parquet.
        formulas: `keep` writes such texts as they are; `formulas` under `[files]` in the configuration says
            so for all files.

    Examples:
        write (houses, "houses.csv")
        write (changes, "changes.jsonl" : stored) {APPEND}
    """
    access = context.service(FileAccess)
    target = None if path == _STANDARD else access.find(path, context.folder, "write")
    chosen = _format_of({"path": path, "format": format}).keeping(formulas or access.settings.formulas)
    destination = Destination(path, target, chosen)
    try:
        destination.open()
        await context.in_thread(destination.start, append)
        while (batch := await rel.receive()) is not None:
            # Batches that have arrived meanwhile are written in one call on the thread.
            while len(batch) < _MOST_ROWS and (more := rel.take()) is not None:
                batch = [*batch, *more]
            await context.in_thread(destination.write, batch, rel.schema or Schema(()))
            yield batch
        await context.in_thread(destination.end, None if rel.is_untold else rel.schema)
        destination.commit()
    finally:
        destination.abandon()
