"""Runs as OpenTelemetry spans: one for the run, for each statement, and for each request."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext, SpanKind, StatusCode

from aioflow import Engine, RunError, function, loads
from aioflow.config.secrets import Secret
from aioflow.telemetry import trace_runs
from aioflow.testing import ScriptedSite, run
from aioflow.web import Client, ConnectionFailedError
from tests.cli.program import environment

TITLES = """
WRAPPER title (url char) { GET: "{+url}"; title: "h1" }
PLAN titles
{
  INPUT: pages (url char)
  OUTPUT: found
  BODY
  {
    distinct (pages : once)
    wrapper ("title", once : found) {ERRORS: skip}
  }
}
"""
PAGE = "<h1>Here</h1>"


@function(pure=True)
def breaks(row: Any) -> None:
    raise ValueError("it broke")


class Spans:
    """What was exported."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def all(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.all if span.name == name]


@pytest.fixture
def spans() -> Spans:
    return Spans()


def traced(spans: Spans, site: ScriptedSite, *urls: str, plan: str = TITLES) -> None:
    async def main() -> None:
        async with site.client() as client, Engine(services={Client: client}) as engine:
            trace_runs(engine, spans.provider)
            await engine.run(loads(plan, "titles.plan"), pages=[{"url": url} for url in urls])

    run(main())


def identity(context: SpanContext | None) -> int | None:
    return None if context is None else context.span_id


def seconds(span: ReadableSpan) -> float:
    assert span.start_time is not None
    assert span.end_time is not None
    return (span.end_time - span.start_time) / 1e9


def test_a_run_its_statements_and_requests_are_spans(spans: Spans) -> None:
    site = ScriptedSite({"http://a.example/": PAGE, "http://a.example:8080/2?q=1": PAGE}, seconds=0.5)
    traced(spans, site, "http://a.example/", "http://a.example:8080/2?q=1", "http://a.example/")
    (whole,) = spans.named("run titles")
    (distinct,), (wrapper,) = spans.named("distinct"), spans.named("wrapper")
    first, second = spans.named("GET")
    assert len(spans.all) == 5
    assert whole.parent is None
    assert identity(distinct.parent) == identity(wrapper.parent) == identity(whole.context)
    assert identity(first.parent) == identity(wrapper.context)
    assert dict(wrapper.attributes or {}) == {
        "aioflow.plan": "titles",
        "aioflow.operator": "wrapper",
        "code.line.number": 10,
        "aioflow.calls": 1,
        "aioflow.rows_in": 2,
        "aioflow.rows_out": 2,
    }
    assert (first.kind, whole.kind) == (SpanKind.CLIENT, SpanKind.INTERNAL)
    told = [dict(span.attributes or {}) for span in (first, second)]
    assert {each["url.full"] for each in told} == {"http://a.example/", "http://a.example:8080/2?q=1"}
    assert {(each["server.address"], each["server.port"]) for each in told} == {
        ("a.example", 80),
        ("a.example", 8080),
    }
    assert told[0]["http.request.method"] == "GET"
    assert told[0]["http.response.status_code"] == 200
    assert told[0]["http.response.body.size"] == len(PAGE)
    assert seconds(first) == pytest.approx(0.5, abs=1e-6)
    assert (whole.start_time or 0) <= (wrapper.start_time or 0) <= (first.start_time or 0)
    assert (whole.end_time or 0) >= (wrapper.end_time or 0) >= (first.end_time or 0)
    assert {span.status.status_code for span in spans.all} == {StatusCode.UNSET}


def test_commits_are_events_of_the_span_of_their_run(spans: Spans, tmp_path: Path) -> None:
    plan = loads('PLAN keep { INPUT: x BODY { dbappend (x, "kept") } }', "keep.plan")
    configuration = {"database": {"default": {"url": f"sqlite:{tmp_path / 'test.db'}"}}}

    async def main() -> None:
        async with Engine(configuration=configuration) as engine:
            trace_runs(engine, spans.provider)
            await engine.run(plan, x=[{"n": 1}])
            await engine.run(plan, x=[])

    run(main())
    first, second = spans.named("run keep")
    assert [(event.name, dict(event.attributes or {})) for event in first.events] == [
        ("commit", {"aioflow.commit.number": 1})
    ]
    assert (first.start_time or 0) <= first.events[0].timestamp <= (first.end_time or 0)
    assert second.events == ()


def test_repeated_and_failed_requests_say_so(spans: Spans) -> None:
    site = ScriptedSite(
        {
            "http://a.example/": [503, PAGE],
            "http://b.example/": ConnectionFailedError("http://b.example/: reset"),
        }
    )
    traced(spans, site, "http://a.example/")
    first, second = spans.named("GET")
    assert first.status.status_code == StatusCode.ERROR
    assert (first.attributes or {})["error.type"] == "503"
    assert "http.request.resend_count" not in (first.attributes or {})
    assert (second.attributes or {})["http.request.resend_count"] == 1
    traced(spans, site, "http://b.example/")
    last = spans.named("GET")[-1]
    assert (last.attributes or {})["error.type"] == "ConnectionFailedError"
    assert last.status.description == "http://b.example/: reset"
    wrapper = spans.named("wrapper")[-1]
    assert (wrapper.attributes or {})["aioflow.failures"] == 1


def test_a_run_that_failed_is_a_span_with_its_error(spans: Spans) -> None:
    plan = 'PLAN titles { INPUT: pages OUTPUT: b BODY { apply (pages, "breaks" : b) } }'
    with pytest.raises(RunError):
        traced(spans, ScriptedSite({}), "x", plan=plan)
    (whole,) = spans.named("run titles")
    assert whole.status.status_code == StatusCode.ERROR
    assert "it broke" in (whole.status.description or "")
    (apply,) = spans.named("apply")
    assert apply.status.status_code == StatusCode.ERROR
    assert apply.end_time is not None


def test_no_span_shows_a_secret(spans: Spans) -> None:
    token = Secret("token", "hunter2-hunter2").reveal()
    site = ScriptedSite({})
    traced(spans, site, f"http://ann:{token}@a.example/?k={token}")
    exported = "".join(span.to_json() for span in spans.all)
    assert "http://a.example/?k=********" in exported
    assert token not in exported


def test_spans_are_as_many_as_statements_and_requests_however_many_tuples_and_calls(spans: Spans) -> None:
    plan = """
    PLAN titles { INPUT: pages OUTPUT: all BODY { down (pages : all) } }
    PLAN down
    {
      INPUT: numbers
      OUTPUT: all
      BODY
      {
        select (numbers, "n < 50" : some)
        project (some, "n + 1 as n" : more)
        distinct (more : once)
        down (once : rest)
        union (numbers, rest : all) {ALL}
      }
    }
    """

    async def main() -> None:
        async with Engine() as engine:
            trace_runs(engine, spans.provider)
            await engine.run(loads(plan), pages=[{"n": 0}])

    run(main())
    assert len(spans.all) <= 1 + 6
    (distinct,) = spans.named("distinct")
    assert (distinct.attributes or {})["aioflow.calls"] == 51


def test_nobody_is_subscribed_where_no_provider_is_set() -> None:
    async def main() -> None:
        async with Engine() as engine:
            end = trace_runs(engine)
            assert engine._listeners == []
            end()

    run(main())


def test_no_trace_context_is_sent_to_sites(spans: Spans) -> None:
    site = ScriptedSite({"http://a.example/": PAGE})
    traced(spans, site, "http://a.example/")
    (request,) = site.requests
    assert "traceparent" not in {name.lower() for name in request.headers}


OPS = """
import atexit
import json
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
@atexit.register
def store():
    with open("spans.json", "w") as file:
        json.dump([span.name for span in exporter.get_finished_spans()], file)
"""


def test_the_command_line_traces_where_a_provider_is_set(tmp_path: Path) -> None:
    (tmp_path / "tracing.py").write_text(OPS)
    (tmp_path / "a.plan").write_text("PLAN a { INPUT: rows OUTPUT: out BODY { distinct (rows : out) } }")
    command = [sys.executable, "-m", "aioflow", "run", "a.plan", "-i", '{"n": 1}', "--ops", "tracing"]
    subprocess.run(command, cwd=tmp_path, env=environment(), check=True, capture_output=True, timeout=60)
    assert json.loads((tmp_path / "spans.json").read_text()) == ["distinct", "run a"]


def test_a_run_without_a_provider_does_not_load_opentelemetry(tmp_path: Path) -> None:
    (tmp_path / "a.plan").write_text("PLAN a { INPUT: rows OUTPUT: out BODY { distinct (rows : out) } }")
    command = [sys.executable, "-X", "importtime", "-m", "aioflow", "run", "a.plan", "-i", '{"n": 1}']
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), check=True, capture_output=True, text=True, timeout=60
    )
    assert "opentelemetry" not in done.stderr
