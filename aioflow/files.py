"""Access of plans to files: `[files]` of the configuration.

A plan may read and write files in its folder, and elsewhere where the configuration allows it. The real path
counts: links are followed, and `..` is resolved. Cells that a spreadsheet would take for formulas are made
harmless, since the text of a page may be a command.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from aioflow.authoring.services import Scope, ServiceHost
from aioflow.config.configuration import as_configuration
from aioflow.config.sections import Section
from aioflow.errors import InputError

Formulas: TypeAlias = Literal["neutral", "keep"]


@dataclass(frozen=True)
class FileSettings:
    """The files that plans may read and write, and the way CSV is written."""

    allow: tuple[Path, ...] = ()  # folders and files besides those in the folder of the plan
    formulas: Formulas = "neutral"  # for texts in CSV that a spreadsheet would take for formulas


FILES = Section("files", FileSettings)


class FileAccess:
    """The settings for files, as a service of the engine."""

    scope: ClassVar[Scope] = "engine"

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        self.settings: FileSettings = as_configuration(configuration).section(FILES)

    @classmethod
    def open_service(cls, host: ServiceHost) -> FileAccess:
        return cls(host.configuration)

    async def close(self) -> None:
        """Do nothing: files belong to the statements that opened them."""

    def find(self, path: str, folder: Path, purpose: Literal["read", "write"]) -> Path:
        """Return the real path of a path in a plan of that folder; raise an InputError if it is forbidden."""
        try:
            target = Path(os.path.realpath(folder / path))
        except (OSError, ValueError) as error:  # a NUL, or links that lead in circles
            reason = error.strerror if isinstance(error, OSError) else "a path has no NUL"
            raise InputError(f"cannot {purpose} {path!r}: {reason}") from None
        allowed = (folder, *self.settings.allow)
        if not any(target.is_relative_to(os.path.realpath(each)) for each in allowed):
            raise InputError(
                f"cannot {purpose} {path!r}: it leads out of the folder of the plan; if it is meant, write "
                f"allow = [{str(target.parent)!r}] under [files] in aioflow.toml"
            )
        return target


# Spreadsheets take a text that begins with one of these for a formula, even after blanks and in the wide
# forms of East Asia. Characters without width are like blanks: a byte order mark at the beginning of a file
# is not part of the first cell.
_FORMULA = re.compile(r"[\s\x00-\x1f\u200b-\u200f\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)*(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)


def neutral(text: str) -> str:
    """Return the text of a cell so that no spreadsheet takes it for a formula; a number stays a number."""
    if text[:1].isalnum():  # nearly all texts, and this is quick
        return text
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text
