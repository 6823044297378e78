"""Sealing: a process that has loaded all it needs gives up files and the network, for good."""

from __future__ import annotations

import os
import sys


def seal() -> None:
    """Take environment variables, new files and new connections from this process.

    What is open stays open. A socket needs a file descriptor as a file does, so a limit of none refuses both,
    whatever library asks for it. Windows has no such limit.
    """
    os.environ.clear()
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
