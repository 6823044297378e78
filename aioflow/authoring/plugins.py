"""Loads operators: those of the library, of installed packages (entry points), and of a user's modules."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from aioflow.authoring.operator import Registry, registry
from aioflow.config.entry_points import installed
from aioflow.errors import AioflowError, InputError

ENTRY_POINT_GROUP = "aioflow.operators"


def load_operators(modules: Iterable[str] = ()) -> Registry:
    """Return the operators of the library, of installed packages and of these modules or files."""
    _load_installed()
    for module in modules:
        _load_module(module)
    return registry


@cache
def _load_installed() -> None:
    import_module("aioflow.operators")
    for entry_point in installed(ENTRY_POINT_GROUP):
        try:
            entry_point.load()
        except Exception as error:
            raise InputError(
                f"operators of the installed package {entry_point.value!r} cannot be loaded: "
                f"{type(error).__name__}: {error}"
            ) from error


def _load_module(name: str) -> None:
    """Load a file or a module; one in the current folder wins over a module of that name elsewhere."""
    path = Path(name) if name.endswith(".py") else Path.cwd() / (name.replace(".", "/") + ".py")
    folder = str(path.resolve().parent if name.endswith(".py") else Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        if path.exists():
            _load_file(path.resolve())
        elif name.endswith(".py"):
            raise InputError(f"there is no file {name!r} with operators")
        else:
            import_module(name)
    except AioflowError:
        raise
    except ModuleNotFoundError as error:
        if error.name != name:
            message = f"module {name!r} with operators needs {error.name!r}, which is not installed"
            raise InputError(message) from error
        raise InputError(f"there is no module {name!r} with operators (looked in {folder} too)") from None
    except Exception as error:
        message = f"module {name!r} with operators cannot be loaded: {type(error).__name__}: {error}"
        raise InputError(message) from error


def _load_file(path: Path) -> None:
    """Run a file as a module once, even if another module has its name."""
    loaded = sys.modules.get(path.stem)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path):
        return
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    if loaded is None:
        sys.modules[path.stem] = module
    spec.loader.exec_module(module)
