"""The plan files in the home of a service: listed, read, written as a whole, and removed."""

from __future__ import annotations

import os
import re
import secrets
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import msgspec

from aioflow.errors import InputError
from aioflow.language.loader import SUFFIX
from aioflow.service.errors import EditConflictError, NotFoundError

FILES_AT_MOST = 10_000
# No file name of any system needs more, and none of these leads out of a folder or is hidden.
_PART = r"\w[\w. -]{0,99}"
_NAME = re.compile(rf"(?:{_PART}/){{0,4}}{_PART}")


class PlanSummary(msgspec.Struct, frozen=True):
    """A plan file. `name` is its path in the folder of plans, without the ending."""

    name: str
    bytes: int
    changed: datetime


class PlanText(msgspec.Struct, frozen=True):
    """The text of a plan file. `version` is a digest, by which a change by somebody else is noticed."""

    name: str
    path: str
    version: str
    text: str


class TextFile:
    """A file that people edit: read with its version, and written as a whole if that is still the same."""

    def __init__(self, path: Path, noun: str) -> None:
        self.path = path
        self._noun = noun

    def read(self) -> tuple[str, str]:
        """Return the text and its version."""
        data = self._data()
        if data is None:
            raise NotFoundError(f"there is no {self._noun}")
        return data.decode("utf-8", "replace"), version_of(data)

    def write(self, text: str, expected: str | None) -> str:
        """Replace the file; return its new version. `expected` is the version to replace, None for none."""
        self.check(expected)
        data = text.encode()
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}.part")
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
        except OSError as error:
            raise InputError(f"cannot write the {self._noun}: {error.strerror}") from error
        finally:
            temporary.unlink(missing_ok=True)
        return version_of(data)

    def remove(self, expected: str | None) -> None:
        """Remove the file."""
        if self._data() is None:
            raise NotFoundError(f"there is no {self._noun}")
        if expected is not None:
            self.check(expected)
        self.path.unlink(missing_ok=True)

    def check(self, expected: str | None) -> None:
        """Raise an EditConflictError if the file is not in the version that its editor has read."""
        data = self._data()
        found = None if data is None else version_of(data)
        if found == expected:
            return
        if expected is None:
            raise EditConflictError(f"there is a {self._noun} already: read it, and send its version")
        raise EditConflictError(f"the {self._noun} was changed or removed meanwhile: read it again")

    def _data(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise InputError(f"cannot read the {self._noun}: {error.strerror}") from error


def version_of(data: bytes) -> str:
    """Return the version of a text: a digest."""
    return blake2b(data, digest_size=8).hexdigest()


class PlanFolder:
    """The folder of plans of a service."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def has(self, path: str) -> bool:
        """Return whether a path lies in the folder, links followed."""
        try:
            return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.folder))
        except (OSError, ValueError):
            return False

    def names(self) -> list[PlanSummary]:
        """Return all plan files, by name."""
        if not self.folder.is_dir():
            return []
        found = []
        for path in sorted(self.folder.rglob(f"*{SUFFIX}"))[:FILES_AT_MOST]:
            name = path.relative_to(self.folder).as_posix().removesuffix(SUFFIX)
            if _NAME.fullmatch(name) and path.is_file() and self.has(str(path)):
                about = path.stat()
                changed = datetime.fromtimestamp(about.st_mtime, UTC)
                found.append(PlanSummary(name, about.st_size, changed))
        return found

    def file(self, name: str) -> TextFile:
        """Return the file of a plan; an InputError refuses names that no plan file has."""
        if not _NAME.fullmatch(name):
            raise InputError(
                f"the name of a plan has letters, digits, spaces and any of -_., and '/' after folders, "
                f"not {name[:80]!r}"
            )
        if name.endswith(SUFFIX):
            raise InputError(f"the name of a plan is without {SUFFIX}: {name.removesuffix(SUFFIX)!r}")
        path = self.folder / f"{name}{SUFFIX}"
        if not self.has(str(path)):
            raise InputError(f"the plan {name!r} leads out of the folder of plans")
        return TextFile(path, f"plan {name!r}")

    def read(self, name: str) -> PlanText:
        """Return a plan file."""
        file = self.file(name)
        text, version = file.read()
        return PlanText(name, str(file.path), version, text)
