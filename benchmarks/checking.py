"""How the time of `aioflow check` and `aioflow fmt` grows with the number of plans, statements and files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from aioflow.benchmarks.growth import claim_growth, curve
from aioflow.benchmarks.harness import Bench, at_most, experiment
from aioflow.benchmarks.harness.processes import run_command
from aioflow.benchmarks.startup import long_plan


def many_plans(count: int) -> str:
    """So many plans, each of which calls the next one."""
    return "\n".join(_plan(number, number == count - 1) for number in range(count))


def _plan(number: int, is_last: bool) -> str:
    end = 'project (cheap, "city, price" : out)' if is_last else f"plan-{number + 1} (cheap : out)"
    return (
        f"PLAN plan-{number}\n{{\n  INPUT: houses (city char, price number)\n  OUTPUT: out\n\n  BODY\n  {{\n"
        f'    select (houses, "price < {number}" : cheap)\n    {end}\n  }}\n}}\n'
    )


def write_plans(folder: Path, count: int) -> Path:
    """One file with so many plans."""
    file = folder / "plans.plan"
    file.write_text(many_plans(count))
    return file


def write_statements(folder: Path, count: int) -> Path:
    """One plan with so many statements."""
    file = folder / "long.plan"
    file.write_text(long_plan(count))
    return file


def write_files(folder: Path, count: int) -> Path:
    """So many files with a plan each, each of which uses the next one."""
    for number in range(count):
        use = "" if number == count - 1 else f'USE "{number + 1}.plan"\n\n'
        (folder / f"{number}.plan").write_text(use + _plan(number, number == count - 1))
    return folder / "0.plan"


SHAPES: dict[str, Callable[[Path, int], Path]] = {
    "plans": write_plans,
    "statements": write_statements,
    "files": write_files,
}
COMMANDS = (("check", "plans"), ("check", "statements"), ("check", "files"), ("fmt", "plans"))


@experiment(
    "How does the time to check and to format plans grow?",
    work="`aioflow check` of 500 to 4,000 plans in one file, of as many files with USE, and of as many "
    "statements in one plan; `aioflow fmt` of as many plans; processor time, with the interpreter's start",
    limit="linear: an exponent of 1",
)
def checking(bench: Bench) -> None:
    sizes: tuple[int, ...] = bench.size((500, 1000, 2000, 4000), (5, 10))
    cases = [(command, shape, size) for command, shape in COMMANDS for size in sizes]
    with TemporaryDirectory(prefix="aioflow-bench-") as folder:
        files = {(shape, size): _written(Path(folder), shape, size) for _, shape, size in cases}
        for each in bench.rounds(3):
            for command, shape, size in each.shuffled(cases):
                name = _name(command, shape, size)
                ran = run_command([sys.executable, "-m", "aioflow", command, str(files[shape, size])])
                bench.sample(name, "s", ran.processor_seconds, figure="processor time")
    curves = []
    for command, shape in COMMANDS:
        what = f"{command} with the number of {shape}"
        drawn = curve(bench, what, sizes, [_name(command, shape, size) for size in sizes])
        claim_growth(bench, f"the time of {what}", drawn)
        curves.append(drawn)
    largest = _name("check", "plans", sizes[-1])
    bench.claim_median(f"aioflow {largest}", largest, at_most(8))
    bench.plot("Processor time over the size", "plans, statements or files", "s", curves, logarithmic_x=True)


def _name(command: str, shape: str, size: int) -> str:
    return f"{command}, {size:,} {shape}"


def _written(folder: Path, shape: str, size: int) -> Path:
    own = folder / f"{shape}-{size}"
    own.mkdir(exist_ok=True)
    return SHAPES[shape](own, size)
