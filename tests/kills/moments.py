"""Every moment that is declared anywhere in aioflow."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import aioflow
from aioflow.state.crash_points import MOMENTS

_DECLARES = "from aioflow.state.crash_points import"
_ROOT = Path(aioflow.__path__[0])


def all_moments() -> dict[str, str]:
    """Name and meaning of each; the modules that declare them are imported."""
    for folder, _, names in os.walk(_ROOT, followlinks=True):
        for path in (Path(folder, name) for name in names if name.endswith(".py")):
            if _DECLARES in path.read_text():
                parts = path.relative_to(_ROOT.parent).with_suffix("").parts
                importlib.import_module(".".join(parts))
    return dict(MOMENTS)
