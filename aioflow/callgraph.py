"""Which plans of a program call which, and which of those calls are recursive."""

from __future__ import annotations

from collections.abc import Mapping

from aioflow.cycles import components
from aioflow.operator import Registry
from aioflow.plan import Plan, Program


class CallGraph:
    """The calls between the plans of a program."""

    def __init__(self, program: Program, registry: Registry) -> None:
        plans = list(program)
        places = {plan.key: place for place, plan in enumerate(plans)}
        edges = [_callees(plan, places, registry) for plan in plans]
        self._component = dict(zip(places, components(edges), strict=True))
        self.callees: Mapping[str, tuple[str, ...]] = {
            plan.key: tuple(plans[place].key for place in edge)
            for plan, edge in zip(plans, edges, strict=True)
        }

    def is_recursive(self, caller: Plan, callee: Plan) -> bool:
        """Whether a call of `callee` in `caller` lies on a cycle of calls."""
        # It is itself an edge between the two, so being in one component is enough.
        return self._component[caller.key] == self._component[callee.key]

    def recurs(self, plan: Plan) -> bool:
        """Whether a plan can come to be called inside a call of itself."""
        component = self._component[plan.key]
        return any(self._component[callee] == component for callee in self.callees[plan.key])


def _callees(plan: Plan, places: Mapping[str, int], registry: Registry) -> list[int]:
    names = dict.fromkeys(statement.operator.lower() for statement in plan.statements)
    return [places[name] for name in names if name in places and registry.get(name) is None]
