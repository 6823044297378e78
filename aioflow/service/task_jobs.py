"""Jobs of tasks: the records of an occurrence, in the home of the service, until it has an outcome.

`aioflow.jobs` has the records themselves. A service with another home does not see them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree

from aioflow.jobs.store import JobDescription, JobError, JobStore, fingerprint_of
from aioflow.service.store.database import ServiceDatabase
from aioflow.service.store.occurrences import Occurrence, pending_names
from aioflow.service.task import TaskDefinition
from aioflow.state.errors import StateError

FOLDER = "jobs"
# Other folders are not the service's own, and it does not delete them.
_NAME = re.compile(r"[0-9a-f]{12}-\d{4}-\d\d-\d\dT[\d.-]+Z(-[0-9a-f]{6})?")
# An earlier attempt has closed its records before the next begins, unless its process hangs.
_LOCK_SECONDS = 0.2


class TaskJobs:
    """The folders of occurrences whose task is a job."""

    def __init__(self, home: Path, database: ServiceDatabase, warn: Callable[[str], None]) -> None:
        self.folder = home / FOLDER
        self._database = database
        self._warn = warn

    def of(self, occurrence: str) -> Path:
        """Return the folder of an occurrence."""
        return self.folder / re.sub(r"[^A-Za-z0-9.]", "-", occurrence)

    @asynccontextmanager
    async def opened(
        self, definition: TaskDefinition, occurrence: Occurrence
    ) -> AsyncIterator[JobStore | None]:
        """Open the records for an attempt at an occurrence; None if its task is no job.

        There are none either while a service that hangs has them: what it holds up runs all the same.
        """
        store = await self._open(definition, occurrence) if definition.job else None
        try:
            yield store
        finally:
            if store is not None:
                await store.close()

    async def _open(self, definition: TaskDefinition, occurrence: Occurrence) -> JobStore | None:
        folder = self.of(occurrence.occurrence)
        fingerprint = fingerprint_of(definition.inputs, definition.parameters)
        try:
            store = await JobStore.open(folder, lock_seconds=_LOCK_SECONDS)
        except JobError:
            self._warn(
                f"task {definition.name}: a run before this one still has the records of the job; "
                "this one asks for everything anew"
            )
            return None
        try:
            found = await store.description()
            if found is not None and found.fingerprint != fingerprint:  # the task was changed meanwhile
                await store.clear()
                found = None
            if found is None:
                created = datetime.now(UTC).isoformat(timespec="seconds")
                found = JobDescription(plan=definition.plan, fingerprint=fingerprint, created=created)
            await store.begin_attempt(found)
        except BaseException:
            await store.close()
            raise
        return store

    async def forget_ended(self) -> None:
        """Delete the records of all occurrences that neither run nor wait any more."""
        # Before the occurrences are read: one that begins meanwhile is not in the list.
        there = [each for each in self._folders() if _NAME.fullmatch(each.name)]
        if not there:
            return
        try:
            async with self._database.reading() as statements:
                kept = {self.of(name) for name in await pending_names(statements)}
        except StateError as error:
            self._warn(f"records of jobs that have ended stay for now: {error}")
            return
        for each in there:
            if each not in kept:
                await asyncio.to_thread(rmtree, each, ignore_errors=True)

    def _folders(self) -> list[Path]:
        return list(self.folder.iterdir()) if self.folder.is_dir() else []
