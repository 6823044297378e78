"""What installed packages bring, by entry points: looked up once, since every package is looked at.

Not by `importlib.metadata`, which takes longer to import than all the files take to read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache, reduce
from importlib import import_module
from typing import Any

from aioflow.dataclass import dataclass

_METADATA = (".dist-info", ".egg-info")
_GROUPS = "aioflow."


@dataclass(frozen=True)
class EntryPoint:
    """`name = value` in the group of an entry_points.txt; the value is `module` or `module:attribute`."""

    name: str
    value: str
    group: str

    def load(self) -> Any:
        """Import what the value names."""
        module, _, attributes = self.value.partition("[")[0].partition(":")
        names = filter(None, attributes.strip().split("."))
        return reduce(getattr, names, import_module(module.strip()))


def installed(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group, which are of aioflow."""
    if any(os.path.isfile(place) for place in sys.path):
        # Packages in an archive, which is rare, are left to who can read it.
        from importlib.metadata import entry_points

        return tuple(EntryPoint(each.name, each.value, group) for each in entry_points(group=group))
    return tuple(point for point in _all() if point.group == group)


@cache
def _all() -> tuple[EntryPoint, ...]:
    return tuple(point for text in _texts() for point in _read(text))


def _texts() -> Iterator[str]:
    """Every package's entry_points.txt; of packages that are there twice, that of the first."""
    known = set()
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue  # as for modules: not every folder of the path must be there
        for name in names:
            if not name.endswith(_METADATA):
                continue
            package = name.removesuffix(".egg-info").partition("-")[0].lower().replace(".", "_")
            if package in known:
                continue
            known.add(package)
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), encoding="utf-8") as file:
                    yield file.read()
            except OSError:
                continue


def _read(text: str) -> Iterator[EntryPoint]:
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line[1:-1]
        elif group.startswith(_GROUPS) and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield EntryPoint(name.strip(), value.strip(), group)
