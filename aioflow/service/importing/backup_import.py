"""The import of a backup of another program as a whole: plans, tasks, and a report on the rest."""

from __future__ import annotations

from pathlib import Path

import msgspec

from aioflow.service.actions import LocalActions
from aioflow.service.importing.changedetection import read_backup
from aioflow.service.importing.written import written_watches
from aioflow.service.programs import off_the_loop


class WatchReport(msgspec.Struct, frozen=True):
    """A watch with something that cannot be taken over as it was, in sentences."""

    name: str
    notes: list[str]


class BackupReport(msgspec.Struct, frozen=True):
    """The tasks that an import added, changed and left as they were.

    `paused` are those of the added ones that do not run yet. `watches` have the parts that cannot be taken
    over, and `left` says what is left to do.
    """

    added: list[str]
    changed: list[str]
    unchanged: list[str]
    paused: list[str]
    watches: list[WatchReport]
    left: list[str]


async def import_backup(actions: LocalActions, path: Path) -> BackupReport:
    """Write a plan for each watch of a backup, and add the tasks. If that fails, no file is left."""
    watches = await off_the_loop(lambda: read_backup(path))
    with written_watches(watches, actions.home) as written:
        found = await actions.import_tasks(written.tasks, paused=written.paused)
    paused = [name for name in found.added if name in written.paused]
    watch_reports = [WatchReport(watch.name, list(watch.notes)) for watch in watches if watch.notes]
    return BackupReport(
        *(found.added, found.changed, found.unchanged, paused, watch_reports, list(written.lines()))
    )
