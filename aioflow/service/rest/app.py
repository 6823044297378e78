"""The application: routes made of their declarations, and the checks that each request passes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from aiohttp import web

from aioflow.config.masking import masked_logger
from aioflow.errors import AioflowError
from aioflow.service.rest.access import check_origin, check_role
from aioflow.service.rest.context import RestContext
from aioflow.service.rest.declarations import JSON, RestCall, RestRoute
from aioflow.service.rest.refusals import (
    KINDS,
    Refusal,
    RestError,
    encode,
    plain_refusal,
    refusal_of,
    status_of,
)
from aioflow.service.rest.routes import all_routes
from aioflow.service.rest.validation import BODY_BYTES, read_body, read_path, read_query
from aioflow.service.service import MonitorService
from aioflow.service.store.tokens import AccessToken, Role

_LOG = masked_logger("aioflow.service.rest")
_Answer: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

CONTEXT = web.AppKey("context", RestContext)
_TOKEN = web.RequestKey("token", AccessToken)
_OPERATION = web.RequestKey("operation", str)
_BODY_SECONDS = 60.0
_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_MESSAGES = {
    404: "there is nothing under this address",
    405: "this address does not take this method",
    413: f"the body is larger than {BODY_BYTES:,} bytes",
}


def create_app(service: MonitorService) -> web.Application:
    """Return the REST interface of a service."""
    app = web.Application(middlewares=[_guard], client_max_size=BODY_BYTES)
    context = app[CONTEXT] = RestContext(service)
    for route in all_routes():
        app.router.add_route(route.method, route.path, _endpoint(route, context))
    app.on_response_prepare.append(_add_headers)
    app.on_shutdown.append(_close)
    return app


def _endpoint(route: RestRoute, context: RestContext) -> _Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        request[_OPERATION] = route.name
        token = None
        if route.role is not None:
            token = await context.authentication.token_of(request)
            request[_TOKEN] = token
            check_role(token, route.role)
        path, query = read_path(route, request), read_query(route, request)
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                body = await read_body(route, request)
        except TimeoutError:
            raise RestError(400, "the body did not arrive in time") from None
        found = await route.handler(RestCall(request, context, token, path, query, body))
        if isinstance(found, web.StreamResponse):
            return found
        if found is None:
            return web.Response(status=204)
        return web.Response(body=encode(found), status=route.status, content_type=JSON)

    return answer


@web.middleware
async def _guard(request: web.Request, handler: _Answer) -> web.StreamResponse:
    """Check where a request comes from, answer every error with JSON, and count the answers."""
    context = request.app[CONTEXT]
    response = await _guarded(request, handler, context)
    context.answered[request.get(_OPERATION, "none"), response.status] += 1
    return response


async def _guarded(request: web.Request, handler: _Answer, context: RestContext) -> web.StreamResponse:
    try:
        check_origin(request, context.service.settings.url)
        return await handler(request)
    except AioflowError as error:
        token = request.get(_TOKEN)
        role: Role = "viewer" if token is None else token.role
        headers = error.headers if isinstance(error, RestError) else {}
        refusal = refusal_of(error, context.may_show(role))
        return _refused(status_of(error), refusal, headers)
    except web.HTTPException as error:
        status = error.status if error.status in KINDS else 400
        headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
        message = _MESSAGES.get(status, error.reason)
        return _refused(status, plain_refusal(status, message), headers)
    except (ConnectionError, asyncio.CancelledError):
        raise
    except Exception:
        _LOG.exception("%s %s failed", request.method, request.path)
        message = "the service made a mistake; its log says more"
        return _refused(500, plain_refusal(500, message), {})


def _refused(status: int, refusal: Refusal, headers: Mapping[str, str]) -> web.Response:
    return web.Response(body=encode(refusal), status=status, content_type=JSON, headers=headers)


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)


async def _close(app: web.Application) -> None:
    app[CONTEXT].close()
