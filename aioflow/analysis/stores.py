"""Stores, such as databases: a run writes to one of them, and some of its reads come after its own writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from aioflow.analysis.findings import Findings
from aioflow.analysis.infer import Activation, reachable
from aioflow.analysis.resolve import Resolved
from aioflow.analysis.wiring import Wiring, downstream
from aioflow.errors import Diagnostic
from aioflow.operator import Operator, Settings, StoreUse
from aioflow.plan import Plan

ResolvedOf: TypeAlias = Callable[[Plan], Sequence[Resolved | None]]

_DEFAULT = "default"


def store_use(resolved: Resolved | None, bound: Settings | None = None) -> StoreUse | None:
    """How a statement uses a store; without bound settings its name may still be a parameter."""
    target = resolved.target if resolved is not None else None
    if resolved is None or not isinstance(target, Operator) or target.store is None:
        return None
    if bound is None:
        bound = {port.name: resolved.settings.get(port.name, port.default) for port in target.settings}
    return target.store(bound)


def check_stores(root: Activation, resolved_of: ResolvedOf, findings: Findings) -> None:
    """A run writes to one store: two could not take hold together."""
    first: tuple[str, str] | None = None
    for activation, index, use in _uses(root, resolved_of):
        if use.access == "read":
            continue
        name = use.name or _DEFAULT
        statement = activation.plan.statements[index]
        if first is None:
            place = f" on line {statement.span.line}" if statement.span else ""
            first = name, f"{statement.operator}{place}"
        elif name != first[0]:
            message = (
                f"a plan writes to one database, so that all of it takes hold or nothing: this goes to "
                f"{name!r}, {first[1]} to {first[0]!r} (reading others is free)"
            )
            findings.at(activation.plan, index)(Diagnostic(message, statement.name_span))


def written_store(root: Activation, resolved_of: ResolvedOf) -> StoreUse | None:
    """Return a use of the store that a run writes to; None if it writes to none."""
    return next((use for _, _, use in _uses(root, resolved_of) if use.access != "read"), None)


def warn_of_late_acts(root: Activation, resolved_of: ResolvedOf, findings: Findings) -> None:
    """Where a plan commits as it streams, what acts at the end of its input takes hold later."""
    if not root.plan.commits_in_batches:
        return
    told: set[tuple[str, int]] = set()
    for activation, index, use in _uses(root, resolved_of):
        if not use.whole or (activation.plan.key, index) in told:
            continue
        told.add((activation.plan.key, index))
        statement = activation.plan.statements[index]
        message = (
            f"{statement.operator} acts when its input has ended: after a crash it misses what "
            "COMMIT: batch has made durable before"
        )
        if use.access == "post":
            message += "; with EACH a message takes hold with its tuple"
        findings.at(activation.plan, index)(Diagnostic(message, statement.name_span, "warning"))


def _uses(root: Activation, resolved_of: ResolvedOf) -> Iterator[tuple[Activation, int, StoreUse]]:
    for activation in reachable([root]):
        for index, resolved in enumerate(resolved_of(activation.plan)):
            bound = activation.bound.get(index)
            use = store_use(resolved, bound) if bound is not None else None
            if use is not None:
                yield activation, index, use


def reads_after_writes(
    plans: Mapping[str, tuple[Plan, Sequence[Resolved]]],
) -> frozenset[tuple[str, int]]:
    """The statements, by plan and number, that read a store after a write of the same run may have happened.

    What is written stands upstream over data and signals, in the plan itself, in a plan that it calls, or
    before a call of it.
    """
    writing = _writing_plans(plans)
    behind = {key: _behind_writes(plan, resolved, writing) for key, (plan, resolved) in plans.items()}
    late = _called_late(plans, behind)
    return frozenset(
        (key, index)
        for key, (_, resolved) in plans.items()
        for index, statement in enumerate(resolved)
        if (key in late or index in behind[key])
        and (use := store_use(statement)) is not None
        and use.access in ("read", "compare")
    )


def _writing_plans(plans: Mapping[str, tuple[Plan, Sequence[Resolved]]]) -> set[str]:
    writing = {key for key, (_, resolved) in plans.items() if any(map(_writes, resolved))}
    grown = True
    while grown:  # until no plan learns of another one's writes
        more = {key for key, (_, resolved) in plans.items() if _calls(resolved) & writing} - writing
        writing |= more
        grown = bool(more)
    return writing


def _writes(resolved: Resolved) -> bool:
    use = store_use(resolved)
    return use is not None and use.access in ("compare", "write", "update")


def _calls(resolved: Iterable[Resolved]) -> set[str]:
    return {each.target.key for each in resolved if isinstance(each.target, Plan)}


def _behind_writes(plan: Plan, resolved: Sequence[Resolved], writing: set[str]) -> set[int]:
    edges = Wiring(plan).readers()
    first = [
        successor
        for index, each in enumerate(resolved)
        if _writes(each) or (isinstance(each.target, Plan) and each.target.key in writing)
        for successor in edges[index]
    ]
    return downstream(edges, first)


def _called_late(
    plans: Mapping[str, tuple[Plan, Sequence[Resolved]]], behind: Mapping[str, set[int]]
) -> set[str]:
    """The plans of which some call stands behind a write."""
    late: set[str] = set()
    grown = True
    while grown:
        more = {
            each.target.key
            for key, (_, resolved) in plans.items()
            for index, each in enumerate(resolved)
            if isinstance(each.target, Plan) and (key in late or index in behind[key])
        } - late
        late |= more
        grown = bool(more)
    return late
