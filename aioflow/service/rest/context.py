"""Everything that handlers share: the service, its actions by role, plan files, and who listens."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from aioflow.language.loader import LIBRARY
from aioflow.service.actions import LocalActions
from aioflow.service.allowance import Allowance
from aioflow.service.home import PLANS_FOLDER
from aioflow.service.rest.access import Authentication, FailureLimit
from aioflow.service.rest.editing import EditorActions
from aioflow.service.rest.plan_files import PlanFolder
from aioflow.service.rest.progress import ProgressSampler
from aioflow.service.service import MonitorService
from aioflow.service.store.tokens import Role
from aioflow.state.databases import Databases

T = TypeVar("T")

_THREADS = 2


class RestContext:
    """The state of the REST interface of one service."""

    def __init__(self, service: MonitorService) -> None:
        self.service = service
        self.closing = asyncio.Event()  # set when the server stops: streams end then
        self.listening: Counter[str] = Counter()  # to events, by token
        self.runs_once = 0
        self.uploads = 0
        self.answered: Counter[tuple[str, int]] = Counter()  # by operation and status
        clock = asyncio.get_event_loop().time
        self.authentication = Authentication(service.database, FailureLimit(clock), clock)
        self.progress = ProgressSampler(service.runner)
        self.plans = PlanFolder(service.home / PLANS_FOLDER)
        self.allowance = Allowance(
            service.settings.allowed,
            service.home,
            service.engine.services.service(Databases),
            service.database.address,
            service.engine.registry,
        )
        common = (service.home, service.configuration, service.database, service.engine.registry)
        self._threads = ThreadPoolExecutor(_THREADS, "aioflow-rest")
        self._local = LocalActions(*common)
        self._editor = EditorActions(*common, allowance=self.allowance, plans=self.plans)

    def actions(self, role: Role) -> LocalActions:
        """Return the actions that a role may take; handlers see to it that a viewer only reads."""
        return self._local if role == "owner" else self._editor

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Return the result of work that may take long, such as the analysis of a plan that anybody may send.

        The loop goes on meanwhile: it renews the leases of runs.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    @property
    def listeners(self) -> int:
        """The number of those who listen to events."""
        return self.listening.total()

    def close(self) -> None:
        """End all streams, and begin no more work in threads."""
        self.closing.set()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def may_show(self, role: Role) -> Callable[[str], bool]:
        """Return a function that decides whether the text of a file may be quoted to a role."""
        return _anything if role == "owner" else partial(_is_plan_file, self.plans.folder)


def _anything(path: str) -> bool:
    return True


def _is_plan_file(folder: Path, path: str) -> bool:
    if path.startswith("<"):
        return True  # a text that was sent
    file = Path(path).resolve()
    return file.is_relative_to(folder.resolve()) or file.is_relative_to(LIBRARY.resolve())
