"""What never ends must not stand where something waits for its end."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from aioflow.analysis.findings import Findings
from aioflow.analysis.infer import Activation, reachable
from aioflow.analysis.resolve import Resolved
from aioflow.analysis.stores import ResolvedOf
from aioflow.errors import Diagnostic
from aioflow.operator import Operator


def check_endless(roots: Sequence[Activation], resolved_of: ResolvedOf, findings: Findings) -> None:
    """ERRORS has results held until a firing has ended, so a statement that has it must end."""
    inside = _endless_inside(roots, resolved_of)
    for root in roots:
        for index, statement in enumerate(resolved_of(root.plan)):
            if statement is None or not (statement.errors or statement.skip_errors):
                continue
            call = root.calls.get(index)
            found = _endless(root, index, statement) if call is None else inside.get(call)
            if found:
                message = f"{found} never ends, so that ERRORS would hold its results for ever"
                findings.at(root.plan, index)(Diagnostic(message, statement.statement.name_span))


def _endless_inside(roots: Sequence[Activation], resolved_of: ResolvedOf) -> dict[Activation, str]:
    """The calls in which something never ends, with the nearest statement that does not."""
    found: dict[Activation, str] = {}
    callers: dict[Activation, list[Activation]] = {}
    for activation in reachable(roots):
        for callee in activation.calls.values():
            callers.setdefault(callee, []).append(activation)
        for index, statement in enumerate(resolved_of(activation.plan)):
            if statement is not None and (name := _endless(activation, index, statement)):
                found[activation] = f"in {activation.plan.name}, {name}"
                break
    pending = deque(found)
    while pending:
        callee = pending.popleft()
        for caller in callers.get(callee, ()):
            if caller not in found:
                found[caller] = found[callee]
                pending.append(caller)
    return found


def _endless(activation: Activation, index: int, statement: Resolved) -> str | None:
    bound = activation.bound.get(index)
    operator = statement.target
    if bound is None or not isinstance(operator, Operator) or not operator.has("endless", bound):
        return None
    return operator.name
