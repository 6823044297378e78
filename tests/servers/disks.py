"""Disks that are full, or can only be read, for commands; each works for any user, on any machine.

A small disk is a tmpfs in a mount namespace of its own; it is gone with the process that holds it. Where that
is not allowed, the files of a command cannot grow beyond a size instead.
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

_HOLDER = """
mount -t tmpfs -o size=$2 tmpfs "$1" || exit 1
echo mounted
while read -r size; do mount -o remount,size=$size "$1"; echo grown; done
"""
_ENTER = 'cd "$1" && shift && exec "$@"'
_LARGE = 100 * 2**20
_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE = 24, 1


class SmallDisk(Protocol):
    """A folder with little room, until it grows."""

    @property
    def folder(self) -> Path:
        """Where its files can be seen from outside."""
        ...

    def command(self, command: Sequence[str]) -> list[str]:
        """A command as it is to be started, to run in the folder."""
        ...

    def limit(self) -> None:
        """To be called in the process of a command before it starts."""
        ...

    def grow(self) -> None: ...


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[SmallDisk]:
    """A disk with so much room, seen at a folder."""
    with _holder(folder, size_bytes) as holder:
        yield SmallFiles(folder, size_bytes) if holder is None else _Mounted(folder, holder)


@dataclass
class SmallFiles:
    """A folder for commands whose files cannot be larger than a size."""

    folder: Path
    size_bytes: int

    def command(self, command: Sequence[str]) -> list[str]:
        return ["sh", "-c", _ENTER, "enter", str(self.folder), *command]

    def limit(self) -> None:
        most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.size_bytes, most))

    def grow(self) -> None:
        self.size_bytes = _LARGE


@dataclass
class _Mounted:
    where: Path
    holder: subprocess.Popen[str]
    limit: Callable[[], None] = field(default=lambda: None)

    @property
    def folder(self) -> Path:
        return Path(f"/proc/{self.holder.pid}/root/{self.where}")

    def command(self, command: Sequence[str]) -> list[str]:
        as_user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        enter = ["nsenter", "--target", str(self.holder.pid), "--mount", *as_user]
        return [*enter, "sh", "-c", _ENTER, "enter", str(self.where), *command]

    def grow(self) -> None:
        assert self.holder.stdin is not None
        assert self.holder.stdout is not None
        self.holder.stdin.write(f"{_LARGE}\n")
        self.holder.stdin.flush()
        assert self.holder.stdout.readline() == "grown\n"


@contextmanager
def _holder(folder: Path, size_bytes: int) -> Iterator[subprocess.Popen[str] | None]:
    """The process that holds a disk; None when it may not."""
    as_user = [] if os.geteuid() == 0 else ["--map-root-user"]
    command = ["unshare", "--mount", *as_user, "sh", "-c", _HOLDER, "holder", str(folder), str(size_bytes)]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
    except FileNotFoundError:
        yield None
        return
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process if process.stdout.readline() == "mounted\n" else None
        finally:
            process.stdin.close()


def obey_permissions() -> None:
    """In the process of a command before it starts: what may only be read can root only read as well."""
    if os.geteuid() == 0 and ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, 0, 0, 0) != 0:
        raise OSError("root is not allowed to give up writing where nobody may")
