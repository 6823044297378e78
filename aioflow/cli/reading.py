"""Reads rows from files and stdin as plain mappings; types are left to the engine."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, suppress
from io import BufferedReader, FileIO
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from aioflow.cli.formats import JSON_LINES
from aioflow.cli.values import parsed_json
from aioflow.dataclass import dataclass
from aioflow.errors import InputError
from aioflow.operators.encoding import read_value
from aioflow.operators.formats import Format
from aioflow.relation import Schema, Type

T = TypeVar("T")

# Of inputs that are JSON, what they begin with tells lines from an array.
JSONS = (JSON_LINES, "json")
CHUNK_BYTES = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def row_of(content: Any, place: str) -> Mapping[str, Any]:
    """A JSON object as a row."""
    if not isinstance(content, dict):
        raise InputError(f"{place}: expected an object, found {_kind(content)}")
    return content


def is_array(beginning: bytes) -> bool:
    """Whether what begins so is one JSON array, and not JSON lines."""
    return beginning.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")


def array_rows(data: bytes, name: str) -> list[Mapping[str, Any]]:
    """A JSON array of objects."""
    content = parsed_json(data, name)
    return [row_of(each, f"{name}, row {number}") for number, each in enumerate(content, 1)]


def file_rows(path: Path, name: str, format: Format, declared: Schema | None) -> Iterator[Mapping[str, Any]]:
    """The rows of a file in one of the library's formats, read as they are asked for."""
    with path.open("rb") as file:
        for portion in _portions(file, name, format, declared):
            yield from portion


def _portions(
    file: BinaryIO, name: str, format: Format, declared: Schema | None
) -> Iterator[list[dict[str, Any]]]:
    relations = (
        [] if declared is None else [each for each in declared if declared.type_of(each) is Type.RELATION]
    )
    names: tuple[str, ...] = ()
    for portion in format.read(file, name, {}):
        if isinstance(portion, Schema):
            names = portion.names
            continue
        rows = [dict(zip(names, row, strict=True)) for row in portion]
        for attribute in relations:
            for row in rows:
                # The engine reads the other types; only here is it known that this is JSON in a cell.
                if isinstance(row.get(attribute), str):
                    row[attribute] = read_value(row[attribute], Type.RELATION)
        yield rows


def _line_row(line: bytes, place: str) -> Mapping[str, Any]:
    return row_of(parsed_json(line.removeprefix(_BYTE_ORDER_MARK), place), place)


# --- what has to be waited for ------------------------------------------------------------------


async def standard_input_rows() -> AsyncIterator[Mapping[str, Any]]:
    """JSON lines from stdin, each row as soon as its line is there."""
    rest, number = b"", 0
    async with aclosing(_from_thread(_chunks(0))) as chunks:
        async for chunk in chunks:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                number += 1
                if line.strip():
                    yield _line_row(line, f"stdin:{number}")
    if rest.strip():
        yield _line_row(rest, f"stdin:{number + 1}")


def _chunks(descriptor: int) -> Iterator[bytes]:
    while chunk := os.read(descriptor, CHUNK_BYTES):
        yield chunk


async def pipe_rows(
    path: Path, name: str, format: Format, declared: Schema | None
) -> AsyncIterator[Mapping[str, Any]]:
    """The rows of a pipe or device as they arrive; it is opened once, for what was read is gone."""

    def portions() -> Iterator[list[dict[str, Any]]]:
        # Opening a pipe waits for whoever writes to it.
        with _AsItComes(FileIO(path)) as file:
            if format.name in JSONS and is_array(file.peek(1)):
                rows = array_rows(file.read(), name)
                # The first row tells the attributes of all that come one by one.
                names = dict.fromkeys(chain.from_iterable(rows))
                yield [{each: row.get(each) for each in names} for row in rows]
            else:
                yield from _portions(file, name, format, declared)

    async with aclosing(_from_thread(portions())) as arriving:
        async for portion in arriving:
            for row in portion:
                yield row


class _AsItComes(BufferedReader):
    """A file that gives what is there already, rather than wait for as much as was asked for."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read1(size) if size is not None and size > 0 else super().read(size)


async def _from_thread(blocking: Iterator[T]) -> AsyncGenerator[T, None]:
    """What an iterator gives, each when it is asked for, by a thread that may block.

    A terminal or pipe cannot be read otherwise: it must not be made non-blocking for others who share it.
    """
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[T | _End] = asyncio.Queue()
    wanted = threading.Semaphore(1)
    has_left = False

    def work() -> None:
        found: T | _End = _End()
        while wanted.acquire() and not has_left:
            try:
                found = next(blocking, _End())
            except Exception as error:
                found = _End(error)
            # When the loop was closed, the run has ended without us.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(arrived.put_nowait, found)
            if isinstance(found, _End):
                return

    # A daemon: the process must be able to end while nobody types.
    threading.Thread(target=work, name="aioflow input", daemon=True).start()
    try:
        while not isinstance(found := await arrived.get(), _End):
            yield found
            wanted.release()
        if found.error is not None:
            raise found.error
    finally:
        has_left = True
        wanted.release()


@dataclass(frozen=True)
class _End:
    """Behind the last; `error` is why there are no more."""

    error: Exception | None = None


def _kind(content: Any) -> str:
    names = {list: "an array", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(content), "a number")
