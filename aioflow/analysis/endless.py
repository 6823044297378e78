"""What never ends must not stand where something waits for its end."""

from __future__ import annotations

from collections.abc import Iterable

from aioflow.analysis.findings import Findings
from aioflow.analysis.infer import Activation, reachable
from aioflow.analysis.resolve import Resolved
from aioflow.analysis.stores import ResolvedOf
from aioflow.errors import Diagnostic
from aioflow.operator import Operator


def check_endless(roots: Iterable[Activation], resolved_of: ResolvedOf, findings: Findings) -> None:
    """ERRORS has results held until a firing has ended, so a statement that has it must end."""
    for root in roots:
        for index, statement in enumerate(resolved_of(root.plan)):
            if statement is None or not (statement.errors or statement.skip_errors):
                continue
            if statement.plan is None:
                found = _endless(root, index, statement)
            else:
                found = _endless_inside(root.calls.get(index), resolved_of)
            if found:
                message = f"{found} never ends, so that ERRORS would hold its results for ever"
                findings.at(root.plan, index)(Diagnostic(message, statement.statement.name_span))


def _endless_inside(call: Activation | None, resolved_of: ResolvedOf) -> str | None:
    """The first statement inside a call that never ends."""
    for activation in reachable([call]) if call is not None else ():
        for index, statement in enumerate(resolved_of(activation.plan)):
            if statement is not None and (found := _endless(activation, index, statement)):
                return f"in {activation.plan.name}, {found}"
    return None


def _endless(activation: Activation, index: int, statement: Resolved) -> str | None:
    bound = activation.bound.get(index)
    operator = statement.target
    if bound is None or not isinstance(operator, Operator) or not operator.has("endless", bound):
        return None
    return operator.name
