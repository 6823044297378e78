"""Public names of a package, each imported from its home module when it is first used.

A package that listed its names by plain imports would make every start pay for all of its modules.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_exports(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for `package`; `homes` lists its names by the submodule of each."""
    home_of = {name: f"{package}.{module}" for module, names in homes.items() for name in names}

    def getattr_of_package(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return getattr_of_package, lambda: sorted(home_of)
