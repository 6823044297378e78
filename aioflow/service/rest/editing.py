"""The actions of editors: on tasks whose plans, and everything that these use, editors may use."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from aioflow.authoring.operator import Registry
from aioflow.config.configuration import Configuration
from aioflow.language import load_snapshot
from aioflow.service.actions import ImportReport, LocalActions, TaskView
from aioflow.service.allowance import Allowance
from aioflow.service.errors import ForbiddenError, NotFoundError
from aioflow.service.programs import off_the_loop
from aioflow.service.rest.plan_files import PlanFolder
from aioflow.service.store.database import ServiceDatabase
from aioflow.service.store.tasks import find_task, read_version
from aioflow.service.task import TaskDefinition, read_definition


class EditorActions(LocalActions):
    """Actions of an editor. A task that uses more than is allowed is left to owners."""

    def __init__(
        self,
        home: Path,
        configuration: Configuration,
        database: ServiceDatabase,
        registry: Registry,
        *,
        allowance: Allowance,
        plans: PlanFolder,
    ) -> None:
        super().__init__(home, configuration, database, registry, allowance.check_task)
        self._allowance = allowance
        self._plans = plans

    async def add_task(
        self, content: Mapping[str, Any], *, paused: bool = False, replace: bool = False
    ) -> TaskView:
        if replace:
            await self._check_replaced(content)
        return await super().add_task(content, paused=paused, replace=replace)

    async def edit_task(
        self,
        name: str,
        changes: Mapping[str, Any],
        *,
        reload: bool = False,
        expected: datetime | None = None,
    ) -> TaskView:
        await self._check_known(name)
        return await super().edit_task(name, changes, reload=reload, expected=expected)

    async def pause_task(self, name: str, reason: str = "") -> TaskView:
        await self._check_known(name)
        return await super().pause_task(name, reason)

    async def resume_task(self, name: str) -> TaskView:
        await self._check_known(name)
        return await super().resume_task(name)

    async def remove_task(self, name: str) -> str:
        await self._check_known(name)
        return await super().remove_task(name)

    async def run_task(self, name: str) -> str:
        await self._check_known(name)
        return await super().run_task(name)

    async def cancel_runs(self, name: str) -> int:
        await self._check_known(name)
        return await super().cancel_runs(name)

    async def import_tasks(
        self, contents: Sequence[Mapping[str, Any]], *, paused: Collection[str] = ()
    ) -> ImportReport:
        for content in contents:
            await self._check_replaced(content)
        return await super().import_tasks(contents, paused=paused)

    async def _check_replaced(self, content: Mapping[str, Any]) -> None:
        try:
            await self._check_known(read_definition(content).name)
        except NotFoundError:
            return  # it will be a new one

    async def _check_known(self, name: str) -> None:
        """Raise a ForbiddenError for a task that uses more than editors may use."""
        async with self.database.reading() as statements:
            task = await find_task(statements, name)
            snapshot = await read_version(statements, task.version)
        self._check_place(task.definition)

        def check() -> None:
            program = load_snapshot(snapshot, task.definition.plan_name)
            self._allowance.check_task(program, task.definition)

        await off_the_loop(check)

    def _definition(self, content: Mapping[str, Any]) -> TaskDefinition:
        definition = super()._definition(content)
        # Before it is read: messages about a file that is no plan would quote it.
        self._check_place(definition)
        return definition

    def _check_place(self, definition: TaskDefinition) -> None:
        if not self._plans.has(definition.plan):
            raise ForbiddenError("an editor may only use plans in the folder of plans of the service")
