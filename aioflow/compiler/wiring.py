"""The wiring of one plan: the producers and the readers of each name."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec

from aioflow.plan import Plan, Statement, Variable
from aioflow.source import Span

# The place of names in a plan's header instead of in a statement.
HEADER: Final = -1
NOBODY: Final = "_"


class Producer(msgspec.Struct, frozen=True):
    """The origin of the tuples or the signal of a name. `statement` is an index, or HEADER for an input."""

    kind: Literal["input", "output", "errors", "enable", "done"]
    statement: int
    span: Span | None

    @property
    def is_signal(self) -> bool:
        return self.kind in ("enable", "done")


class NameUse(msgspec.Struct, frozen=True):
    """A reader of a name. `statement` is HEADER for an output of the plan."""

    kind: Literal["argument", "wait", "output"]
    statement: int
    span: Span | None


class Wiring:
    """Producers and uses of every name in a plan, in the order of the text."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.producers: dict[str, list[Producer]] = {}
        self.uses: dict[str, list[NameUse]] = {}
        for declaration in plan.inputs:
            self._produce(declaration.name, Producer("input", HEADER, declaration.span))
        for index, statement in enumerate(plan.statements):
            for variable, producer in _produced(statement, index):
                self._produce(variable, producer)
            for variable, use in _used(statement, index):
                self.uses.setdefault(variable, []).append(use)
        for output in plan.outputs:
            self.uses.setdefault(output.name, []).append(NameUse("output", HEADER, output.span))

    def _produce(self, name: str, producer: Producer) -> None:
        if name != NOBODY:
            self.producers.setdefault(name, []).append(producer)

    def readers(self, *, unambiguous: bool = False) -> list[list[int]]:
        """For each statement those that read its outputs or errors, or wait for it.

        `unambiguous` leaves out the names that have several producers, which is a mistake.
        """
        return self._edges(
            {
                name: uses
                for name, uses in self.uses.items()
                if not unambiguous or len(self.producers.get(name, ())) == 1
            }
        )

    def data_readers(self) -> list[list[int]]:
        """For each statement those that have one of its outputs as an argument."""
        return self._edges(
            {name: [use for use in uses if use.kind == "argument"] for name, uses in self.uses.items()}
        )

    def _edges(self, uses: Mapping[str, Sequence[NameUse]]) -> list[list[int]]:
        edges: list[dict[int, None]] = [{} for _ in self.plan.statements]
        for name, producers in self.producers.items():
            readers = [use.statement for use in uses.get(name, ()) if use.statement != HEADER]
            # Of several, which is a mistake, one stands for all.
            if producers[0].statement != HEADER:
                edges[producers[0].statement].update(dict.fromkeys(readers))
        return [list(successors) for successors in edges]

    def order(self) -> list[int]:
        """Return the statements so that each follows those it reads; those on a cycle come last."""
        return topological_order(self.data_readers())


def topological_order(edges: Sequence[Sequence[int]]) -> list[int]:
    """Return the nodes so that each follows its predecessors; those on or after a cycle come last."""
    missing = [0] * len(edges)
    for successors in edges:
        for successor in successors:
            missing[successor] += 1
    ready = deque(node for node, count in enumerate(missing) if not count)
    order = []
    while ready:
        node = ready.popleft()
        order.append(node)
        for successor in edges[node]:
            missing[successor] -= 1
            if not missing[successor]:
                ready.append(successor)
    placed = set(order)
    return order + [node for node in range(len(edges)) if node not in placed]


def _produced(statement: Statement, index: int) -> Iterator[tuple[str, Producer]]:
    for variable in statement.outputs:
        yield variable.name, Producer("output", index, variable.span)
    if isinstance(statement.errors, Variable):
        yield statement.errors.name, Producer("errors", index, statement.errors.span)
    for variable in statement.enable:
        yield variable.name, Producer("enable", index, variable.span)
    for variable in statement.done:
        yield variable.name, Producer("done", index, variable.span)


def _used(statement: Statement, index: int) -> Iterator[tuple[str, NameUse]]:
    for variable in variables(statement):
        yield variable.name, NameUse("argument", index, variable.span)
    for variable in statement.wait:
        yield variable.name, NameUse("wait", index, variable.span)


def variables(statement: Statement) -> list[Variable]:
    """Return the variables among a statement's arguments."""
    return [argument for argument in statement.arguments if isinstance(argument, Variable)]


def upstream(edges: Sequence[Sequence[int]], starts: Iterable[int]) -> set[int]:
    """Return every node from which one of `starts` can be reached, those themselves among them."""
    sources: list[list[int]] = [[] for _ in edges]
    for node, successors in enumerate(edges):
        for successor in successors:
            sources[successor].append(node)
    return downstream(sources, starts)


def downstream(edges: Sequence[Sequence[int]], starts: Iterable[int]) -> set[int]:
    """Return every node that can be reached from one of `starts`, those themselves among them."""
    found = set(starts)
    pending = list(found)
    while pending:
        for successor in edges[pending.pop()]:
            if successor not in found:
                found.add(successor)
                pending.append(successor)
    return found
