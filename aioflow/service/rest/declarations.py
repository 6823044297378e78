"""Declarations of routes. A decorated handler declares its query, body and answer by its annotations.

Routing, the check of requests, the OpenAPI description and docs/rest.md are made from these.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, get_args, get_type_hints

import msgspec

from aioflow.service.store.tokens import AccessToken, Role

if TYPE_CHECKING:
    from aiohttp import web

    from aioflow.service.rest.context import RestContext

Query = TypeVar("Query")
Body = TypeVar("Body")
Handler: TypeAlias = Callable[..., Awaitable[Any]]

JSON = "application/json"
EVENT_STREAM = "text/event-stream"
BYTES = "application/octet-stream"
JSON_LINES = "application/x-ndjson"
_PARAMETER = re.compile(r"\{(\w+)\}")


class RestCall(Generic[Query, Body]):
    """A request whose parts were checked against the declaration of its route."""

    def __init__(
        self,
        request: web.Request,
        context: RestContext,
        token: AccessToken | None,
        path: Mapping[str, str],
        query: Query,
        body: Body,
    ) -> None:
        self.request = request
        self.context = context
        self.token = token
        self.path = path
        self.query = query
        self.body = body

    @property
    def role(self) -> Role:
        return "viewer" if self.token is None else self.token.role


class RestRoute(msgspec.Struct, frozen=True):
    """One route. Without a `role` no token is needed; `refusals` are statuses that only this route has."""

    method: str
    path: str
    role: Role | None
    handler: Handler
    tag: str
    summary: str
    description: str
    query: Any = None
    body: Any = None
    answer: Any = None
    content: str = JSON
    status: int = 200
    refusals: tuple[int, ...] = ()
    accepts: str = JSON  # another type of body is left to the handler

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self.handler.__name__

    @property
    def parameters(self) -> Sequence[str]:
        """The names of the parts of the path that vary."""
        return _PARAMETER.findall(self.path)


class RouteTable:
    """The routes of one subject."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.routes: list[RestRoute] = []

    def add(
        self,
        method: str,
        path: str,
        *,
        role: Role | None = "viewer",
        content: str = JSON,
        status: int = 200,
        refusals: Sequence[int] = (),
        accepts: str = JSON,
    ) -> Callable[[Handler], Handler]:
        """Declare a route: `async def list_runs(call: RestCall[RunsQuery, None]) -> RunPage`."""

        def register(handler: Handler) -> Handler:
            hints = get_type_hints(handler)
            answer = hints.pop("return")
            query, body = (_declared(each) for each in get_args(hints["call"]))
            summary, _, rest = inspect.cleandoc(handler.__doc__ or "").partition("\n\n")
            self.routes.append(
                RestRoute(
                    *(method, path, role, handler, self.tag, summary, " ".join(rest.split())),
                    *(query, body, _declared(answer), content, status, tuple(refusals), accepts),
                )
            )
            return handler

        return register


def _declared(kind: Any) -> Any:
    return None if kind is type(None) else kind
