"""The statistics of a run so far, as frozen values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from aioflow.relation import Record
from aioflow.runtime.report import Active, RunTotals, Totals
from aioflow.wholeness import Marks


class StepStatistics(msgspec.Struct, frozen=True):
    """The work of one statement in all its calls.

    The waiting times are measured with `Engine(timing=True)`. They are zero for a statement that maps batches
    to batches: it works where its input is written, and its writer waits in its place.
    """

    plan: str
    operator: str
    line: int | None
    state: str  # waiting, running or ended
    activations: int
    rows_in: int
    rows_out: int
    errors: int
    firings: int
    waiting_rows: int
    waiting_input_seconds: float
    waiting_output_seconds: float
    waiting_permit_seconds: float
    counters: Mapping[str, int] = msgspec.field(default_factory=dict)


class ChannelStatistics(msgspec.Struct, frozen=True):
    """One reader's queue that is in use."""

    plan: str
    variable: str
    reader: str
    iteration: int
    rows_received: int
    rows_waiting: int
    limit: int
    capacity: int
    ended: bool


class RunStatistics(msgspec.Struct, frozen=True):
    """A run, as it stands."""

    elapsed_seconds: float
    first_tuple_seconds: float | None
    last_tuple_seconds: float | None
    rows_out: int
    calls: int
    permits_used: int
    permits_waiting: int
    spilled_rows: int
    steps: tuple[StepStatistics, ...]
    channels: tuple[ChannelStatistics, ...]
    warnings: tuple[str, ...] = ()
    marks: Mapping[str, Marks] = msgspec.field(default_factory=dict)  # by output, if it has any
    nothing_found: tuple[str, ...] = ()  # messages about sources that ended successfully and found nothing
    notes: tuple[str, ...] = ()  # remarks that are no warnings


def step_statistics(run: RunTotals) -> tuple[StepStatistics, ...]:
    """Return every statement that has begun, in the order of the text."""
    active: dict[tuple[str, int], list[Active]] = {}
    for gate in run.active:
        active.setdefault(gate.step.statement_key, []).append(gate)
    ordered = sorted(run, key=lambda totals: totals.step.order)
    return tuple(_statement(totals, active.get(totals.step.statement_key, [])) for totals in ordered)


def _statement(totals: Totals, active: list[Active]) -> StepStatistics:
    streams = [stream for gate in active for stream in gate.streams]
    state = "running" if active else "ended" if totals.ended else "waiting"
    return StepStatistics(
        totals.step.plan.name,
        totals.step.name,
        totals.step.line,
        state,
        totals.activations,
        totals.rows_in + sum(gate.rows_in for gate in active),
        totals.rows_out + sum(gate.rows_out for gate in active),
        totals.errors,
        totals.firings,
        sum(stream.waiting_rows for stream in streams),
        totals.waiting_input_seconds,
        totals.waiting_output_seconds,
        totals.waiting_permit_seconds,
        dict(Counter(totals.counters)),
    )


class EdgeSample(msgspec.Struct, frozen=True):
    """The latest row that one reader has taken."""

    plan: str
    variable: str
    reader: str
    iteration: int
    row: Record


def edge_samples(run: RunTotals) -> tuple[EdgeSample, ...]:
    """Return the latest row that each step under way has taken from each of its inputs."""
    found = (
        (gate, variable, stream.sample)
        for gate in run.active
        for stream, variable in zip(gate.streams, gate.step.resolved.inputs, strict=False)
    )
    return tuple(
        EdgeSample(gate.step.plan.name, variable, gate.step.name, gate.iteration, row)
        for gate, variable, row in found
        if row is not None
    )


def channel_statistics(run: RunTotals) -> tuple[ChannelStatistics, ...]:
    """Return the queues of the steps that are under way."""
    return tuple(
        ChannelStatistics(
            gate.step.plan.name,
            variable,
            gate.step.name,
            gate.iteration,
            stream.received,
            stream.waiting_rows,
            stream.limit,
            stream.capacity,
            stream.ended,
        )
        for gate in run.active
        for stream, variable in zip(gate.streams, gate.step.resolved.inputs, strict=False)
    )
