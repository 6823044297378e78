"""The use of stores, such as databases, by the statements of a program.

A run writes to one store only. A statement may read what an earlier one of the same run has written. All
statements that write one table must agree on its attributes, unless only one of them can come to write: they
stand after different outputs of an operator that gives one of its outputs, such as `null` (docs/language.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from aioflow.authoring.operator import Operator, Settings, StoreUse
from aioflow.compiler.analysis import InferredCall, LinkedProgram, reachable
from aioflow.compiler.findings import Findings, named
from aioflow.compiler.resolution import Resolved
from aioflow.compiler.wiring import Wiring, downstream, topological_order, upstream
from aioflow.errors import Diagnostic
from aioflow.plan import Plan
from aioflow.relation import Schema

DEFAULT_STORE = "default"


def store_use(resolved: Resolved | None, bound: Settings | None = None) -> StoreUse | None:
    """Return the use of a store by a statement; without bound settings its name may be a parameter."""
    target = resolved.target if resolved is not None else None
    if resolved is None or not isinstance(target, Operator) or target.store is None:
        return None
    if bound is None:
        bound = {port.name: resolved.settings.get(port.name, port.default) for port in target.settings}
    return target.store(bound)


def check_stores(root: InferredCall, linked: LinkedProgram, findings: Findings) -> None:
    """A run writes to one store: two could not commit together."""
    first: tuple[str, str] | None = None
    for activation, index, use in _uses(root, linked):
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


def written_store(root: InferredCall, linked: LinkedProgram) -> StoreUse | None:
    """Return a use of the store that a run writes to; None if it writes to none."""
    return next((use for _, _, use in _uses(root, linked) if use.access != "read"), None)


def warn_of_late_acts(root: InferredCall, linked: LinkedProgram, findings: Findings) -> None:
    """Warn of statements that act at the end of their input where the plan commits as it streams."""
    if not root.plan.commits_in_batches:
        return
    told: set[tuple[str, int]] = set()
    for activation, index, use in _uses(root, linked):
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


def _uses(root: InferredCall, linked: LinkedProgram) -> Iterator[tuple[InferredCall, int, StoreUse]]:
    for activation in reachable([root]):
        for index, resolved in enumerate(linked.statements(activation.plan)):
            bound = activation.bound.get(index)
            use = store_use(resolved, bound) if bound is not None else None
            if use is not None:
                yield activation, index, use


# --- reads after writes -------------------------------------------------------------------------


def reads_after_writes(linked: LinkedProgram) -> ReadBack:
    """Find the statements that may read a store after a write of the same run, and those writes.

    A write stands upstream over data and signals: in the plan itself, in a plan that it calls, or before a
    call of it.
    """
    uses = [store_use(each) for plan in linked.program for each in linked.resolved(plan)]
    writes = _with_access(uses, "compare", "write", "update")
    reads = _with_access(uses, "read", "compare", "update")
    if not writes or not reads:
        return ReadBack(frozenset(), frozenset())
    order = _Order(linked)
    return ReadBack(
        order.statements(reads & order.after(writes)),
        order.statements(writes & order.before(reads)),
    )


def _with_access(uses: Sequence[StoreUse | None], *kinds: str) -> set[int]:
    """Return the numbers of the statements that use a store in one of these ways."""
    return {number for number, use in enumerate(uses) if use is not None and use.access in kinds}


class ReadBack(msgspec.Struct, frozen=True):
    """Statements by plan and number: those that read what others wrote, and those others."""

    reads: frozenset[tuple[str, int]]
    writes: frozenset[tuple[str, int]]


class _Order:
    """All statements of a program in one graph: each leads to those that get data or signals of it.

    A call stands there twice, and so does each plan: the beginning of a call leads to that of its plan, this
    to all statements of the plan, these to the plan's end, that to the end of each call, and that to what
    comes after the call.
    """

    def __init__(self, linked: LinkedProgram) -> None:
        plans = list(linked.program)
        found = [
            (plan.key, index, each) for plan in plans for index, each in enumerate(linked.resolved(plan))
        ]
        self._statements = [(key, index) for key, index, _ in found]
        self._resolved = [resolved for _, _, resolved in found]
        self._count = len(found)
        self._number = {statement: number for number, statement in enumerate(self._statements)}
        self._edges: list[list[int]] = [[] for _ in range(2 * (self._count + len(plans)))]
        begins = {plan.key: 2 * (self._count + place) for place, plan in enumerate(plans)}
        readers = {plan.key: linked.wiring(plan).readers() for plan in plans}
        for begin, (key, index, resolved) in enumerate(found):
            end = self._end(begin)
            self._edges[end] += [self._number[key, reader] for reader in readers[key][index]]
            self._edges[begins[key]].append(begin)
            self._edges[end].append(begins[key] + 1)
            if isinstance(resolved.target, Plan):
                called = begins[resolved.target.key]
                self._edges[begin] += [called, end]
                self._edges[called + 1].append(end)

    def _end(self, number: int) -> int:
        return number + self._count if isinstance(self._resolved[number].target, Plan) else number

    def after(self, numbers: set[int]) -> set[int]:
        return downstream(self._edges, [each for number in numbers for each in self._edges[number]])

    def before(self, numbers: set[int]) -> set[int]:
        first = [number for number, edges in enumerate(self._edges) if not numbers.isdisjoint(edges)]
        return upstream(self._edges, first)

    def statements(self, numbers: set[int]) -> frozenset[tuple[str, int]]:
        return frozenset(self._statements[number] for number in numbers if number < self._count)


# A plan can be called in very many ways. Of the writers of one table so many unlike ones are compared.
_WRITERS_AT_MOST: Final = 10_000
_COMPARED_AT_MOST: Final = 20


class StoreStatement(msgspec.Struct, frozen=True):
    """A statement in one call of its plan, and the call around that."""

    activation: InferredCall
    index: int
    caller: StoreStatement | None

    def way(self) -> list[StoreStatement]:
        """From the outermost call to this."""
        found = [self]
        while found[-1].caller is not None:
            found.append(found[-1].caller)
        return found[::-1]


class TableWriter(msgspec.Struct, frozen=True):
    """A statement that writes a table."""

    step: StoreStatement
    use: StoreUse
    schema: Schema | None

    @property
    def name(self) -> str:
        return named(self.step.activation.plan, self.step.index)


def check_tables(root: InferredCall, linked: LinkedProgram, findings: Findings) -> None:
    """Report writers of one table that cannot agree: unlike attributes, or two that compare with it."""
    known: dict[tuple[str, str], list[TableWriter]] = {}
    reported: set[tuple[str, int]] = set()
    exclusions = _Exclusions(linked)
    for number, writer in enumerate(_writers(root, linked)):
        if number == _WRITERS_AT_MOST:
            return
        others = known.setdefault((writer.use.name or DEFAULT_STORE, writer.use.table or ""), [])
        plan, index = writer.step.activation.plan, writer.step.index
        for other in others:
            message = _clash(other, writer)
            if message is None or (plan.key, index) in reported or exclusions.allow(other, writer):
                continue
            reported.add((plan.key, index))
            findings.at(plan, index)(Diagnostic(message, plan.statements[index].name_span))
        if len(others) < _COMPARED_AT_MOST:
            others.append(writer)


def _clash(other: TableWriter, writer: TableWriter) -> str | None:
    if other.use.access == writer.use.access == "compare":
        return _double_comparison(other, writer)
    return _unlike_relations(other, writer)


def _double_comparison(other: TableWriter, writer: TableWriter) -> str:
    here, there = writer.step, other.step
    plan = here.activation.plan
    is_same = there.activation.plan is plan and there.index == here.index
    both = f"two calls of {plan.name}" if is_same else f"{other.name} and this one"
    return (
        f"a run compares a relation with the table {writer.use.table!r} once, and {both} do so: what the one "
        "stores, the other has not seen; unite their inputs, or give each a table of its own"
    )


def _unlike_relations(other: TableWriter, writer: TableWriter) -> str | None:
    if other.schema is None or writer.schema is None or other.schema.open or writer.schema.open:
        return None
    lacking = sorted(set(other.schema.names) - set(writer.schema.names))
    added = sorted(set(writer.schema.names) - set(other.schema.names))
    if not (lacking and not other.use.evolves) and not (added and not writer.use.evolves):
        return None
    shown = [f"lacks {', '.join(lacking)}"] if lacking else []
    shown += [f"adds {', '.join(added)}"] if added else []
    hint = ", or say EVOLVE in both" if not other.use.whole and not writer.use.whole else ""
    return (
        f"unlike relations for the table {writer.use.table!r}: this one {' and '.join(shown)}, "
        f"compared with {other.name}; give both the same attributes{hint}"
    )


# --- the writers ----------------------------------------------------------------------------------


def _writers(root: InferredCall, linked: LinkedProgram) -> Iterator[TableWriter]:
    """Yield the statements that write a known table, in every call; levels of a recursion count as one."""
    leading = _leading_to_writes(root, linked)
    pending: list[tuple[InferredCall, StoreStatement | None] | None] = (
        [(root, None)] if root in leading else []
    )
    inside: dict[str, None] = {}  # the plans of the calls around
    while pending:
        entered = pending.pop()
        if entered is None:
            inside.popitem()
            continue
        activation, caller = entered
        if activation.plan.key in inside:
            continue  # a level of a recursion
        inside[activation.plan.key] = None
        pending.append(None)
        for index, use in _table_uses(activation, linked):
            resolved = linked.statements(activation.plan)[index]
            schema = activation.schemas.get(resolved.inputs[0]) if resolved and resolved.inputs else None
            yield TableWriter(StoreStatement(activation, index, caller), use, schema)
        for index, callee in reversed(activation.calls.items()):
            if callee in leading:
                pending.append((callee, StoreStatement(activation, index, caller)))


def _table_uses(activation: InferredCall, linked: LinkedProgram) -> Iterator[tuple[int, StoreUse]]:
    for index, resolved in enumerate(linked.statements(activation.plan)):
        bound = activation.bound.get(index)
        use = store_use(resolved, bound) if bound is not None else None
        if use is not None and use.table is not None and use.access in ("write", "compare"):
            yield index, use


def _leading_to_writes(root: InferredCall, linked: LinkedProgram) -> set[InferredCall]:
    callers: dict[InferredCall, list[InferredCall]] = {}
    found = set()
    for activation in reachable([root]):
        for callee in activation.calls.values():
            callers.setdefault(callee, []).append(activation)
        if next(_table_uses(activation, linked), None) is not None:
            found.add(activation)
    pending = deque(found)
    while pending:
        for caller in callers.get(pending.popleft(), ()):
            if caller not in found:
                found.add(caller)
                pending.append(caller)
    return found


# --- exclusive statements -------------------------------------------------------------------------


class _Exclusions:
    """Finds pairs of statements that never clash; each pair of a plan is looked at once."""

    def __init__(self, linked: LinkedProgram) -> None:
        self._linked = linked
        self._known: dict[tuple[str, int, int, bool], bool] = {}
        self._needs: dict[str, list[frozenset[tuple[int, int]]]] = {}

    def allow(self, one: TableWriter, other: TableWriter) -> bool:
        """Return whether two statements never clash.

        Either only one of them can come to write, since the other's inputs then end dead; or the second of
        two that compare sees the rows that the first has stored.
        """
        for here, there in zip(one.step.way(), other.step.way(), strict=False):
            if here.index != there.index:
                plan, compares = here.activation.plan, one.use.access == "compare"
                pair = (plan.key, here.index, there.index, compares)
                if pair not in self._known:
                    self._known[pair] = self._look(plan, here.index, there.index, compares)
                return self._known[pair]
        return False

    def _look(self, plan: Plan, here: int, there: int, compares: bool) -> bool:
        wiring = self._linked.wiring(plan)
        if compares and _are_ordered(wiring, here, there):
            return True
        if plan.key not in self._needs:
            self._needs[plan.key] = _needs(wiring, self._linked.statements(plan))
        needs = self._needs[plan.key]
        return any((node, 1 - place) in needs[there] for node, place in needs[here])


def _are_ordered(wiring: Wiring, one: int, other: int) -> bool:
    """Return whether one of two statements begins after the other has stored, and so sees the stored rows."""
    readers = wiring.readers()
    return other in downstream(readers, readers[one]) or one in downstream(readers, readers[other])


def _needs(wiring: Wiring, statements: Sequence[Resolved | None]) -> list[frozenset[tuple[int, int]]]:
    """For each statement the outputs of exclusive operators without which it ends dead."""
    nothing: frozenset[tuple[int, int]] = frozenset()
    needs = [nothing] * len(statements)
    of_name: dict[str, frozenset[tuple[int, int]]] = {}
    for index in topological_order(wiring.readers()):
        resolved = statements[index]
        if resolved is None:
            continue
        inputs = [of_name.get(name, nothing) for name in resolved.inputs]
        own = frozenset.intersection(*inputs) if inputs else nothing
        needs[index] = own.union(*(of_name.get(name, nothing) for name in resolved.wait))
        exclusive = isinstance(resolved.target, Operator) and resolved.target.exclusive_outputs
        for place, name in enumerate(resolved.outputs):
            if name is not None:
                of_name[name] = needs[index] | {(index, place)} if exclusive else needs[index]
        for name in (*resolved.enable, *resolved.done, *((resolved.errors,) if resolved.errors else ())):
            of_name[name] = needs[index]
    return needs
