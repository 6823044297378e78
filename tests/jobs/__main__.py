"""`python -m tests.jobs --kills 200`: jobs are killed again and again, and lose nothing."""

from __future__ import annotations

import argparse
import sys

from aioflow.demo.running import running_site
from tests.jobs.campaign import run_campaign


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with running_site(latency=0.03) as site:
        report = run_campaign(site, options.kills, options.seed)
    print(report)
    for moment, number in sorted(report.kills.items()):
        print(f"  {number:4}  {moment}")
    for problem in report.problems:
        print(f"  problem: {problem}")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
