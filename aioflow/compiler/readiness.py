"""What its operators tell of a run before it starts: what is missing for it, and which store it writes to."""

from __future__ import annotations

from aioflow.authoring.operator import Operator, StoreUse
from aioflow.authoring.services import ServiceHost
from aioflow.compiler.graph import Graph
from aioflow.compiler.inference import InferredCall, reachable
from aioflow.compiler.stores import store_use, written_store
from aioflow.errors import Diagnostic, PlanError


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
    for activation in reachable([_root(graph)]):
        for index, bound in activation.bound.items():
            operator = demanding.get((activation.plan.key, index))
            if operator is None or operator.requires is None or bound is None:
                continue
            span = activation.plan.statements[index].name_span
            for problem in operator.requires(bound, host):
                found.setdefault(problem, Diagnostic(f"{operator.name}: {problem}", span))
    if found:
        raise PlanError(list(found.values()))


def store_of(graph: Graph) -> StoreUse | None:
    """Return a use of the store that a run writes to; None if it writes to none."""
    if not any(store_use(each) for plan in graph.program for each in graph.resolved(plan)):
        return None  # which most plans can tell at once
    return written_store(_root(graph), graph.resolved)


def _root(graph: Graph) -> InferredCall:
    main = graph.program.main
    return graph.inference.follow(main, graph.root.values, [None] * len(main.inputs))
