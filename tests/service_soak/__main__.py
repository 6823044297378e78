"""`python -m tests.service_soak --hours 24 --tasks 50`: the long form."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.service_soak.serving import Soak

DRIFT_BYTES = 1_000_000
_WARM_UP_SHARE = 1 / 12


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.service_soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trace", action="store_true", help="measure Python's objects: half as fast")
    options = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), options.hours, options.tasks, options.seed, is_traced=options.trace)
        share = options.hours * _WARM_UP_SHARE
        report = soak.run(
            lambda line: print(f"{time.monotonic() - begun:7.1f} s  {line}", flush=True),
            warm_up_hours=share,
            each_hours=share,
        )
    print(report)
    for what, by_hour, unit in (
        ("MB that it can write to", report.memory, 1e6),
        ("MB resident", report.resident, 1e6),
        ("MB of malloc in use", report.in_use, 1e6),
        ("thousand blocks", report.blocks, 1e3),
    ):
        print(f"{what}, by hour: " + ", ".join(f"{at:g}: {number / unit:.2f}" for at, number in by_hour))
    for line in report.growth:
        print(f"grown: {line}")
    for problem in report.problems:
        print(f"problem: {problem}")
    return 1 if report.problems or report.drift_bytes > DRIFT_BYTES else 0


if __name__ == "__main__":
    sys.exit(main())
