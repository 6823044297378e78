"""python -m tests.hidden: the long form, random databases crawled by every algorithm.

A problem is printed, and the command fails. The short form is test_random_databases.py.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.hidden.databases import Outcome, check_database

_SHOWN_AT_MOST = 50


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.hidden",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--databases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first database")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.databases)
    total = Outcome()
    with ProcessPoolExecutor(options.processes) as pool:
        for each in pool.map(check_database, seeds, chunksize=50):
            total.add(each)
    print("\n".join(total.problems[:_SHOWN_AT_MOST]))
    print(
        f"{total.databases:,} databases, {total.overfull:,} of them with points of more than k tuples: "
        f"{total.crawls:,} crawls by {total.queries:,} queries, {len(total.problems):,} problems"
    )
    return 1 if total.problems else 0


if __name__ == "__main__":
    sys.exit(main())
