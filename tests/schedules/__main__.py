"""python -m tests.schedules: the long form, random lines in six zones over ten years.

A disagreement is printed, and the command fails. It also fails when a form hardly occurs in many lines. The
short form is tests/service/test_random_schedules.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.schedules.campaign import ZONES, ZoneReport, compare_zone
from tests.schedules.lines import FORMS

LEAST = 3  # of each form in 1,000 lines


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.schedules",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--years", type=int, default=10, help="from 2010 on")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--zones", nargs="+", default=list(ZONES), metavar="ZONE")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    reports = []
    with ProcessPoolExecutor(options.processes) as pool:
        waiting = [
            pool.submit(compare_zone, zone, options.lines, options.years, options.seed)
            for zone in options.zones
        ]
        for each in as_completed(waiting):
            reports.append(each.result())
            print(reports[-1], flush=True)
    return _conclude(reports)


def _conclude(reports: Sequence[ZoneReport]) -> int:
    disagreements = [each for report in reports for each in report.disagreements]
    print("\n".join(disagreements[:100]))
    print(
        f"{sum(report.minutes * report.lines for report in reports):,} minutes looked at, "
        f"{sum(report.times for report in reports):,} times, "
        f"{sum(report.questions for report in reports):,} questions for the next time and "
        f"{sum(report.peer_times for report in reports):,} times of cronsim compared: "
        f"{len(disagreements)} disagreements"
    )
    lines = reports[0].lines
    rare = [form for form in FORMS if lines >= 1000 and reports[0].forms[form] < LEAST * lines / 1000]
    if rare:
        print(f"too rare: {', '.join(rare)}")
    return 1 if disagreements or rare else 0


if __name__ == "__main__":
    sys.exit(main())
