"""Values on the command line: JSON, and `NAME=VALUE` for the attributes of one tuple."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from aioflow.errors import InputError
from aioflow.relation import Type


def parsed_json(text: str | bytes, place: str, hint: str = "") -> Any:
    """What a text of JSON says; a mistake names its place, and a hint tells what else could be meant."""
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
    """Whether a text can only be an object or an array."""
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
