"""A program whose statements are bound to the operators and plans that they name.

Each plan is linked once. The check reports the mistakes found by that; later users share the results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from aioflow.authoring.operator import Registry
from aioflow.compiler.callgraph import CallGraph
from aioflow.compiler.resolution import (
    Report,
    Resolved,
    Target,
    find_target,
    input_limits,
    resolve_statement,
)
from aioflow.compiler.wiring import Wiring, variables
from aioflow.errors import Diagnostic, suggestion
from aioflow.plan import Plan, Program, Statement, Variable


class LinkedProgram:
    """The calls between the plans of a program, and the bound statements and the wiring of each plan."""

    def __init__(self, program: Program, registry: Registry) -> None:
        self.program = program
        self.calls = CallGraph(program)
        self._registry = registry
        self._statements: dict[str, tuple[Resolved | None, ...]] = {}
        self._wirings: dict[str, Wiring] = {}

    def link(
        self,
        plan: Plan,
        report_at: Callable[[int], Report],
        suggest: Callable[[str, Iterable[str]], str] = suggestion,
    ) -> Sequence[Resolved | None]:
        """Bind the statements of a plan; `report_at` gives, for a statement, the function to report to."""
        names = self.wiring(plan).producers.keys()
        parameters = {parameter.name.lower() for parameter in plan.parameters}
        self._statements[plan.key] = tuple(
            resolve_statement(
                statement, self.program, self._registry, report_at(index), names, parameters, suggest
            )
            for index, statement in enumerate(plan.statements)
        )
        return self._statements[plan.key]

    def statements(self, plan: Plan) -> Sequence[Resolved | None]:
        """Return the bound statements of a plan; None for each one that names no operator and no plan."""
        known = self._statements.get(plan.key)
        return known if known is not None else self.link(plan, lambda _: _ignore)

    def resolved(self, plan: Plan) -> tuple[Resolved, ...]:
        """Return the bound statements of a plan without mistakes."""
        return tuple(resolved for resolved in self.statements(plan) if resolved is not None)

    def wiring(self, plan: Plan) -> Wiring:
        """Return the wiring of a plan; variables that stand where their statements take none are left out."""
        known = self._wirings.get(plan.key)
        if known is None:
            known = self._wirings[plan.key] = Wiring(without_excess(plan, self.target))
        return known

    def target(self, statement: Statement) -> Target | None:
        """Return the operator or plan that a statement names."""
        return find_target(statement.operator, self.program, self._registry)


def _ignore(_: Diagnostic) -> None:
    """Report nothing."""


def without_excess(plan: Plan, target_of: Callable[[Statement], Target | None]) -> Plan:
    """Return the plan without the variables that stand where their statements take none."""
    statements = tuple(_trimmed(each, target_of(each)) for each in plan.statements)
    is_whole = all(one is other for one, other in zip(statements, plan.statements, strict=True))
    return plan if is_whole else replace(plan, statements=statements)


def _trimmed(statement: Statement, target: Target | None) -> Statement:
    given = variables(statement)
    most = input_limits(target)[1] if target else None
    if most is None or len(given) <= most:
        return statement
    settings = tuple(each for each in statement.arguments if not isinstance(each, Variable))
    return replace(statement, arguments=(*given[:most], *settings))
