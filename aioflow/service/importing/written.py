"""Writes imported watches into a home: a plan file each, and the accounts and secrets that they need."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from aioflow.config.configuration import FILE_NAME
from aioflow.config.folders import shown_path
from aioflow.errors import InputError
from aioflow.service.home import PLANS_FOLDER
from aioflow.service.importing.imported import ImportedSecret, ImportedWatch

_FOLDER = "changedetection"


class WrittenWatches(msgspec.Struct, frozen=True):
    """The tasks of imported watches, and the accounts and secrets that a person has to look at."""

    tasks: list[dict[str, Any]]
    paused: list[str]
    accounts: Path | None  # a file of settings that is still to be taken over
    secrets: tuple[ImportedSecret, ...]

    def lines(self) -> Iterator[str]:
        """Yield what is left to do, in sentences."""
        if self.accounts is not None:
            name = shown_path(self.accounts)
            yield f"the accounts for messages are in {name}: copy those you want into {FILE_NAME} of the home"
        for secret in self.secrets:
            yield f"set the secret {secret.name} ({secret.origin}): aioflow does not store it"


@contextmanager
def written_watches(watches: Sequence[ImportedWatch], home: Path) -> Iterator[WrittenWatches]:
    """Write the plans of watches. If the work with them fails, the files are as they were before."""
    files = _Files()
    try:
        yield _write_watches(watches, home, files)
    except BaseException:
        files.restore()
        raise


class _Files:
    """Files that are written, with their contents before."""

    def __init__(self) -> None:
        self._before: dict[Path, bytes | None] = {}

    def write(self, path: Path, text: str) -> None:
        """Write a file as a whole: a crash leaves the old one or the new one."""
        draft = path.with_name(f".{path.name}.tmp")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._before.setdefault(path, path.read_bytes() if path.exists() else None)
            draft.write_text(text, encoding="utf-8")
            os.replace(draft, path)
        except OSError as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise InputError(f"cannot write {shown_path(path)}: {error.strerror}") from error

    def restore(self) -> None:
        """Give each file its content before; those that are new are removed."""
        for path, content in self._before.items():
            with suppress(OSError):  # the others are restored all the same
                if content is None:
                    path.unlink(missing_ok=True)
                else:
                    path.write_bytes(content)


def _write_watches(watches: Sequence[ImportedWatch], home: Path, files: _Files) -> WrittenWatches:
    """Write a plan for each watch that can be one. A file that is there already is replaced."""
    folder = home / PLANS_FOLDER / _FOLDER
    tasks, paused = [], []
    settings: dict[str, Any] = {}
    secrets: dict[str, ImportedSecret] = {}
    for watch in watches:
        if not watch.plan_text:
            continue
        path = folder / f"{_file_name(watch)}.plan"
        files.write(path, watch.plan_text)
        task: dict[str, Any] = {"name": watch.name, "plan": str(path), "schedule": watch.schedule}
        if watch.zone is not None:
            task["zone"] = watch.zone
        tasks.append(task)
        if watch.paused:
            paused.append(watch.name)
        _merge(settings, tomllib.loads(watch.settings))
        secrets |= {secret.name: secret for secret in watch.secrets}
    accounts = home / f"{_FOLDER}.toml" if settings else None
    if accounts is not None:
        files.write(accounts, tomli_w.dumps(settings))
    return WrittenWatches(tasks, paused, accounts, tuple(secrets.values()))


def _file_name(watch: ImportedWatch) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", watch.name.lower()).strip("-")[:60] or "watch"
    return f"{plain}-{re.sub('[^a-z0-9]', '', watch.uuid.lower())[:8]}"


def _merge(into: dict[str, Any], tables: dict[str, Any]) -> None:
    for name, value in tables.items():
        if isinstance(value, dict):
            _merge(into.setdefault(name, {}), value)
        else:
            into[name] = value
