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


def all_moments() -> dict[str, str]:
    """Name and meaning of each that a command passes; the modules that declare them are imported."""
    _import_declaring(_ROOT)
    of_service = service_moments()
    return {name: meaning for name, meaning in MOMENTS.items() if name not in of_service}


def service_moments() -> dict[str, str]:
    """Name and meaning of each that only a service passes."""
    declaring = _import_declaring(_SERVICE)
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
