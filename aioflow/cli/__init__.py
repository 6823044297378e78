"""The command line. A command imports what it needs when it runs: none waits for another's libraries."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """The program `aioflow`; ends the process."""
    if sys.argv[1:] == ["--version"]:
        from aioflow.version import __version__

        print(f"aioflow {__version__}")
        sys.exit()
    try:
        from aioflow.cli.app import app

        app(prog_name="aioflow")
    except KeyboardInterrupt:
        sys.exit(130)
