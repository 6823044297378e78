"""How long the command line takes to answer: the interpreter's start included, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.experiment import Effort, Line, at_most, experiment
from benchmarks.processes import ROOT


def long_plan(statements: int) -> str:
    """A plan of so many statements, each reading the one before it."""
    forms = (
        "select ({before}, \"price >= 100 and city like 'I%'\" : {here})",
        'project ({before}, "city, price + 1 as price, beds" : {here})',
        'distinct ({before}, "city, price" : {here})',
        "union ({before}, houses : {here})",
    )
    body, before = [], "houses"
    for number in range(statements):
        here = f"step-{number}"
        body.append("    " + forms[number % len(forms)].format(before=before, here=here))
        before = here
    heading = f"INPUT: houses (city char, price number, beds number)\nOUTPUT: {before}\n"
    return f"PLAN long\n{{\n{heading}BODY\n{{\n" + "\n".join(body) + "\n}\n}\n"


def seconds_of(*arguments: str) -> float:
    """How long `aioflow` takes with these arguments."""
    command = [sys.executable, "-m", "aioflow", *arguments]
    started = perf_counter()
    subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return perf_counter() - started


@experiment("How long does the command line take to answer?")
def measure(effort: Effort) -> list[Line]:
    statements = effort.size(2000, 20)
    with TemporaryDirectory() as folder:
        plan = Path(folder, "long.plan")
        plan.write_text(long_plan(statements))
        check = min(seconds_of("check", str(plan)) for _ in range(effort.rounds(7)))
    version = min(seconds_of("--version") for _ in range(effort.rounds(15)))
    bare = min(_bare_interpreter() for _ in range(effort.rounds(15)))
    return [
        Line(f"aioflow check, {statements:,} statements", check, "s", at_most(1)),
        Line("aioflow --version", version, "s", at_most(0.2)),
        Line("the interpreter alone", bare, "s"),
    ]


def _bare_interpreter() -> float:
    started = perf_counter()
    subprocess.run([sys.executable, "-c", ""], check=True)
    return perf_counter() - started
