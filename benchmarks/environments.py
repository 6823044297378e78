"""Environments of their own for packages that an experiment compares with and that aioflow never needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.processes import run_silently

_FOLDER = Path(__file__).parent / ".environments"


class EnvironmentMissingError(Exception):
    """The environment is not there and could not, or was not to be, made."""


def python_with(name: str, requirement: str, *, may_install: bool) -> str:
    """The interpreter of the environment `name`, in which the requirement is installed."""
    folder = _FOLDER / name
    python = str(folder / "bin" / "python")
    installed = folder / "installed"
    if installed.is_file() and installed.read_text() == requirement:
        return python
    if not may_install:
        raise EnvironmentMissingError("needs a run that is not quick")
    try:
        run_silently([sys.executable, "-m", "venv", "--clear", str(folder)])
        run_silently([python, "-m", "pip", "install", "--quiet", requirement])
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise EnvironmentMissingError(f"could not be installed: {str(error).splitlines()[-1]}") from error
    installed.write_text(requirement)
    return python
