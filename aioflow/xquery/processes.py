"""The processes that evaluate queries and stylesheets: started when needed, ended with the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from aioflow.authoring.services import Scope, ServiceHost
from aioflow.config.configuration import as_configuration
from aioflow.errors import ProcessError
from aioflow.processes.frames import Limits
from aioflow.processes.pool import Processes
from aioflow.values.quantities import byte_text
from aioflow.xquery.errors import QueryError
from aioflow.xquery.settings import XQUERY, QuerySettings
from aioflow.xquery.worker import XQueryAnswer, XQueryTask, answer

# SaxonC ends its process with this status when it has no more memory, be it for data or for its stack.
_FATAL = 99


class QueryProcesses:
    """Evaluates queries and stylesheets. A service of the engine."""

    scope: ClassVar[Scope] = "engine"

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        self.settings: QuerySettings = as_configuration(configuration).section(XQUERY)
        self._processes = Processes(self.settings.processes, is_bare=True)

    @classmethod
    def open_service(cls, host: ServiceHost) -> QueryProcesses:
        return cls(host.configuration)

    async def answer(self, task: XQueryTask, seconds: float | None = None) -> XQueryAnswer:
        """Return the result of a query or a stylesheet; raise a QueryError if it has none.

        It may take so many seconds, by default those of the settings.
        """
        seconds = self.settings.total_seconds if seconds is None else seconds
        memory = self.settings.memory_bytes
        what = "the stylesheet" if task.is_stylesheet else "the query"
        try:
            found = await self._processes.call(
                answer, task, limits=Limits(seconds=seconds, memory_bytes=memory)
            )
        except ProcessError as error:
            if error.is_late:
                raise QueryError(
                    f"{what} took longer than {seconds:g} s (SECONDS, or xquery.total_seconds)"
                ) from None
            if error.status == _FATAL:
                raise _too_large(what, memory) from None
            raise QueryError(f"{what} has no result: {error}") from error
        except MemoryError:
            raise _too_large(what, memory) from None
        if found.problem is not None:
            place = f"line {found.line}, column {found.column}: " if found.line else ""
            raise QueryError(f"{what} failed: {place}{found.problem}")
        return found

    async def close(self) -> None:
        """End all processes."""
        await self._processes.close()


def _too_large(what: str, memory: int) -> QueryError:
    limit = f"{byte_text(memory)} (xquery.memory_bytes)"
    return QueryError(f"{what} needs more memory than {limit}, or is nested too deeply")
