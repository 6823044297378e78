"""Finds operators: the library, installed packages (entry points), and modules that a user names."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from aioflow.errors import InputError
from aioflow.operator import Registry, registry

ENTRY_POINT_GROUP = "aioflow.operators"


def load_operators(modules: Iterable[str] = ()) -> Registry:
    """The operators of the library, of installed packages and of these modules (files or dotted names)."""
    _load_installed()
    for module in modules:
        _load_module(module)
    return registry


@cache
def _load_installed() -> None:
    import_module("aioflow.operators")
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            entry_point.load()
        except Exception as error:
            raise InputError(
                f"operators of the installed package {entry_point.value!r} cannot be loaded: "
                f"{type(error).__name__}: {error}"
            ) from error


def _load_module(name: str) -> None:
    folder = str(Path.cwd())
    if name.endswith(".py"):
        path = Path(name).resolve()
        folder, name = str(path.parent), path.stem
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise InputError(
                f"module {name!r} with operators needs {error.name!r}, which is not installed"
            ) from error
        raise InputError(f"there is no module {name!r} with operators (looked in {folder} too)") from None
    except Exception as error:
        raise InputError(
            f"module {name!r} with operators cannot be loaded: {type(error).__name__}: {error}"
        ) from error
