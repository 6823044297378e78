"""Diagrams as text that other programs draw: Mermaid's, for READMEs and web pages, and Graphviz's DOT."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from aioflow.drawing.diagram import Box, Diagram, Edge

_SHAPES = {"operator": ("[", "]"), "call": ("[[", "]]"), "input": ("([", "])"), "output": ("([", "])")}
_ARROWS = {"data": "-->", "errors": "-->", "signal": "-.->"}

_DOT_HEADER = """digraph {name} {{
    graph [rankdir=TB, nodesep=0.35, ranksep=0.45, fontname="Helvetica"]
    node [shape=box, fontname="Helvetica", fontsize=12, margin="0.14,0.07"]
    edge [fontname="Helvetica", fontsize=10, arrowsize=0.7]
"""
_DOT_BOX_STYLES = {
    "operator": "",
    "call": ", peripheries=2",
    "input": ', style="rounded,filled", fillcolor="#f0f0f0"',
    "output": ', style="rounded,filled", fillcolor="#f0f0f0"',
}
_DOT_EDGE_STYLES = {"data": "", "errors": 'color="#a33"', "signal": "style=dashed"}


def to_mermaid(diagrams: Sequence[Diagram]) -> str:
    lines = ["flowchart TD"]
    for number, diagram in enumerate(diagrams, 1):
        # Names of boxes are shared by the whole chart, so those of further plans need a prefix.
        prefix = f"p{number}" if len(diagrams) > 1 else ""
        body = list(_body(diagram, prefix, _mermaid_box, _mermaid_edge))
        if prefix:
            title = f'subgraph {prefix}["{_mermaid_text(diagram.name)}"]'
            body = [title, *("    " + line for line in body), "end"]
        lines += ["    " + line for line in body]
    return "\n".join(lines) + "\n"


def to_dot(diagrams: Sequence[Diagram]) -> str:
    text = _DOT_HEADER.format(name=_dot_text(diagrams[0].name))
    for number, diagram in enumerate(diagrams, 1):
        prefix = f"p{number}" if len(diagrams) > 1 else ""
        body = list(_body(diagram, prefix, _dot_box, _dot_edge))
        if prefix:
            label = f"    label={_dot_text(diagram.name)}; labeljust=l"
            body = [f"subgraph cluster_{prefix} {{", label, *("    " + line for line in body), "}"]
        text += "".join(f"    {line}\n" for line in body)
    return text + "}\n"


def _body(
    diagram: Diagram,
    prefix: str,
    box_line: Callable[[Box, str], str],
    edge_line: Callable[[Edge, str, str], str],
) -> Iterator[str]:
    """Lines for the boxes and edges; an edge has a label unless the box at one of its ends has the name."""
    kinds = {box.id: box.kind for box in diagram.boxes}
    for box in diagram.boxes:
        yield box_line(box, prefix)
    for edge in diagram.edges:
        named = kinds[edge.source] == "input" or kinds[edge.target] == "output"
        yield edge_line(edge, prefix, "" if named else edge.variable)


def _title(box: Box) -> str:
    return f"{box.title} ↻" if box.recursive else box.title


# --- Mermaid ------------------------------------------------------------------------------------


def _mermaid_box(box: Box, prefix: str) -> str:
    before, after = _SHAPES[box.kind]
    title, *lines = map(_mermaid_text, (_title(box), *box.lines))
    text = "<br/>".join([f"<b>{title}</b>" if lines else title, *lines])
    return f'{prefix}{box.id}{before}"{text}"{after}'


def _mermaid_edge(edge: Edge, prefix: str, label: str) -> str:
    shown = f'|"{_mermaid_text(label)}"|' if label else ""
    return f"{prefix}{edge.source} {_ARROWS[edge.kind]}{shown} {prefix}{edge.target}"


def _mermaid_text(text: str) -> str:
    """Mermaid's own entities: backslashes do not escape there, and `#` and backticks mean something."""
    entities = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;", "\\": "#92;"}
    return "".join(entities.get(character, character) for character in text)


# --- DOT ----------------------------------------------------------------------------------------


def _dot_box(box: Box, prefix: str) -> str:
    label = _dot_text("\n".join([_title(box), *box.lines]))
    return f"{prefix}{box.id} [label={label}{_DOT_BOX_STYLES[box.kind]}]"


def _dot_edge(edge: Edge, prefix: str, label: str) -> str:
    attributes = [_DOT_EDGE_STYLES[edge.kind], f"label={_dot_text(' ' + label)}" if label else ""]
    listed = ", ".join(filter(None, attributes))
    return f"{prefix}{edge.source} -> {prefix}{edge.target}" + (f" [{listed}]" if listed else "")


def _dot_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
