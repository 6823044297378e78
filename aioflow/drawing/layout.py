"""The layout of a drawing: places for the nodes of a layered graph, and the lines between them.

Graphviz, through pygraphviz, was considered: it takes 0.28 s for one of our plans, and its pictures are
plainer.
fast-sugiyama ranks the nodes, breaks long edges into links and orders each layer so that few edges cross. It
knows no sizes, so the coordinates are found here: each layer in turn moves towards the positions of its
neighbours, as near as the widths allow.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from aioflow.errors import MissingExtraError

ONE_WAY_SWEEPS = 40
TWO_WAY_SWEEPS = 80
SETTLED = 0.01
LINK_WIDTH = 6.0
# Long edges are kept straight before anything else is.
LINK_WEIGHT = 3.0
# A chain bends where it meets others, not on its way.
CHAIN_WEIGHT = 1.0
NEARLY_STRAIGHT = 0.1


@dataclass(frozen=True)
class NodePosition:
    """The centre of a node and the vertical extent of the layer that it stands in."""

    x: float
    y: float
    top: float
    bottom: float


@dataclass(frozen=True)
class GraphLayout:
    """Places of the nodes, and of the links that each long edge passes on its way."""

    places: Mapping[int, NodePosition]
    links: Mapping[tuple[int, int], tuple[NodePosition, ...]]
    width: float
    height: float


@dataclass(frozen=True)
class Spacing:
    """Least distances between neighbours in a layer and between layers."""

    nodes: float = 26.0
    layers: float = 18.0


@dataclass(frozen=True)
class _Layered:
    """A connected graph in layers from top to bottom; ids past the nodes are links of long edges."""

    layers: list[list[int]]
    edges: list[tuple[int, int]]
    routes: dict[tuple[int, int], tuple[int, ...]]


def lay_out(
    sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]], spacing: Spacing | None = None
) -> GraphLayout:
    """Lay out the nodes 0, 1, … of these (width, height), parts that do not touch side by side."""
    spacing = spacing or Spacing()
    places: dict[int, NodePosition] = {}
    links: dict[tuple[int, int], tuple[NodePosition, ...]] = {}
    left = height = 0.0
    for layered in _layer(len(sizes), edges):
        part, width, part_height = _coordinates(layered, sizes, spacing, left)
        places.update((node, place) for node, place in part.items() if node < len(sizes))
        links.update((edge, tuple(part[link] for link in route)) for edge, route in layered.routes.items())
        left += width + 2 * spacing.nodes
        height = max(height, part_height)
    return GraphLayout(places, links, max(0.0, left - 2 * spacing.nodes), height)


# --- layers -------------------------------------------------------------------------------------


def _layer(count: int, edges: Sequence[tuple[int, int]]) -> list[_Layered]:
    try:
        from fast_sugiyama import from_edges
    except ImportError as error:
        raise MissingExtraError("drawing an SVG", "graph") from error
    parts = []
    apart = set(range(count)) - {node for edge in edges for node in edge}
    if edges:
        # The library numbers nodes as a set gives them: without gaps they keep theirs, links get higher ones.
        numbered = {node: number for number, node in enumerate(sorted(set(range(count)) - apart))}
        originals = list(numbered)
        found = from_edges(
            [(numbered[source], numbered[target]) for source, target in edges],
            dummy_vertices=True,
            ranking_type="minimize",
            check_layout=False,
        )
        for positions, _, _, linked in found:
            parts.append(_part(positions, linked or [], originals, count))
    parts.sort(key=lambda part: min(node for layer in part.layers for node in layer))
    return parts + [_Layered([[node]], [], {}) for node in sorted(apart)]


def _part(positions: object, linked: object, originals: list[int], count: int) -> _Layered:
    def name(number: int) -> int:
        return originals[number] if number < len(originals) else count + number

    rows: dict[float, list[tuple[float, int]]] = defaultdict(list)
    for number, (x, y) in positions:  # type: ignore[attr-defined]  # the library types nodes as int | str
        rows[y].append((x, name(number)))
    layers = [[node for _, node in sorted(rows[y])] for y in sorted(rows, reverse=True)]
    edges = [(name(source), name(target)) for source, target in linked]  # type: ignore[attr-defined]
    return _Layered(layers, edges, _routes(edges, count))


def _routes(edges: list[tuple[int, int]], count: int) -> dict[tuple[int, int], tuple[int, ...]]:
    """For each edge between nodes the links that it passes."""
    following = {source: target for source, target in edges if source >= count}
    routes = {}
    for source, target in edges:
        if source >= count:
            continue
        passed = []
        while target >= count:
            passed.append(target)
            target = following[target]
        routes[source, target] = tuple(passed)
    return routes


# --- coordinates --------------------------------------------------------------------------------


def _coordinates(
    layered: _Layered, sizes: Sequence[tuple[float, float]], spacing: Spacing, left: float
) -> tuple[dict[int, NodePosition], float, float]:
    own_sizes = {node: _size(node, sizes) for layer in layered.layers for node in layer}
    centres = _centres(layered, own_sizes, spacing.nodes)
    least = min(centre - own_sizes[node][0] / 2 for node, centre in centres.items())
    most = max(centre + own_sizes[node][0] / 2 for node, centre in centres.items())
    places, top = {}, 0.0
    for layer in layered.layers:
        bottom = top + max(own_sizes[node][1] for node in layer)
        for node in layer:
            places[node] = NodePosition(left + centres[node] - least, (top + bottom) / 2, top, bottom)
        top = bottom + spacing.layers
    return places, most - least, top - spacing.layers


def _size(node: int, sizes: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return sizes[node] if node < len(sizes) else (LINK_WIDTH, 0.0)


def _centres(layered: _Layered, sizes: Mapping[int, tuple[float, float]], gap: float) -> dict[int, float]:
    widths = {node: width for node, (width, _) in sizes.items()}
    above, below = _neighbours(layered, sizes)
    centres: dict[int, float] = {}
    for layer in layered.layers:
        centres.update(zip(layer, _packed(layer, widths, gap), strict=True))
    # Looking one way only carries a position through the whole drawing; then looking both ways settles it.
    for one_way, sweeps in ((True, ONE_WAY_SWEEPS), (False, TWO_WAY_SWEEPS)):
        for sweep in range(sweeps):
            downwards = sweep % 2 == 0
            near = above if downwards else below
            moved = 0.0
            for layer in layered.layers if downwards else reversed(layered.layers):
                seen = [near[node] if one_way and near[node] else above[node] + below[node] for node in layer]
                pulls = [_pull(centres[node], each, centres) for node, each in zip(layer, seen, strict=True)]
                moved = max(moved, _move(layer, _separated(layer, pulls, widths, gap), centres))
            if moved < SETTLED:
                break
    return centres


def _move(layer: list[int], to: Sequence[float], centres: dict[int, float]) -> float:
    """Move the nodes of a layer; return the longest of the distances."""
    moved = max(abs(centre - centres[node]) for node, centre in zip(layer, to, strict=True))
    centres.update(zip(layer, to, strict=True))
    return moved


def _neighbours(
    layered: _Layered, sizes: Mapping[int, tuple[float, float]]
) -> tuple[dict[int, list[tuple[int, float]]], dict[int, list[tuple[int, float]]]]:
    """For each node its neighbours above and below, and how much each of those edges wants to be straight."""
    leaving = Counter(source for source, _ in layered.edges)
    entering = Counter(target for _, target in layered.edges)
    above: dict[int, list[tuple[int, float]]] = defaultdict(list)
    below: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for source, target in layered.edges:
        links = (sizes[source][1] == 0) + (sizes[target][1] == 0)
        only = leaving[source] == entering[target] == 1
        weight = 1 + LINK_WEIGHT * links + CHAIN_WEIGHT * only
        above[target].append((source, weight))
        below[source].append((target, weight))
    return above, below


def _packed(layer: list[int], widths: Mapping[int, float], gap: float) -> list[float]:
    """Centres that stand as close as the widths allow, around zero."""
    offsets = [0.0]
    for before, after in pairwise(layer):
        offsets.append(offsets[-1] + (widths[before] + widths[after]) / 2 + gap)
    middle = offsets[-1] / 2
    return [offset - middle for offset in offsets]


def _pull(
    centre: float, neighbours: Sequence[tuple[int, float]], centres: Mapping[int, float]
) -> tuple[float, float]:
    """Where the neighbours draw a node, and how strongly.

    What is nearly straight pulls most: that minimises distances, not their squares, so that many edges
    become exactly straight and few bend, instead of all bending a little.
    """
    total = weight = 0.0
    for each, wanted in neighbours:
        strength = wanted / (NEARLY_STRAIGHT + abs(centres[each] - centre))
        total += strength * centres[each]
        weight += strength
    return (total / weight, weight) if weight else (centre, 1e-6)


def _separated(
    layer: list[int], pulls: list[tuple[float, float]], widths: Mapping[int, float], gap: float
) -> list[float]:
    """The positions nearest to the wanted ones that keep the order and the distances.

    With the least distances taken out this is isotonic regression: neighbours that would change
    places are merged into blocks that stand at their weighted mean.
    """
    offsets = _packed(layer, widths, gap)
    blocks: list[tuple[float, float, int]] = []
    for (want, weight), offset in zip(pulls, offsets, strict=True):
        mean, size = want - offset, 1
        while blocks and blocks[-1][0] > mean:
            other, other_weight, other_size = blocks.pop()
            mean = (mean * weight + other * other_weight) / (weight + other_weight)
            weight, size = weight + other_weight, size + other_size
        blocks.append((mean, weight, size))
    bases = [mean for mean, _, size in blocks for _ in range(size)]
    return [base + offset for base, offset in zip(bases, offsets, strict=True)]


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
    layout: GraphLayout, sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]]
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
    layout: GraphLayout, sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]]
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
    layout: GraphLayout,
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
