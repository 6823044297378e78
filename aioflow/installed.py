"""What installed packages bring, by entry points: looked up once, since every package's metadata is read."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def installed(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group."""
    return tuple(_all().select(group=group))


@cache
def _all() -> Any:  # of a type that depends on Python's version
    # Imported late: metadata is slow to import, and simple texts ask for nothing of it.
    from importlib.metadata import entry_points

    return entry_points()
