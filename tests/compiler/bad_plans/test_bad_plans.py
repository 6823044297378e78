"""Every bad plan gets exactly the messages that its table says."""

import pytest

from aioflow.authoring.operator import load_operators
from aioflow.compiler.check import check
from aioflow.language import parse
from aioflow.plan import Plan, Program
from tests.compiler.bad_plans.arguments import ARGUMENTS
from tests.compiler.bad_plans.graph import GRAPH
from tests.compiler.bad_plans.names import NAMES
from tests.compiler.bad_plans.parameters import PARAMETERS
from tests.compiler.bad_plans.schemas import SCHEMAS
from tests.compiler.bad_plans.table import BadPlan

ALL = [*NAMES, *GRAPH, *ARGUMENTS, *PARAMETERS, *SCHEMAS]


def messages(text: str) -> list[str]:
    plans = tuple(entry for entry in parse(text, "bad").entries if isinstance(entry, Plan))
    diagnostics = check(Program(plans[0], plans), load_operators())
    return [str(diagnostic).partition("\n")[0].removeprefix("bad:") for diagnostic in diagnostics]


@pytest.mark.parametrize("bad", ALL, ids=lambda bad: bad.name)
def test_a_bad_plan_gets_exactly_its_messages(bad: BadPlan) -> None:
    assert messages(bad.text) == bad.messages


def test_no_two_bad_plans_are_alike() -> None:
    assert len({bad.name for bad in ALL}) == len(ALL)
    assert len({tuple(bad.messages) for bad in ALL}) == len(ALL)
