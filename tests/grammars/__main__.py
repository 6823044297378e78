"""python -m tests.grammars: the long form, random grammars whose interpretations are all listed, and
long sources that a plain breadth-first matcher reads as well.

A problem is printed, and the command fails. The short form is test_random_grammars.py.
"""

from __future__ import annotations

import argparse
import sys

from tests.grammars.random_grammars import Outcome, check_grammar, check_long_source

_SHOWN_AT_MOST = 20


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.grammars",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=10_000, help="of grammars")
    parser.add_argument("--seed", type=int, default=0, help="of the first grammar")
    options = parser.parse_args()
    total = Outcome()
    for seed in range(options.seed, options.seed + options.count):
        total.add(check_grammar(seed))
        total.add(check_long_source(seed))
    print("\n\n".join(total.problems[:_SHOWN_AT_MOST]))
    print(
        f"{total.grammars:,} grammars, {total.refused:,} of them left recursive; {total.sources:,} sources, "
        f"{total.matched:,} of them matched, {total.too_many:,} with too many interpretations to list: "
        f"{len(total.problems):,} problems"
    )
    return 1 if total.problems else 0


if __name__ == "__main__":
    sys.exit(main())
