"""What a run was made on: machine, versions and commit; and what else the machine did meanwhile.

Neither names of hosts or users nor paths: results are published.
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

from aioflow.bench.child import collections
from aioflow.bench.environments import environments_folder
from aioflow.bench.processes import collections_apart
from aioflow.version import __version__

ROOT = Path(__file__).parents[2]
_CPUINFO, _MEMINFO, _STAT = Path("/proc/cpuinfo"), Path("/proc/meminfo"), Path("/proc/stat")
_PACKAGES = ("aiohttp", "selectolax", "lxml", "asyncpg", "aiosqlite")
# Installed in environments of their own.
_PEERS = ("scrapy", "crawlee", "parsel", "aiostream")
# The machine counts in hundredths of a second: a share of less than this says nothing.
_LEAST_SECONDS = 1


def is_checkout() -> bool:
    """Whether this is a checkout of the sources, with what is not shipped."""
    return (ROOT / "pyproject.toml").is_file() and (ROOT / "benchmarks").is_dir()


def describe_machine() -> Mapping[str, Any]:
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_megabytes": _memory_megabytes(),
        "system": f"{platform.system()} {_release()}",
        "architecture": platform.machine(),
    }


def find_versions() -> Mapping[str, str]:
    """Of aioflow, Python, what aioflow stands on, and the peers that are installed by now."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    versions = {"aioflow": __version__, "Python": python, "event loop": _event_loop()}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions | _peers()


def _event_loop() -> str:
    """Of which package event loops are."""
    loop = asyncio.new_event_loop()
    loop.close()
    package = type(loop).__module__.partition(".")[0]
    return package if package == "asyncio" else f"{package} {version(package)}"


def _peers() -> dict[str, str]:
    folders = environments_folder().glob("*/[Ll]ib/**/site-packages")
    found = {each.name.lower(): each.version for each in distributions(path=[str(each) for each in folders])}
    return {name: found[name] for name in _PEERS if name in found}


def find_commit() -> tuple[str, bool]:
    """The commit of the checkout, and whether it was changed since; nothing where there is none."""
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
    """The version of the system's kernel, without what its builder added."""
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
    """Have garbage collected as often as in any program: the commands of aioflow do it less often."""
    before = gc.get_threshold()
    gc.set_threshold(*_usual_thresholds())
    try:
        yield
    finally:
        gc.set_threshold(*before)


@cache
def _usual_thresholds() -> tuple[int, ...]:
    """Those that a new interpreter has: versions differ in them."""
    command = [sys.executable, "-I", "-c", "import gc; print(*gc.get_threshold())"]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    return tuple(map(int, found.stdout.split()))


# --- meanwhile ----------------------------------------------------------------------------------


class Watch:
    """Looks at the machine before and after an experiment."""

    def __init__(self) -> None:
        self._load = _load()
        self._megahertz = _megahertz()
        self._collections, self._apart = collections(), collections_apart()
        self._machine, self._own = _machine_seconds(), _own_seconds()

    def conditions(self) -> Mapping[str, Any]:
        """What was found; what a system does not tell is left out."""
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
        """Which part of the machine we took, others took, and the machine below a virtual one took."""
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
    """How many processes ran or wanted to, on average over the last minute."""
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
    """Processor time of this process and of those that it started and that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _machine_seconds() -> tuple[float, float, float] | None:
    """Since its start: how long the machine's cores were busy, idle, and taken by the machine below."""
    for line in _lines(_STAT):
        if line.startswith("cpu "):
            user, nice, system, idle, waiting, irq, soft, stolen, *_ = [
                int(word) for word in line.split()[1:]
            ]
            second = os.sysconf("SC_CLK_TCK")
            return (user + nice + system + irq + soft) / second, (idle + waiting) / second, stolen / second
    return None
