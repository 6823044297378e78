"""The actions on tasks over REST: the methods of LocalActions, with the same results and errors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeVar
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec

from aioflow.config.masking import conceal
from aioflow.errors import AioflowError, InputError
from aioflow.service.actions import ImportReport, RunView, TaskView
from aioflow.service.alerts import Alert
from aioflow.service.errors import EditConflictError, ForbiddenError, NotFoundError
from aioflow.service.importing.backup_import import BackupReport
from aioflow.service.rest.content import PAGE_AT_MOST, RunPage
from aioflow.service.rest.declarations import BYTES
from aioflow.service.rest.refusals import Refusal
from aioflow.service.rest.task_texts import TaskFormat
from aioflow.service.store.occurrences import Occurrence
from aioflow.service.store.services import KnownService
from aioflow.service.task import TaskDefinition, task_id_of

T = TypeVar("T")

_SECONDS = 60.0
_UPLOAD_SECONDS = 600.0
_KINDS: Mapping[int, type[AioflowError]] = {
    400: InputError,
    401: ForbiddenError,
    403: ForbiddenError,
    404: NotFoundError,
    409: EditConflictError,
    422: InputError,
}


class RemoteError(AioflowError):
    """A service cannot be reached, or its answer makes no sense."""


class RemoteActions:
    """Actions on the tasks of a service at an address."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.username is not None:
            raise InputError(f"the address of a service is like http://127.0.0.1:8650, not {url[:200]!r}")
        if not token.strip():
            raise InputError(f"a token is needed for the service at {url}: set AIOFLOW_TOKEN")
        conceal(token)
        self.url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token.strip()}"}
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def __aenter__(self) -> RemoteActions:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- tasks --------------------------------------------------------------------------------------

    async def list_tasks(self) -> list[TaskView]:
        return await self._list("/api/tasks", "tasks", TaskView)

    async def show_task(self, name: str) -> TaskView:
        return await self._ask("GET", _task(name), TaskView)

    async def add_task(
        self, content: Mapping[str, Any], *, paused: bool = False, replace: bool = False
    ) -> TaskView:
        body = {"task": content, "paused": paused, "replace": replace}
        return await self._ask("POST", "/api/tasks", TaskView, body)

    async def edit_task(
        self,
        name: str,
        changes: Mapping[str, Any],
        *,
        reload: bool = False,
        expected: datetime | None = None,
    ) -> TaskView:
        body = {"changes": changes, "reload": reload, "expected": expected}
        return await self._ask("PATCH", _task(name), TaskView, body)

    async def pause_task(self, name: str, reason: str = "") -> TaskView:
        return await self._ask("POST", _task(name, "/pause"), TaskView, {"reason": reason})

    async def resume_task(self, name: str) -> TaskView:
        return await self._ask("POST", _task(name, "/resume"), TaskView)

    async def remove_task(self, name: str) -> str:
        found = await self._ask("DELETE", _task(name), dict[str, str])
        return found["name"]

    async def run_task(self, name: str) -> str:
        found = await self._ask("POST", _task(name, "/run"), dict[str, str])
        return found["occurrence"]

    async def cancel_runs(self, name: str) -> int:
        found = await self._ask("POST", _task(name, "/cancel"), dict[str, int])
        return found["number"]

    # --- runs ---------------------------------------------------------------------------------------

    async def list_runs(
        self,
        name: str | None = None,
        *,
        states: Sequence[str] = (),
        before: datetime | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> list[Occurrence]:
        path = "/api/runs" if name is None else _task(name, "/runs")
        found: list[Occurrence] = []
        while len(found) < limit:
            query = [("state", state) for state in states]
            query.append(("limit", str(min(limit - len(found), PAGE_AT_MOST))))
            if before is not None:
                query.append(("before", before.astimezone().isoformat()))
            if cursor is not None:
                query.append(("cursor", cursor))
            page = await self._ask("GET", path, RunPage, query=query)
            found += page.runs
            cursor = page.next
            if cursor is None:
                break
        return found

    async def show_run(self, name: str) -> RunView:
        return await self._ask("GET", f"/api/runs/{_part(name)}", RunView)

    async def list_services(self) -> list[KnownService]:
        return await self._list("/api/services", "services", KnownService)

    async def list_alerts(self) -> list[Alert]:
        return await self._list("/api/alerts", "alerts", Alert)

    # --- export and import --------------------------------------------------------------------------

    async def export_tasks(self, names: Sequence[str] = ()) -> list[TaskDefinition]:
        query = [("name", name) for name in names]
        return await self._list("/api/export", "tasks", TaskDefinition, query)

    async def import_tasks(
        self, contents: Sequence[Mapping[str, Any]], *, paused: Collection[str] = ()
    ) -> ImportReport:
        body = {"tasks": list(contents), "paused": list(paused)}
        return await self._ask("POST", "/api/import", ImportReport, body)

    async def import_text(self, text: str, format: TaskFormat, name: str) -> ImportReport:
        """Add or change the tasks of a file; paths of plans begin at the folder of plans of the service."""
        body = {"text": text, "format": format, "name": name}
        return await self._ask("POST", "/api/import/text", ImportReport, body)

    async def import_backup(self, path: Path) -> BackupReport:
        """Send a backup of changedetection.io; return what became of its watches."""
        try:
            file = path.open("rb")
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from None
        with file:
            return await self._ask("POST", "/api/import/changedetection", BackupReport, file)

    # --- requests -----------------------------------------------------------------------------------

    async def _list(
        self, path: str, key: str, kind: type[T], query: Sequence[tuple[str, str]] = ()
    ) -> list[T]:
        found = await self._ask("GET", path, dict[str, Any], query=query)
        return [self._converted(each, kind) for each in found.get(key, ())]

    async def _ask(
        self,
        method: str,
        path: str,
        kind: type[T],
        body: Any = None,
        *,
        query: Sequence[tuple[str, str]] = (),
    ) -> T:
        """Return the answer to a request; raise the error that the action would raise here."""
        headers = dict(self._headers)
        data: bytes | IO[bytes] | None = None
        if isinstance(body, BufferedReader):
            headers["Content-Type"], data = BYTES, body
        elif body is not None:
            headers["Content-Type"] = "application/json"
            data = msgspec.json.encode(body, enc_hook=str)
        status, content = await self._send(method, path, headers, data, query)
        try:
            found = msgspec.json.decode(content)
        except msgspec.DecodeError:
            raise RemoteError(
                f"{self.url} answers with status {status} and without JSON: it is no service of aioflow"
            ) from None
        if status >= 400:
            raise self._refused(status, found)
        return self._converted(found, kind)

    async def _send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        data: bytes | IO[bytes] | None,
        query: Sequence[tuple[str, str]],
    ) -> tuple[int, bytes]:
        if self._session is None:
            self._session = aiohttp.ClientSession()
        seconds = _SECONDS if data is None or isinstance(data, bytes) else _UPLOAD_SECONDS
        try:
            # A redirect is not followed, since it would carry the token elsewhere.
            async with self._session.request(
                *(method, self.url + path),
                headers=headers,
                data=data,
                params=query,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=seconds),
            ) as response:
                return response.status, await response.read()
        except aiohttp.ClientConnectorError as error:
            reason = error.os_error.strerror or str(error.os_error)
            raise RemoteError(
                f"no service answers at {self.url}: {reason}; is `aioflow serve` running?"
            ) from error
        except TimeoutError:
            raise RemoteError(f"{self.url} does not answer within {seconds:g} seconds") from None
        except (aiohttp.ClientError, ValueError) as error:
            raise RemoteError(f"{self.url}: {type(error).__name__}: {error}") from error

    def _refused(self, status: int, content: Any) -> AioflowError:
        try:
            detail = msgspec.convert(content, Refusal).error
        except msgspec.ValidationError:
            return RemoteError(f"{self.url} answers with status {status}: it is no service of aioflow")
        lines = [detail.message]
        for found in detail.diagnostics or ():
            place = f"{found.file}:{found.line}:{found.column}: " if found.file is not None else ""
            label = "" if found.severity == "error" else f"{found.severity}: "
            lines.append(f"{place}{label}{found.message}")
        return _KINDS.get(status, RemoteError)("\n".join(lines))

    def _converted(self, content: Any, kind: type[T]) -> T:
        try:
            return msgspec.convert(content, kind)
        except msgspec.ValidationError as error:
            raise RemoteError(f"the answer of {self.url} makes no sense: {error}; is it as new?") from error


def _task(name: str, rest: str = "") -> str:
    return f"/api/tasks/{_part(name)}{rest}"


def _part(name: str) -> str:
    # A path with dots alone would be shortened on its way.
    return task_id_of(name) if not name.strip(".") else quote(name, safe="")
