"""Runs as OpenTelemetry spans: one for each run, each of its statements and each request.

Tuples have no spans: a tuple takes microseconds, and a span tens of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from aioflow.engine import Engine

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

__all__ = ["trace_runs"]

_NAMED_IN = "OTEL_PYTHON_TRACER_PROVIDER"


def trace_runs(engine: Engine, provider: TracerProvider | None = None) -> Callable[[], None]:
    """Have later runs of an engine make spans; return a function that ends that.

    Without a `provider` that of the process is taken. If it has none, no spans are made, and nothing costs.
    """
    provider = provider or _provider_of_process()
    if provider is None:
        return _nothing
    from aioflow.telemetry.spans import RunSpans

    return engine.subscribe(RunSpans(provider).listen)


def _nothing() -> None:
    """End nothing: there is no listener."""


def _provider_of_process() -> TracerProvider | None:
    # A program that has set a provider has imported this. It is slow to import, and need not be installed.
    if "opentelemetry.trace" not in sys.modules and not os.environ.get(_NAMED_IN):
        return None
    try:
        from opentelemetry import trace
    except ImportError:  # the variable is meant for other programs
        return None
    provider = trace.get_tracer_provider()
    is_none = isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider)
    return None if is_none else provider
