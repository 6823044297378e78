"""The progress of runs under way: the rows on each edge and the first rows of outputs, at a bounded rate."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from aioflow.config.masking import masked
from aioflow.relation import Document, Relation, Value
from aioflow.runtime.results import RunStream
from aioflow.service.runner import Runner
from aioflow.values.cells import json_text

EVERY_SECONDS = 0.5
_EDGES_AT_MOST = 500
_SAMPLE_ROWS = 5
_SAMPLE_CHARACTERS = 200  # of a text


class StepProgress(msgspec.Struct, frozen=True):
    """A statement: the rows that it has read and written in all of its calls."""

    plan: str
    operator: str
    line: int | None
    state: str
    rows_in: int
    rows_out: int
    waiting_rows: int
    errors: int


class EdgeProgress(msgspec.Struct, frozen=True):
    """The queue of a variable before one of its readers."""

    plan: str
    variable: str
    reader: str
    iteration: int
    rows_received: int
    rows_waiting: int
    ended: bool
    sample: dict[str, Any] | None = None  # the latest row that its reader took


class JobProgress(msgspec.Struct, frozen=True):
    """What a run that is a job has done: requests made now, and found in the records of earlier attempts.

    `hosts` has the most frequent ones. The rate is that of the last minute; it is null in the first second.
    """

    made: int
    found: int
    failed: int
    under_way: int
    hosts: dict[str, int]
    requests_per_second: float | None


class RunProgress(msgspec.Struct, frozen=True):
    """A run as it stands. `sample` has the first rows of its outputs."""

    run_id: str
    elapsed_seconds: float
    rows_out: int
    steps: list[StepProgress]
    edges: list[EdgeProgress]
    sample: list[dict[str, Any]]
    job: JobProgress | None = None


class ProgressSampler:
    """Looks at runs under way at most every half a second, however many people watch."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._looked = float("-inf")
        self._found: dict[str, RunProgress] = {}

    def look(self) -> Mapping[str, RunProgress]:
        """Return the progress of all runs under way, by run."""
        now = asyncio.get_running_loop().time()
        if now - self._looked >= EVERY_SECONDS:
            self._looked = now
            self._found = {run_id: self._progress(run_id) for run_id in list(self._runner.streams)}
        self._found = {run: each for run, each in self._found.items() if run in self._runner.streams}
        return self._found

    def _progress(self, run_id: str) -> RunProgress:
        stream = self._runner.streams[run_id]
        found = stream.statistics()
        steps = [
            StepProgress(
                *(each.plan, each.operator, each.line, each.state, each.rows_in, each.rows_out),
                *(each.waiting_rows, each.errors),
            )
            for each in found.steps[:_EDGES_AT_MOST]
        ]
        samples = _samples(stream)
        edges = [
            EdgeProgress(
                *(each.plan, each.variable, each.reader, each.iteration, each.rows_received),
                *(each.rows_waiting, each.ended),
                samples.get((each.plan, each.variable, each.reader, each.iteration)),
            )
            for each in found.channels[:_EDGES_AT_MOST]
        ]
        sample = self._runner.samples.get(run_id)
        lines = "" if sample is None else sample.text()
        rows = [json.loads(line) for line in lines.splitlines()[:_SAMPLE_ROWS]]
        job = _job(stream)
        return RunProgress(run_id, found.elapsed_seconds, found.rows_out, steps, edges, rows, job)


def _job(stream: RunStream) -> JobProgress | None:
    """Return what a job has done; None if the run is no job."""
    entry = next((each for each in stream.account().entries if each.name == "job"), None)
    if entry is None:
        return None
    return JobProgress(**{name.replace("-", "_"): value for name, value in entry.figures.items()})


def _samples(stream: RunStream) -> dict[tuple[str, str, str, int], dict[str, Any]]:
    """Return the latest row of each edge, with short values."""
    return {
        (each.plan, each.variable, each.reader, each.iteration): masked(
            {name: _short(value) for name, value in each.row.items()}
        )
        for each in stream.edge_samples()[:_EDGES_AT_MOST]
    }


def _short(value: Value) -> Any:
    if isinstance(value, Relation | Document):
        return f"({type(value).__name__.lower()})"  # it may be large
    if isinstance(value, str):
        return value if len(value) <= _SAMPLE_CHARACTERS else f"{value[:_SAMPLE_CHARACTERS]}…"
    return json.loads(json_text(value))
