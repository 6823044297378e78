"""Many regions of a space: neighbours are joined, and the regions around a tuple are found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf

from aioflow.hidden.space import Codes, Predicate, Region, Space


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


class RegionIndex:
    """The regions that a tuple may lie in, by the attributes of which they have one value."""

    def __init__(self, space: Space, regions: Sequence[Region]) -> None:
        self._numbers: dict[tuple[int, ...], dict[Codes, list[int]]] = {}
        for number, region in enumerate(regions):
            exact = space.exact(region)
            by_values = self._numbers.setdefault(tuple(exact), {})
            by_values.setdefault(tuple(exact.values()), []).append(number)

    def around(self, codes: Codes) -> Iterator[int]:
        """Yield the numbers of the regions that have the values of a tuple, where they have one value."""
        for places, by_values in self._numbers.items():
            yield from by_values.get(tuple(codes[place] for place in places), ())
