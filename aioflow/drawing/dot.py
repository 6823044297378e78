"""Diagrams in Graphviz's DOT language."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aioflow.drawing.diagram import Box, Diagram, Edge

_HEADER = """digraph {name} {{
    graph [rankdir=TB, nodesep=0.35, ranksep=0.45, fontname="Helvetica"]
    node [shape=box, fontname="Helvetica", fontsize=12, margin="0.14,0.07"]
    edge [fontname="Helvetica", fontsize=10, arrowsize=0.7]
"""
_BOX_STYLES = {
    "operator": "",
    "call": ", peripheries=2",
    "input": ', style="rounded,filled", fillcolor="#f0f0f0"',
    "output": ', style="rounded,filled", fillcolor="#f0f0f0"',
}
_EDGE_STYLES = {"data": "", "errors": 'color="#a33"', "signal": "style=dashed"}


def to_dot(diagrams: Sequence[Diagram]) -> str:
    text = _HEADER.format(name=_quoted(diagrams[0].name))
    for number, diagram in enumerate(diagrams, 1):
        prefix = f"p{number}" if len(diagrams) > 1 else ""
        body = list(_body(diagram, prefix))
        if prefix:
            label = f"    label={_quoted(diagram.name)}; labeljust=l"
            body = [f"subgraph cluster_{prefix} {{", label, *("    " + line for line in body), "}"]
        text += "".join(f"    {line}\n" for line in body)
    return text + "}\n"


def _body(diagram: Diagram, prefix: str) -> Iterator[str]:
    kinds = {box.id: box.kind for box in diagram.boxes}
    for box in diagram.boxes:
        yield f"{prefix}{box.id} [label={_label(box)}{_BOX_STYLES[box.kind]}]"
    for edge in diagram.edges:
        yield _edge(edge, prefix, labelled=kinds[edge.source] != "input" and kinds[edge.target] != "output")


def _label(box: Box) -> str:
    title = f"{box.title} ↻" if box.recursive else box.title
    return _quoted("\n".join([title, *box.lines]))


def _edge(edge: Edge, prefix: str, labelled: bool) -> str:
    attributes = [_EDGE_STYLES[edge.kind], f"label={_quoted(' ' + edge.variable)}" if labelled else ""]
    listed = ", ".join(filter(None, attributes))
    return f"{prefix}{edge.source} -> {prefix}{edge.target}" + (f" [{listed}]" if listed else "")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
