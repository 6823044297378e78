"""Which plans of a program call which, and which of those calls are recursive."""

from __future__ import annotations

from collections.abc import Mapping

from aioflow.analysis.cycles import components
from aioflow.plan import Plan, Program


class CallGraph:
    """The calls between the plans of a program."""

    def __init__(self, program: Program) -> None:
        plans = list(program)
        places = {plan.key: place for place, plan in enumerate(plans)}
        edges = [_callees(plan, places) for plan in plans]
        self._component = dict(zip(places, components(edges), strict=True))
        self._calls: dict[
            str, list[str]
        ] = {}  # of each plan that is called: who calls it, once for each call
        for plan in plans:
            for statement in plan.statements:
                if statement.operator.lower() in places:
                    self._calls.setdefault(statement.operator.lower(), []).append(plan.key)
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

    def is_called_once(self, plan: Plan, main: Plan) -> bool:
        """Whether a run of `main` calls a plan once at most."""
        key = plan.key
        seen: set[str] = set()
        while key != main.key:
            callers = self._calls.get(key, [])
            if len(callers) != 1 or key in seen:
                return not callers
            seen.add(key)
            key = callers[0]
        return main.key not in self._calls

    def always_inside(self, caller: Plan, callee: Plan, main: Plan) -> bool:
        """Whether every call of `callee` made by `caller` happens inside an earlier call of `callee`."""
        if not self.is_recursive(caller, callee):
            return False
        component = self._component[callee.key]
        entered = {main.key} if self._component[main.key] == component else set()
        for plan, callees in self.callees.items():
            if self._component[plan] != component:
                entered.update(key for key in callees if self._component[key] == component)
        return caller.key not in self._reached(entered, component, without=callee.key)

    def _reached(self, starts: set[str], component: int, without: str) -> set[str]:
        found = starts - {without}
        pending = list(found)
        while pending:
            for callee in self.callees[pending.pop()]:
                if self._component[callee] == component and callee not in found and callee != without:
                    found.add(callee)
                    pending.append(callee)
        return found


def _callees(plan: Plan, places: Mapping[str, int]) -> list[int]:
    names = dict.fromkeys(statement.operator.lower() for statement in plan.statements)
    return [places[name] for name in names if name in places]
