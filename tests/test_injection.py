"""Interruptions of the reference plans: nothing is left; `python -m tests.injection` is the long form."""

import pytest

from tests.injection import Run, points, variant
from tests.reference_plans import REFERENCES, Reference


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("reference", REFERENCES, ids=lambda reference: reference.name)
def test_nothing_is_left_wherever_a_run_is_interrupted(reference: Reference, number: int) -> None:
    stride = 1 if number == 0 else 7
    problems = [problem for each in points(variant(reference, number), stride) if (problem := each.problem())]
    assert not problems, problems[0]


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda reference: reference.name)
def test_an_interrupted_run_replays_step_by_step(reference: Reference) -> None:
    for each in points(variant(reference, 2), stride=29):
        first: list[str] = []
        again: list[str] = []
        each.problem(first)
        Run(each.chosen, each.cancel_at, each.raise_at).problem(again)
        assert first == again, each


def test_a_run_that_is_not_interrupted_is_whole() -> None:
    whole = Run(variant(REFERENCES[0], 0))
    assert whole.problem() is None
    assert whole.steps > 20
    assert whole.yields > 5
