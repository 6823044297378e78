"""`aioflow explain`: shows how a plan will run, step by step; with `--analyze` also how a run of it went."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aioflow.cli.commands.run import RunOptions, progress_of, stream_arguments
from aioflow.cli.config import database_options, engine_defaults, web_configuration, web_options
from aioflow.cli.exit import guarded, has_colours, run_interruptibly
from aioflow.cli.inputs import read_parameters
from aioflow.cli.options import (
    Cache,
    Capacity,
    Database,
    Inputs,
    MemoryLimit,
    ModeOption,
    Modules,
    Offline,
    PlanName,
    PlanPath,
    Record,
    Replay,
    Sets,
    Timeout,
    Workers,
)
from aioflow.cli.output.logs import logged
from aioflow.cli.program import load_checked
from aioflow.compiler.analysis import InferredCall
from aioflow.compiler.graph import Graph, Routine
from aioflow.compiler.step import Step
from aioflow.compiler.stores import store_use
from aioflow.config.configuration import Configuration
from aioflow.errors import SettingError
from aioflow.plan import Plan, Program, Statement
from aioflow.relation import Schema
from aioflow.values.quantities import byte_text, count_text, duration_text

if TYPE_CHECKING:
    from aioflow.runtime.statistics import RunStatistics, StepStatistics


@guarded
def explain(
    plan_path: PlanPath,
    plan: PlanName = None,
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Run the plan and add rows and the time spent waiting.")
    ] = False,
    input: Inputs = None,
    set: Sets = None,
    workers: Workers = None,
    mode: ModeOption = None,
    timeout: Timeout = None,
    ops: Modules = None,
    capacity: Capacity = None,
    memory: MemoryLimit = None,
    db: Database = None,
    offline: Offline = False,
    cache: Cache = None,
    record: Record = None,
    replay: Replay = None,
) -> None:
    """Show a plan as it will run: steps, schemas, buffers, permits, effects and tail calls."""
    options = RunOptions(plan_path, plan, input or (), set or (), timeout=timeout)
    given: dict[str, Any] = {"ops": ops, "workers": workers, "mode": mode, "capacity": capacity}
    given |= {"memory": memory, **database_options(db), **web_options(offline, cache, record, replay)}
    explain_plan(options, web_configuration(given, plan_path), analyze=analyze)


def explain_plan(options: RunOptions, settings: Configuration, *, analyze: bool) -> None:
    """Print how a plan will run, and on request how it did."""
    analysis = load_checked(options.plan_path, options.plan, settings.ops)
    program = analysis.program
    arguments = stream_arguments(options, program) if analyze else None
    parameters = read_parameters(options.parameters, program.main, all_needed=analyze)
    graph = Graph(analysis.called_with(parameters))
    limits = {**engine_defaults(), **settings.engine_arguments()}
    try:
        print("\n".join(_explain(graph, limits)))
    except SettingError:
        # Some settings decide how a statement runs: the parameters that they need are asked for.
        read_parameters(options.parameters, program.main)
        raise
    if arguments is not None:
        sys.stdout.flush()
        statistics = run_interruptibly(_analyze(program, settings, arguments))
        print("\n".join(["", *_analysis(statistics)]))


async def _analyze(program: Program, settings: Configuration, arguments: dict[str, Any]) -> RunStatistics:
    from aioflow.engine import Engine

    async with Engine(timing=True, configuration=settings, **settings.engine_arguments()) as engine:
        async with engine.stream(program, **arguments) as stream:
            with logged() as log, progress_of(stream, program, engine, log):
                async for _ in stream.batches():
                    await asyncio.sleep(0)
        return stream.statistics()


# --- the plan -----------------------------------------------------------------------------------


def _explain(graph: Graph, limits: dict[str, Any]) -> Iterator[str]:
    yield (
        f"mode {limits['mode']} · {count_text(limits['workers'], 'worker')} · queues of "
        f"{count_text(limits['capacity_rows'], 'row')} · {byte_text(limits['memory_bytes'])} before disk"
    )
    explained: set[str] = set()
    for activation in graph.analysis.calls():
        # A plan called with other parameters or schemas runs alike: its first call stands for all.
        if activation.plan.key not in explained:
            explained.add(activation.plan.key)
            yield ""
            yield from _plan(activation, graph.routine(activation.scope), graph, limits)


def _plan(activation: InferredCall, routine: Routine, graph: Graph, limits: dict[str, Any]) -> Iterator[str]:
    plan = activation.plan
    notes = ["has effects" if routine.has_effects else "no effects"]
    if graph.calls.recurs(plan):
        notes.append("recursive")
    if plan.max_depth is not None:
        notes.append(f"at most {plan.max_depth} levels" + (", then stops" if plan.stop_at_max_depth else ""))
    if plan.once is not None:
        notes.append(f"once for each {plan.once}")
    yield f"{_bold('PLAN ' + plan.name)} · {' · '.join(notes)}"
    for declared in plan.inputs:
        yield f"  input   {declared.name} {_schema(activation.schemas.get(declared.name))}"
    for step in routine.steps:
        yield from _step(step, routine, activation, graph, limits)
    for output in plan.outputs:
        yield f"  output  {output.name} {_schema(activation.schemas.get(output.name))}"


def _step(
    step: Step, routine: Routine, activation: InferredCall, graph: Graph, limits: dict[str, Any]
) -> Iterator[str]:
    yield f"  {step.line or step.index + 1:>6}  {_statement_text(step.resolved.statement)}"
    for name in (*step.resolved.outputs, step.resolved.errors):
        if name is not None:
            number = routine.variables.index(name)
            buffer = routine.buffers[number] or limits["capacity_rows"]
            readers = len(routine.readers[number])
            read = f"{count_text(readers, 'reader')}, {buffer} rows each" if readers else "no reader"
            yield f"          → {name} {_schema(activation.schemas.get(name))} · {read}"
    yield f"          {' · '.join(_notes(step, activation, graph, limits))}"


_FIRINGS = {"stream": "fires as rows come", "tuple": "fires for each tuple", "end": "fires at the end"}


def _notes(step: Step, activation: InferredCall, graph: Graph, limits: dict[str, Any]) -> Iterator[str]:
    target = step.resolved.target
    if isinstance(target, Plan):
        yield _call_note(step)
        effects = graph.has_effects(target)
    else:
        yield _FIRINGS[step.firing]
        if step.firing == "tuple":
            most = min(step.workers or limits["workers"], limits["workers"])
            yield f"up to {count_text(most, 'permit')}"
        effects = target.has("effects", activation.bound.get(step.index) or {})
        yield from _store_notes(step, activation, graph.program.main.commits_in_batches)
    if step.urgent:
        yield "goes first: leads into a recursive call"
    if effects:
        yield "effects: never stopped early"
    if step.resolved.wait:
        yield f"waits for {', '.join(step.resolved.wait)}"
    if step.resolved.ordered:
        yield "ordered"
    if step.resolved.skip_errors:
        yield "drops what fails"


def _call_note(step: Step) -> str:
    if step.tail is not None:
        return "tail call: results go straight to the outermost call"
    return "recursive call: unfolds when a tuple arrives" if step.recursive else "call"


def _store_notes(step: Step, activation: InferredCall, commits_in_batches: bool) -> Iterator[str]:
    use = store_use(step.resolved, activation.bound.get(step.index))
    if use is None:
        return
    name = f"database {use.name or 'default'}"
    if use.access == "update":
        yield f"is done at once: holds the write lock of the {name} from here to the end of the run"
    elif step.sees_own_writes:
        yield f"sees what the run wrote: holds the write lock of the {name} from here to the end of the run"
    elif use.access == "read":
        yield f"reads the {name} as it is when this fires"
    else:
        when = "as the plan streams" if commits_in_batches else "when the run has ended well"
        yield f"writes to the {name} {when}"


def _schema(schema: Schema | None) -> str:
    return "(known when it runs)" if schema is None else str(schema)


def _statement_text(statement: Statement) -> str:
    span = statement.span
    if span is None:
        return statement.operator
    return " ".join(span.source.text[span.start : span.end].split())


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if has_colours(sys.stdout) else text


# --- the run ------------------------------------------------------------------------------------

_COLUMNS = ("line", "step", "calls", "in", "out", "errors", "firings", "input", "output", "permits")


def _analysis(statistics: RunStatistics) -> Iterator[str]:
    first = statistics.first_tuple_seconds
    times = "" if first is None else f" · first row after {duration_text(first)}"
    yield (
        f"{count_text(statistics.rows_out, 'row')} in {duration_text(statistics.elapsed_seconds)}{times}"
        f" · {count_text(statistics.calls, 'call')} · {count_text(statistics.spilled_rows, 'row')} spilled"
    )
    yield ""
    yield from _step_table([_COLUMNS, *(_cells(step) for step in statistics.steps)])
    for step in statistics.steps:
        for what, count in step.counters.items():
            yield f"{step.line or '-'}: {step.operator}: {what}: {count:,}"
    yield from (f"warning: {message}" for message in statistics.warnings)


def _step_table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table with its heading in the first row."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    # The last three columns are times, under a heading of their own.
    before = sum(widths[:7]) + 2 * 7
    yield " " * before + "seconds waiting for"
    for number, row in enumerate(rows):
        cells = [
            cell.ljust(width) if column == 1 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip() if number else _bold("  ".join(cells).rstrip())


def _cells(step: StepStatistics) -> Sequence[str]:
    return (
        f"{step.line or '-'}",
        f"{step.operator} ({step.plan})",
        f"{step.activations:,}",
        f"{step.rows_in:,}",
        f"{step.rows_out:,}",
        f"{step.errors:,}",
        f"{step.firings:,}",
        f"{step.waiting_input_seconds:.3f}",
        f"{step.waiting_output_seconds:.3f}",
        f"{step.waiting_permit_seconds:.3f}",
    )
