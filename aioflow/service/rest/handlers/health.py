"""Health, readiness, metrics, sources, and the description of the interface itself."""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime
from typing import Any

import msgspec
from aiohttp import web

from aioflow.errors import AioflowError
from aioflow.service.rest.declarations import RestCall, RouteTable
from aioflow.service.rest.refusals import RestError
from aioflow.service.store.tasks import read_revision

TABLE = RouteTable("health")

_READY_SECONDS = 5.0
_METRICS = "text/plain"


class Health(msgspec.Struct, frozen=True):
    status: str


class SourceView(msgspec.Struct, frozen=True):
    """The figures of a host since the service began, and whether its requests have to wait."""

    host: str
    requests: int
    answers: dict[str, int]
    failures: dict[str, int]
    refused: dict[str, int]
    retries: int
    bytes_in: int
    in_flight: int
    waiting: int
    rate: float | None
    concurrency: int
    paused_until: datetime | None
    breaker: str
    breaker_until: datetime | None
    robots: str
    median_seconds: float | None
    slowest_seconds: float | None


class SourceList(msgspec.Struct, frozen=True):
    sources: list[SourceView]


@TABLE.add("GET", "/healthz", role=None)
async def check_health(call: RestCall[None, None]) -> Health:
    """Say that the process answers."""
    return Health("ok")


@TABLE.add("GET", "/readyz", role=None, refusals=(503,))
async def check_readiness(call: RestCall[None, None]) -> Health:
    """Say whether the service works: it has begun, does not stop, and its database answers."""
    service = call.context.service
    if not service.is_ready:
        raise RestError(503, "the service begins or stops")
    try:
        async with asyncio.timeout(_READY_SECONDS):
            async with service.database.reading() as statements:
                await read_revision(statements)
    except (TimeoutError, AioflowError):
        raise RestError(503, "the task database does not answer") from None
    return Health("ready")


@TABLE.add("GET", "/metrics", content=_METRICS, refusals=(501,))
async def read_metrics(call: RestCall[None, None]) -> web.Response:
    """Return figures for Prometheus."""
    from aioflow.service.rest.metrics import metrics_text

    body, content_type = await metrics_text(call.context)
    return web.Response(body=body, headers={"Content-Type": content_type})


@TABLE.add("GET", "/api/sources")
async def list_sources(call: RestCall[None, None]) -> SourceList:
    """List the hosts that runs have asked, and their states."""
    return SourceList([_source(each) for each in source_statistics(call.context.service.engine.services)])


@TABLE.add("GET", "/openapi.json")
async def describe_interface(call: RestCall[None, None]) -> web.Response:
    """Return the OpenAPI description of this interface."""
    from aioflow.service.rest.openapi import openapi_text

    return web.Response(body=openapi_text(), content_type="application/json")


def source_statistics(services: Any) -> list[Any]:
    """Return the figures of the HTTP client of an engine, if it was used."""
    module = sys.modules.get("aioflow.web.client")
    client = None if module is None else services.opened(module.Client)
    return [] if client is None else list(client.statistics().sources)


def _source(each: Any) -> SourceView:
    return SourceView(
        *(each.host, each.requests, dict(each.answers), dict(each.failures), dict(each.refused)),
        *(each.retries, each.bytes_in, each.in_flight, each.waiting, each.rate, each.concurrency),
        *(each.paused_until, each.breaker, each.breaker_until, each.robots),
        *(each.latency.p50, each.latency.maximum),
    )
