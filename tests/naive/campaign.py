"""Many random plans, in one setup each or in all: what they were made of, where engine and naive differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from random import Random

from aioflow.plan import Program
from aioflow.runtime.session import MODES
from tests.naive.compare import Expected, Setup, UndecidedError, disagreement, expected, loaded
from tests.naive.constructs import constructs, names
from tests.naive.generator import Example, example
from tests.naive.shrink import shrink

MATRIX = tuple(
    Setup(capacity, workers, mode) for capacity, workers, mode in product((1, 2, 64), (1, 8, 64), MODES)
)


@dataclass
class Report:
    """What a campaign found."""

    plans: int = 0
    runs: int = 0
    left_out: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        width = max(map(len, names()))
        lines = [f"{name:{width}}  {self.counts[name]:>8}" for name in names()]
        lines.append(f"{self.plans} plans, {self.runs} runs, {self.left_out} left out")
        lines.append(f"{len(self.failures)} disagreements")
        return "\n".join([*self.failures, *lines])


@dataclass(frozen=True)
class Case:
    """A random program with what the naive evaluator says of it."""

    example: Example
    program: Program
    expected: Expected


def cases(seed: int, count: int, report: Report) -> Iterator[Case]:
    """The first `count` programs from a seed on that are of a bearable size."""
    while report.plans < count:
        made = example(seed)
        seed += 1
        program = loaded(made)
        try:
            wanted = expected(program, made.inputs)
        except UndecidedError:
            report.left_out += 1
            continue
        report.plans += 1
        report.counts += constructs(program, made.inputs) + wanted.happened
        yield Case(made, program, wanted)


def random_setup(seed: int) -> Setup:
    """A setup of its own for each program; sometimes so little memory that everything goes to disk."""
    random = Random(seed)
    chosen = random.choice(MATRIX)
    memory = random.choice((1 << 20, 1 << 20, 2000))
    order = random.randrange(1 << 30) if random.random() < 0.7 else None
    return Setup(chosen.capacity, chosen.workers, chosen.mode, memory, order)


def check(case: Case, setup: Setup, report: Report) -> bool:
    """Compare one run; a disagreement is made small and reported."""
    report.runs += 1
    problem = disagreement(case.program, case.example.inputs, case.expected, setup)
    if problem is None:
        return True
    small = shrink(case.example, lambda smaller: _kind(wrong(smaller, setup)) == _kind(problem))
    shown = "\n".join(f"  {name} = {bag.names} {list(bag.rows)}" for name, bag in small.inputs.items())
    left = wrong(small, setup)
    report.failures.append(
        f"seed {case.example.seed}, {setup}\n{problem}\nmade small: {left}\n{small.text}{shown}\n"
    )
    return False


def _kind(problem: str | None) -> str | None:
    """What two problems must share to be taken for the same one."""
    return None if problem is None else problem.partition(" ")[0]


def wrong(candidate: Example, setup: Setup) -> str | None:
    """In what engine and naive evaluator differ on a program; None also for what is no valid program."""
    try:
        program = loaded(candidate)
        wanted = expected(program, candidate.inputs)
    except Exception:  # what was left out was needed
        return None
    problem = disagreement(program, candidate.inputs, wanted, setup)
    return None if problem is None or problem.startswith("PlanError") else problem


def campaign(count: int, seed: int = 0, most_failures: int = 10) -> Report:
    """Random programs, each in a setup of its own."""
    report = Report()
    for case in cases(seed, count, report):
        check(case, random_setup(case.example.seed), report)
        if len(report.failures) >= most_failures:
            break
    return report


def matrix(count: int, seed: int = 0, most_failures: int = 10) -> Report:
    """Random programs, each in all setups."""
    report = Report()
    for case in cases(seed, count, report):
        for setup in MATRIX:
            if not check(case, setup, report):
                break
        if len(report.failures) >= most_failures:
            break
    return report
