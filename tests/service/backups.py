"""Backups of changedetection.io for tests: written by hand, or made of its own data folders."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data" / "changedetection"
UUID = "0d0b4a07-0000-4000-8000-{:012}"


def packed(folder: Path, archive: Path, inside: str = "") -> Path:
    """Return a ZIP archive of a data folder."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                target.write(file, inside + file.relative_to(folder).as_posix())
    return archive


def backup(folder: Path, *watches: dict[str, Any], tags: Any = None, **settings: Any) -> Path:
    """Return a backup in the new layout with these watches; settings are those of the application."""
    path = folder / "backup.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        requests = settings.pop("requests", {})
        document = {"settings": {"application": settings, "requests": requests, "headers": {}}}
        archive.writestr("changedetection.json", json.dumps(document))
        for uuid, tag in (tags or {}).items():
            archive.writestr(f"{uuid}/tag.json", json.dumps(tag))
        for number, watch in enumerate(watches, 1):
            archive.writestr(f"{UUID.format(number)}/watch.json", json.dumps(watch))
    return path


def old_backup(folder: Path, *watches: dict[str, Any], tags: Any = None, **settings: Any) -> Path:
    """Return the same in the old layout."""
    path = folder / "old.zip"
    document = {
        "watching": {UUID.format(number): watch for number, watch in enumerate(watches, 1)},
        "settings": {"application": {**settings, "tags": tags or {}}, "requests": {}, "headers": {}},
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("url-watches.json", json.dumps(document))
    return path
