"""All routes of the REST interface, in the order of the documentation."""

from __future__ import annotations

from functools import cache

from aioflow.service.rest.declarations import RestRoute
from aioflow.service.rest.handlers import (
    catalogue,
    databases,
    events,
    health,
    history,
    imports,
    plans,
    runs,
    settings,
    tasks,
    tokens,
)


@cache
def all_routes() -> tuple[RestRoute, ...]:
    """Return all routes."""
    tables = (tasks, imports, runs, history, events, databases, plans, catalogue, settings, tokens, health)
    return tuple(route for module in tables for route in module.TABLE.routes)
