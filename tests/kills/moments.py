"""Every moment that is declared anywhere in aioflow."""

from __future__ import annotations

import importlib
import pkgutil

import aioflow
from aioflow.state.moments import MOMENTS


def import_everything() -> None:
    """Import all modules of aioflow, so that all moments are declared; programs are left out."""
    for module in pkgutil.walk_packages(aioflow.__path__, "aioflow."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def all_moments() -> dict[str, str]:
    """Name and meaning of each."""
    import_everything()
    return dict(MOMENTS)
