"""The clockwork of a service: apscheduler wakes it when a task is due. The task database decides on runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from apscheduler.job import Job
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger

from aioflow.service.planning import next_due
from aioflow.service.task import Task


class TaskTrigger(BaseTrigger):  # type: ignore[misc]  # apscheduler has no types
    """Fires at the times of a task's schedule, as crontab(5) reads it; apscheduler's own parser does not."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._schedule = task.definition.read_schedule()

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime | None:
        """Return the first time without an occurrence, even if it has passed, and then each one after it."""
        if previous is None:
            return next_due(self.task)
        if self._schedule is None:
            return None
        found = self._schedule.next_after(max(previous, now), start=self.task.anchor)
        ends = self.task.definition.ends
        return None if found is None or (ends is not None and found > ends) else found


class Clockwork:
    """Calls `on_due` with the id of each task whose time has come. It keeps nothing between runs."""

    def __init__(self, on_due: Callable[[str], None]) -> None:
        self._on_due = on_due
        self._tasks: dict[str, Task] = {}
        # No time is dropped for being late, and times that have passed together are one call: the planning
        # looks for all of them.
        defaults = {"misfire_grace_time": None, "coalesce": True, "max_instances": 1_000_000}
        self._scheduler: Any = AsyncIOScheduler(timezone=UTC, job_defaults=defaults)

    def start(self) -> None:
        self._scheduler.start()

    def stop(self) -> None:
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)

    def set_tasks(self, tasks: Iterable[Task]) -> None:
        """Wake for these tasks from now on, and for no others."""
        wanted = {task.task_id: task for task in tasks if next_due(task) is not None}
        for task_id in [each for each in self._tasks if each not in wanted]:
            self._remove(task_id)
        for task_id, task in wanted.items():
            known = self._tasks.get(task_id)
            if known is None or _timing(known) != _timing(task):
                self._remove(task_id)
                self._tasks[task_id] = task
                self._scheduler.add_job(self._due, TaskTrigger(task), args=(task_id,), id=task_id)

    def check_clock(self) -> None:
        """Look at the clock anew: it may have been set forward, or the machine may have slept."""
        if self._scheduler.running:
            self._scheduler.wakeup()

    @property
    def next_wake(self) -> datetime | None:
        """The next time at which a task is due."""
        jobs: list[Job] = self._scheduler.get_jobs()
        times = [job.next_run_time for job in jobs if job.next_run_time is not None]
        return min(times, default=None)

    async def _due(self, task_id: str) -> None:
        self._on_due(task_id)

    def _remove(self, task_id: str) -> None:
        if self._tasks.pop(task_id, None) is not None and self._scheduler.get_job(task_id) is not None:
            self._scheduler.remove_job(task_id)


def _timing(task: Task) -> tuple[Any, ...]:
    definition = task.definition
    return definition.schedule, definition.zone, definition.ends, task.anchor, task.state
