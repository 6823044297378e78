"""The user's own folders, as the XDG base directory specification places them."""

from __future__ import annotations

import os
from pathlib import Path


def config_folder() -> Path:
    """Return the folder of the user's `aioflow.toml` and secrets."""
    return _folder("XDG_CONFIG_HOME", ".config")


def data_folder() -> Path:
    """Return the folder of data that is worth keeping between runs."""
    return _folder("XDG_DATA_HOME", ".local/share")


def cache_folder() -> Path:
    """Return the folder of data that can be fetched again."""
    return _folder("XDG_CACHE_HOME", ".cache")


def shown_path(path: Path) -> str:
    """Return a path for people: relative if it is in the current folder, with `~` for the user's home."""
    for start, prefix in ((Path.cwd(), ""), (_home(), "~/")):
        if start is not None and path.is_relative_to(start):
            return f"{prefix}{path.relative_to(start)}"
    return str(path)


def _folder(variable: str, beside: str) -> Path:
    named = os.environ.get(variable, "")
    # The specification says to ignore a relative path.
    if os.path.isabs(named):
        return Path(named) / "aioflow"
    return (_home() or Path("/nonexistent")) / beside / "aioflow"


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # a process without a user
        return None
