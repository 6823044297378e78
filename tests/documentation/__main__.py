"""Runs pages from the command line, and with `--update` writes what their blocks really print."""

import sys
import tempfile
from pathlib import Path

from tests.documentation import Page


def main(arguments: list[str]) -> int:
    update = "--update" in arguments
    failed = False
    for name in arguments:
        if name.startswith("--"):
            continue
        with tempfile.TemporaryDirectory() as folder:
            page = Page(Path(name).resolve(), Path(folder))
            differences = list(page.differences())
        if update:
            page.path.write_text(page.updated(differences), encoding="utf-8")
        for difference in differences:
            if not update or difference.actual is None:
                failed = True
                print(f"{name}:{difference.block.line}: {difference.message}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
