"""What `--input` and `--set` give to a plan: rows from files, stdin or the command line, and parameters."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from aioflow.cli.ending import os_error_text
from aioflow.cli.formats import JSON_LINES
from aioflow.cli.reading import (
    JSONS,
    array_rows,
    file_rows,
    is_array,
    pipe_rows,
    row_of,
    standard_input_rows,
)
from aioflow.errors import InputError, SettingError, suggestion
from aioflow.operators.formats import Format, formats
from aioflow.plan import InputDeclaration, Plan
from aioflow.relation import Schema

Rows: TypeAlias = Iterable[Mapping[str, Any]] | AsyncIterator[Mapping[str, Any]]


def read_inputs(given: Sequence[str], plan: Plan) -> dict[str, Rows]:
    """The rows for each input of a plan; those of a file are read as they are asked for."""
    declared = {each.name: each for each in plan.inputs}
    found: dict[str, Rows] = {}
    standard_input: str | None = None
    for text in given:
        name, value = _split(text, plan)
        if name in found:
            raise InputError(f"--input {name} is given twice")
        if value == "-":
            if standard_input is not None:
                raise InputError(f"only one input can read stdin, not both {standard_input} and {name}")
            standard_input = name
        found[name] = _rows(declared[name], value)
    missing = [name for name in declared if name not in found]
    if missing:
        shown = ", ".join(f"--input {name}=@FILE" for name in missing)
        raise InputError(f"plan {plan.name} needs {shown} (or JSON, or - for stdin)")
    return found


def input_sources(given: Sequence[str], plan: Plan) -> dict[str, str]:
    """Where the rows of each input come from: a file, `stdin` or the `command line`."""
    values = dict(_split(text, plan) for text in given)
    return {
        name: value[1:] if value.startswith("@") else "stdin" if value == "-" else "command line"
        for name, value in values.items()
    }


def _split(text: str, plan: Plan) -> tuple[str, str]:
    """Name and value of an input; the name may be left out where there is only one."""
    name, equals, value = text.partition("=")
    declared = [each.name for each in plan.inputs]
    if equals and name in declared:
        return name, value
    if text == "-" or text[:1] in "@{[":
        if len(declared) == 1:
            return declared[0], text
        count = f"{len(declared)} inputs: {', '.join(declared)}" if declared else "no inputs"
        raise InputError(f"--input {text}: plan {plan.name} has {count}")
    if not equals:
        raise InputError(f"--input {text}: expected NAME=@FILE, NAME=JSON or NAME=-")
    known = ", ".join(declared) or "none"
    raise InputError(
        f"--input {name}: plan {plan.name} has no such input{suggestion(name, declared)} (inputs: {known})"
    )


def _rows(declared: InputDeclaration, value: str) -> Rows:
    name = declared.name
    if value == "-":
        return standard_input_rows()
    if value.startswith("@"):
        return _file_rows(value[1:], declared.schema)
    try:
        content = json.loads(value)
    except ValueError as error:
        raise InputError(f"--input {name}: not JSON ({error}); a file is given as {name}=@FILE") from error
    listed = content if isinstance(content, list) else [content]
    return [row_of(each, f"--input {name}, row {number}") for number, each in enumerate(listed, 1)]


def _file_rows(name: str, declared: Schema | None) -> Rows:
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
    missing = [each.name for each in plan.parameters if each.required and each.name.lower() not in values]
    if missing and all_needed:
        raise InputError(f"plan {plan.name} needs " + ", ".join(f"--set {name}=VALUE" for name in missing))
    return values


def _constant(text: str, name: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict):
        raise InputError(f"--set {name}: a parameter is text, a number, true, false, null or a list")
    return tuple(value) if isinstance(value, list) else value
