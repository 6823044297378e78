"""Random plans on the engine and on the naive evaluator: tuples, and marks of wholeness.

    python -m tests.naive --count 10000            plans, each in a setup of its own
    python -m tests.naive --count 0 --matrix 300   plans, each in all 27 setups: capacities, workers, modes
    python -m tests.naive --count 0 --databases 500
                                                   SQLite databases with some runs each, in every mode

Every plan has a seed; `--seed` is that of the first. A disagreement is told with its seed, made as small as
can be, and the command fails. It also fails when an operator or construct hardly occurs in many plans. The
short form is tests/test_random_plans.py.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable

from tests.naive import campaign, constructs
from tests.naive.databases import campaign as databases
from tests.naive.databases.constructs import names as database_constructs

LEAST = 500  # of each operator and construct in 10,000 plans
LEAST_ON_DATABASES = 20  # in 1,000 databases


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.naive",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=1000, help="random plans, each in a setup of its own")
    parser.add_argument("--seed", type=int, default=0, help="of the first plan")
    parser.add_argument("--matrix", type=int, default=0, help="random plans, each in all 27 setups")
    parser.add_argument("--databases", type=int, default=0, help="random databases, each in every mode")
    options = parser.parse_args()
    well = True
    if options.count:
        report = campaign.campaign(options.count, options.seed)
        print(report)
        wanted = [name for name in constructs.names() if name not in constructs.MAY_BE_RARE]
        well &= not report.failures and _are_frequent(wanted, report.counts, report.plans, LEAST / 10_000)
    if options.matrix:
        crossed = campaign.matrix(options.matrix, options.seed)
        print("\n".join(crossed.failures))
        print(f"matrix: {crossed.plans} plans, {crossed.runs} runs, {len(crossed.failures)} disagreements")
        well &= not crossed.failures
    if options.databases:
        stored = databases.campaign(options.databases, options.seed)
        print(stored)
        share = LEAST_ON_DATABASES / 1000
        well &= not stored.failures
        well &= _are_frequent(database_constructs(), stored.counts, stored.stories, share)
    return 0 if well else 1


def _are_frequent(names: Iterable[str], counts: Counter[str], plans: int, share: float) -> bool:
    if plans < 1 / share * 10:  # which say little about what is rare
        return True
    rare = [name for name in names if counts[name] < share * plans]
    if rare:
        print(f"too rare: {', '.join(rare)}")
    return not rare


if __name__ == "__main__":
    sys.exit(main())
