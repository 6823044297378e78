"""The texts of the plan version that a task runs, compared with the files on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from aioflow.errors import AioflowError
from aioflow.language import PlanSnapshot, take_snapshot
from aioflow.language.loader import read_plan_file
from aioflow.service.task import TaskDefinition

_LINES_AT_MOST = 5_000  # the time of a comparison may grow with their square
OnDisk: TypeAlias = Literal["same", "different", "missing", "new", "not shown"]


class VersionFile(msgspec.Struct, frozen=True):
    """A file of a version. `difference` is a unified diff, from the version to the file on disk.

    The text of a file outside of the folders of plans is shown to owners only. A `new` file is not part of
    the version, but would be of the next.
    """

    path: str
    text: str | None
    on_disk: OnDisk
    difference: str = ""


class PlanVersion(msgspec.Struct, frozen=True):
    """The version of a plan that a task runs: all its files, the main one first."""

    version: str
    files: list[VersionFile]


def compare_version(
    snapshot: PlanSnapshot, definition: TaskDefinition, may_show: Callable[[str], bool]
) -> PlanVersion:
    """Return the files of a version, each with its difference from the disk."""
    return PlanVersion(snapshot.digest, list(_files(snapshot, definition, may_show)))


def _files(
    snapshot: PlanSnapshot, definition: TaskDefinition, may_show: Callable[[str], bool]
) -> Iterator[VersionFile]:
    newer: set[str] = set()
    with suppress(AioflowError, OSError):  # the files of a plan with mistakes are compared one by one
        newer = set(take_snapshot(definition.plan, definition.plan_name)[1].files)
    others = sorted({*snapshot.files, *newer} - {snapshot.main})
    for path in (snapshot.main, *others):
        if not may_show(path):
            yield VersionFile(path, None, "not shown")
            continue
        text = snapshot.files.get(path)
        yield _compared(path, None if text is None else text.decode("utf-8", "replace"))


def _compared(path: str, text: str | None) -> VersionFile:
    try:
        found = read_plan_file(Path(path)).decode("utf-8", "replace")
    except AioflowError:
        return VersionFile(path, text, "missing")
    if found == text:
        return VersionFile(path, text, "same")
    return VersionFile(
        path, text, "new" if text is None else "different", _difference(path, text or "", found)
    )


def _difference(path: str, before: str, after: str) -> str:
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > _LINES_AT_MOST:
        return f"(not compared: more than {_LINES_AT_MOST:,} lines)"
    return "\n".join(unified_diff(old, new, path, path, "version of the task", "on disk", lineterm=""))
