"""The part of a space that resolved regions cover: neighbours are joined, so that few regions describe it."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from aioflow.hidden.space import Predicate, Region, Space


def joined(space: Space, regions: Iterable[Region]) -> list[Region]:
    """Return few regions for the same part of the space, by joining neighbours an axis at a time."""
    found = list(dict.fromkeys(regions))
    before = 0
    while len(found) != before:
        before = len(found)
        for place in range(len(space.axes)):
            found = _joined_on(space, place, found)
    return found


def _joined_on(space: Space, place: int, regions: list[Region]) -> list[Region]:
    groups: dict[Region, list[Predicate]] = {}
    for region in regions:
        others = (*region[:place], None, *region[place + 1 :])
        groups.setdefault(others, []).append(region[place])
    join = _joined_values if place in space.lists else _joined_extents
    return [
        (*others[:place], predicate, *others[place + 1 :])
        for others, predicates in groups.items()
        for predicate in join(space, place, predicates)
    ]


def _joined_values(space: Space, place: int, predicates: list[Predicate]) -> list[Predicate]:
    axis = space.list_axis(place)
    is_whole = not (axis.is_learnt or axis.is_wrong) and len(set(predicates)) == len(axis)
    return [None] if None in predicates or is_whole else predicates


def _joined_extents(space: Space, place: int, predicates: list[Predicate]) -> list[Predicate]:
    axis = space.range_axis(place)
    extents = sorted(
        (-inf if low is None else low, inf if high is None else high)
        for low, high in map(axis.extent, predicates)
    )
    found: list[tuple[float, float]] = []
    for low, high in extents:
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return [
        axis.predicate(None if low == -inf else int(low), None if high == inf else int(high))
        for low, high in found
    ]
