"""The calls between the plans of a program: which are recursive, and what bounds a recursion.

Cycles are found by algorithms that need no recursion in Python, so programs may be of any size.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence

from aioflow.plan import Plan, Program, Statement, Variable

Edges = Sequence[Sequence[int]]


def components(edges: Edges) -> list[int]:
    """For each node the number of its strongly connected component (Tarjan's algorithm)."""
    unseen = -1
    found = [unseen] * len(edges)
    order = [unseen] * len(edges)
    lowest = [0] * len(edges)
    waiting: list[int] = []
    counter = number = 0
    for root in range(len(edges)):
        if order[root] != unseen:
            continue
        path = [(root, iter(edges[root]))]
        order[root] = lowest[root] = counter
        counter += 1
        waiting.append(root)
        while path:
            node, rest = path[-1]
            successor = next(rest, None)
            if successor is None:
                path.pop()
                if path:
                    parent = path[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[node])
                if lowest[node] == order[node]:
                    _close(node, waiting, found, number)
                    number += 1
            elif order[successor] == unseen:
                order[successor] = lowest[successor] = counter
                counter += 1
                waiting.append(successor)
                path.append((successor, iter(edges[successor])))
            elif found[successor] == unseen:
                lowest[node] = min(lowest[node], order[successor])
    return found


def _close(node: int, waiting: list[int], found: list[int], number: int) -> None:
    while True:
        member = waiting.pop()
        found[member] = number
        if member == node:
            return


def cycles(edges: Edges) -> list[list[int]]:
    """For each component that has a cycle a shortest one through its first node; in order of those."""
    component = components(edges)
    done: set[int] = set()
    result = []
    for node in range(len(edges)):
        if component[node] in done:
            continue
        cycle = _cycle_through(node, edges, component)
        if cycle:
            done.add(component[node])
            result.append(cycle)
    return result


def _cycle_through(start: int, edges: Edges, component: Sequence[int]) -> list[int]:
    """Breadth first, so that the first way back is a shortest one."""
    came_from: dict[int, int] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for successor in edges[node]:
            if successor == start:
                way = [node]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return way[::-1]
            if component[successor] == component[start] and successor not in came_from:
                came_from[successor] = node
                queue.append(successor)
    return []


class CallGraph:
    """The calls between the plans of a program."""

    def __init__(self, program: Program) -> None:
        plans = list(program)
        places = {plan.key: place for place, plan in enumerate(plans)}
        edges = [_callees(plan, places) for plan in plans]
        self._component = dict(zip(places, components(edges), strict=True))
        self._sizes = Counter(self._component.values())
        self._calls: dict[
            str, list[str]
        ] = {}  # of each plan that is called: who calls it, once for each call
        for plan in plans:
            for statement in plan.statements:
                if statement.operator.lower() in places:
                    self._calls.setdefault(statement.operator.lower(), []).append(plan.key)
        self.callees: Mapping[str, tuple[str, ...]] = {
            plan.key: tuple(plans[place].key for place in edge)
            for plan, edge in zip(plans, edges, strict=True)
        }
        recursions = {self._component[plan.key] for plan in plans if self.recurs(plan)}
        once = {self._component[plan.key] for plan in plans if plan.once is not None}
        bounded = {self._component[plan.key] for plan in plans if plan.max_depth is not None}
        self._levelled = recursions & once & bounded
        self._unbounded = recursions - once - bounded
        self._handed_down = self._find_handed_down(plans)

    def is_levelled(self, plan: Plan) -> bool:
        """Return whether a level of the plan's recursion begins when the one above it has ended.

        So it is where ONCE and MAX_DEPTH meet in one recursion: only then does it matter which way leads
        to a value first.
        """
        return self._component[plan.key] in self._levelled

    def is_unbounded(self, plan: Plan) -> bool:
        """Return whether a plan belongs to a recursion that has neither ONCE nor MAX_DEPTH."""
        return self._component[plan.key] in self._unbounded

    def is_handed_down(self, plan: Plan, place: int) -> bool:
        """Return whether an input of a plan comes back to itself unchanged, over one or several calls."""
        return (plan.key, place) in self._handed_down

    def handed_down(self, caller: Plan, statement: Statement, callee: Plan) -> frozenset[int]:
        """The inputs of a call that only hand on what the recursion was given; they unfold no level."""
        if not self.is_recursive(caller, callee):
            places = range(len(callee.inputs))
            return frozenset(place for place in places if self.is_handed_down(callee, place))
        own = _inputs_given_on(caller, statement)
        return frozenset(place for place, given in own if self.is_handed_down(caller, given))

    def _find_handed_down(self, plans: Sequence[Plan]) -> set[tuple[str, int]]:
        """The inputs that lie on a cycle of recursive calls which give them on unchanged."""
        by_key = {plan.key: plan for plan in plans}
        nodes = [(plan.key, place) for plan in plans for place in range(len(plan.inputs))]
        numbers = {node: number for number, node in enumerate(nodes)}
        edges: list[list[int]] = [[] for _ in nodes]
        for plan in plans:
            for statement in plan.statements:
                callee = by_key.get(statement.operator.lower())
                if callee is not None and self.is_recursive(plan, callee):
                    for place, given in _inputs_given_on(plan, statement):
                        if place < len(callee.inputs):
                            edges[numbers[plan.key, given]].append(numbers[callee.key, place])
        found = components(edges)
        return {
            nodes[number]
            for number, successors in enumerate(edges)
            if any(found[successor] == found[number] for successor in successors)
        }

    def is_recursive(self, caller: Plan, callee: Plan) -> bool:
        """Return whether a call of `callee` in `caller` lies on a cycle of calls."""
        # It is itself an edge between the two, so being in one component is enough.
        return self._component[caller.key] == self._component[callee.key]

    def recurs(self, plan: Plan) -> bool:
        """Return whether a plan can come to be called inside a call of itself."""
        component = self._component[plan.key]
        return any(self._component[callee] == component for callee in self.callees[plan.key])

    def plans_around(self, plan: Plan) -> int:
        """The number of plans that a cycle of calls through this one can lead over, with itself."""
        return self._sizes[self._component[plan.key]]

    def is_called_once(self, plan: Plan, main: Plan) -> bool:
        """Return whether a run of `main` calls a plan once at most."""
        key = plan.key
        seen: set[str] = set()
        while key != main.key:
            callers = self._calls.get(key, [])
            if len(callers) != 1 or key in seen:
                return not callers
            seen.add(key)
            key = callers[0]
        return main.key not in self._calls

    def reached_from(self, plan: Plan) -> set[str]:
        """The plans that a call of this one may call, over others too."""
        found: set[str] = set()
        pending = [plan.key]
        while pending:
            for callee in self.callees[pending.pop()]:
                if callee not in found:
                    found.add(callee)
                    pending.append(callee)
        return found

    def always_inside(self, caller: Plan, callee: Plan, main: Plan) -> bool:
        """Return whether every call of `callee` by `caller` happens inside an earlier call of `callee`."""
        if not self.is_recursive(caller, callee):
            return False
        component = self._component[callee.key]
        entered = {main.key} if self._component[main.key] == component else set()
        for plan, callees in self.callees.items():
            if self._component[plan] != component:
                entered.update(key for key in callees if self._component[key] == component)
        return caller.key not in self._reached(entered, component, without=callee.key)

    def _reached(self, starts: set[str], component: int, without: str) -> set[str]:
        found = starts - {without}
        pending = list(found)
        while pending:
            for callee in self.callees[pending.pop()]:
                if self._component[callee] == component and callee not in found and callee != without:
                    found.add(callee)
                    pending.append(callee)
        return found


def _inputs_given_on(plan: Plan, statement: Statement) -> Iterator[tuple[int, int]]:
    """Return which inputs of a statement are inputs of the plan: the place there and the place here."""
    own = {declaration.name: place for place, declaration in enumerate(plan.inputs)}
    given = [argument.name for argument in statement.arguments if isinstance(argument, Variable)]
    return ((place, own[name]) for place, name in enumerate(given) if name in own)


def _callees(plan: Plan, places: Mapping[str, int]) -> list[int]:
    names = dict.fromkeys(statement.operator.lower() for statement in plan.statements)
    return [places[name] for name in names if name in places]
