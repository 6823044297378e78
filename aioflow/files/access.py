"""Which files a plan may read and write: those in its folder, and where the configuration allows it.

What matters is where a path leads in the end: links are followed, and `..` counts as what it is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from aioflow.configuration import as_configuration
from aioflow.errors import InputError
from aioflow.files.settings import FILES, FileSettings
from aioflow.services import Scope, ServiceHost


class FileAccess:
    """The settings for files, as a service of the engine."""

    scope: ClassVar[Scope] = "engine"

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        self.settings: FileSettings = as_configuration(configuration).section(FILES)

    @classmethod
    def open_service(cls, host: ServiceHost) -> FileAccess:
        return cls(host.configuration)

    async def close(self) -> None:
        """Files belong to the statements that opened them."""

    def find(self, path: str, folder: Path, purpose: Literal["read", "write"]) -> Path:
        """Return where a path of a plan in that folder leads; an InputError when it may not lead there."""
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
