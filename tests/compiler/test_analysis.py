"""The analysis of a program: made once, and used by all that prepare a run."""

from __future__ import annotations

from typing import Any

import pytest

from aioflow import Engine, PlanError, loads
from aioflow.authoring.operator import Registry, load_operators
from aioflow.compiler.check import analyse
from aioflow.compiler.graph import Graph
from aioflow.compiler.resolution import resolve_statement
from aioflow.plan import Statement

CALLED = """
PLAN main { INPUT: houses OUTPUT: fresh PARAM: least = 1 BODY {
    select (houses, "beds >= ${least}" : large)
    part (large : fresh)
} }
PLAN part { INPUT: rows OUTPUT: kept BODY { distinct (rows : kept) } }
"""


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators of the statements that are bound, in their order."""
    names: list[str] = []

    def counted(statement: Statement, *arguments: Any) -> Any:
        names.append(statement.operator)
        return resolve_statement(statement, *arguments)

    monkeypatch.setattr("aioflow.compiler.analysis.resolve_statement", counted)
    return names


async def test_a_run_binds_each_statement_once(bound: list[str]) -> None:
    async with Engine() as engine:
        assert await engine.run(loads(CALLED), houses=[{"beds": 3}])
    assert sorted(bound) == ["distinct", "part", "select"]


def test_the_graph_has_the_statements_that_the_check_bound() -> None:
    analysis = analyse(loads(CALLED), load_operators())
    main = analysis.program.main
    steps = Graph(analysis).routine(analysis.root.scope).steps
    assert all(
        step.resolved is found for step, found in zip(steps, analysis.linked.statements(main), strict=True)
    )


def test_what_was_followed_for_the_same_parameters_is_found_again() -> None:
    analysis = analyse(loads(CALLED), load_operators(), parameters={"least": 2})
    assert analysis.called_with({"least": 2}).root is analysis.root
    other = analysis.called_with({"least": 3})
    assert other.root is not analysis.root
    assert other.linked is analysis.linked
    assert Graph(other).root.values["least"] == 3


def test_an_analysis_with_mistakes_raises_them_and_leaves_warnings_out() -> None:
    text = 'PLAN main { INPUT: a, b OUTPUT: c BODY { select (a, "x <" : c) } }'
    analysis = analyse(loads(text), load_operators())
    assert {found.severity for found in analysis.diagnostics} == {"error"}
    with pytest.raises(PlanError, match="select"):
        analysis.raise_mistakes()
    analyse(loads(CALLED), load_operators()).raise_mistakes()


async def test_the_check_of_a_run_knows_its_built_in_parameters() -> None:
    text = 'PLAN main { INPUT: a OUTPUT: b BODY { format (a, $task-id, "t" : b) } }'
    async with Engine() as engine:
        assert all("null" not in found.message for found in engine.check(loads(text)))
        with pytest.raises(PlanError, match="not null"):
            engine.stream(loads(text), a=[])


async def test_each_run_of_a_program_meets_the_operators_of_its_time() -> None:
    known = load_operators()
    registry = Registry([each for each in map(known.get, ("select", "distinct")) if each is not None])
    program = loads('PLAN main { INPUT: a OUTPUT: b BODY { select (a, "x > 1" : b) } }')
    async with Engine(registry=registry) as engine:
        assert len(await engine.run(program, a=[{"x": 1}, {"x": 2}])) == 1
        del registry._operators["select"]
        with pytest.raises(PlanError, match="unknown operator 'select'"):
            await engine.run(program, a=[{"x": 1}])
