"""The OpenAPI 3.1 description, made from the declarations that check requests."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from aioflow.service.rest.declarations import JSON, JSON_LINES, RestRoute
from aioflow.service.rest.refusals import KINDS, Refusal, encode
from aioflow.service.rest.routes import all_routes
from aioflow.service.store.tokens import ROLES
from aioflow.version import __version__

_REFERENCE = "#/components/schemas/{name}"
_STATUS_WORDS = {
    400: "The request is malformed.",
    401: "The token is missing or wrong.",
    403: "The role of the token, the host or the origin is not allowed.",
    404: "The thing does not exist.",
    409: "The thing exists already, or was changed meanwhile.",
    413: "The body is too large.",
    415: "The body is not JSON in UTF-8.",
    422: "The content makes no sense; a plan has diagnostics.",
    429: "Too many attempts.",
    501: "An optional package is not installed.",
    503: "The service or its database is not ready.",
}


@cache
def openapi_text() -> bytes:
    """Return the description as JSON."""
    return encode(openapi())


def openapi() -> dict[str, Any]:
    """Return the description."""
    routes = all_routes()
    kinds = [kind for route in routes for kind in (route.body, _json_answer(route)) if kind is not None]
    schemas, components = msgspec.json.schema_components([*kinds, Refusal], ref_template=_REFERENCE)
    by_kind = dict(zip(map(repr, [*kinds, Refusal]), schemas, strict=True))
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_kind)
    return {
        "openapi": "3.1.0",
        "info": {"title": "aioflow", "version": __version__, "description": _DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


_DESCRIPTION = (
    "The monitor service of aioflow. Every request but those for health, login and feeds needs a token. "
    f"Roles are {', '.join(ROLES)}; each may do all that those before it may."
)


def _json_answer(route: RestRoute) -> Any:
    return route.answer if route.content == JSON and _is_struct(route.answer) else None


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _operation(route: RestRoute, schemas: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": route.name,
        "tags": [route.tag],
        "summary": route.summary,
        "parameters": [*map(_path_parameter, route.parameters), *_query_parameters(route)],
        "responses": _responses(route, schemas),
    }
    role = "" if route.role is None else f"Needs the role {route.role}."
    if description := " ".join(filter(None, [route.description, role])):
        found["description"] = description
    if route.role is not None:
        found["security"] = [{"token": []}]
    if route.body is not None:
        schema = schemas[repr(route.body)]
        found["requestBody"] = {"required": True, "content": {JSON: {"schema": schema}}}
    if route.accepts != JSON:
        found["requestBody"] = {"required": True, "content": {route.accepts: {}}}
    return found


def _path_parameter(name: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "maxLength": 400}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameters(route: RestRoute) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    (_,), components = msgspec.json.schema_components([route.query], ref_template=_REFERENCE)
    declared = components[route.query.__name__]
    required = declared.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _without_null(schema)}
        for name, schema in declared["properties"].items()
    ]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter, which is left out and never null."""
    choices = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(choices) == 1:
        return dict(choices[0])
    return {name: value for name, value in schema.items() if not (name == "default" and value is None)}


def _responses(route: RestRoute, schemas: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": "Done."}
    kind = _json_answer(route)
    if kind is not None:
        answer["content"] = {JSON: {"schema": schemas[repr(kind)]}}
    elif route.status != 204:
        answer["content"] = {route.content: {}}
        if route.content == JSON_LINES:
            answer["content"] = {JSON_LINES: {"schema": {"type": "string"}}}
    found = {str(route.status): answer}
    for status in refusal_statuses(route):
        content = {JSON: {"schema": schemas[repr(Refusal)]}}
        found[str(status)] = {"description": _STATUS_WORDS[status], "content": content}
    return found


def refusal_statuses(route: RestRoute) -> list[int]:
    """Return the statuses with which a route may refuse a request."""
    statuses = {403, *route.refusals}
    if route.query is not None or route.body is not None or not route.parameters:
        statuses.add(400)
    if route.parameters:
        statuses.add(404)
        statuses.add(400)
    if route.role is not None:
        statuses |= {401, 429, 503}
    if route.body is not None:
        statuses |= {413, 415}
    return sorted(statuses & KINDS.keys())
