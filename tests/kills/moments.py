"""Every moment that is declared anywhere in aioflow."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import aioflow
from aioflow.state.crash_points import MOMENTS

_DECLARES = "from aioflow.state.crash_points import"
_ROOT = Path(aioflow.__path__[0])
_SERVICE = _ROOT / "service"
_JOBS = _ROOT / "jobs"


def all_moments() -> dict[str, str]:
    """Name and meaning of each that a run passes which is no job; modules that declare them are imported."""
    _import_declaring(_ROOT)
    others = service_moments() | job_moments()
    return {name: meaning for name, meaning in MOMENTS.items() if name not in others}


def service_moments() -> dict[str, str]:
    """Name and meaning of each that only a service passes."""
    return _declared_in(_SERVICE)


def job_moments() -> dict[str, str]:
    """Name and meaning of each that only a job passes."""
    return _declared_in(_JOBS)


def _declared_in(root: Path) -> dict[str, str]:
    declaring = _import_declaring(root)
    texts = [path.read_text() for path in declaring]
    return {name: meaning for name, meaning in MOMENTS.items() if any(f'moment("{name}"' in t for t in texts)}


def _import_declaring(root: Path) -> list[Path]:
    found = []
    for folder, _, names in os.walk(root, followlinks=True):
        for path in (Path(folder, name) for name in names if name.endswith(".py")):
            if _DECLARES in path.read_text():
                found.append(path)
                parts = path.relative_to(_ROOT.parent).with_suffix("").parts
                importlib.import_module(".".join(parts))
    return found
