"""The command line: `app` lists the commands, `commands` has a file for each, `output` writes for them."""

from __future__ import annotations

import gc
import sys

__all__ = ["main"]

_OBJECTS_BETWEEN_COLLECTIONS = 10_000


def main() -> None:
    """Run the program `aioflow`, which ends the process."""
    if sys.argv[1:] == ["--version"]:
        from aioflow.version import __version__

        print(f"aioflow {__version__}")
        sys.exit()
    # Imports make tens of thousands of objects that stay: a search for garbage among them takes long.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    try:
        from aioflow.cli.app import app

        app(prog_name="aioflow")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        # At the end of the process no garbage need be found.
        gc.freeze()
