"""Random runs on a real SQLite database, in every mode, and on dictionaries: do they agree?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import aioflow.operators.databases
import aioflow.operators.differences  # noqa: F401  # registers them
from aioflow.engine import Engine
from aioflow.errors import RunError
from aioflow.plan import Program
from aioflow.runtime.session import MODES
from aioflow.state.databases import Databases
from aioflow.state.diff.suspects import confirm_suspect
from aioflow.testing import Script, assert_nothing_left, run, run_plan
from tests.naive.bag import Bag, counted
from tests.naive.compare import Expected, Found, Setup, differences, found_by, loaded, registry_for_tests
from tests.naive.databases.constructs import constructs, names
from tests.naive.databases.generator import Run, story
from tests.naive.databases.operators import operators_on
from tests.naive.databases.tables import COLUMNS, Tables, World
from tests.naive.evaluator import Evaluator
from tests.naive.generator import Example
from tests.naive.operators import UndecidedError
from tests.naive.shrink import shrink

START = datetime(2026, 1, 1, 8, tzinfo=UTC)
BEFORE: Mapping[str, tuple[tuple[Any, ...], ...]] = {
    "many": ((0, 3), (0, 4), (1, 3), (5, None), (100, 1)),
    "one": ((0, 3), (1, 3), (4, None), (7, 1), (100, 1)),
    "whole": ((1, 1, "x", True, 1),),
}


@dataclass(frozen=True)
class Step:
    """One run with what must come of it."""

    run: Run
    program: Program
    now: datetime
    confirms: bool
    expected: Expected
    tables: Tables


@dataclass
class DatabaseReport:
    """What a campaign found."""

    stories: int = 0
    runs: int = 0
    left_out: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        width = max(map(len, names()))
        lines = [f"{name:{width}}  {self.counts[name]:>8}" for name in names()]
        lines.append(f"{self.stories} databases, {self.runs} runs, {self.left_out} left out")
        lines.append(f"{len(self.failures)} disagreements")
        return "\n".join([*self.failures, *lines])


def expected_steps(runs: list[Run]) -> list[Step]:
    """What must come of runs, one after the other; raises UndecidedError where timing decides."""
    tables = Tables(rows={name: list(rows) for name, rows in BEFORE.items()})
    now = START
    steps = []
    for each in runs:
        now += timedelta(hours=each.hours)
        confirms = each.confirms and tables.watched.holds_anything
        if confirms:
            tables.watched.confirm()
        program = loaded(each.example)
        world = World(deepcopy(tables), now)
        evaluator = Evaluator(program, operators_on(world))
        outputs = evaluator.run(each.example.inputs)
        if not evaluator.failed:
            tables = world.ended()
        wanted = Expected(outputs, evaluator.failed, evaluator.seen)
        steps.append(Step(each, program, now, confirms, wanted, deepcopy(tables)))
    return steps


# --- the engine ---------------------------------------------------------------------------------


class Database:
    """A database file for one story."""

    def __init__(self, folder: Path) -> None:
        self.configuration = {"database": {"default": {"url": f"sqlite:{folder / 'test.db'}"}}}
        text = """PLAN prepare { INPUT: many, one, whole BODY {
          dbappend (many, "many") dbappend (one, "one") {KEY: "n"} dbexport (whole, "whole")
        } }"""
        rows: dict[str, Any] = {
            name: [dict(zip(COLUMNS[name], row, strict=True)) for row in BEFORE[name]] for name in BEFORE
        }
        run_plan(text, configuration=self.configuration, **rows)

    def run(self, step: Step, setup: Setup) -> Found:
        return run(self._run(step, setup), seed=setup.seed)

    async def _run(self, step: Step, setup: Setup) -> Found:
        engine = Engine(
            workers=setup.workers,
            capacity_rows=setup.capacity,
            memory_bytes=setup.memory_limit,
            mode=setup.mode,
            registry=registry_for_tests(),
            configuration=self.configuration,
            clock=lambda: step.now,
        )
        random = Random(setup.seed)
        given = {name: _slowly(bag, random) for name, bag in step.run.example.inputs.items()}
        async with engine:
            try:
                found = found_by(await engine.run(step.program, given))
            finally:
                assert_nothing_left(engine)
        return found

    def confirm(self) -> None:
        async def main() -> None:
            databases = Databases(self.configuration)
            connection = await databases.connect(databases.address("default", Path()))
            try:
                async with connection.transaction("write"):
                    await confirm_suspect(connection, "watched", quietly=False)
            finally:
                await connection.close()

        run(main())

    def tables(self) -> dict[str, Counter[Hashable]]:
        statements = " ".join(f'dbimport ("{name}" : {name}) {{IF_MISSING: empty}}' for name in COLUMNS)
        text = f"PLAN look {{ OUTPUT: {', '.join(COLUMNS)} BODY {{ {statements} }} }}"
        result = run_plan(text, configuration=self.configuration)
        return {name: counted(records) for name, records in result.outputs.items()}


def _slowly(bag: Bag, random: Random) -> Script:
    """A source that takes its time now and then."""
    script = Script()
    for row in bag.rows:
        if random.random() < 0.3:
            script.wait(random.choice((0.05, 0.5, 3)))
        script.row(dict(zip(bag.known, row, strict=True)))
    return script


# --- comparing ----------------------------------------------------------------------------------


def disagreement(steps: list[Step], setup: Setup) -> str | None:
    """In which run, and in what, the engine differs; None when they agree."""
    with TemporaryDirectory() as folder:
        database = Database(Path(folder))
        for number, step in enumerate(steps):
            if step.confirms:
                database.confirm()
            problem = _difference(database, step, setup)
            if problem is not None:
                return f"run {number}: {problem}"
    return None


def _difference(database: Database, step: Step, setup: Setup) -> str | None:
    try:
        found = database.run(step, setup)
    except RunError as error:
        problem = None if step.expected.failed else f"the run failed: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    else:
        problem = "should have failed" if step.expected.failed else differences(step.expected, found)
    if problem is not None:
        return problem
    stored = database.tables()
    for name, columns in COLUMNS.items():
        wanted = counted(dict(zip(columns, row, strict=True)) for row in step.tables.of(name))
        if wanted != stored[name]:
            return (
                f"table {name}: missing {dict(wanted - stored[name])}, too many {dict(stored[name] - wanted)}"
            )
    return None


def setups(seed: int) -> list[Setup]:
    """One for each mode."""
    random = Random(seed)
    return [
        Setup(
            random.choice((1, 2, 64)),
            random.choice((1, 8, 64)),
            mode,
            random.choice((1 << 20, 1 << 20, 2000)),
            random.randrange(1 << 30),
        )
        for mode in MODES
    ]


def campaign(count: int, seed: int = 0, most_failures: int = 10) -> DatabaseReport:
    """Random stories, each in every mode."""
    report = DatabaseReport()
    while report.stories < count and len(report.failures) < most_failures:
        runs = story(seed)
        seed += 1
        try:
            steps = expected_steps(runs)
        except UndecidedError:
            report.left_out += 1
            continue
        report.stories += 1
        for step in steps:
            report.counts += constructs(step.program) + step.expected.happened
        for setup in setups(seed - 1):
            report.runs += len(steps)
            problem = disagreement(steps, setup)
            if problem is not None:
                report.failures.append(_made_small(seed - 1, runs, setup, problem))
                break
    return report


def _made_small(seed: int, runs: list[Run], setup: Setup, problem: str) -> str:
    """The report of a disagreement, with as few runs and statements as show it."""

    def is_wrong(fewer: list[Run]) -> bool:
        return _kind(_problem(fewer, setup)) == _kind(problem)

    runs = runs[: int(problem.partition(":")[0].removeprefix("run ")) + 1]
    for number in reversed(range(len(runs) - 1)):
        fewer = [*runs[:number], *runs[number + 1 :]]
        if is_wrong(fewer):
            runs = fewer
    for number in reversed(range(len(runs))):
        with_example = partial(_with, runs, number)
        runs = with_example(shrink(runs[number].example, _composed(is_wrong, with_example)))
    shown = []
    for each in runs:
        rows = "\n".join(f"  {name} = {list(bag.rows)}" for name, bag in each.example.inputs.items())
        shown.append(f"{each.example.text}{rows}\n  after {each.hours} hours, confirms {each.confirms}")
    left = _problem(runs, setup)
    return "\n".join([f"seed {seed}, {setup}", problem, f"made small: {left}", *shown, ""])


def _composed(
    test: Callable[[list[Run]], bool], make: Callable[[Example], list[Run]]
) -> Callable[[Example], bool]:
    return lambda example: test(make(example))


def _kind(problem: str | None) -> str | None:
    """What two problems must share to be taken for the same one."""
    return None if problem is None else " ".join(problem.split()[2:4])


def _with(runs: list[Run], number: int, example: Example) -> list[Run]:
    return [*runs[:number], replace(runs[number], example=example), *runs[number + 1 :]]


def _problem(runs: list[Run], setup: Setup) -> str | None:
    try:
        steps = expected_steps(runs)
    except Exception:  # what was left out was needed
        return None
    return disagreement(steps, setup)
