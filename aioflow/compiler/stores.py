"""Stores, such as databases: a run writes to one of them, and some of its reads come after its own writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from aioflow.analysis.findings import Findings
from aioflow.analysis.infer import Activation, reachable
from aioflow.analysis.resolve import Resolved
from aioflow.analysis.wiring import Wiring, downstream, upstream
from aioflow.dataclass import dataclass
from aioflow.errors import Diagnostic
from aioflow.operator import Operator, Settings, StoreUse
from aioflow.plan import Plan

ResolvedOf: TypeAlias = Callable[[Plan], Sequence[Resolved | None]]
Plans: TypeAlias = Mapping[str, tuple[Plan, Sequence[Resolved]]]  # by key, with their statements

DEFAULT_STORE = "default"


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
        name = use.name or DEFAULT_STORE
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


# --- reads after writes -------------------------------------------------------------------------


def reads_after_writes(plans: Plans) -> ReadBack:
    """Which statements read a store after a write of the same run may have happened, and after which writes.

    What is written stands upstream over data and signals, in the plan itself, in a plan that it calls, or
    before a call of it.
    """
    order = _Order(plans)
    writes = order.with_access("compare", "write", "update")
    reads = order.with_access("read", "compare", "update")
    return ReadBack(
        order.statements(reads & order.after(writes)),
        order.statements(writes & order.before(reads)),
    )


@dataclass(frozen=True)
class ReadBack:
    """Statements by plan and number: those that read what others wrote, and those others."""

    reads: frozenset[tuple[str, int]]
    writes: frozenset[tuple[str, int]]


class _Order:
    """All statements of a program in one graph: each leads to those that get data or signals of it.

    A call stands there twice, and so does each plan: the beginning of a call leads to that of its plan, this
    to all statements of the plan, these to the plan's end, that to the end of each call, and that to what
    comes after the call.
    """

    def __init__(self, plans: Plans) -> None:
        self._statements = [(key, index) for key, (_, found) in plans.items() for index in range(len(found))]
        self._resolved = [each for _, found in plans.values() for each in found]
        self._count = len(self._statements)
        self._number = {statement: number for number, statement in enumerate(self._statements)}
        self._edges: list[list[int]] = [[] for _ in range(2 * (self._count + len(plans)))]
        begins = {key: 2 * (self._count + place) for place, key in enumerate(plans)}
        for key, (plan, found) in plans.items():
            for index, (resolved, readers) in enumerate(zip(found, Wiring(plan).readers(), strict=True)):
                begin = self._number[key, index]
                end = self._end(begin)
                self._edges[end] += [self._number[key, reader] for reader in readers]
                self._edges[begins[key]].append(begin)
                self._edges[end].append(begins[key] + 1)
                if isinstance(resolved.target, Plan):
                    called = begins[resolved.target.key]
                    self._edges[begin] += [called, end]
                    self._edges[called + 1].append(end)

    def _end(self, number: int) -> int:
        return number + self._count if isinstance(self._resolved[number].target, Plan) else number

    def with_access(self, *kinds: str) -> set[int]:
        """The statements that use a store in one of these ways."""
        uses = map(store_use, self._resolved)
        return {number for number, use in enumerate(uses) if use is not None and use.access in kinds}

    def after(self, numbers: set[int]) -> set[int]:
        return downstream(self._edges, [each for number in numbers for each in self._edges[number]])

    def before(self, numbers: set[int]) -> set[int]:
        first = [number for number, edges in enumerate(self._edges) if not numbers.isdisjoint(edges)]
        return upstream(self._edges, first)

    def statements(self, numbers: set[int]) -> frozenset[tuple[str, int]]:
        return frozenset(self._statements[number] for number in numbers if number < self._count)
