"""The circumstances of a run: machine, versions, commit, and the other load of the machine meanwhile.

Results are published, so they have neither the names of hosts or users nor paths.
"""

from __future__ import annotations

import asyncio
import gc
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, distributions, version
from operator import sub
from pathlib import Path
from typing import Any

from aioflow.benchmarks.harness.child import collections
from aioflow.benchmarks.harness.environments import environments_folder
from aioflow.benchmarks.harness.processes import ROOT, collections_apart
from aioflow.version import __version__

_CPUINFO, _MEMINFO, _STAT = Path("/proc/cpuinfo"), Path("/proc/meminfo"), Path("/proc/stat")
_PACKAGES = ("aiohttp", "selectolax", "lxml", "asyncpg", "aiosqlite")
# Installed in separate environments.
_PEERS = ("scrapy", "crawlee", "parsel", "aiostream")
# The machine counts in hundredths of a second: shares of a shorter time mean nothing.
_LEAST_SECONDS = 1


def describe_machine() -> Mapping[str, Any]:
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_megabytes": _memory_megabytes(),
        "system": f"{platform.system()} {_release()}",
        "architecture": platform.machine(),
    }


def find_versions() -> Mapping[str, str]:
    """Return the versions of aioflow, Python, aioflow's main dependencies and the installed peers."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    versions = {"aioflow": __version__, "Python": python, "event loop": _event_loop()}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions | _peers()


def _event_loop() -> str:
    """Return the package of the event loop."""
    loop = asyncio.new_event_loop()
    loop.close()
    package = type(loop).__module__.partition(".")[0]
    return package if package == "asyncio" else f"{package} {version(package)}"


def _peers() -> dict[str, str]:
    folders = environments_folder().glob("*/[Ll]ib/**/site-packages")
    found = {each.name.lower(): each.version for each in distributions(path=[str(each) for each in folders])}
    return {name: found[name] for name in _PEERS if name in found}


def find_commit() -> tuple[str, bool]:
    """Return the commit of the checkout, and whether files were changed since; empty without a repository."""
    if not (ROOT / ".git").exists():
        return "", False
    try:
        commit = _git("rev-parse", "HEAD").strip()
        return commit, bool(_git("status", "--porcelain", "--untracked-files=no").strip())
    except (OSError, subprocess.SubprocessError):
        return "", False


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout


def _release() -> str:
    """Return the version of the system's kernel, without the additions of its builder."""
    found = re.match(r"\d+(\.\d+)*", platform.release())
    return found[0] if found else ""


def _processor() -> str:
    for line in _lines(_CPUINFO):
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "Hardware"):
            return value.strip()
    return platform.processor() or "unknown"


def _memory_megabytes() -> int | None:
    for line in _lines(_MEMINFO):
        if line.startswith("MemTotal:"):
            return round(int(line.split()[1]) * 1024 / 1e6)
    return None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


@contextmanager
def usual_collections() -> Iterator[None]:
    """Collect garbage as often as Python does by default: the commands of aioflow do so less often."""
    before = gc.get_threshold()
    gc.set_threshold(*_usual_thresholds())
    try:
        yield
    finally:
        gc.set_threshold(*before)


@cache
def _usual_thresholds() -> tuple[int, ...]:
    """Return the thresholds of a new interpreter: versions differ in them."""
    command = [sys.executable, "-I", "-c", "import gc; print(*gc.get_threshold())"]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    return tuple(map(int, found.stdout.split()))


# --- meanwhile ----------------------------------------------------------------------------------


class MachineMonitor:
    """Measures the load of the machine from its creation on."""

    def __init__(self) -> None:
        self._load = _load()
        self._megahertz = _megahertz()
        self._collections, self._apart = collections(), collections_apart()
        self._machine, self._own = _machine_seconds(), _own_seconds()

    def conditions(self) -> Mapping[str, Any]:
        """Return the conditions since then; those that a system does not report are left out."""
        found = {
            "load_before": self._load,
            "load_after": _load(),
            "collections": list(map(sub, collections(), self._collections)),
            "collections_apart": list(map(sub, collections_apart(), self._apart)),
            "megahertz": _range(self._megahertz, _megahertz()),
            **self._shares(),
        }
        return {name: value for name, value in found.items() if value is not None}

    def _shares(self) -> Mapping[str, float | None]:
        """Return the shares of the machine that we, other programs and the host of a virtual one took."""
        now = _machine_seconds()
        if self._machine is None or now is None:
            return {}
        busy, idle, stolen = (one - other for one, other in zip(now, self._machine, strict=True))
        total = busy + idle + stolen
        if total < _LEAST_SECONDS:
            return {}
        own = _own_seconds() - self._own
        shares = {
            "own_share": own / total,
            "others_share": (busy - own) / total,
            "stolen_share": stolen / total,
        }
        return {name: round(min(max(share, 0.0), 1.0), 4) for name, share in shares.items()}


def _load() -> float | None:
    """Return the average number of running or waiting processes over the last minute."""
    try:
        return round(os.getloadavg()[0], 2)
    except (OSError, AttributeError):
        return None


def _megahertz() -> list[float]:
    found = re.findall(r"^cpu MHz\s*: ([\d.]+)", "\n".join(_lines(_CPUINFO)), re.MULTILINE)
    return [float(each) for each in found]


def _range(*readings: list[float]) -> list[int] | None:
    every = [round(each) for reading in readings for each in reading]
    return [min(every), max(every)] if every else None


def _own_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _machine_seconds() -> tuple[float, float, float] | None:
    """Return how long the machine's cores were busy, idle, and taken by the host, since its start."""
    for line in _lines(_STAT):
        if line.startswith("cpu "):
            user, nice, system, idle, waiting, irq, soft, stolen, *_ = [
                int(word) for word in line.split()[1:]
            ]
            second = os.sysconf("SC_CLK_TCK")
            return (user + nice + system + irq + soft) / second, (idle + waiting) / second, stolen / second
    return None
