"""The command line. A command imports what it needs when it runs: none waits for another's libraries."""

from __future__ import annotations

import gc
import sys

__all__ = ["main"]

_OBJECTS_BETWEEN_COLLECTIONS = 10_000


def main() -> None:
    """The program `aioflow`; ends the process."""
    if sys.argv[1:] == ["--version"]:
        from aioflow.version import __version__

        print(f"aioflow {__version__}")
        sys.exit()
    # Imports make tens of thousands of objects that stay; to look for garbage among them takes long.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    try:
        from aioflow.cli.app import app_for

        app_for(sys.argv[1:])(prog_name="aioflow")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        # Nor does the end of the process need to look for any.
        gc.freeze()
