"""Warnings about one plan: unused names, statements that reach nothing, one-sided waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Final

import msgspec

from aioflow.authoring.operator import Operator
from aioflow.compiler.analysis import InferredCall
from aioflow.compiler.findings import Findings
from aioflow.compiler.resolution import Resolved
from aioflow.compiler.wiring import HEADER, Producer, Wiring, topological_order, upstream
from aioflow.errors import Diagnostic
from aioflow.plan import Plan
from aioflow.source import Span

# Beyond this, what waits for what would take memory with the square of a plan's size.
_WAITS_AT_MOST: Final = 1000
_UNUSED: Final = {
    "input": "the input {name!r} is never read",
    "output": "{name!r} is never read; an output that is not needed is written '_'",
    "errors": "{name!r} is never read; ERRORS: skip drops what fails, and counts it",
    "enable": "no statement waits for the signal {name!r}",
    "done": "no statement waits for the signal {name!r}",
}


class CheckedPlan(msgspec.Struct, frozen=True):
    """A plan as far as it is understood: its wiring, its statements and its schemas."""

    wiring: Wiring
    resolved: Sequence[Resolved | None]
    activation: InferredCall

    @property
    def plan(self) -> Plan:
        return self.wiring.plan


def has_own_effects(subject: CheckedPlan, statement: int) -> bool:
    """Return whether a statement, calls of plans aside, changes the world. An unknown one might."""
    resolved = subject.resolved[statement]
    if resolved is None:
        return True
    if not isinstance(resolved.target, Operator):
        return False
    bound = subject.activation.bound.get(statement)
    if bound is None:
        return bool(resolved.target.effects)
    # What gives nothing is there for its effect.
    return not resolved.target.outputs or resolved.target.has("effects", bound)


def plans_with_effects(
    subjects: Mapping[str, CheckedPlan], callees: Mapping[str, Sequence[str]]
) -> Callable[[Plan], bool]:
    """Return a function that tells whether a plan, or a plan that it calls, has effects."""
    keys = list(subjects)
    places = {key: place for place, key in enumerate(keys)}
    edges = [[places[callee] for callee in callees[key]] for key in keys]
    direct = [
        place
        for place, key in enumerate(keys)
        if any(has_own_effects(subjects[key], index) for index in range(len(subjects[key].resolved)))
    ]
    found = {keys[place] for place in upstream(edges, direct)}
    return lambda plan: plan.key in found


def warn_of_unused(subject: CheckedPlan, has_effects: Callable[[Plan], bool], findings: Findings) -> None:
    """Warn of names without a reader, and of statements that lead to no output and no effect."""
    unused = set()
    for name, (producer, *_) in subject.wiring.producers.items():
        if name not in subject.wiring.uses:
            unused.add(producer.statement)
            _warn(
                subject, findings, producer.statement, _UNUSED[producer.kind].format(name=name), producer.span
            )
    useful = _useful(subject, has_effects)
    for index, statement in enumerate(subject.plan.statements):
        if index in useful or index in unused:
            continue
        if any(output.name != "_" for output in statement.outputs):
            message = f"nothing that {statement.operator} gives here reaches an output or an effect"
        else:
            message = f"{statement.operator} has no effect, and its results are not read"
        _warn(subject, findings, index, message, statement.name_span)


def _useful(subject: CheckedPlan, has_effects: Callable[[Plan], bool]) -> set[int]:
    ends = set()
    for index, resolved in enumerate(subject.resolved):
        called = resolved.plan if resolved else None
        if has_effects(called) if called else has_own_effects(subject, index):
            ends.add(index)
    for output in subject.plan.outputs:
        producers: Sequence[Producer] = subject.wiring.producers.get(output.name, ())
        ends.update(producer.statement for producer in producers)
    return upstream(subject.wiring.readers(), ends - {HEADER})


def needs_tuples(subject: CheckedPlan) -> Callable[[str | None], bool]:
    """Return a test whether an output is of use for its tuples only: no reader acts when it ends empty."""
    wiring = subject.wiring
    readers = wiring.readers()
    given = {output.name for output in subject.plan.outputs}
    acts = [_acts_without_tuples(subject, index, given) for index in range(len(readers))]
    for index in reversed(topological_order(readers)):
        acts[index] = acts[index] or (
            not _fires_for_tuples(subject, index) and any(acts[each] for each in readers[index])
        )

    def answer(name: str | None) -> bool:
        uses = wiring.uses.get(name, ()) if name is not None else ()
        return bool(uses) and not any(use.kind == "output" or acts[use.statement] for use in uses)

    return answer


def _fires_for_tuples(subject: CheckedPlan, statement: int) -> bool:
    resolved = subject.resolved[statement]
    return (
        resolved is not None
        and isinstance(resolved.target, Operator)
        and resolved.target.fires(resolved.settings) == "tuple"
    )


def _acts_without_tuples(subject: CheckedPlan, statement: int, given: Set[str]) -> bool:
    """Return whether a statement, or a reader of the plan's outputs, may act although no tuple comes."""
    resolved = subject.resolved[statement]
    if resolved is None or resolved.plan is not None or resolved.done:
        return True
    if _fires_for_tuples(subject, statement):
        return False
    fires_anyway = isinstance(resolved.target, Operator) and resolved.target.fires(resolved.settings) == "end"
    return fires_anyway or has_own_effects(subject, statement) or not given.isdisjoint(resolved.outputs)


def _blocking_inputs(subject: CheckedPlan) -> Iterator[tuple[int, Resolved, int]]:
    """Yield the statements that read one of their inputs to its end first, and the place of that input."""
    for index, resolved in enumerate(subject.resolved):
        if resolved and isinstance(resolved.target, Operator):
            place = resolved.target.blocking_input
            if place is not None and place < len(resolved.inputs):
                yield index, resolved, place


def warn_of_one_sided_waits(subject: CheckedPlan, findings: Findings) -> None:
    """An input that is read to its end first, and waits for something that the others do not wait for."""
    blocking = list(_blocking_inputs(subject))
    names = list(dict.fromkeys(each.name for statement in subject.plan.statements for each in statement.wait))
    if not blocking or not names or len(names) > _WAITS_AT_MOST:
        return
    waits = _Waits(subject.wiring, names)
    for index, resolved, place in blocking:
        others = [name for position, name in enumerate(resolved.inputs) if position != place]
        also = waits.own(index)
        for name in others:
            also |= waits.of_variable(name)
        alone = waits.names(waits.of_variable(resolved.inputs[place]) & ~also)
        if alone and others:
            first = f"{resolved.target.name} reads {resolved.inputs[place]!r} to its end first"
            message = f"{first}, and that waits for {alone[0]!r}, which {others[0]!r} does not wait for"
            _warn(subject, findings, index, message, resolved.statement.name_span)


class _Waits:
    """The WAITs that each variable depends on, as sets of bits."""

    def __init__(self, wiring: Wiring, names: Sequence[str]) -> None:
        self._wiring = wiring
        self._names = names
        bits = {name: 1 << place for place, name in enumerate(names)}
        self._own = [
            sum(bits[name] for name in {each.name for each in statement.wait})
            for statement in wiring.plan.statements
        ]
        self._upstream = list(self._own)
        readers = wiring.readers()
        for index in topological_order(readers):
            for reader in readers[index]:
                self._upstream[reader] |= self._upstream[index]

    def own(self, statement: int) -> int:
        return self._own[statement]

    def of_variable(self, name: str) -> int:
        found = 0
        for producer in self._wiring.producers.get(name, ()):
            if producer.statement != HEADER:
                found |= self._upstream[producer.statement]
        return found

    def names(self, bits: int) -> list[str]:
        return [name for place, name in enumerate(self._names) if bits >> place & 1]


def _warn(subject: CheckedPlan, findings: Findings, statement: int, message: str, span: Span | None) -> None:
    header = subject.plan.name_span if statement == HEADER else None
    findings.at(subject.plan, statement)(Diagnostic(message, span or header, "warning"))
