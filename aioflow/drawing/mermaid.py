"""Diagrams as Mermaid flowcharts, for READMEs and web pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aioflow.drawing.diagram import Box, Diagram, Edge

_SHAPES = {"operator": ("[", "]"), "call": ("[[", "]]"), "input": ("([", "])"), "output": ("([", "])")}
_ARROWS = {"data": "-->", "errors": "-->", "signal": "-.->"}


def to_mermaid(diagrams: Sequence[Diagram]) -> str:
    lines = ["flowchart TD"]
    for number, diagram in enumerate(diagrams, 1):
        # Names of boxes are shared by the whole chart, so those of further plans need a prefix.
        prefix = f"p{number}" if len(diagrams) > 1 else ""
        body = list(_body(diagram, prefix))
        if prefix:
            body = [f"subgraph {prefix}[{_quoted(diagram.name)}]", *("    " + line for line in body), "end"]
        lines += ["    " + line for line in body]
    return "\n".join(lines) + "\n"


def _body(diagram: Diagram, prefix: str) -> Iterator[str]:
    kinds = {box.id: box.kind for box in diagram.boxes}
    for box in diagram.boxes:
        yield _box(box, prefix)
    for edge in diagram.edges:
        yield _edge(edge, prefix, labelled=kinds[edge.source] != "input" and kinds[edge.target] != "output")


def _box(box: Box, prefix: str) -> str:
    before, after = _SHAPES[box.kind]
    title = f"{box.title} ↻" if box.recursive else box.title
    text = "<br/>".join(
        [f"<b>{_escaped(title)}</b>" if box.lines else _escaped(title), *map(_escaped, box.lines)]
    )
    return f'{prefix}{box.id}{before}"{text}"{after}'


def _edge(edge: Edge, prefix: str, labelled: bool) -> str:
    label = f"|{_quoted(edge.variable)}|" if labelled else ""
    return f"{prefix}{edge.source} {_ARROWS[edge.kind]}{label} {prefix}{edge.target}"


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    """Mermaid's own entities: backslashes do not escape there, and `#` and backticks mean something."""
    entities = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;", "\\": "#92;"}
    return "".join(entities.get(character, character) for character in text)
