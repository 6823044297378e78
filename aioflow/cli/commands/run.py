"""`aioflow run`: runs a plan and writes its rows as they come, with progress on stderr.

However the run ends, its account goes to stderr and its report to the file of `--report`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from aioflow.cli.config import database_options, web_configuration, web_options
from aioflow.cli.exit import (
    FAILED,
    NOTHING_FOUND,
    OK,
    exit_callbacks,
    exit_code,
    for_terminal,
    guarded,
    os_error_text,
    print_message,
    run_interruptibly,
    signals_received,
)
from aioflow.cli.inputs import input_sources, read_inputs, read_parameters
from aioflow.cli.options import (
    AllowEmpty,
    AppendTo,
    Cache,
    Capacity,
    Database,
    FormatOption,
    FormulasOption,
    Inputs,
    JobName,
    LogFile,
    LogFormat,
    LogFormatName,
    MemoryLimit,
    ModeOption,
    Modules,
    Offline,
    OutputName,
    Overwrite,
    PlanName,
    PlanPath,
    Quiet,
    Record,
    Replay,
    ReportFile,
    Sets,
    Timeout,
    TraceFile,
    Verbose,
    Workers,
)
from aioflow.cli.output.destination import (
    BackgroundWriter,
    OutputDestination,
    check_replaceable,
    replace_file,
)
from aioflow.cli.output.formats import JSON_LINES, TABLE, Presentation, appends, format_for, present
from aioflow.cli.output.logs import COMMAND, CommandLog, LogOptions, logged
from aioflow.cli.program import load_modules, load_program
from aioflow.config.configuration import Configuration
from aioflow.config.masking import MASK, mask, masked
from aioflow.config.sections import is_sensitive
from aioflow.errors import InputError, suggestion
from aioflow.files import FILES
from aioflow.plan import Program
from aioflow.runtime.account import RunAccount, error_as_json
from aioflow.values.quantities import seconds

if TYPE_CHECKING:
    from aioflow.cli.job_run import JobAttempt
    from aioflow.cli.output.progress import ProgressDisplay
    from aioflow.engine import Engine
    from aioflow.runtime.results import RunStream


_LOG = logging.getLogger(COMMAND)
# A table's first rows are held back for others to decide the widths with, but not for longer than this.
PATIENCE_SECONDS = 0.25
_REPORT = "the report"


@guarded
def run(
    plan_path: PlanPath,
    plan: PlanName = None,
    input: Inputs = None,
    set: Sets = None,
    output: OutputName = None,
    append: AppendTo = None,
    overwrite: Overwrite = None,
    format: FormatOption = None,
    workers: Workers = None,
    mode: ModeOption = None,
    trace: TraceFile = None,
    timeout: Timeout = None,
    ops: Modules = None,
    capacity: Capacity = None,
    memory: MemoryLimit = None,
    db: Database = None,
    offline: Offline = False,
    cache: Cache = None,
    record: Record = None,
    replay: Replay = None,
    allow_empty: AllowEmpty = False,
    formulas: FormulasOption = None,
    job: JobName = None,
    quiet: Quiet = False,
    report: ReportFile = None,
    verbose: Verbose = 0,
    log_file: LogFile = None,
    log_format: LogFormat = LogFormatName.TEXT,
) -> None:
    """Run a plan and show its output as it comes.

    With several outputs JSON lines are {"output": NAME, "row": {...}}. Progress and messages go to stderr.
    """
    options = RunOptions(
        *(plan_path, plan, input or (), set or (), output, append, overwrite, format, trace, timeout),
        *(allow_empty, quiet, report),
        log=LogOptions(verbose, log_file, log_format, quiet),
        job=job,
    )
    given: dict[str, Any] = {"ops": ops, "workers": workers, "mode": mode, "capacity": capacity}
    given |= {"memory": memory, **database_options(db), **web_options(offline, cache, record, replay)}
    given |= {} if formulas is None else {"files": {"formulas": formulas}}
    run_plan(options, given)


class RunOptions(msgspec.Struct, frozen=True):
    """The options of one run, as the command line gives them.

    The settings of a plan of the library are those of the working folder.
    """

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
    quiet: bool = False
    report: str | None = None
    is_of_library: bool = False
    log: LogOptions = msgspec.field(default_factory=LogOptions)
    job: str | None = None


def run_plan(options: RunOptions, given: Mapping[str, Any]) -> None:
    """Run a plan with the settings that are `given`; whatever can be found wrong beforehand is."""
    with logged(options.log) as log, reported(options) as reporter:
        if options.append and options.overwrite:
            raise InputError("-o appends and -O overwrites: give one of them")
        settings = web_configuration(given, None if options.is_of_library else options.plan_path)
        reporter.shows_account = settings.account and not options.quiet
        registry = load_modules(settings.ops)
        program = reporter.program = load_program(options.plan_path, options.plan, registry)
        arguments = stream_arguments(options, program)
        run = _run if options.job is None else _run_job
        nothing_found = run_interruptibly(run(options, settings, program, arguments, reporter, log))
        if nothing_found and not options.allow_empty:
            _note("nothing was found where something should be; --allow-empty takes it for a success")
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
    """Return whether rows may come under names that are no outputs of the plan."""
    return any(statement.operator.lower() == "emit" for plan in program for statement in plan.statements)


async def _run(
    options: RunOptions,
    settings: Configuration,
    program: Program,
    arguments: dict[str, Any],
    reporter: RunReporter,
    log: CommandLog,
    attempt: JobAttempt | None = None,
) -> bool:
    """Run the plan; whether a source brought nothing where there should be something."""
    from aioflow.engine import Engine
    from aioflow.telemetry import trace_runs

    if attempt is not None:
        arguments = {**arguments, "identity": attempt.identity}
        await attempt.begin(options.append)
    format = _format_of_file(options)
    destination = _destination(options, format)
    try:
        presentation = _presentation(options, settings, program, destination, format)
        async with Engine(configuration=settings, **settings.engine_arguments()) as engine:
            trace_runs(engine)
            with traced(engine, options.trace):
                stream = reporter.stream = engine.stream(program, **arguments)
                try:
                    async with stream:
                        with progress_of(stream, program, engine, log, shown=not options.quiet) as progress:
                            whole = await _stream_rows(stream, presentation, destination, progress)
                        reporter.reader_left = not whole
                        _warn(stream, notes=not options.quiet)
                except asyncio.CancelledError:
                    if stream.is_complete:  # interrupted while messages were delivered: all else is done
                        _warn(stream, notes=not options.quiet)
                        destination.commit()
                    raise
        destination.commit()
        return bool(stream.statistics().nothing_found)
    finally:
        destination.abandon()


async def _run_job(
    options: RunOptions,
    settings: Configuration,
    program: Program,
    arguments: dict[str, Any],
    reporter: RunReporter,
    log: CommandLog,
) -> bool:
    """Make an attempt at a job: what earlier ones have finished is not asked for again."""
    from aioflow.cli.job_run import finished_note, has_committed_before, opened_job
    from aioflow.engine import Engine
    from aioflow.jobs.store import JobState

    assert options.job is not None
    given = (options.plan_path, options.inputs, options.parameters)
    async with opened_job(options.job, settings, program, *given) as attempt:
        if attempt.description.state is JobState.FINISHED:
            _note(finished_note(options.job, attempt.description))
            return False
        if attempt.description.attempts:
            async with Engine(configuration=settings) as engine:
                if await has_committed_before(engine, program, attempt.description.run_id):
                    await attempt.end(JobState.FINISHED)
                    said = f"the job {options.job} had committed before it was killed"
                    if (path := options.append or options.overwrite) not in (None, "-"):
                        raise InputError(f"{said}, and {path} may lack its rows: look into it")
                    _note(f"{said}: nothing was left to do")
                    return False
        nothing_found = await _run(options, settings, program, arguments, reporter, log, attempt)
        await attempt.end(JobState.FINISHED)
        return nothing_found


def _format_of_file(options: RunOptions) -> str | None:
    """The format that the options name, or else the ending of their file; None for stdout."""
    path = options.append or options.overwrite
    return options.format or (None if path in (None, "-") else format_for(path))


def _destination(options: RunOptions, format: str | None) -> OutputDestination:
    """Where the rows go. A new file of a format that nothing can be added to appears when it is whole."""
    path = options.append
    if path in (None, "-") or format is None or appends(format):
        return OutputDestination(path, options.overwrite)
    is_new = not os.path.exists(path) or (os.path.isfile(path) and not os.path.getsize(path))
    return OutputDestination(overwrite=path) if is_new else OutputDestination(path)


def _presentation(
    options: RunOptions,
    settings: Configuration,
    program: Program,
    destination: OutputDestination,
    format: str | None,
) -> Presentation:
    several = options.output is None and (len(output_names(program)) > 1 or _emits(program))
    on_terminal = os.isatty(destination.descriptor)
    return present(
        format or (TABLE if on_terminal else JSON_LINES),
        several_outputs=several,
        beginning=destination.beginning(),
        width=shutil.get_terminal_size().columns if on_terminal else None,
        formulas=settings.section(FILES).formulas,
    )


@contextmanager
def traced(engine: Engine, path: str | None) -> Iterator[None]:
    """Write a trace of what the engine runs meanwhile, if there is a path for it."""
    if path is None:
        yield
        return
    from aioflow.telemetry.trace import Trace

    try:
        file = open(path, "w", encoding="utf-8")  # noqa: SIM115  # it is closed below
    except OSError as error:
        raise InputError(f"cannot write trace: {os_error_text(error)}") from error
    with file:
        trace = Trace(file)
        unsubscribe = engine.subscribe(trace.record)
        try:
            yield
        finally:
            unsubscribe()
            trace.close()


async def _stream_rows(
    stream: RunStream,
    presentation: Presentation,
    destination: OutputDestination,
    progress: ProgressDisplay | None,
) -> bool:
    """Write what a run gives as it comes; False when the reader left before the end."""
    on_terminal = progress is not None and os.isatty(destination.descriptor)
    writer = BackgroundWriter(
        destination.descriptor, around=progress.aside if on_terminal and progress else None
    )
    writer.write(destination.line_end())
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
    writer.write(presentation.end(stream.schema))
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
def progress_of(
    stream: RunStream, program: Program, engine: Engine, log: CommandLog, *, shown: bool = True
) -> Iterator[ProgressDisplay | None]:
    """A live display on stderr, if that is a terminal. Lines of the log go above it."""
    if not shown or not os.isatty(2) or os.environ.get("TERM") == "dumb":
        yield None
        return
    from aioflow.cli.output.progress import HostWaits, ProgressDisplay, labels_of, render_run

    labels = labels_of(program)
    holds = HostWaits(engine.services)

    def render(width: int, height: int) -> str:
        lines = [line for entry in stream.account().entries for line in entry.lines]
        notes = [*map(mask, lines), *holds.lines()]
        return render_run(stream.statistics(), program.name, labels, width, height, notes)

    with ProgressDisplay(render) as progress:
        log.progress = progress
        try:
            yield progress
        finally:
            log.progress = None


def _warn(stream: RunStream, *, notes: bool) -> None:
    """Print the warnings and notes of the run, beside its output."""
    statistics = stream.statistics()
    for message in statistics.warnings:
        print_message("warning", message)
    for message in statistics.notes if notes else ():
        _note(message)


def _note(message: str) -> None:
    _LOG.info("%s", mask(message))
    print_message("note", message)


# --- the account and the report -----------------------------------------------------------------


class RunReporter:
    """Knows of a run what there is to tell of it when it ends."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._started = datetime.now(UTC)
        self._is_told = False
        self.shows_account = not options.quiet
        self.program: Program | None = None
        self.stream: RunStream | None = None
        self.reader_left = False

    def check(self) -> None:
        """Find out before the run whether there is a place for the report."""
        path = self._options.report
        folder = os.path.dirname(path or "") or "."
        if path is not None and not os.path.isdir(folder):
            raise InputError(f"cannot write {_REPORT}: there is no folder {folder!r}")
        if path is not None:
            check_replaceable(path, _REPORT)

    def report(self, code: int, error: BaseException | None) -> bool:
        """Tell it once; whether the report, if there is to be one, could be written."""
        if self._is_told:
            return True
        self._is_told = True
        account = self._account(error)
        lines = () if account is None else account.lines()
        for line in lines:
            _LOG.info("%s", line)
        if error is not None and not isinstance(error, SystemExit):
            _LOG.error("%s", error)
        if self.shows_account and not self.reader_left:
            text = for_terminal("\n  ".join(lines), sys.stderr)
            print(text, end="\n" if lines else "", file=sys.stderr, flush=True)
        return self._options.report is None or self._write(self._options.report, code, account, error)

    def interrupted(self) -> None:
        """Tell it before a signal ends the process."""
        self.report(128 + signals_received[0], None)

    def _account(self, error: BaseException | None) -> RunAccount | None:
        if self.stream is None:
            return None
        account = self.stream.account()
        if account.outcome == "not started":
            return None
        if error is not None and not isinstance(error, SystemExit):
            return account if account.failure is error else account.failed_with(error)
        if signals_received and account.outcome != "failed" and not self.stream.is_complete:
            return replace(account, outcome="interrupted")
        # To the engine, a task that waits for rows in vain is cancelled, whatever the reason.
        has_left = self.reader_left and account.outcome == "interrupted"
        return replace(account, outcome="stopped") if has_left else account

    # --- the report -----------------------------------------------------------------------------

    def _write(self, path: str, code: int, account: RunAccount | None, error: BaseException | None) -> bool:
        told = self._refused(error) if account is None else account.as_json()
        first = {name: told[name] for name in ("version", "aioflow", "plan")}
        first |= {"file": self._options.plan_path, "outcome": told["outcome"], "exit-code": code}
        told = first | told | self._given(told["inputs"])
        text = json.dumps(masked(told), ensure_ascii=False, indent=2, default=str)
        try:
            replace_file(path, text + "\n", _REPORT)
        except OSError as failure:
            print_message("error", f"cannot write {_REPORT}: {os_error_text(failure)}")
            return False
        except InputError as failure:
            print_message("error", str(failure))
            return False
        return True

    def _refused(self, error: BaseException | None) -> dict[str, Any]:
        """The report of a run that never began."""
        plan = "" if self.program is None else self.program.name
        nothing = RunAccount("", plan, "refused", self._started, 0.0, {}, {}, {}, {}, (), (), (), None, ())
        return nothing.as_json() | {"error": None if error is None else error_as_json(error)}

    def _given(self, taken: dict[str, Any]) -> dict[str, Any]:
        """Where inputs came from, and what parameters were set to."""
        if self.program is None:
            return {"parameters": {}}
        plan, options = self.program.main, self._options
        try:
            sources = input_sources(options.inputs, plan)
            parameters = read_parameters(options.parameters, plan, all_needed=False)
        except InputError:  # which is what the report is about
            return {"parameters": {}}
        inputs = {name: {**taken.get(name, {"rows": 0}), "from": source} for name, source in sources.items()}
        shown = {name: MASK if is_sensitive((name,)) else value for name, value in parameters.items()}
        return {"inputs": inputs, "parameters": shown}


@contextmanager
def reported(options: RunOptions) -> Iterator[RunReporter]:
    """Have a run tell how it went, also where an error or a signal ends it."""
    reporter = RunReporter(options)
    reporter.check()
    exit_callbacks.append(reporter.interrupted)
    try:
        yield reporter
    except BaseException as error:
        reporter.report(exit_code(error), error)
        raise
    else:
        if not reporter.report(OK, None):
            sys.exit(FAILED)
    finally:
        exit_callbacks.remove(reporter.interrupted)
