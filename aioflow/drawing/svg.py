"""Diagrams as SVG, for papers: plain boxes, one label for each variable, nothing overlapping.

The font is not asked for the width of a text: the widths of Helvetica are used, with a reserve.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from aioflow.drawing.diagram import Box, Diagram, Edge
from aioflow.drawing.layout import GraphLayout, NodePosition, Route, lay_out, routes_of

# Advance widths of printable ASCII in thousandths of the font size, from Adobe's metrics of Helvetica.
# fmt: off
_ADVANCES = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
    333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
)
# fmt: on
_WIDTHS = dict(zip(map(chr, range(32, 127)), _ADVANCES, strict=True))
_OTHER, _WIDE = 600, 1000
# Where Helvetica's kin are missing, browsers fall back to wider fonts.
_RESERVE = 1.13
_BOLD = 1.07


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """The width of a line in the unit of the font size."""
    thousandths = sum(
        _WIDTHS.get(character, _WIDE if ord(character) > 0x1100 else _OTHER) for character in text
    )
    return thousandths / 1000 * size * _RESERVE * (_BOLD if bold else 1)


TITLE_SIZE, LINE_SIZE, LABEL_SIZE = 13.0, 11.0, 11.0
LINE_HEIGHT = 14.0
PADDING_X, PADDING_Y = 13.0, 8.0
MARGIN = 14.0
PANEL_GAP = 24.0
PANEL_TITLE = 30.0
PAGE_WIDTH = 1100.0

_STYLE = """
    text { font-family: "Helvetica Neue", Helvetica, Arial, "Liberation Sans", "DejaVu Sans", sans-serif;
           fill: #1a1a1a; text-anchor: middle; }
    .title { font-size: 13px; font-weight: bold; }
    .name { font-size: 13px; }
    .line { font-size: 11px; fill: #444; }
    .label { font-size: 11px; font-style: italic; fill: #333; }
    .plan { font-size: 14px; font-weight: bold; text-anchor: start; }
    .box { fill: #fff; stroke: #1a1a1a; stroke-width: 1.1; }
    .end { fill: #f0f0f0; stroke: #1a1a1a; stroke-width: 1.1; }
    .panel { fill: none; stroke: #999; stroke-width: 0.8; }
    .edge { fill: none; stroke: #1a1a1a; stroke-width: 1.1; }
    .signal { stroke-dasharray: 5 3.5; }
    .errors { stroke: #a33; }
    .errors-label { fill: #a33; }
    .tip { fill: #1a1a1a; }
    .errors-tip { fill: #a33; }
"""


@dataclass(frozen=True)
class _Drawing:
    body: list[str]
    width: float
    height: float


def to_svg(diagrams: Sequence[Diagram]) -> str:
    """One drawing; several plans stand in frames with their names."""
    drawings = [_draw(diagram) for diagram in diagrams]
    page = drawings[0] if len(drawings) == 1 else _panels(diagrams, drawings)
    width, height = page.width + 2 * MARGIN, page.height + 2 * MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
            f' viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
            f"<title>{_text(diagrams[0].name)}</title>",
            f"<style>{_STYLE}</style>",
            f'<g transform="translate({MARGIN:.0f} {MARGIN:.0f})">',
            *page.body,
            "</g>",
            "</svg>\n",
        ]
    )


def _panels(diagrams: Sequence[Diagram], drawings: Sequence[_Drawing]) -> _Drawing:
    """Frames side by side, in as many rows as the page's width asks for."""
    body: list[str] = []
    x = y = row_height = page_width = 0.0
    for diagram, drawing in zip(diagrams, drawings, strict=True):
        width = max(drawing.width, text_width(diagram.name, 14, bold=True)) + 2 * MARGIN
        height = drawing.height + PANEL_TITLE + 2 * MARGIN
        if x and x + width > PAGE_WIDTH:
            x, y, row_height = 0.0, y + row_height + PANEL_GAP, 0.0
        body += [
            f'<g transform="translate({x:.1f} {y:.1f})">',
            f'<rect class="panel" width="{width:.1f}" height="{height:.1f}" rx="6"/>',
            f'<text class="plan" x="{MARGIN:.1f}" y="22">{_text(diagram.name)}</text>',
            f'<g transform="translate({(width - drawing.width) / 2:.1f} {PANEL_TITLE + MARGIN:.1f})">',
            *drawing.body,
            "</g></g>",
        ]
        page_width = max(page_width, x + width)
        x, row_height = x + width + PANEL_GAP, max(row_height, height)
    return _Drawing(body, page_width, y + row_height)


# --- one plan -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Label:
    """The name of a variable, standing on the way from its producer to all who read it."""

    variable: str
    kind: str


def _draw(diagram: Diagram) -> _Drawing:
    nodes: list[Box | _Label] = list(diagram.boxes)
    edges = _with_labels(diagram, nodes)
    sizes = [_size(node) for node in nodes]
    layout = lay_out(sizes, list(edges))
    body: list[str] = []
    for route in routes_of(layout, sizes, list(edges)):
        target = nodes[route.edge[1]]
        body += _edge(route, edges[route.edge], tip=isinstance(target, Box))
    for number, node in enumerate(nodes):
        body += _box(node, layout, number) if isinstance(node, Box) else _label(node, layout.places[number])
    return _Drawing(body, layout.width, layout.height)


def _with_labels(diagram: Diagram, nodes: list[Box | _Label]) -> dict[tuple[int, int], str]:
    """The edges between nodes by number, with their kind; adds a label for each variable to the nodes.

    Edges from an input and to an output pass an empty label: the box has the name, and boxes stay
    in every other layer.
    """
    numbers = {box.id: number for number, box in enumerate(diagram.boxes)}
    kinds = {box.id: box.kind for box in diagram.boxes}
    labels: dict[tuple[str, str], int] = {}
    edges: dict[tuple[int, int], str] = {}
    for edge in diagram.edges:
        named = kinds[edge.source] == "input" or kinds[edge.target] == "output"
        key = (edge.source, edge.target if named else edge.variable)
        if key not in labels:
            labels[key] = len(nodes)
            nodes.append(_Label("" if named else edge.variable, edge.kind))
        label = labels[key]
        edges.setdefault((numbers[edge.source], label), _producer_kind(edge, diagram))
        edges[label, numbers[edge.target]] = edge.kind
    return edges


def _producer_kind(edge: Edge, diagram: Diagram) -> str:
    """A variable that is waited for and read has one line to its label: the solid one."""
    kinds = {other.kind for other in diagram.edges if other.variable == edge.variable}
    return "errors" if "errors" in kinds else "data" if "data" in kinds else "signal"


def _size(node: Box | _Label) -> tuple[float, float]:
    if isinstance(node, _Label):
        return (text_width(node.variable, LABEL_SIZE) + 6, 15.0) if node.variable else (6.0, 0.0)
    title = text_width(_title(node), TITLE_SIZE, bold=bool(node.lines) or node.kind in ("operator", "call"))
    width = max([title, *(text_width(line, LINE_SIZE) for line in node.lines)]) + 2 * PADDING_X
    height = TITLE_SIZE + 3 + LINE_HEIGHT * len(node.lines) + 2 * PADDING_Y
    return max(width, 56.0), height


def _title(box: Box) -> str:
    return f"{box.title} ↻" if box.recursive else box.title


def _box(box: Box, layout: GraphLayout, number: int) -> Iterator[str]:
    place, (width, height) = layout.places[number], _size(box)
    left, top = place.x - width / 2, place.y - height / 2
    rounded = box.kind in ("input", "output")
    yield _rectangle(left, top, width, height, "end" if rounded else "box", height / 2 if rounded else 3)
    if box.kind == "call":
        yield _rectangle(left + 3, top + 3, width - 6, height - 6, "box", 1.5)
    baseline = top + PADDING_Y + TITLE_SIZE
    yield _line(place.x, baseline, "name" if rounded else "title", _title(box))
    for count, line in enumerate(box.lines, 1):
        yield _line(place.x, baseline + count * LINE_HEIGHT + 1, "line", line)


def _label(label: _Label, place: NodePosition) -> Iterator[str]:
    if label.variable:
        extra = " errors-label" if label.kind == "errors" else ""
        yield _line(place.x, place.y + 4, f"label{extra}", label.variable)


def _rectangle(left: float, top: float, width: float, height: float, style: str, radius: float) -> str:
    return (
        f'<rect class="{style}" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}"'
        f' rx="{radius:.1f}"/>'
    )


def _line(x: float, y: float, style: str, text: str) -> str:
    return f'<text class={quoteattr(style)} x="{x:.1f}" y="{y:.1f}">{_text(text)}</text>'


def _edge(route: Route, kind: str, *, tip: bool) -> Iterator[str]:
    style = "edge" if kind == "data" else f"edge {kind}"
    yield f'<path class="{style}" d="{route.path(shorten=6.0 if tip else 0.0)}"/>'
    if tip:
        # Drawn as a shape of its own: markers are where renderers differ most.
        x, y = route.end
        style = "errors-tip" if kind == "errors" else "tip"
        yield f'<path class="{style}" d="M{x:.1f} {y:.1f} l-3.6 -7.5 q3.6 1.8 7.2 0 z"/>'


def _text(text: str) -> str:
    """Escaped, and without the control characters that no XML may hold."""
    return escape(re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "�", text))
