"""python -m tests.soak: the long form."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.soak.watching import LieError, soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--days", type=int, default=200)
    parser.add_argument("--items", type=int, nargs="+", default=[3, 20, 2000])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, from --seed on")
    options = parser.parse_args()
    lies = 0
    for items in options.items:
        for seed in range(options.seed, options.seed + options.seeds):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    print(
                        f"{items} items, seed {seed}: {soak(items, options.days, seed, Path(folder))}",
                        flush=True,
                    )
                except LieError as error:
                    lies += 1
                    print(f"{items} items, seed {seed}: {error}", flush=True)
    return 1 if lies else 0


if __name__ == "__main__":
    sys.exit(main())
