"""How long the command line takes to answer: the interpreter's start included, in a process of its own.

Processor time, as elsewhere: what other programs take from the machine does not count.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory

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
    """The processor time that Python takes with these arguments."""
    before = _of_children()
    subprocess.run([sys.executable, *arguments], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return _of_children() - before


def _of_children() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@experiment("How long does the command line take to answer?")
def measure(effort: Effort) -> list[Line]:
    statements = effort.size(2000, 20)
    with TemporaryDirectory() as folder:
        plan = Path(folder, "long.plan")
        plan.write_text(long_plan(statements))
        check = min(seconds_of("-m", "aioflow", "check", str(plan)) for _ in range(effort.rounds(7)))
    version = min(seconds_of("-m", "aioflow", "--version") for _ in range(effort.rounds(15)))
    bare = min(seconds_of("-c", "") for _ in range(effort.rounds(15)))
    return [
        Line(f"aioflow check, {statements:,} statements", check, "s", at_most(1)),
        Line("aioflow --version", version, "s", at_most(0.2)),
        Line("the interpreter alone", bare, "s"),
    ]
