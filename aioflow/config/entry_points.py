"""Entry points of installed packages, looked up once: the look-up reads every package."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, SelectableGroups


@cache
def installed(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group."""
    return tuple(_all_groups().select(group=group))


@cache
def _all_groups() -> SelectableGroups:
    """Without a group, the packages are read once for all groups."""
    from importlib.metadata import entry_points  # here: operators can be defined without it

    return entry_points()
