"""The lines between placed nodes: where each leaves and enters, and the curve between."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from aioflow.dataclass import dataclass
from aioflow.drawing.layout import Layout

# Lines enter and leave a box at least so far from its corners and from each other.
CORNER = 12.0
BETWEEN = 12.0


@dataclass(frozen=True)
class Route:
    """The points of an edge from top to bottom, in pairs: straight inside a pair, curved between pairs.

    Inside a pair the line crosses a layer, straight down, so that it cannot touch its neighbours there.
    """

    edge: tuple[int, int]
    pairs: tuple[tuple[tuple[float, float], tuple[float, float]], ...]

    @property
    def end(self) -> tuple[float, float]:
        return self.pairs[-1][1]

    def path(self, shorten: float = 0.0) -> str:
        """The line as SVG path data, leaving room for the tip of an arrow."""
        (x, y), first = self.pairs[0]
        parts = [f"M{x:.1f} {y:.1f}"]
        before = first
        parts += _straight((x, y), first)
        for number, (start, end) in enumerate(self.pairs[1:], 2):
            if number == len(self.pairs):
                end = (end[0], end[1] - shorten)
                start = (start[0], min(start[1], end[1]))
            parts += _curve(before, start)
            parts += _straight(start, end)
            before = end
        return " ".join(parts)


def _straight(start: tuple[float, float], end: tuple[float, float]) -> list[str]:
    return [f"V{end[1]:.1f}"] if abs(end[1] - start[1]) > 0.05 else []


def _curve(start: tuple[float, float], end: tuple[float, float]) -> list[str]:
    if abs(start[0] - end[0]) < 0.5:
        return [f"L{end[0]:.1f} {end[1]:.1f}"]
    bend = (end[1] - start[1]) * 0.55
    return [
        f"C{start[0]:.1f} {start[1] + bend:.1f} {end[0]:.1f} {end[1] - bend:.1f} {end[0]:.1f} {end[1]:.1f}"
    ]


def routes_of(
    layout: Layout, sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]]
) -> Iterator[Route]:
    """The route of every edge, in the order given."""
    leaving, entering = _ports(layout, sizes, edges)
    for edge in edges:
        source, target = edge
        above, below = layout.places[source], layout.places[target]
        first = (leaving[edge], above.y + sizes[source][1] / 2), (leaving[edge], above.bottom)
        last = (entering[edge], below.top), (entering[edge], below.y - sizes[target][1] / 2)
        links = [((link.x, link.top), (link.x, link.bottom)) for link in layout.links[edge]]
        yield Route(edge, (first, *links, last))


def _ports(
    layout: Layout, sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]]
) -> tuple[Mapping[tuple[int, int], float], Mapping[tuple[int, int], float]]:
    """Where each edge leaves its source and enters its target."""
    out: dict[int, list[tuple[float, tuple[int, int]]]] = defaultdict(list)
    into: dict[int, list[tuple[float, tuple[int, int]]]] = defaultdict(list)
    for edge in edges:
        links = layout.links[edge]
        out[edge[0]].append(((links[0] if links else layout.places[edge[1]]).x, edge))
        into[edge[1]].append(((links[-1] if links else layout.places[edge[0]]).x, edge))
    return _spread(out, layout, sizes), _spread(into, layout, sizes)


def _spread(
    wanted: Mapping[int, list[tuple[float, tuple[int, int]]]],
    layout: Layout,
    sizes: Sequence[tuple[float, float]],
) -> dict[tuple[int, int], float]:
    """Ports near to where their edges come from, as far as the width of the node goes."""
    ports: dict[tuple[int, int], float] = {}
    for node, towards in wanted.items():
        centre, width = layout.places[node].x, sizes[node][0]
        reach = max(0.0, width / 2 - CORNER)
        # A label has one point from which all its lines go; only boxes have room for several.
        if sizes[node][1] < 20:
            reach = 0.0
        step = min(BETWEEN, 2 * reach / max(1, len(towards) - 1))
        ordered = sorted(towards)
        for number, (x, edge) in enumerate(ordered):
            least = centre - reach + number * step
            most = centre + reach - (len(ordered) - 1 - number) * step
            previous = ports[ordered[number - 1][1]] + step if number else least
            ports[edge] = min(most, max(least, previous, x))
    return ports
