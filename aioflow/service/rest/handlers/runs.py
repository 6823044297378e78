"""Runs, services and alerts."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from aiohttp import web

from aioflow.service.actions import RunView
from aioflow.service.alerts import Alert
from aioflow.service.errors import NotFoundError
from aioflow.service.rest.content import RunPage, RunsQuery, run_page
from aioflow.service.rest.declarations import JSON, RestCall, RouteTable
from aioflow.service.rest.progress import RunProgress
from aioflow.service.store.services import KnownService

TABLE = RouteTable("runs")


class RunLog(msgspec.Struct, frozen=True):
    """The latest lines of the log of a run; of one under way, those so far."""

    text: str
    is_under_way: bool


class SampledRow(msgspec.Struct, frozen=True):
    output: str
    row: dict[str, Any]


class RunSample(msgspec.Struct, frozen=True):
    """The first rows of the outputs of a run."""

    rows: list[SampledRow]


class ServiceList(msgspec.Struct, frozen=True):
    """The services that were seen within the last minute."""

    services: list[KnownService]


class AlertList(msgspec.Struct, frozen=True):
    """Causes that last."""

    alerts: list[Alert]


@TABLE.add("GET", "/api/runs")
async def list_runs(call: RestCall[RunsQuery, None]) -> RunPage:
    """List the runs of all tasks."""
    query = call.query
    found = await call.context.actions(call.role).list_runs(
        states=query.state, before=query.before, cursor=query.cursor, limit=query.limit
    )
    return run_page(found, query.limit)


@TABLE.add("GET", "/api/runs/{id}", refusals=(404,))
async def show_run(call: RestCall[None, None]) -> RunView:
    """Return a run with its log and sample, by its id or occurrence, or the latest run of a task."""
    return await _run(call)


@TABLE.add("GET", "/api/runs/{id}/log", refusals=(404,))
async def show_run_log(call: RestCall[None, None]) -> RunLog:
    """Return the log of a run."""
    found = await _run(call)
    run_id = found.occurrence.run_id or ""
    live = call.context.service.runner.logs.text(run_id)
    return RunLog(live or found.log, run_id in call.context.service.runner.streams)


@TABLE.add("GET", "/api/runs/{id}/sample", refusals=(404,))
async def show_run_sample(call: RestCall[None, None]) -> RunSample:
    """Return the first rows of the outputs of a run."""
    found = await _run(call)
    live = call.context.service.runner.samples.get(found.occurrence.run_id or "")
    text = found.sample if live is None else live.text()
    return RunSample([msgspec.convert(json.loads(line), SampledRow) for line in text.splitlines()])


@TABLE.add("GET", "/api/runs/{id}/trace", refusals=(404,))
async def show_run_trace(call: RestCall[None, None]) -> web.Response:
    """Return the trace of a run that has ended, for ui.perfetto.dev."""
    found = await _run(call)
    if not found.trace:
        raise NotFoundError("this run has no trace: it has not ended, or its trace is not kept any more")
    return web.Response(text=found.trace, content_type=JSON)


@TABLE.add("GET", "/api/runs/{id}/progress", refusals=(404,))
async def show_run_progress(call: RestCall[None, None]) -> RunProgress:
    """Return the figures of a run that is under way in this service."""
    found = await _run(call)
    progress = call.context.progress.look().get(found.occurrence.run_id or "")
    if progress is None:
        raise NotFoundError("this run is not under way in this service")
    return progress


@TABLE.add("GET", "/api/services")
async def list_services(call: RestCall[None, None]) -> ServiceList:
    """List the services that share the task database."""
    return ServiceList(await call.context.actions(call.role).list_services())


@TABLE.add("GET", "/api/alerts")
async def list_alerts(call: RestCall[None, None]) -> AlertList:
    """List the causes of alerts that last."""
    return AlertList(await call.context.actions(call.role).list_alerts())


async def _run(call: RestCall[None, None]) -> RunView:
    return await call.context.actions(call.role).show_run(call.path["id"])
