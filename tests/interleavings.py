"""`python -m tests.interleavings --count 100000`: reference plans in seeded orders of their tasks.

Each seed picks a plan, the capacity of its channels, the number of workers and the order in which ready
tasks run: the same seed always gives the same run, step by step.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

from aioflow.authoring.operator import Registry, load_operators
from aioflow.engine import Engine
from aioflow.runtime.session import MODES, Mode
from aioflow.testing import DeadlockError, assert_nothing_left, run
from tests.reference_plans import OPERATORS, REFERENCES, Outputs, Reference


@cache
def registry() -> Registry:
    return Registry([*load_operators(), *OPERATORS])


@dataclass(frozen=True)
class Interleaving:
    """One way to run a reference plan."""

    seed: int
    reference: Reference
    capacity_rows: int
    workers: int
    memory_bytes: int
    mode: Mode = "D+S+"

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: {self.reference.name}, mode {self.mode}, capacity {self.capacity_rows}, "
            f"workers {self.workers}, memory {self.memory_bytes}"
        )

    def engine(self) -> Engine:
        return Engine(
            self.workers,
            capacity_rows=self.capacity_rows,
            memory_bytes=self.memory_bytes,
            mode=self.mode,
            registry=registry(),
        )

    async def outputs(self) -> Outputs:
        """What the plan gives; fails if it leaves anything behind."""
        async with self.engine() as engine:
            try:
                result = await engine.run(self.reference.program, self.reference.given)
            finally:
                assert_nothing_left(engine)
        return result.outputs

    def problem(self, trace: list[str] | None = None) -> str | None:
        """What goes wrong; None if nothing does."""
        try:
            outputs = run(self.outputs(), seed=self.seed, trace=trace)
        except (DeadlockError, AssertionError, Exception) as error:
            return f"{type(error).__name__}: {error}"
        return self.reference.problem(outputs)


def interleaving(seed: int, references: Sequence[Reference] = REFERENCES) -> Interleaving:
    """The run that belongs to a seed."""
    random = Random(seed)
    return Interleaving(
        seed,
        references[seed % len(references)],
        random.choice((1, 1, 2, 64)),
        random.choice((1, 3, 15)),
        random.choice((1 << 20, 1 << 20, 500)),
        "D+S+" if random.random() < 0.9 else random.choice(MODES),
    )


def problems(seeds: Sequence[int], references: Sequence[Reference] = REFERENCES) -> Iterator[str]:
    """What goes wrong in the runs of these seeds."""
    for seed in seeds:
        chosen = interleaving(seed, references)
        problem = chosen.problem()
        if problem is not None:
            yield f"{chosen}\n{problem}"


def digest(seeds: Sequence[int]) -> str:
    """A fingerprint of every step of the runs of these seeds."""
    steps: list[str] = []
    for seed in seeds:
        interleaving(seed).problem(steps)
    return hashlib.sha256("\n".join(steps).encode()).hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.interleavings", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="how many seeds")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--digest", action="store_true", help="print a fingerprint of all steps instead")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    if options.digest:
        print(digest(seeds))
        return 0
    found = 0
    for problem in problems(seeds):
        print(problem)
        found += 1
    print(f"{options.count} interleavings of {len(REFERENCES)} reference plans, {found} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
