"""`aioflow run`: a plan from its inputs to its output, with progress on the way."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any

from aioflow.cli.destination import Destination
from aioflow.cli.ending import NOTHING_FOUND, tell
from aioflow.cli.formats import JSON_LINES, TABLE, Presentation, format_for, present
from aioflow.cli.inputs import read_inputs, read_parameters
from aioflow.cli.logs import logged
from aioflow.cli.loop import run_interruptibly
from aioflow.cli.program import load_modules, load_program
from aioflow.cli.writer import BackgroundWriter
from aioflow.configuration import Configuration
from aioflow.dataclass import dataclass
from aioflow.errors import InputError, suggestion
from aioflow.plan import Program
from aioflow.quantities import count_text, duration_text, seconds

if TYPE_CHECKING:
    from aioflow.cli.progress import Progress
    from aioflow.engine import Engine
    from aioflow.results import RunStream


# A table's first rows are held back for others to decide the widths with, but not for longer than this.
PATIENCE_SECONDS = 0.25


@dataclass(frozen=True)
class RunOptions:
    """What the command line says about one run."""

    plan_path: str
    plan: str | None = None
    inputs: Sequence[str] = ()
    parameters: Sequence[str] = ()
    output: str | None = None
    append: str | None = None
    overwrite: str | None = None
    format: str | None = None
    trace: str | None = None
    timeout: str | None = None
    allow_empty: bool = False


def run_plan(options: RunOptions, settings: Configuration) -> None:
    """Run a plan; whatever can be found wrong beforehand is."""
    if options.append and options.overwrite:
        raise InputError("-o appends and -O overwrites: give one of them")
    load_modules(settings.ops)
    program = load_program(options.plan_path, options.plan)
    arguments = stream_arguments(options, program)
    nothing_found = run_interruptibly(_run(options, settings, program, arguments))
    if nothing_found and not options.allow_empty:
        tell("note", "nothing was found where something should be; --allow-empty takes it for a success")
        sys.exit(NOTHING_FOUND)


def stream_arguments(options: RunOptions, program: Program) -> dict[str, Any]:
    """The arguments of `engine.stream`."""
    names = output_names(program)
    if options.output is not None and options.output not in names and not _emits(program):
        known = ", ".join(names) or "none"
        near = suggestion(options.output, names)
        raise InputError(
            f"--output {options.output}: plan {program.name} has no such output{near} (outputs: {known})"
        )
    return {
        "inputs": read_inputs(options.inputs, program.main),
        "parameters": read_parameters(options.parameters, program.main),
        "output": options.output,
        "timeout": seconds(options.timeout) if options.timeout else None,
    }


def output_names(program: Program) -> list[str]:
    return [output.name for output in program.main.outputs]


def _emits(program: Program) -> bool:
    """Whether rows may come under names that are no outputs of the plan."""
    return any(statement.operator.lower() == "emit" for plan in program for statement in plan.statements)


async def _run(
    options: RunOptions, settings: Configuration, program: Program, arguments: dict[str, Any]
) -> bool:
    """Run the plan; whether a source brought nothing where there should be something."""
    from aioflow.engine import Engine

    destination = Destination(options.append, options.overwrite)
    try:
        presentation = _presentation(options, program, destination)
        async with Engine(configuration=settings, **settings.engine_arguments()) as engine:
            with traced(engine, options.trace):
                stream = engine.stream(program, **arguments)
                try:
                    async with stream:
                        with progress_of(stream, program, engine) as progress:
                            whole = await _pour(stream, presentation, destination, progress)
                        _conclude(stream, whole)
                except asyncio.CancelledError:
                    if stream.is_complete:  # interrupted while messages were delivered: all else is done
                        _conclude(stream, whole=False)
                        destination.commit()
                    raise
        destination.commit()
        return bool(stream.statistics().nothing_found)
    finally:
        destination.abandon()


def _presentation(options: RunOptions, program: Program, destination: Destination) -> Presentation:
    several = options.output is None and (len(output_names(program)) > 1 or _emits(program))
    on_terminal = os.isatty(destination.descriptor)
    by_default = TABLE if on_terminal else format_for(destination.name) if destination.name else JSON_LINES
    return present(
        options.format or by_default,
        several_outputs=several,
        beginning=destination.beginning(),
        width=shutil.get_terminal_size().columns if on_terminal else None,
    )


@contextmanager
def traced(engine: Engine, path: str | None) -> Iterator[None]:
    """Write a trace of what the engine runs meanwhile, if there is a path for it."""
    if path is None:
        yield
        return
    from aioflow.cli.trace import Trace

    trace = Trace(path)
    unsubscribe = engine.subscribe(trace.record)
    try:
        yield
    finally:
        unsubscribe()
        trace.close()


async def _pour(
    stream: RunStream, presentation: Presentation, destination: Destination, progress: Progress | None
) -> bool:
    """Write what a run gives as it comes; False when the reader left before the end."""
    on_terminal = progress is not None and os.isatty(destination.descriptor)
    writer = BackgroundWriter(
        destination.descriptor, around=progress.aside if on_terminal and progress else None
    )
    try:
        # A timeout without a time: it knows its own cancellation from one that Ctrl-C asked for, and
        # neither it nor the watch can cancel what comes behind this block.
        async with asyncio.timeout(None) as writing:
            # A run that is ending needs no reader: it stores what it has, and delivers its messages.
            with writer.watching_reader(lambda: None if stream.is_ending else writing.reschedule(0)):
                await _write_all(stream, presentation, writer)
    except BrokenPipeError:
        return False
    except TimeoutError:
        if not writing.expired():
            raise
        return False
    return True


async def _write_all(stream: RunStream, presentation: Presentation, writer: BackgroundWriter) -> None:
    """Write all rows and the end; also when the run is interrupted after its last row."""
    interruption: asyncio.CancelledError | None = None
    try:
        await _write_rows(stream, presentation, writer)
    except asyncio.CancelledError as error:
        if not stream.is_complete:
            raise
        interruption = error
    writer.write(presentation.end())
    await writer.close()
    if interruption is not None:
        raise interruption


async def _write_rows(stream: RunStream, presentation: Presentation, writer: BackgroundWriter) -> None:
    loop = asyncio.get_running_loop()
    impatience: asyncio.TimerHandle | None = None

    def release() -> None:
        if writer.error is None:
            writer.write(presentation.release())

    try:
        # A reader that leaves ends this loop early; the generator must not outlive it.
        async with aclosing(stream.batches()) as batches:
            async for output, records in batches:
                data = presentation.rows(output, records)
                if data:
                    writer.write(data)
                elif impatience is None:
                    impatience = loop.call_later(PATIENCE_SECONDS, release)
                await writer.drain()
    finally:
        if impatience is not None:
            impatience.cancel()


@contextmanager
def progress_of(stream: RunStream, program: Program, engine: Engine) -> Iterator[Progress | None]:
    """The log of the run on stderr, and a live display if somebody looks."""
    if not os.isatty(2) or os.environ.get("TERM") == "dumb":
        with logged(None):
            yield None
        return
    from aioflow.cli.holds import Holds
    from aioflow.cli.progress import Progress, labels_of, render_run

    labels = labels_of(program)
    holds = Holds(engine.services)

    def render(width: int, height: int) -> str:
        return render_run(stream.statistics(), program.name, labels, width, height, holds.lines())

    with Progress(render) as progress, logged(progress):
        yield progress


def _conclude(stream: RunStream, whole: bool) -> None:
    """What the run has to say beside its output."""
    statistics = stream.statistics()
    for message in statistics.warnings:
        tell("warning", message)
    for message in statistics.notes:
        tell("note", message)
    if whole and os.isatty(2):
        rows = count_text(statistics.rows_out, "row")
        print(f"{rows} in {duration_text(statistics.elapsed_seconds)}", file=sys.stderr)
