"""Tables that several statements of a run write: they must agree on what the table is to hold.

Statements that stand after different outputs of an operator which gives one of them only, such as null, never
both write; how deadness travels is in docs/language.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from aioflow.analysis.findings import Findings, named
from aioflow.analysis.infer import Activation, reachable
from aioflow.analysis.resolve import Resolved
from aioflow.analysis.stores import DEFAULT_STORE, ResolvedOf, store_use
from aioflow.analysis.wiring import Wiring, downstream, topological_order
from aioflow.dataclass import dataclass
from aioflow.errors import Diagnostic
from aioflow.operator import Operator, StoreUse
from aioflow.plan import Plan
from aioflow.relation import Schema

# A plan can be called in very many ways. Of the writers of one table so many unlike ones are compared.
_WRITERS_AT_MOST: Final = 10_000
_COMPARED_AT_MOST: Final = 20


@dataclass(frozen=True)
class Step:
    """A statement in one call of its plan, and the call around that."""

    activation: Activation
    index: int
    caller: Step | None

    def way(self) -> list[Step]:
        """From the outermost call to this."""
        found = [self]
        while found[-1].caller is not None:
            found.append(found[-1].caller)
        return found[::-1]


@dataclass(frozen=True)
class Writer:
    """A statement that writes a table."""

    step: Step
    use: StoreUse
    schema: Schema | None

    @property
    def name(self) -> str:
        return named(self.step.activation.plan, self.step.index)


def check_tables(root: Activation, resolved_of: ResolvedOf, findings: Findings) -> None:
    """Report writers of one table that cannot agree: unlike attributes, or two that compare with it."""
    known: dict[tuple[str, str], list[Writer]] = {}
    reported: set[tuple[str, int]] = set()
    exclusions = _Exclusions(resolved_of)
    for number, writer in enumerate(_writers(root, resolved_of)):
        if number == _WRITERS_AT_MOST:
            return
        others = known.setdefault((writer.use.name or DEFAULT_STORE, writer.use.table or ""), [])
        plan, index = writer.step.activation.plan, writer.step.index
        for other in others:
            message = _clash(other, writer)
            if message is None or (plan.key, index) in reported or exclusions.hold(other, writer):
                continue
            reported.add((plan.key, index))
            findings.at(plan, index)(Diagnostic(message, plan.statements[index].name_span))
        if len(others) < _COMPARED_AT_MOST:
            others.append(writer)


def _clash(other: Writer, writer: Writer) -> str | None:
    table = writer.use.table
    if "compare" in (other.use.access, writer.use.access) and other.use.access == writer.use.access:
        twice = (
            other.step.activation.plan is writer.step.activation.plan
            and other.step.index == writer.step.index
        )
        both = f"two calls of {writer.step.activation.plan.name}" if twice else f"{other.name} and this one"
        return (
            f"a run compares a relation with the table {table!r} once, and {both} do so: what the one "
            "stores, the other has not seen; unite their inputs, or give each a table of its own"
        )
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
        f"unlike relations for the table {table!r}: this one {' and '.join(shown)}, "
        f"compared with {other.name}; give both the same attributes{hint}"
    )


# --- who writes -----------------------------------------------------------------------------------


def _writers(root: Activation, resolved_of: ResolvedOf) -> Iterator[Writer]:
    """The statements that write a known table, in every call; levels of a recursion count as one."""
    leading = _leading_to_writes(root, resolved_of)
    pending: list[tuple[Activation, Step | None] | None] = [(root, None)] if root in leading else []
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
        for index, use in _uses(activation, resolved_of):
            resolved = resolved_of(activation.plan)[index]
            schema = activation.schemas.get(resolved.inputs[0]) if resolved and resolved.inputs else None
            yield Writer(Step(activation, index, caller), use, schema)
        for index, callee in reversed(activation.calls.items()):
            if callee in leading:
                pending.append((callee, Step(activation, index, caller)))


def _uses(activation: Activation, resolved_of: ResolvedOf) -> Iterator[tuple[int, StoreUse]]:
    for index, resolved in enumerate(resolved_of(activation.plan)):
        bound = activation.bound.get(index)
        use = store_use(resolved, bound) if bound is not None else None
        if use is not None and use.table is not None and use.access in ("write", "compare"):
            yield index, use


def _leading_to_writes(root: Activation, resolved_of: ResolvedOf) -> set[Activation]:
    callers: dict[Activation, list[Activation]] = {}
    found = set()
    for activation in reachable([root]):
        for callee in activation.calls.values():
            callers.setdefault(callee, []).append(activation)
        if next(_uses(activation, resolved_of), None) is not None:
            found.add(activation)
    pending = deque(found)
    while pending:
        for caller in callers.get(pending.popleft(), ()):
            if caller not in found:
                found.add(caller)
                pending.append(caller)
    return found


# --- who excludes whom ----------------------------------------------------------------------------


class _Exclusions:
    """Knows which statements go together after all, each pair of a plan looked at once."""

    def __init__(self, resolved_of: ResolvedOf) -> None:
        self._resolved_of = resolved_of
        self._known: dict[tuple[str, int, int, bool], bool] = {}
        self._needs: dict[str, list[frozenset[tuple[int, int]]]] = {}

    def hold(self, one: Writer, other: Writer) -> bool:
        """Whether two statements go together after all.

        Only one of them can come to write, since the other's inputs then end dead; or the second of two that
        compare sees what the first has stored.
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
        if compares and _are_ordered(plan, here, there):
            return True
        if plan.key not in self._needs:
            self._needs[plan.key] = _needs(plan, self._resolved_of(plan))
        needs = self._needs[plan.key]
        return any((node, 1 - place) in needs[there] for node, place in needs[here])


def _are_ordered(plan: Plan, one: int, other: int) -> bool:
    """Whether one of two statements begins after the other has stored, and so sees what it stored."""
    readers = Wiring(plan).readers()
    return other in downstream(readers, readers[one]) or one in downstream(readers, readers[other])


def _needs(plan: Plan, statements: Sequence[Resolved | None]) -> list[frozenset[tuple[int, int]]]:
    """For each statement the outputs of exclusive operators without which it ends dead."""
    wiring = Wiring(plan)
    nothing: frozenset[tuple[int, int]] = frozenset()
    needs = [nothing] * len(plan.statements)
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
