"""Separate environments for packages that an experiment compares with and that aioflow never needs.

They are made once, with venv and pip, inside the environment that runs the benchmark. `make clean` removes
both.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree

from aioflow.benchmarks.harness.processes import MeasurementError, run_silently
from aioflow.config.folders import cache_folder
from aioflow.errors import AioflowError

_STAMP = "installed"
# Results are published, so they name neither the source of packages nor paths of this machine.
_PLACE = re.compile(r"(\w+:)?/[^\s'\",;)]+|(?<=host=)'[^']*'")


class EnvironmentMissingError(AioflowError):
    """An environment does not exist, and making it failed or was not allowed."""


@dataclass(frozen=True)
class Environment:
    """An interpreter, and the versions of all packages that it finds."""

    python: str
    versions: Mapping[str, str]


def environments_folder() -> Path:
    """Return the folder of all environments."""
    if sys.prefix != sys.base_prefix:
        return Path(sys.prefix, "benchmarks")
    return cache_folder() / "benchmarks"  # the system's own Python is not ours to change


def python_with(name: str, *requirements: str, may_install: bool) -> str:
    """Return the interpreter of the environment `name`, in which these requirements are installed."""
    return environment_with(name, *requirements, may_install=may_install).python


def environment_with(name: str, *requirements: str, may_install: bool) -> Environment:
    """Return the environment `name`, made first when it does not exist or has other requirements."""
    folder = environments_folder() / name
    stamp = folder / _STAMP
    wanted = "\n".join([sys.version, *requirements])
    if not (stamp.is_file() and stamp.read_text() == wanted):
        if not may_install:
            raise EnvironmentMissingError("is not installed, and only a run that is not quick installs it")
        _make(folder, requirements)
        stamp.write_text(wanted)
    return Environment(str(_python(folder)), _versions(folder))


def _make(folder: Path, requirements: tuple[str, ...]) -> None:
    try:
        run_silently([sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder)])
        run_silently([*_pip(folder), "install", "--quiet", "--no-input", *requirements])
    except (OSError, MeasurementError) as error:
        rmtree(folder, ignore_errors=True)
        raise EnvironmentMissingError(f"could not be installed: {_reason(error)}") from error


def _pip(folder: Path) -> list[str]:
    """Return our own pip: one in each environment would take longer to install than most packages."""
    if find_spec("pip") is None:
        raise EnvironmentMissingError("could not be installed: there is no pip in the environment of aioflow")
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(_python(folder))]


def _python(folder: Path) -> Path:
    return folder / "Scripts" / "python.exe" if sys.platform == "win32" else folder / "bin" / "python"


def _versions(folder: Path) -> Mapping[str, str]:
    packages = [str(path) for path in sorted(folder.glob("[Ll]ib/**/site-packages"))]
    return {each.name: each.version for each in distributions(path=packages)}


def _reason(error: Exception) -> str:
    """Return pip's last error, or its last line, without paths and addresses."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return _PLACE.sub("…", (errors or lines or ["no more is known"])[-1])
