"""Recurrent work of a service: it forgets old runs and jobs, looks at disk and outboxes, and sends alerts."""

from __future__ import annotations

import asyncio
import shutil
from datetime import timedelta

from aioflow.service.alerts import Alerts
from aioflow.service.settings import ServiceSettings
from aioflow.service.store.database import ServiceDatabase, Statements
from aioflow.service.store.occurrences import prune, prune_details
from aioflow.service.store.tasks import drop_unused_versions
from aioflow.service.task_jobs import TaskJobs
from aioflow.service.watched_databases import WatchedDatabases
from aioflow.state.system_tables import stamp
from aioflow.values.quantities import size_text

_ALERTS_SECONDS = 30.0
_PRUNE_EVERY = 120  # rounds of alerts: an hour
_REQUESTS_KEPT = timedelta(days=30)


class Housekeeping:
    """Keeps the task database small and its owner informed."""

    def __init__(
        self,
        database: ServiceDatabase,
        settings: ServiceSettings,
        alerts: Alerts,
        databases: WatchedDatabases,
        jobs: TaskJobs,
    ) -> None:
        self._database = database
        self._settings = settings
        self._alerts = alerts
        self._databases = databases
        self._jobs = jobs
        self._rounds = 0

    async def keep(self) -> None:
        """Do one round, and wait until the next is due."""
        if self._rounds % _PRUNE_EVERY == 0:
            await self._prune()
        await self._check()
        await self._jobs.forget_ended()
        self._rounds += 1
        await asyncio.sleep(_ALERTS_SECONDS)

    async def _prune(self) -> None:
        async with self._database.writing() as statements:
            await prune(statements, self._settings.keep_days, self._settings.keep_runs)
            await prune_details(statements, self._settings.keep_logs, self._settings.keep_log_bytes)
            await drop_unused_versions(statements)
            await statements.run(
                "DELETE FROM aioflow_requests_taken WHERE taken < {}", stamp(statements.now - _REQUESTS_KEPT)
            )

    async def _check(self) -> None:
        stuck = self._databases.stuck_messages()
        is_known = stuck is not None or self._databases.are_all_known
        async with self._database.writing() as statements:
            await self._alerts.check_silence(statements)
            if is_known:
                await self._alerts.set_alert(statements, "outbox", stuck)
            await self._check_disk(statements)
            await self._alerts.send_all(statements)

    async def _check_disk(self, statements: Statements) -> None:
        path = self._database.address.path
        if path is None:
            return
        free = shutil.disk_usage(path.parent).free
        message = None
        if free < self._settings.disk_free_bytes:
            message = f"only {size_text(free)} are free on the disk of {self._database.address.shown}"
        await self._alerts.set_alert(statements, "disk", message)
