"""The user's own folders, as the XDG base directory specification places them."""

from __future__ import annotations

import os
from pathlib import Path


def config_folder() -> Path:
    """Where the user's `aioflow.toml` and secrets are."""
    return _folder("XDG_CONFIG_HOME", ".config")


def data_folder() -> Path:
    """Return the folder of data that is worth keeping between runs."""
    return _folder("XDG_DATA_HOME", ".local/share")


def cache_folder() -> Path:
    """Return the folder of data that can be fetched again."""
    return _folder("XDG_CACHE_HOME", ".cache")


def shown_path(path: Path) -> str:
    """A path for people: relative to the current folder where it lies in it, the user's home as `~`."""
    for start, prefix in ((Path.cwd(), ""), (_home(), "~/")):
        if start is not None and path.is_relative_to(start):
            return f"{prefix}{path.relative_to(start)}"
    return str(path)


def _folder(variable: str, beside: str) -> Path:
    named = os.environ.get(variable, "")
    # A relative path is to be ignored, says the specification.
    if os.path.isabs(named):
        return Path(named) / "aioflow"
    return (_home() or Path("/nonexistent")) / beside / "aioflow"


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # a process without a user
        return None
