"""Figures for Prometheus. They are gathered when they are asked for, and cost nothing before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from aioflow.errors import MissingExtraError
from aioflow.service.alerts import Alert, lasting_alerts
from aioflow.service.rest.context import RestContext
from aioflow.service.rest.handlers.health import source_statistics
from aioflow.service.store.tasks import read_tasks
from aioflow.service.task import Task
from aioflow.version import __version__

if TYPE_CHECKING:
    from prometheus_client.core import Metric

# Labels and a figure.
Values: TypeAlias = Sequence[tuple[tuple[str, ...], float]]

_TASK_STATES = ("active", "paused", "ended")
_ALL_STATES = ("waiting", "running", "succeeded", "failed", "cancelled", "skipped", "missed")


class _Figures(msgspec.Struct, frozen=True):
    """Everything that the task database tells."""

    tasks: list[Task]
    alerts: list[Alert]
    runs: dict[str, int]


async def metrics_text(context: RestContext) -> tuple[bytes, str]:
    """Return the figures as text, and its content type."""
    try:
        from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
        from prometheus_client.exposition import CONTENT_TYPE_LATEST
    except ImportError:
        raise MissingExtraError("metrics for Prometheus", "metrics") from None
    async with context.service.database.reading() as statements:
        rows = await statements.fetch("SELECT state, count(*) FROM aioflow_occurrences GROUP BY state")
        figures = _Figures(
            await read_tasks(statements),
            await lasting_alerts(statements),
            {str(state): int(number) for state, number in rows},
        )
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_Collector(context, figures))
    return generate_latest(registry), CONTENT_TYPE_LATEST


class _Collector:
    """Gives the figures in the form of the library."""

    def __init__(self, context: RestContext, figures: _Figures) -> None:
        self._context = context
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        """Yield all figures."""
        yield from self._of_service()
        yield from self._of_tasks()
        yield from self._of_sources()

    def _of_service(self) -> Iterator[Metric]:
        service = self._context.service
        yield _gauge("aioflow_info", "The version of aioflow", ("version",), [((__version__,), 1)])
        yield _gauge("aioflow_running", "Runs under way in this service", (), [((), service.running)])
        listeners = self._context.listeners
        yield _gauge("aioflow_listeners", "Listeners to live events", (), [((), listeners)])
        answered = [
            ((name, str(status)), number) for (name, status), number in self._context.answered.items()
        ]
        text = "Requests that were answered"
        yield _counter("aioflow_rest_requests", text, ("operation", "status"), answered)

    def _of_tasks(self) -> Iterator[Metric]:
        figures = self._figures
        runs = [((state,), figures.runs.get(state, 0)) for state in _ALL_STATES]
        yield _gauge("aioflow_runs", "Runs in the task database, by state", ("state",), runs)
        states = [((state,), sum(task.state == state for task in figures.tasks)) for state in _TASK_STATES]
        yield _gauge("aioflow_tasks", "Tasks, by state", ("state",), states)
        failures = [((task.name,), task.failures) for task in figures.tasks]
        yield _gauge("aioflow_task_failures", "Failed runs in a row", ("task",), failures)
        succeeded = [
            ((task.name,), task.last_success.timestamp()) for task in figures.tasks if task.last_success
        ]
        text = "The time of the last run that succeeded"
        yield _gauge("aioflow_task_last_success_timestamp_seconds", text, ("task",), succeeded)
        kinds: dict[str, int] = {}
        for alert in figures.alerts:
            kinds[alert.kind] = kinds.get(alert.kind, 0) + 1
        lasting = [((kind,), number) for kind, number in kinds.items()]
        yield _gauge("aioflow_alerts", "Causes of alerts that last", ("kind",), lasting)

    def _of_sources(self) -> Iterator[Metric]:
        sources = source_statistics(self._context.service.engine.services)
        requests = [((each.host,), each.requests) for each in sources]
        yield _counter("aioflow_source_requests", "Requests to hosts", ("host",), requests)
        failures = [((each.host, kind), number) for each in sources for kind, number in each.failures.items()]
        yield _counter("aioflow_source_failures", "Failed requests", ("host", "error"), failures)
        waiting = [((each.host,), each.waiting) for each in sources]
        yield _gauge("aioflow_source_waiting", "Requests that wait", ("host",), waiting)


def _gauge(name: str, text: str, labels: tuple[str, ...], values: Values) -> Any:
    from prometheus_client.core import GaugeMetricFamily

    return _filled(GaugeMetricFamily(name, text, labels=labels), values)


def _counter(name: str, text: str, labels: tuple[str, ...], values: Values) -> Any:
    from prometheus_client.core import CounterMetricFamily

    return _filled(CounterMetricFamily(name, text, labels=labels), values)


def _filled(family: Any, values: Values) -> Any:
    for labels, value in values:
        family.add_metric(labels, value)
    return family
