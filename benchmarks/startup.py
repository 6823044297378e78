"""How long the command line takes to answer: the interpreter's start included, in a process of its own.

Processor time, as elsewhere: what other programs take from the machine does not count.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from aioflow.benchmarks.harness import Bench, at_most, experiment
from aioflow.benchmarks.harness.processes import run_command


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


@experiment(
    "How long does the command line take to answer?",
    work="`aioflow check` of a plan with 2,000 statements, and `aioflow --version`; processor time, with the "
    "start of the interpreter",
    limit="the interpreter alone, which has nothing to do",
)
def startup(bench: Bench) -> None:
    statements = bench.size(2000, 20)
    with TemporaryDirectory() as folder:
        plan = Path(folder, "long.plan")
        plan.write_text(long_plan(statements))
        commands = {
            "aioflow check": ("-m", "aioflow", "check", str(plan)),
            "aioflow --version": ("-m", "aioflow", "--version"),
            "the interpreter alone": ("-c", ""),
        }
        for each in bench.rounds(7):
            used = {
                name: run_command([sys.executable, *commands[name]], profiled_as=name).processor_seconds
                for name in each.shuffled(commands)
            }
            for name in commands:
                bench.sample(name, "s", used[name], figure="processor time")
    bench.claim_median(f"aioflow check, {statements:,} statements", "aioflow check", at_most(1))
    bench.claim_median("aioflow --version", "aioflow --version", at_most(0.2))
