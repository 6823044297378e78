"""The table of steps that a run shows while it is under way."""

import asyncio
import re
from io import StringIO

from aioflow import loads
from aioflow.cli.output.progress import FIRST_SECONDS, ProgressDisplay, labels_of, render_steps
from aioflow.runtime.statistics import StepStatistics
from aioflow.testing import run

PLAN = """
PLAN p { INPUT: a OUTPUT: d BODY {
    select (a, "x > 1" : b)  select (b, "x > 2" : c)  distinct (c : e)
    LIMIT (e, 5 : d)
} }
"""


def step(operator: str, line: int, state: str = "running") -> StepStatistics:
    return StepStatistics("p", operator, line, state, 1, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0)


def names(*steps: StepStatistics, height: int = 20) -> list[str]:
    shown = re.sub(r"\x1b\[\d+m", "", render_steps(steps, labels_of(loads(PLAN)), 80, height))
    return [re.split(r"  +", line[3:])[0] for line in shown.splitlines()[1:]]


def test_statements_on_one_line_have_each_their_own_name() -> None:
    every = [step("select", 3, "ended"), step("select", 3), step("distinct", 3), step("limit", 4, "ended")]
    expected = ["select x > 1", "select x > 2", "distinct", "LIMIT 5"]
    assert names(*every, height=20) == expected
    assert names(*every, height=4)[:2] == expected[1:3]


def test_a_step_that_may_be_either_of_two_is_called_by_its_operator() -> None:
    assert names(step("select", 3), step("distinct", 3)) == ["select", "distinct"]


async def shown_within(seconds: float) -> str:
    file = StringIO()
    with ProgressDisplay(lambda width, height: "working\n", file=file):
        await asyncio.sleep(seconds)
    return file.getvalue()


def test_a_short_run_shows_no_progress() -> None:
    assert run(shown_within(FIRST_SECONDS - 0.01)) == ""
    assert "working" in run(shown_within(FIRST_SECONDS + 0.01))
