"""Tasks from files: TOML, lines as in a crontab, and backups of other programs."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from aioflow.service.actions import ImportReport
from aioflow.service.importing.backup_import import BackupReport, import_backup
from aioflow.service.rest.declarations import BYTES, RestCall, RouteTable
from aioflow.service.rest.task_texts import TaskFormat, read_tasks
from aioflow.service.rest.uploads import uploaded

TABLE = RouteTable("imports")


class TextImport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of tasks: TOML as `task export` writes it, or lines as in a crontab.

    Paths of plans begin at the folder of plans of the service. `name` is that of the file, for messages.
    """

    text: Annotated[str, Meta(max_length=5_000_000)]
    format: TaskFormat
    name: Annotated[str, Meta(min_length=1, max_length=200)] = "tasks"


@TABLE.add("POST", "/api/import/text", role="editor", refusals=(422,))
async def import_text(call: RestCall[None, TextImport]) -> ImportReport:
    """Add or change the tasks of a file, all of them or none."""
    given, context = call.body, call.context
    may_use = (lambda path: True) if call.role == "owner" else context.plans.has
    folder = context.plans.folder
    tasks = await context.in_thread(lambda: read_tasks(given.text, given.format, given.name, folder, may_use))
    paused = [str(each.content.get("name", "")) for each in tasks if each.is_paused]
    return await context.actions(call.role).import_tasks([each.content for each in tasks], paused=paused)


@TABLE.add("POST", "/api/import/changedetection", role="owner", accepts=BYTES, refusals=(413, 415, 422))
async def import_changedetection(call: RestCall[None, None]) -> BackupReport:
    """Add the watches of a backup of changedetection.io, a ZIP archive: plans and tasks, or nothing.

    The body is the archive itself, of at most 256 MB. The report lists what cannot be taken over.
    """
    async with uploaded(call.request, call.context) as path:
        return await import_backup(call.context.actions(call.role), path)
