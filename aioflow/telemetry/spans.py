"""Makes spans of the events of runs, with attributes by the semantic conventions where those name any.

Spans are made with the times of events and never become the current one: requests of a plan carry no trace
context to sites. Commits and deliveries are events of the span of their run.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TypeAlias

from opentelemetry.trace import (
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    TracerProvider,
    set_span_in_context,
)

from aioflow.config.masking import mask
from aioflow.runtime.events import (
    Event,
    MessagesDelivered,
    RunCommitted,
    RunEnded,
    RunStarted,
    StepEnded,
    StepEvent,
    StepStarted,
    TupleFailed,
)
from aioflow.version import __version__
from aioflow.web.traffic import HttpAttempt, RequestEnded

_ERROR_STATUSES = 400

# The plan, the line and the operator.
Statement: TypeAlias = tuple[str, int | None, str]


@dataclass
class _StatementSpan:
    """A statement, over all calls of its plan: from its first beginning to its last end."""

    span: Span
    last: float
    calls: int = 0
    under_way: int = 0
    rows_in: int = 0
    rows_out: int = 0
    failures: int = 0
    last_failure: str = ""


class _RunSpan:
    """One run, with the spans of its statements."""

    def __init__(self, tracer: Tracer, event: RunStarted) -> None:
        self._tracer = tracer
        # Events have the loop's time, spans the time of day.
        self._ahead = time.time_ns() - round(event.time * 1e9)
        attributes = {"aioflow.plan": event.plan, "aioflow.run.id": event.run_id}
        # Its parent is the current span of the program that runs the plan.
        self._span = tracer.start_span(
            f"run {event.plan}", attributes=attributes, start_time=self._moment(event.time)
        )
        self._around = set_span_in_context(self._span)
        self._statements: dict[Statement, _StatementSpan] = {}

    def _moment(self, seconds: float) -> int:
        return round(seconds * 1e9) + self._ahead

    def statement(self, event: StepEvent) -> _StatementSpan:
        key = (event.plan, event.line, event.operator)
        found = self._statements.get(key)
        if found is None:
            attributes: dict[str, str | int] = {
                "aioflow.plan": event.plan,
                "aioflow.operator": event.operator,
            }
            if event.line is not None:
                attributes["code.line.number"] = event.line
            start = self._moment(event.time)
            span = self._tracer.start_span(
                event.operator, self._around, attributes=attributes, start_time=start
            )
            found = self._statements[key] = _StatementSpan(span, event.time)
        found.last = event.time
        return found

    def step_ended(self, event: StepEnded) -> None:
        """Count the rows of a step, unless it never began."""
        found = self._statements.get((event.plan, event.line, event.operator))
        if found is not None and found.under_way and not event.dead:
            found.last = event.time
            found.under_way -= 1
            found.rows_in += event.rows_in
            found.rows_out += event.rows_out

    def request(self, event: RequestEnded) -> None:
        """Make the span of a request that is over."""
        request = event.request
        if request.stored == "cache":
            return  # no site was asked
        span = self._tracer.start_span(
            request.method,
            set_span_in_context(self.statement(event).span),
            kind=SpanKind.CLIENT,
            attributes=_attributes(request),
            start_time=self._moment(event.time - request.seconds),
        )
        if request.error_kind is not None:
            span.set_status(Status(StatusCode.ERROR, request.error))
        elif request.status is not None and request.status >= _ERROR_STATUSES:
            span.set_status(Status(StatusCode.ERROR))
        span.end(self._moment(event.time))

    def committed(self, event: RunCommitted) -> None:
        self._add_event(event, "commit", {"aioflow.commit.number": event.number})

    def delivered(self, event: MessagesDelivered) -> None:
        figures = {"sent": event.sent, "failed": event.failed, "waiting": event.waiting}
        attributes = {f"aioflow.messages.{name}": count for name, count in figures.items()}
        self._add_event(event, "messages delivered", attributes)

    def _add_event(self, event: Event, name: str, attributes: dict[str, int]) -> None:
        self._span.add_event(name, attributes, self._moment(event.time))

    def end(self, event: RunEnded) -> None:
        for statement in self._statements.values():
            _conclude(statement, has_failed=event.error is not None)
            is_cut_short = statement.under_way > 0
            statement.span.end(self._moment(event.time if is_cut_short else statement.last))
        if event.error is not None:
            self._span.set_status(Status(StatusCode.ERROR, mask(event.error)))
        self._span.end(self._moment(event.time))


def _conclude(statement: _StatementSpan, *, has_failed: bool) -> None:
    span = statement.span
    span.set_attribute("aioflow.calls", statement.calls)
    span.set_attribute("aioflow.rows_in", statement.rows_in)
    span.set_attribute("aioflow.rows_out", statement.rows_out)
    if statement.failures:
        span.set_attribute("aioflow.failures", statement.failures)
        if has_failed and statement.under_way:
            span.set_status(Status(StatusCode.ERROR, statement.last_failure))


def _attributes(request: HttpAttempt) -> dict[str, str | int]:
    address, _, port = request.host.rpartition(":")
    attributes: dict[str, str | int] = {
        "http.request.method": request.method,
        "url.full": request.url,
        "server.address": address,
        "server.port": int(port),
    }
    if request.status is not None:
        attributes["http.response.status_code"] = request.status
    if request.body_bytes is not None:
        attributes["http.response.body.size"] = request.body_bytes
    if request.attempt > 1:
        attributes["http.request.resend_count"] = request.attempt - 1
    if request.error_kind is not None:
        attributes["error.type"] = request.error_kind
    elif request.status is not None and request.status >= _ERROR_STATUSES:
        attributes["error.type"] = str(request.status)
    return attributes


class RunSpans:
    """A listener of an engine."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("aioflow", __version__)
        self._runs: dict[str, _RunSpan] = {}

    def listen(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self._runs[event.run_id] = _RunSpan(self._tracer, event)
        elif isinstance(event, RunEnded):
            if (run := self._runs.pop(event.run_id, None)) is not None:
                run.end(event)
        elif (run := self._runs.get(event.run_id)) is not None:
            _listen_to_run(run, event)


def _listen_to_run(run: _RunSpan, event: Event) -> None:
    if isinstance(event, StepEvent):
        _listen_to_step(run, event)
    elif isinstance(event, RunCommitted):
        run.committed(event)
    elif isinstance(event, MessagesDelivered):
        run.delivered(event)


def _listen_to_step(run: _RunSpan, event: StepEvent) -> None:
    if isinstance(event, StepStarted):
        statement = run.statement(event)
        statement.calls += 1
        statement.under_way += 1
    elif isinstance(event, StepEnded):
        run.step_ended(event)
    elif isinstance(event, TupleFailed):
        statement = run.statement(event)
        statement.last_failure = mask(event.error)
        if not statement.failures:
            statement.span.add_event("failure", {"exception.message": statement.last_failure})
        statement.failures += 1
    elif isinstance(event, RequestEnded):
        run.request(event)
