"""Drawings of plans: Mermaid, Graphviz's DOT, and SVG that is laid out here."""

from __future__ import annotations

from aioflow.drawing.diagram import Box, Diagram, Edge, diagrams_of
from aioflow.errors import InputError
from aioflow.plan import Program

__all__ = ["Box", "Diagram", "Edge", "diagrams_of", "draw"]


def draw(program: Program, format: str = "mermaid", *, all_plans: bool = False) -> str:
    """The main plan as "mermaid", "dot" or "svg" text; with `all_plans` also those that it calls."""
    diagrams = diagrams_of(program, all_plans=all_plans)
    if format == "mermaid":
        from aioflow.drawing.text import to_mermaid

        return to_mermaid(diagrams)
    if format == "dot":
        from aioflow.drawing.text import to_dot

        return to_dot(diagrams)
    if format == "svg":
        from aioflow.drawing.svg import to_svg

        return to_svg(diagrams)
    raise InputError(f"no drawing format {format!r} (mermaid, dot, svg)")
