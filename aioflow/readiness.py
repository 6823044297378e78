"""What is missing before a run can start, as its operators tell: nothing runs while anything is."""

from __future__ import annotations

from aioflow.analysis.infer import reachable
from aioflow.errors import Diagnostic, PlanError
from aioflow.graph import Graph
from aioflow.operator import Operator
from aioflow.services import ServiceHost


def check_readiness(graph: Graph, host: ServiceHost) -> None:
    """Ask every statement that requires something; raises a PlanError with all that is missing."""
    program = graph.program
    demanding = {
        (plan.key, index): resolved.target
        for plan in program
        for index, resolved in enumerate(graph.resolved(plan))
        if isinstance(resolved.target, Operator) and resolved.target.requires is not None
    }
    if not demanding:
        return
    found: dict[str, Diagnostic] = {}  # what several statements miss is told once
    root = graph.inference.follow(program.main, graph.root.values, [None] * len(program.main.inputs))
    for activation in reachable([root]):
        for index, bound in activation.bound.items():
            operator = demanding.get((activation.plan.key, index))
            if operator is None or operator.requires is None or bound is None:
                continue
            span = activation.plan.statements[index].name_span
            for problem in operator.requires(bound, host):
                found.setdefault(problem, Diagnostic(f"{operator.name}: {problem}", span))
    if found:
        raise PlanError(list(found.values()))
