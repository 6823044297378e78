"""Reads the parts of requests strictly: unknown and repeated keys, wrong types and odd texts are refused."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from math import isinf
from typing import Any, get_origin

import msgspec
from aiohttp import web

from aioflow.service.rest.declarations import JSON, RestRoute
from aioflow.service.rest.refusals import RestError

BODY_BYTES = 6_000_000  # a plan file has 5 MB at most
_TEXT_CHARACTERS = 400  # of a part of the path
_DEPTH_AT_MOST = 100
_YEARS = range(1970, 9000)


def read_path(route: RestRoute, request: web.Request) -> dict[str, str]:
    """Return the parts of the path that vary."""
    found = {name: request.match_info[name] for name in route.parameters}
    for name, text in found.items():
        if not text or len(text) > _TEXT_CHARACTERS or not _is_text(text) or "\0" in text:
            raise RestError(404, f"there is no {name} {text[:80]!r}")
    return found


def read_query(route: RestRoute, request: web.Request) -> Any:
    """Return the query as its declared type."""
    kind = route.query
    given = request.rel_url.query
    fields = {} if kind is None else {each.encode_name: each for each in msgspec.structs.fields(kind)}
    values: dict[str, Any] = {}
    for name in given:
        if name not in fields:
            known = ", ".join(fields) or "none"
            raise RestError(400, f"unknown parameter {name[:80]!r} of the query (parameters: {known})")
        texts = given.getall(name)
        if get_origin(fields[name].type) is list:
            values[name] = texts
        elif len(texts) > 1:
            raise RestError(400, f"the parameter {name!r} of the query is given {len(texts)} times")
        else:
            values[name] = texts[0]
    if kind is None:
        return None
    _check_values(values)
    return _converted(values, kind, "query", strict=False)


async def read_body(route: RestRoute, request: web.Request) -> Any:
    """Return the body as its declared type."""
    if route.accepts != JSON:
        return None
    if route.body is None:
        if request.body_exists and await request.read():
            raise RestError(400, "this request takes no body")
        return None
    if request.content_type != JSON:
        raise RestError(415, f"the body must be {JSON}, not {request.content_type[:80]!r}")
    if (request.charset or "utf-8").lower() not in ("utf-8", "utf8"):
        raise RestError(415, f"the body must be in UTF-8, not in {(request.charset or '')[:80]!r}")
    content = _parsed(await request.read())
    _check_values(content)
    return _converted(content, route.body, "body", strict=True)


def _parsed(data: bytes) -> Any:
    """Return the value of a JSON text. msgspec would take the last of several equal keys."""
    try:
        return json.loads(
            data.decode(), object_pairs_hook=_object, parse_float=_float, parse_constant=_constant
        )
    except UnicodeDecodeError:
        raise RestError(400, "the body is not in UTF-8") from None
    except RecursionError:
        raise RestError(400, "the body is nested too deeply") from None
    except ValueError as error:
        raise RestError(400, f"the body is no JSON: {str(error)[:200]}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise RestError(400, f"the key {twice[:80]!r} stands twice in one object")
    return found


def _float(text: str) -> float:
    """Return a number; one that a float cannot hold would be stored as null."""
    found = float(text)
    if isinf(found):
        raise RestError(400, f"the number {text[:80]} is too large")
    return found


def _constant(name: str) -> Any:
    raise RestError(400, f"the body is no JSON: {name} is no number")


def _check_values(value: Any, depth: int = 0) -> None:
    """Refuse texts that no database can store, and nesting that no program of ours follows."""
    if depth > _DEPTH_AT_MOST:
        raise RestError(400, f"the body is nested deeper than {_DEPTH_AT_MOST} levels")
    if isinstance(value, str):
        if "\0" in value or not _is_text(value):
            raise RestError(400, "a text holds the character NUL or half a surrogate pair")
    elif isinstance(value, Mapping):
        _check_all(value.keys(), depth)
        _check_all(value.values(), depth)
    elif isinstance(value, list):
        _check_all(value, depth)


def _check_all(values: Iterable[Any], depth: int) -> None:
    for each in values:
        _check_values(each, depth + 1)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _converted(value: Any, kind: Any, part: str, *, strict: bool) -> Any:
    try:
        found = msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise RestError(400, f"the {part} does not fit: {error}") from None
    for field in msgspec.structs.fields(found) if isinstance(found, msgspec.Struct) else ():
        moment = getattr(found, field.name)
        if isinstance(moment, datetime) and moment.year not in _YEARS:
            raise RestError(400, f"the {part} does not fit: {field.name} is too early or too late")
    return found
