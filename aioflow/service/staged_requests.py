"""Requests for tasks that a run stages: a service of the run, for `schedule` and `unschedule`.

The requests are rows in the database of the run, part of its transaction. Without a service they wait there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar
from uuid import uuid4

from aioflow.authoring.context import RunInfo
from aioflow.authoring.operator import load_operators
from aioflow.authoring.services import Scope, ServiceHost
from aioflow.errors import InputError
from aioflow.language import take_snapshot
from aioflow.service.programs import read_plan
from aioflow.service.task import ONLY_INPUT, read_definition
from aioflow.state.driver import Connection
from aioflow.state.system_tables import TASK_REQUESTS, stamp
from aioflow.state.transaction import Transaction

_COLUMNS = ("request_id", "run_id", "place", "created", "action", "task_id", "content")


class TaskRequests:
    """Where operators ask for tasks to be added and removed; a service of the run."""

    scope: ClassVar[Scope] = "run"

    def __init__(self, host: ServiceHost, run: RunInfo) -> None:
        self._run = run
        self._transaction = host.service(Transaction)
        self._staged = _StagedRequests()

    @classmethod
    def open_service(cls, host: ServiceHost) -> TaskRequests:
        assert host.run is not None, "requests belong to a run"
        return cls(host, host.run)

    async def close(self) -> None:
        """Do nothing: the requests belong to the transaction."""

    def schedule(self, content: Mapping[str, Any], database: str | None) -> str:
        """Stage a task, which is added or changed after the commit; return its id.

        A relative path of the plan begins at the folder of the plan that asks. An AioflowError says what is
        wrong with the plan or the schedule.
        """
        plan = os.path.abspath(self._run.folder / str(content["plan"]))
        found = {**content, "plan": plan}
        if ONLY_INPUT in found.get("inputs", {}):
            program, _ = take_snapshot(plan)
            names = [each.name for each in program.main.inputs]
            if len(names) != 1:
                raise InputError(f"plan {program.name} has {len(names)} inputs, and rows are given for one")
            found["inputs"] = {names[0]: found["inputs"][ONLY_INPUT]}
        definition = read_definition(found)
        read_plan(definition, load_operators())
        self._stage("schedule", definition.task_id, found, database)
        return definition.task_id

    def unschedule(self, task_id: str, database: str | None) -> None:
        """Stage the removal of a task. A run of it that is under way ends normally."""
        self._stage("remove", task_id, {}, database)

    def _stage(self, action: str, task_id: str, content: Mapping[str, Any], database: str | None) -> None:
        self._staged.add(
            *(uuid4().hex, self._run.run_id, self._staged.count, stamp(datetime.now(UTC)), action, task_id),
            json.dumps(content, default=str),
        )
        self._transaction.stage(database, self._staged)


class _StagedRequests:
    """The requests of one run, as one of its writes."""

    where = "schedule"
    whole = False

    def __init__(self) -> None:
        self._growing: list[tuple[Any, ...]] = []
        self._sealed: list[tuple[Any, ...]] = []
        self.count = 0

    def add(self, *row: Any) -> None:
        self.count += 1
        self._growing.append(row)

    @property
    def is_empty(self) -> bool:
        return not self._growing and not self._sealed

    def seal(self) -> None:
        self._sealed += self._growing
        self._growing = []

    async def apply(self, connection: Connection) -> None:
        places = connection.dialect.placeholders(len(_COLUMNS))
        await connection.run_each(
            f"INSERT INTO {TASK_REQUESTS} ({', '.join(_COLUMNS)}) VALUES ({places})", self._sealed
        )

    def forget(self) -> None:
        self._sealed = []

    def close(self) -> None:
        self._growing, self._sealed = [], []
