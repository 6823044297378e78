"""Reads rows from files and stdin as plain mappings; types are left to the engine."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

from aioflow.errors import InputError
from aioflow.operators.encoding import read_value
from aioflow.operators.formats import Format
from aioflow.relation import Schema, Type

CHUNK_BYTES = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def row_of(content: Any, place: str) -> Mapping[str, Any]:
    """A JSON object as a row."""
    if not isinstance(content, dict):
        raise InputError(f"{place}: expected an object, found {_kind(content)}")
    return content


def json_rows(path: Path, name: str) -> list[Mapping[str, Any]]:
    """A file that holds a JSON array of objects."""
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise InputError(f"{name}: not JSON ({error})") from error
    return [row_of(each, f"{name}, row {number}") for number, each in enumerate(content, 1)]


def file_rows(path: Path, name: str, format: Format, declared: Schema | None) -> Iterator[Mapping[str, Any]]:
    """The rows of a file in one of the library's formats, read as they are asked for."""
    relations = (
        [] if declared is None else [each for each in declared if declared.type_of(each) is Type.RELATION]
    )
    with path.open("rb") as file:
        names: tuple[str, ...] = ()
        for portion in format.read(file, name, {}):
            if isinstance(portion, Schema):
                names = portion.names
                continue
            for row in portion:
                mapping = dict(zip(names, row, strict=True))
                for attribute in relations:
                    # The engine reads the other types; only here is it known that this is JSON in a cell.
                    if isinstance(mapping.get(attribute), str):
                        mapping[attribute] = read_value(mapping[attribute], Type.RELATION)
                yield mapping


def _line_row(line: bytes, place: str) -> Mapping[str, Any]:
    try:
        content = json.loads(line.removeprefix(_BYTE_ORDER_MARK))
    except ValueError as error:
        raise InputError(f"{place}: not JSON ({error})") from error
    return row_of(content, place)


# --- stdin --------------------------------------------------------------------------------------


async def standard_input_rows() -> AsyncIterator[Mapping[str, Any]]:
    """JSON lines from stdin, each row as soon as its line is there."""
    rest, number = b"", 0
    async for chunk in _chunks(0):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            number += 1
            if line.strip():
                yield _line_row(line, f"stdin:{number}")
    if rest.strip():
        yield _line_row(rest, f"stdin:{number + 1}")


async def _chunks(descriptor: int) -> AsyncIterator[bytes]:
    """What a descriptor gives, read by a thread: a terminal or file must not be made non-blocking."""
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes | OSError] = asyncio.Queue()
    wanted = threading.Semaphore(1)

    def read() -> None:
        chunk: bytes | OSError = b"-"
        while chunk and not isinstance(chunk, OSError):
            wanted.acquire()
            try:
                chunk = os.read(descriptor, CHUNK_BYTES)
            except OSError as error:
                chunk = error
            try:
                loop.call_soon_threadsafe(chunks.put_nowait, chunk)
            except RuntimeError:
                return  # the loop was closed: the run has ended without us

    # A daemon: the process must be able to end while nobody types.
    threading.Thread(target=read, name="aioflow stdin", daemon=True).start()
    while chunk := await chunks.get():
        if isinstance(chunk, OSError):
            raise chunk
        yield chunk
        wanted.release()


def _kind(content: Any) -> str:
    names = {list: "an array", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(content), "a number")
