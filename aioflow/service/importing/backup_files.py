"""The JSON files of a backup: a ZIP archive or a folder, within limits of size, and never written to disk."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, TypeAlias
from zlib import error as ZlibError  # noqa: N812

import msgspec

from aioflow.errors import InputError

JsonObject: TypeAlias = dict[str, Any]

SETTINGS_FILE, OLD_FILE = "changedetection.json", "url-watches.json"
LARGEST_FILE_BYTES = 32 << 20
MOST_BYTES = 256 << 20
MOST_MEMBERS = 500_000
MOST_WATCHES = 20_000
_DEEPEST_SETTINGS_FILE = 3  # folders of an archive around the files
_OUTSIDE = re.compile(r"^[/\\]|^[A-Za-z]:|(?:^|[/\\])\.\.(?:[/\\]|$)|\0")


class BackupFiles(Protocol):
    """The files of a backup by their names, which have `/` between their parts."""

    def names(self) -> list[str]: ...

    def read(self, name: str) -> bytes: ...


class _Archive:
    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path, self._archive = path, archive
        self._left_bytes = MOST_BYTES
        if len(archive.infolist()) > MOST_MEMBERS:
            raise InputError(f"{path} has more than {MOST_MEMBERS:,} members, which no backup has")
        for name in archive.namelist():
            if _OUTSIDE.search(name):
                raise InputError(f"{path} has a member {name!r}, which leads out of it: this is no backup")

    def names(self) -> list[str]:
        return [each.filename for each in self._archive.infolist() if not each.is_dir()]

    def read(self, name: str) -> bytes:
        """Return a member; its real size counts, not the one that the archive names."""
        limit = min(LARGEST_FILE_BYTES, self._left_bytes)
        try:
            with self._archive.open(name) as member:
                content = member.read(limit + 1)
        except (zipfile.BadZipFile, ZlibError, EOFError, OSError, RuntimeError, NotImplementedError) as error:
            raise InputError(f"{name} in {self._path} cannot be unpacked: {error}") from None
        if len(content) > limit:
            raise InputError(f"{name} in {self._path} is larger than {limit:,} bytes when it is unpacked")
        self._left_bytes -= len(content)
        return content


class _Folder:
    def __init__(self, path: Path) -> None:
        self._path = path.resolve()

    def names(self) -> list[str]:
        wanted = ("*.json", "*/watch.json", "*/tag.json")
        found = (each for pattern in wanted for each in self._path.glob(pattern))
        return [each.relative_to(self._path).as_posix() for each in found]

    def read(self, name: str) -> bytes:
        file = (self._path / name).resolve()
        if not file.is_relative_to(self._path):
            raise InputError(f"{name} in {self._path} is a link that leads out of the folder")
        try:
            if file.stat().st_size > LARGEST_FILE_BYTES:
                raise InputError(f"{name} in {self._path} is larger than {LARGEST_FILE_BYTES:,} bytes")
            return file.read_bytes()
        except OSError as error:
            raise InputError(f"{name} in {self._path} cannot be read: {error.strerror}") from None


@contextmanager
def open_backup(path: Path) -> Iterator[BackupFiles]:
    """Open a backup: a ZIP archive, or the folder that one was unpacked into."""
    if path.is_dir():
        yield _Folder(path)
        return
    try:
        archive = zipfile.ZipFile(path)
    except FileNotFoundError:
        raise InputError(f"there is no backup {path}") from None
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"{path} is no ZIP archive that can be read: {error}") from None
    with archive:
        yield _Archive(path, archive)


class BackupContent(msgspec.Struct, frozen=True):
    """The settings, the groups and the watches of a backup, by their UUIDs, as the files have them.

    `broken` and `broken_tags` have the watches and the groups that cannot be read, with the reasons.
    """

    settings: JsonObject
    tags: dict[str, JsonObject]
    watches: dict[str, JsonObject]
    broken: dict[str, str]
    broken_tags: dict[str, str]


def read_content(path: Path) -> BackupContent:
    """Return the content of a backup in either layout."""
    with open_backup(path) as files:
        main = _main_file(path, files.names())
        document = _object(files.read(main), main, path)
        settings = document.get("settings")
        settings = settings if isinstance(settings, dict) else {}
        tags, watches = _listed_tags(settings), _listed_watches(document)
        broken: dict[str, str] = {}
        broken_tags: dict[str, str] = {}
        folder = PurePosixPath(main).parent
        for name in sorted(files.names()):
            parts = PurePosixPath(name)
            if parts.parent.parent != folder or parts.parent == folder or len(parts.parts) < 2:
                continue
            uuid = parts.parent.name
            if parts.name == "tag.json":
                _add(files, name, uuid, tags, broken_tags, path)
            elif parts.name == "watch.json" and (is_new_layout(main) or uuid not in watches):
                _add(files, name, uuid, watches, broken, path)
            if len(watches) > MOST_WATCHES:
                raise InputError(f"{path} has more than {MOST_WATCHES:,} watches")
    return BackupContent(settings, tags, watches, broken, broken_tags)


def is_new_layout(main: str) -> bool:
    return PurePosixPath(main).name == SETTINGS_FILE


def _main_file(path: Path, names: list[str]) -> str:
    found = [
        PurePosixPath(name)
        for name in names
        if PurePosixPath(name).name in (SETTINGS_FILE, OLD_FILE)
        and len(PurePosixPath(name).parts) <= _DEEPEST_SETTINGS_FILE
    ]
    if not found:
        raise InputError(
            f"{path} is no backup of changedetection.io: it has neither {SETTINGS_FILE} nor {OLD_FILE}"
        )
    # A migrated installation has both files, and the new one counts.
    return str(min(found, key=lambda each: (len(each.parts), each.name != SETTINGS_FILE)))


def _add(
    files: BackupFiles,
    name: str,
    uuid: str,
    found: dict[str, JsonObject],
    broken: dict[str, str],
    path: Path,
) -> None:
    content = files.read(name)
    try:
        found[uuid] = _object(content, name, path)
    except InputError as error:
        broken[uuid] = str(error)


def _object(content: bytes, name: str, path: Path) -> JsonObject:
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise InputError(f"{name} in {path} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"{name} in {path} is not a JSON object")
    return found


def _listed_tags(settings: JsonObject) -> dict[str, JsonObject]:
    application = settings.get("application")
    return _objects(application.get("tags") if isinstance(application, dict) else None)


def _listed_watches(document: JsonObject) -> dict[str, JsonObject]:
    watching = document.get("watching")
    if not isinstance(watching, dict):
        return {}
    if len(watching) > MOST_WATCHES:
        raise InputError(f"the backup has more than {MOST_WATCHES:,} watches")
    return {uuid: watch if isinstance(watch, dict) else {} for uuid, watch in watching.items()}


def _objects(value: object) -> dict[str, JsonObject]:
    if not isinstance(value, dict):
        return {}
    return {name: each for name, each in value.items() if isinstance(each, dict)}
