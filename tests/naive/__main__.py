"""`python -m tests.naive --count 10000`: random plans on the engine and on the naive evaluator."""

from __future__ import annotations

import argparse
import sys

from tests.naive.campaign import campaign, matrix
from tests.naive.constructs import names

LEAST = 500  # of each operator and construct in 10,000 plans


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.naive", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="random plans, each in a setup of its own")
    parser.add_argument("--seed", type=int, default=0, help="of the first plan")
    parser.add_argument("--matrix", type=int, default=0, help="random plans, each in all 27 setups")
    options = parser.parse_args()
    report = campaign(options.count, options.seed)
    print(report)
    failed = bool(report.failures)
    rare = [name for name in names() if report.counts[name] * 10_000 < LEAST * report.plans]
    if report.plans < 1000:  # which say little about what is rare
        rare = []
    if rare:
        print(f"too rare: {', '.join(rare)}")
    if options.matrix:
        crossed = matrix(options.matrix, options.seed)
        print("\n".join(crossed.failures))
        print(f"matrix: {crossed.plans} plans, {crossed.runs} runs, {len(crossed.failures)} disagreements")
        failed |= bool(crossed.failures)
    return 1 if failed or rare else 0


if __name__ == "__main__":
    sys.exit(main())
