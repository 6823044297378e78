"""Cycles in directed graphs of any depth, without Python's recursion."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

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
