"""Entry points of installed packages, looked up once: the look-up reads every package."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points


@cache
def installed(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group."""
    return tuple(_all_groups().select(group=group))


# Without a group, the packages are read once for all groups.
_all_groups = cache(entry_points)
