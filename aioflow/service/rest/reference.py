"""docs/rest.md, written from the declarations of routes: `python -m aioflow.service.rest`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

import msgspec

from aioflow.service.rest.declarations import JSON, RestRoute
from aioflow.service.rest.openapi import refusal_statuses
from aioflow.service.rest.refusals import KINDS
from aioflow.service.rest.routes import all_routes

_OPENING = """\
# REST reference

<!-- Written by `make docs` from the declarations of the routes: edit their docstrings instead. -->

`aioflow serve` answers under `http://127.0.0.1:8650`. [Use the REST interface](how-to/use-rest.md) describes
tokens, roles and events. The same declarations are served as OpenAPI 3.1 under `/openapi.json`.

Bodies and answers are JSON in UTF-8. Unknown keys, repeated keys and values of another type are refused.
Every error has one shape:

```json
{"error": {"kind": "not-found", "message": "there is no task 'homes' (tasks: none)"}}
```

Mistakes in a plan are listed under `diagnostics`, with `message`, `severity`, `file`, `line` and `column`.
"""
_STATUSES = {
    400: "the request is malformed",
    401: "the token is missing or wrong",
    403: "the role, the host or the origin is not allowed",
    404: "the thing does not exist",
    405: "the address does not take the method",
    409: "the thing exists already, or was changed meanwhile",
    413: "the body is too large",
    415: "the body is not JSON in UTF-8",
    422: "the content makes no sense, or a plan has mistakes",
    429: "too many attempts",
    500: "the service made a mistake, which its log describes",
    501: "an optional package is not installed",
    503: "the service or its database is not ready",
}


def reference() -> str:
    """Return the page."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield _OPENING
    yield "| status | kind | meaning |"
    yield "|---|---|---|"
    yield from (f"| {status} | `{KINDS[status]}` | {meaning} |" for status, meaning in _STATUSES.items())
    routes = all_routes()
    for tag in dict.fromkeys(route.tag for route in routes):
        yield ""
        yield f"## {tag.capitalize()}"
        for route in routes:
            if route.tag == tag:
                yield ""
                yield from _route(route)
    yield ""
    yield "## Structures"
    for kind in _structures(routes):
        yield ""
        yield from _structure(kind)


def _route(route: RestRoute) -> Iterator[str]:
    yield f"### {route.method} {route.path}"
    yield ""
    role = "Needs no token." if route.role is None else f"Role: {route.role}."
    yield f"{route.summary} {role}"
    if route.description:
        yield ""
        yield route.description
    if route.query is not None:
        yield ""
        yield "Query:"
        yield ""
        yield from _fields(route.query)
        if about := _about(route.query):
            yield ""
            yield about
    yield ""
    if route.body is not None:
        yield f"Body: {_shown(route.body)}. Answer: {_answer(route)}."
    elif route.accepts != JSON:
        yield f"Body: `{route.accepts}`. Answer: {_answer(route)}."
    else:
        yield f"Answer: {_answer(route)}."
    common = {400, 401, 403, 413, 415, 429, 503}
    more = [f"{status}" for status in refusal_statuses(route) if status not in common]
    if more:
        yield f"Refusals of its own: {', '.join(more)}."


def _answer(route: RestRoute) -> str:
    if route.status == 204:
        return "204, without content"
    status = "" if route.status == 200 else f"{route.status}, "
    if route.content == JSON and isinstance(route.answer, type) and issubclass(route.answer, msgspec.Struct):
        return f"{status}{_shown(route.answer)}"
    return f"{status}`{route.content}`"


def _fields(kind: Any) -> Iterator[str]:
    for field in msgspec.structs.fields(kind):
        default = ""
        if field.required:
            default = ", required"
        elif field.default not in (msgspec.NODEFAULT, None, msgspec.UNSET):
            default = f", default `{msgspec.json.encode(field.default, enc_hook=str).decode()}`"
        yield f"- `{field.encode_name}`: {_shown(field.type)}{default}"


def _structure(kind: Any) -> Iterator[str]:
    yield f"### {kind.__name__}"
    yield ""
    if about := _about(kind):
        yield about
        yield ""
    yield from _fields(kind)


def _about(kind: Any) -> str:
    return " ".join((kind.__doc__ or "").split())


def _structures(routes: tuple[RestRoute, ...]) -> list[Any]:
    """Return all structures of bodies and answers, and those inside of them, by name."""
    found: dict[str, Any] = {}
    waiting = [kind for route in routes for kind in (route.body, route.answer) if kind is not None]
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            if kind.__name__ not in found:
                found[kind.__name__] = kind
                waiting += [field.type for field in msgspec.structs.fields(kind)]
        else:
            waiting += get_args(kind)
    return [found[name] for name in sorted(found)]


def _shown(kind: Any) -> str:
    """Return a type in words."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    return _WORDS.get(kind) or _composed(kind)


_WORDS: dict[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    type(None): "null",
    Any: "any value",
}


def _composed(kind: Any) -> str:
    origin, arguments = get_origin(kind), get_args(kind)
    name = getattr(origin, "__name__", str(origin))
    if name == "Annotated" or hasattr(kind, "__metadata__"):
        return _annotated(kind)
    if name == "Literal":
        return " or ".join(f"`{each}`" for each in arguments)
    if name == "list":
        return f"list of {_shown(arguments[0])}"
    if name in ("dict", "Mapping"):
        return f"object with values: {_shown(arguments[1])}"
    if arguments:
        kinds = [each for each in arguments if each is not msgspec.UnsetType]
        return " or ".join(_shown(each) for each in kinds)
    return (
        "moment, as in `2026-01-31T10:00:00Z`" if getattr(kind, "__name__", "") == "datetime" else str(kind)
    )


def _annotated(kind: Any) -> str:
    limits = []
    for meta in kind.__metadata__:
        if meta.description:
            limits.append(meta.description)
        if meta.ge is not None or meta.gt is not None:
            limits.append(f"at least {meta.ge}" if meta.ge is not None else f"more than {meta.gt}")
        if meta.le is not None:
            limits.append(f"at most {meta.le:,}")
        if meta.max_length is not None:
            limits.append(f"length at most {meta.max_length:,}")
        if meta.tz:
            limits.append("with its offset")
    shown = _shown(kind.__origin__)
    return f"{shown} ({', '.join(limits)})" if limits else shown
