"""Inputs of a plan by `--input` and `--set`: rows from files, stdin or the command line, and parameters.

Reads rows from files and stdin as plain mappings; types are left to the engine.

Values on the command line: JSON, and `NAME=VALUE` for the attributes of one tuple.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from io import BufferedReader, FileIO
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, TypeVar

import msgspec

from aioflow.cli.exit import os_error_text
from aioflow.cli.output.colour import shortened
from aioflow.cli.output.formats import JSON_LINES
from aioflow.config.masking import conceal
from aioflow.errors import InputError, SettingError, suggestion
from aioflow.operators.formats import Format, formats
from aioflow.plan import InputDeclaration, Plan
from aioflow.relation import Schema, Type
from aioflow.values.cells import read_value


def parsed_json(text: str | bytes, place: str, hint: str = "") -> Any:
    """Return the value of a JSON text. A mistake names its place, and a hint gives other readings."""
    try:
        return json.loads(text)
    except RecursionError:
        raise InputError(f"{place}: this JSON is nested too deeply") from None
    except ValueError as error:
        data = text if isinstance(text, bytes) else text.encode(errors="replace")
        if b"\r" in data.rstrip(b"\r\n") and b"\n" not in data.rstrip(b"\r\n"):
            hint = "; lines end with a line feed, not with a carriage return alone"
        raise InputError(f"{place}: not JSON ({error}){hint}") from error


def is_json_of_rows(text: str) -> bool:
    """Return whether a text can only be an object or an array."""
    return text.lstrip()[:1] in ("{", "[")


def constant(text: str, kind: Type | None = None) -> Any:
    """A value as it is written: what reads as JSON is that, all else is text, as is what a `char` gets."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if kind is not Type.CHAR or value is None or isinstance(value, str) else text


def single_tuple(given: Sequence[tuple[str, str]], types: Mapping[str, Type | None]) -> dict[str, Any]:
    """The tuple that all NAME=VALUE make together."""
    values: dict[str, Any] = {}
    for name, text in given:
        if name in values:
            raise InputError(f"--input {name} is given twice")
        values[name] = constant(text, types.get(name))
    return values


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
    """Return whether what begins so is one JSON array, and not JSON lines."""
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
    """Yield the items of an iterator, each on request, from a thread that may block.

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


class _End(msgspec.Struct, frozen=True):
    """Behind the last; `error` is why there are no more."""

    error: Exception | None = None


def _kind(content: Any) -> str:
    names = {list: "an array", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(content), "a number")


Rows: TypeAlias = Iterable[Mapping[str, Any]] | AsyncIterator[Mapping[str, Any]]


def read_inputs(given: Sequence[str], plan: Plan) -> dict[str, Rows]:
    """The rows for each input of a plan; those of a file are read as they are asked for.

    All that name attributes of the only input make one tuple together.
    """
    declared = {each.name: each for each in plan.inputs}
    found: dict[str, Rows] = {}
    attributes: list[tuple[str, str]] = []
    standard_input: str | None = None
    for text in given:
        if (attribute := _attribute(text, plan)) is not None:
            attributes.append(attribute)
            continue
        name, value = _split(text, plan)
        if name in found:
            raise InputError(f"--input {name} is given twice")
        if value == "-":
            if standard_input is not None:
                raise InputError(f"only one input can read stdin, not both {standard_input} and {name}")
            standard_input = name
        found[name] = _rows(declared[name], value)
    if attributes:
        (only,) = plan.inputs
        if only.name in found:
            shown = f"its rows, and its attribute {attributes[0][0]}"
            raise InputError(f"--input {only.name} is given twice: {shown}")
        found[only.name] = [single_tuple(attributes, _types(only))]
    missing = [name for name in declared if name not in found]
    if missing:
        shown = ", ".join(f"--input {name}=@FILE" for name in missing)
        raise InputError(f"plan {plan.name} needs {shown} (or {_other_ways(plan)})")
    return found


def input_sources(given: Sequence[str], plan: Plan) -> dict[str, str]:
    """Where the rows of each input come from: a file, `stdin` or the `command line`."""
    values = dict(
        _split(text, plan) if _attribute(text, plan) is None else (plan.inputs[0].name, text)
        for text in given
    )
    return {
        name: value[1:] if value.startswith("@") else "stdin" if value == "-" else "command line"
        for name, value in values.items()
    }


def is_read_elsewhere(text: str, plan: Plan) -> bool:
    """Return whether an input names a file or stdin, and not its rows or an attribute."""
    if _attribute(text, plan) is not None:
        return False
    return any(each == "-" or each.startswith("@") for each in (text, text.partition("=")[2]))


def _attribute(text: str, plan: Plan) -> tuple[str, str] | None:
    """Name and value of an attribute of the only input; None for rows, and for what makes no sense.

    What names the input itself is its rows, unless it is also the name of an attribute that is declared, and
    the value is none of the ways to give rows.
    """
    name, equals, value = text.partition("=")
    if len(plan.inputs) != 1 or not equals or not name or _gives_rows(text):
        return None
    only = plan.inputs[0]
    if only.schema is not None and name in only.schema:
        return None if name == only.name and _gives_rows(value) else (name, value)
    # Of an input that declares nothing any attribute may be meant; `url=@urls.csv` is a name spelled wrongly.
    is_open = only.schema is None and name != only.name and not _gives_rows(value)
    return (name, value) if is_open else None


def _gives_rows(text: str) -> bool:
    return text == "-" or text.startswith("@") or is_json_of_rows(text)


def _types(declared: InputDeclaration) -> dict[str, Type | None]:
    schema = declared.schema
    return {} if schema is None else dict(zip(schema.names, schema.types, strict=True))


def _other_ways(plan: Plan) -> str:
    if len(plan.inputs) != 1:
        return "JSON, or - for stdin"
    schema = plan.inputs[0].schema
    names = ("ATTRIBUTE",) if schema is None else schema.names
    return f"JSON, or - for stdin, or one tuple by {' '.join(f'--input {name}=VALUE' for name in names)}"


def _split(text: str, plan: Plan) -> tuple[str, str]:
    """Name and value of an input; the name may be left out where there is only one."""
    name, equals, value = text.partition("=")
    declared = [each.name for each in plan.inputs]
    if equals and name in declared:
        return name, value
    if _gives_rows(text):
        if len(declared) == 1:
            return declared[0], text
        count = f"{len(declared)} inputs: {', '.join(declared)}" if declared else "no inputs"
        raise InputError(f"--input {shortened(text, 40)}: plan {plan.name} has {count}")
    if not equals:
        raise InputError(f"--input {text}: expected NAME=@FILE, NAME=JSON or NAME=-")
    known = f"inputs: {', '.join(declared) or 'none'}"
    if len(plan.inputs) == 1 and plan.inputs[0].schema is not None:
        attributes = plan.inputs[0].schema.names
        near = suggestion(name, [*declared, *attributes])
        known += f"; its attributes: {', '.join(attributes)}"
        raise InputError(
            f"--input {name}: plan {plan.name} has no input of that name, nor its input such an attribute"
            f"{near} ({known})"
        )
    raise InputError(
        f"--input {name}: plan {plan.name} has no such input{suggestion(name, declared)} ({known})"
    )


def _rows(declared: InputDeclaration, value: str) -> Rows:
    name = declared.name
    if value == "-":
        return standard_input_rows()
    if value.startswith("@"):
        return _file_rows(value[1:], declared.schema)
    content = parsed_json(value, f"--input {name}", f"; a file is given as {name}=@FILE")
    listed = content if isinstance(content, list) else [content]
    return [row_of(each, f"--input {name}, row {number}") for number, each in enumerate(listed, 1)]


def _file_rows(name: str, declared: Schema | None) -> Rows:
    if "\0" in name:
        raise InputError(f"cannot read input: no path holds a NUL: {name!r}")
    path = Path(name)
    format = _input_format(name)
    if os.access(path, os.R_OK) and not path.is_file() and not path.is_dir():
        return pipe_rows(path, name, format, declared)
    try:
        with path.open("rb") as file:
            if format.name in JSONS and is_array(file.peek(1)):
                return array_rows(file.read(), name)
    except OSError as error:
        raise InputError(f"cannot read input: {os_error_text(error)}") from error
    return file_rows(path, name, format, declared)


def _input_format(name: str) -> Format:
    """By the ending, as for `read`; a name that tells nothing may be that of a pipe, and of JSON lines."""
    try:
        return formats.for_path(name)
    except SettingError:
        format = formats.get(JSON_LINES)
        assert format is not None
        return format


# --- parameters ---------------------------------------------------------------------------------


def read_parameters(given: Sequence[str], plan: Plan, *, all_needed: bool = True) -> dict[str, Any]:
    """The values that `--set` gives to parameters of a plan; what reads as JSON is that, the rest is text."""
    declared = {each.name.lower(): each for each in plan.parameters}
    values: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--set {text}: expected PARAM=VALUE")
        if name.lower() not in declared:
            known = ", ".join(each.name for each in plan.parameters) or "none"
            near = suggestion(name, declared)
            raise InputError(
                f"--set {name}: plan {plan.name} has no such parameter{near} (parameters: {known})"
            )
        values[name.lower()] = _constant(value, name)
        if _CREDENTIAL.search(name):
            _conceal(values[name.lower()])
    missing = [each.name for each in plan.parameters if each.required and each.name.lower() not in values]
    if missing and all_needed:
        raise InputError(f"plan {plan.name} needs " + ", ".join(f"--set {name}=VALUE" for name in missing))
    return values


def _constant(text: str, name: str) -> Any:
    value = constant(text)
    if isinstance(value, dict):
        raise InputError(f"--set {name}: a parameter is text, a number, true, false, null or a list")
    return tuple(value) if isinstance(value, list) else value


# Names of parameters that are credentials and nothing else: a `key` may be that of a table, whose name would
# then be masked wherever it stands.
_CREDENTIAL = re.compile(
    r"(?:password|passwd|passphrase|secret|token|credentials?|api[-_]?key)$", re.IGNORECASE
)


def _conceal(value: Any) -> None:
    """Have a value shown nowhere; there is nothing to hide in a truth value or null."""
    if isinstance(value, tuple):
        for each in value:
            _conceal(each)
    elif value is not None and not isinstance(value, bool):
        conceal(str(value))
