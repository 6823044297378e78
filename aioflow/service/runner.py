"""Runs occurrences of tasks on an engine, and finds out what became of a run whose service ended."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec

from aioflow.authoring.context import RunIdentity
from aioflow.compiler.stores import written_store
from aioflow.config.masking import mask, masked
from aioflow.engine import Engine
from aioflow.errors import AioflowError, message_of
from aioflow.plan import Program
from aioflow.relation import Record
from aioflow.runtime.events import Event
from aioflow.runtime.results import RunStream
from aioflow.service.programs import Programs, analyse_for_task, off_the_loop, parameters_of
from aioflow.service.run_log import RunLogs
from aioflow.service.settings import ServiceSettings
from aioflow.service.store.database import ServiceDatabase
from aioflow.service.store.occurrences import Occurrence, RunOutcome
from aioflow.service.task import Task, TaskDefinition
from aioflow.service.task_jobs import TaskJobs
from aioflow.state.crash_points import moment
from aioflow.state.databases import Databases
from aioflow.state.driver import Address
from aioflow.state.lock_wait import LockWait
from aioflow.state.system_tables import has_committed, raise_fence, run_lock
from aioflow.telemetry.trace import Trace
from aioflow.values.cells import json_text
from aioflow.values.quantities import count_text

_SAMPLE_BYTES = 256 * 1024
_RETRY_PAUSE_AT_MOST = timedelta(days=1)

_FENCED = moment("fence raised", "earlier attempts at an occurrence cannot commit any more")


class Runner:
    """Runs the programs of tasks. Streams and samples of runs under way are kept, for those who watch."""

    def __init__(
        self,
        engine: Engine,
        database: ServiceDatabase,
        settings: ServiceSettings,
        warn: Callable[[str], None],
        jobs: TaskJobs,
    ) -> None:
        self.engine = engine
        self.jobs = jobs
        self.logs = RunLogs(settings.log_bytes)
        self.streams: dict[str, RunStream] = {}
        self.samples: dict[str, RowSample] = {}
        self.tasks: dict[str, str] = {}  # the ids of their tasks
        self._traces: dict[str, Trace] = {}
        self._database = database
        self.settings = settings
        self._warn = warn
        self._programs = Programs()

    async def program_of(self, definition: TaskDefinition, version: str) -> Program:
        async with self._database.reading() as statements:
            return await self._programs.load(statements, version, definition.plan_name)

    async def run(self, task: Task, occurrence: Occurrence) -> RunOutcome:
        """Run an occurrence to its end; raise CancelledError only if nothing of it was stored."""
        assert occurrence.run_id is not None
        self.tasks[occurrence.run_id] = task.task_id
        try:
            with self.logs.collecting(occurrence.run_id), self._traced(occurrence.run_id) as trace:
                outcome = await self._run(task, occurrence, occurrence.run_id)
        finally:
            self.tasks.pop(occurrence.run_id, None)
        return msgspec.structs.replace(outcome, trace=trace.getvalue())

    def watch(self) -> Callable[[], None]:
        """Record traces of runs from now on; return a function that ends this."""
        return self.engine.subscribe(self._record) if self.settings.trace_bytes else _nothing

    def _record(self, event: Event) -> None:
        trace = self._traces.get(event.run_id)
        if trace is not None:
            trace.record(event)

    @contextmanager
    def _traced(self, run_id: str) -> Iterator[StringIO]:
        text = StringIO()
        if self.settings.trace_bytes:
            self._traces[run_id] = Trace(text, self.settings.trace_bytes)
        try:
            yield text
        finally:
            trace = self._traces.pop(run_id, None)
            if trace is not None:
                trace.close()

    async def _run(self, task: Task, occurrence: Occurrence, run_id: str) -> RunOutcome:
        definition = task.definition
        sample = self.samples[run_id] = RowSample(self.settings.sample_rows)
        stream: RunStream | None = None
        try:
            program = await self.program_of(definition, occurrence.version or task.version)
            async with self.jobs.opened(definition, occurrence) as job:
                stream = self.streams[run_id] = self.engine.stream(
                    program,
                    definition.inputs,
                    parameters=parameters_of(definition),
                    timeout=definition.timeout_seconds or self.settings.timeout_seconds,
                    identity=RunIdentity(
                        *(run_id, task.task_id, occurrence.occurrence, occurrence.fence),
                        *(definition.defaults, job),
                    ),
                )
                async with stream:
                    async for output, records in stream.batches():
                        sample.add(output, records)
        except asyncio.CancelledError:
            if stream is None or not stream.is_complete:
                raise
            # It had committed when it was cancelled: only deliveries were left, and others make them.
        except AioflowError as error:
            return self._outcome("failed", run_id, stream, sample, message_of(error))
        except Exception as error:
            return self._outcome("failed", run_id, stream, sample, f"{type(error).__name__}: {error}")
        finally:
            self.streams.pop(run_id, None)
            self.samples.pop(run_id, None)
        return self._outcome("succeeded", run_id, stream, sample)

    def _outcome(
        self, state: Any, run_id: str, stream: RunStream | None, sample: RowSample, reason: str = ""
    ) -> RunOutcome:
        account = None if stream is None else stream.account().as_json()
        if state == "succeeded" and stream is not None and stream.statistics().nothing_found:
            reason = f"nothing was found: {'; '.join(stream.statistics().nothing_found)}"
        elif state == "succeeded" and account is not None and account["warnings"]:
            more = len(account["warnings"]) - 1
            reason = account["warnings"][0] + (
                f" (and {count_text(more, 'further warning')})" if more else ""
            )
        return RunOutcome(state, mask(reason), account, self.logs.text(run_id), sample.text())

    # --- runs that were lost ------------------------------------------------------------------------

    async def has_committed(self, task: Task, occurrence: Occurrence) -> bool:
        """Return whether a run whose service ended has committed; from now on it cannot any more.

        The ledger in the database of the plan decides. A plan that stores nothing has none.
        """
        try:
            program = await self.program_of(task.definition, occurrence.version or task.version)
            address = await self.address_of(program, task.definition)
        except AioflowError:
            return False  # a plan that cannot be read any more will fail when it runs again
        if address is None or occurrence.run_id is None:
            return False
        databases = self.engine.services.service(Databases)
        connection = await databases.connect(address)
        try:
            await databases.prepare(connection, address, self._warn)
            async with AsyncExitStack() as stack:
                wait = LockWait(address, databases.settings(address.name).wait_seconds, self._warn)
                await stack.enter_async_context(databases.turn(address))
                await wait.enter(connection, stack, run_lock(connection))
                async with self._database.reading() as statements:
                    now = statements.now
                await raise_fence(connection, occurrence.occurrence, occurrence.fence, now)
                found = await has_committed(connection, occurrence.run_id)
            _FENCED()
            return found
        finally:
            await connection.close()

    async def address_of(self, program: Program, definition: TaskDefinition) -> Address | None:
        """Return the address of the database that the runs of a task write to; None if they write to none."""
        registry = self.engine.registry
        analysis = await off_the_loop(lambda: analyse_for_task(program, definition, registry))
        use = written_store(analysis.root, analysis.linked)
        if use is None:
            return None
        databases = self.engine.services.service(Databases)
        return databases.address(use.name or definition.database, Path(program.folder or "."))


def _nothing() -> None:
    """End nothing: no trace is recorded."""


def retry_pause(definition: TaskDefinition, attempts: int) -> timedelta:
    """Return the pause before the next attempt: it doubles each time."""
    doubled = definition.retry_pause_seconds * 2.0 ** min(attempts - 1, 30)
    return min(timedelta(seconds=doubled), _RETRY_PAUSE_AT_MOST)


class RowSample:
    """The first rows of the outputs of a run, as JSON lines within a number of bytes."""

    def __init__(self, rows_at_most: int) -> None:
        self._rows_left = rows_at_most
        self._bytes_left = _SAMPLE_BYTES
        self._lines: list[str] = []

    def add(self, output: str, records: list[Record]) -> None:
        for record in records[: self._rows_left]:
            values = {name: json.loads(json_text(value)) for name, value in record.items()}
            line = json.dumps({"output": output, "row": masked(values)}, ensure_ascii=False)
            if len(line) > self._bytes_left:
                self._rows_left = 0
                return
            self._rows_left -= 1
            self._bytes_left -= len(line)
            self._lines.append(line)

    def text(self) -> str:
        return "\n".join(self._lines)
