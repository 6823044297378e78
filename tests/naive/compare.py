"""One random program on the engine and on the naive evaluator: do they agree?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

import aioflow
from aioflow import Result
from aioflow.authoring.operator import Registry, load_operators
from aioflow.engine import Engine
from aioflow.errors import RunError
from aioflow.plan import Program
from aioflow.runtime.session import Mode
from aioflow.testing import DeadlockError, assert_nothing_left, run
from tests.naive.bag import Bag, counted, counted_bag
from tests.naive.evaluator import Evaluator
from tests.naive.functions import SERIES
from tests.naive.generator import MAIN, Example
from tests.naive.marks import Marks
from tests.naive.operators import UndecidedError


@dataclass(frozen=True)
class Setup:
    """How the engine runs a program."""

    capacity: int = 2
    workers: int = 8
    mode: Mode = "D+S+"
    memory_limit: int = 1 << 20
    seed: int | None = None

    def __str__(self) -> str:
        limits = f"capacity {self.capacity}, workers {self.workers}, memory {self.memory_limit}"
        return f"{limits}, mode {self.mode}, seed {self.seed}"


@dataclass(frozen=True)
class Expected:
    """What the naive evaluator says of a program."""

    outputs: Mapping[str, Bag]
    failed: bool = False
    happened: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Found:
    """What the engine says of it: the tuples of each output, and its marks."""

    rows: Mapping[str, Counter[Hashable]]
    marks: Mapping[str, Marks]


def loaded(example: Example) -> Program:
    return aioflow.loads(example.text, name=f"seed{example.seed}.plan", plan=MAIN)


def expected(program: Program, inputs: Mapping[str, Bag]) -> Expected:
    """What must come out; raises UndecidedError for a program that is no fun to run."""
    evaluator = Evaluator(program)
    outputs = evaluator.run(inputs)
    if not evaluator.failed:
        for bag in outputs.values():
            known = str(bag.marks.least) if bag.marks.is_exact else "left open in part"
            evaluator.seen[f"marks: {known}"] += 1
    return Expected(outputs, evaluator.failed, evaluator.seen)


def registry_for_tests() -> Registry:
    return Registry([*load_operators(), SERIES])


def all_told(inputs: Mapping[str, Bag]) -> bool:
    """Whether the engine learns the attributes of all inputs."""
    return not any(bag.untold for bag in inputs.values())


async def _run(program: Program, inputs: Mapping[str, Bag], setup: Setup) -> Found:
    engine = Engine(
        workers=setup.workers,
        capacity_rows=setup.capacity,
        memory_bytes=setup.memory_limit,
        mode=setup.mode,
        registry=registry_for_tests(),
    )
    async with engine:
        given = {name: bag.relation() for name, bag in inputs.items()}
        try:
            found = found_by(await engine.run(program, given), all_told=all_told(inputs))
        finally:
            assert_nothing_left(engine)
    return found


def found_by(result: Result, *, all_told: bool = True) -> Found:
    """What a run gave, in a form that can be compared."""
    rows = {name: counted(records, all_told=all_told) for name, records in result.outputs.items()}
    marks = result.statistics.marks.items()
    return Found(rows, {name: Marks(bool(each.partial), bool(each.doubtful)) for name, each in marks})


def disagreement(program: Program, inputs: Mapping[str, Bag], wanted: Expected, setup: Setup) -> str | None:
    """In what the engine differs from the naive evaluator; None when they agree."""
    try:
        found = run(_run(program, inputs, setup), seed=setup.seed)
    except RunError as error:
        return None if wanted.failed else f"the run failed: {error}"
    except (DeadlockError, AssertionError, Exception) as error:
        return f"{type(error).__name__}: {error}"
    if wanted.failed:
        return "the run should have failed"
    return differences(wanted, found, all_told=all_told(inputs))


def differences(wanted: Expected, found: Found, *, all_told: bool = True) -> str | None:
    """The first output whose tuples or marks are not what they should be."""
    for name, bag in wanted.outputs.items():
        missing, extra = counted_bag(bag, all_told=all_told), found.rows[name]
        if missing != extra:
            return f"output {name}:\n  missing {dict(missing - extra)}\n  too many {dict(extra - missing)}"
        marks = found.marks.get(name, Marks())
        if not bag.marks.allows(marks):
            return f"marks of {name}: should be {bag.marks}, but are {marks}"
    return None


__all__ = [
    "Expected",
    "Found",
    "Setup",
    "UndecidedError",
    "differences",
    "disagreement",
    "expected",
    "found_by",
    "loaded",
    "registry_for_tests",
]
