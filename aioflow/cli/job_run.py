"""One attempt at a job: what `aioflow run --job NAME` does around the run itself."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from aioflow.authoring.context import RunIdentity
from aioflow.config.configuration import Configuration
from aioflow.errors import InputError, message_of
from aioflow.jobs.settings import JOBS, JobsSettings
from aioflow.jobs.store import JobDescription, JobFolder, JobState, JobStore, fingerprint_of

if TYPE_CHECKING:
    from aioflow.engine import Engine
    from aioflow.plan import Program


def job_folder(settings: Configuration) -> JobFolder:
    jobs: JobsSettings = settings.section(JOBS)
    return JobFolder(jobs.folder)


class JobAttempt:
    """An attempt at a job that is under way."""

    def __init__(self, name: str, store: JobStore, description: JobDescription) -> None:
        self.name = name
        self.description = description
        self._store = store

    @property
    def identity(self) -> RunIdentity:
        """The identity of the run, the same in each attempt."""
        return RunIdentity(self.description.run_id, None, job=self._store)

    async def begin(self, append: str | None) -> None:
        """Note the attempt, and take back what an earlier one appended to a file."""
        offset = self.description.offset
        if append not in (None, "-"):
            offset = _restored(str(append), offset)
        begun = msgspec.structs.replace(self.description, process=os.getpid(), offset=offset)
        self.description = await self._store.begin_attempt(begun)

    async def end(self, state: JobState, error: str = "") -> None:
        self.description = msgspec.structs.replace(self.description, state=state, process=0, error=error)
        await self._store.flush()
        await self._store.describe(self.description)


def _restored(path: str, offset: int | None) -> int:
    """Cut a file that rows are appended to where it ended when the job began; return that place."""
    if not os.path.isfile(path):
        return 0
    if offset is None:
        return os.path.getsize(path)
    if os.path.getsize(path) > offset:
        os.truncate(path, offset)
    return offset


@asynccontextmanager
async def opened_job(
    name: str,
    settings: Configuration,
    program: Program,
    plan_path: str,
    inputs: Sequence[str],
    parameters: Sequence[str],
) -> AsyncIterator[JobAttempt]:
    """Open a job for one attempt, and note in the end what became of it.

    An InputError says why the plan cannot be a job, or why this is another job than the one of that name.
    """
    for plan in program:
        if plan.commits_in_batches:
            raise InputError(
                f"plan {plan.name} has COMMIT: batch, and a job commits once, at its end: leave --job out"
            )
    if any(text.rpartition("=")[2] == "-" for text in inputs):
        raise InputError("a job reads its inputs again in each attempt: give a file instead of stdin")
    fingerprint = fingerprint_of(list(inputs), list(parameters))
    store = await JobStore.open(job_folder(settings).of(name))
    try:
        found = await store.description()
        if found is None:
            found = JobDescription(
                plan=plan_path,
                arguments=sys.argv[1:],
                folder=os.getcwd(),
                fingerprint=fingerprint,
                created=datetime.now(UTC).isoformat(timespec="seconds"),
            )
        elif found.fingerprint != fingerprint:
            raise InputError(
                f"the job {name} has other inputs or parameters: give this one another name, or "
                f"`aioflow job forget {name}`"
            )
        attempt = JobAttempt(name, store, found)
        try:
            yield attempt
        except BaseException as error:
            if attempt.description.process and attempt.description.state is JobState.RUNNING:
                stopped = not isinstance(error, Exception)
                await attempt.end(
                    JobState.STOPPED if stopped else JobState.FAILED, "" if stopped else message_of(error)
                )
            raise
    finally:
        await store.close()


async def has_committed_before(engine: Engine, program: Program, run_id: str) -> bool:
    """Return whether an earlier attempt at the job was killed after its commit: the ledger knows."""
    from aioflow.compiler.check import analyse
    from aioflow.compiler.stores import written_store
    from aioflow.state.databases import Databases
    from aioflow.state.system_tables import RUNS, has_committed

    analysis = analyse(
        program, engine.registry, parameters={"run-id": run_id, "task-id": None, "started": ""}
    )
    use = written_store(analysis.root, analysis.linked)
    if use is None:
        return False
    databases = engine.services.service(Databases)
    address = databases.address(use.name, Path(program.folder or "."))
    connection = await databases.connect(address)
    try:
        return await connection.columns(RUNS) is not None and await has_committed(connection, run_id)
    finally:
        await connection.close()


def finished_note(name: str, description: JobDescription) -> str:
    return (
        f"the job {name} finished at {description.changed}: there is nothing left to do "
        f"(`aioflow job forget {name}` lets it begin anew)"
    )
