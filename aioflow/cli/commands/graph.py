"""`aioflow graph`: draws a plan, to stdout or a file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from aioflow.cli.config import effective_settings
from aioflow.cli.exit import guarded
from aioflow.cli.options import DrawingName, Modules, PlanName, PlanPath
from aioflow.cli.output.destination import replace_file
from aioflow.cli.program import load_checked
from aioflow.drawing import draw
from aioflow.errors import InputError

_BY_ENDING = {
    "": DrawingName.MERMAID,
    ".mmd": DrawingName.MERMAID,
    ".mermaid": DrawingName.MERMAID,
    ".md": DrawingName.MERMAID,
    ".txt": DrawingName.MERMAID,
    ".svg": DrawingName.SVG,
    ".dot": DrawingName.DOT,
    ".gv": DrawingName.DOT,
}


@guarded
def graph(
    plan_path: PlanPath,
    format: Annotated[DrawingName | None, typer.Option(help="By the ending of -o, else mermaid.")] = None,
    file: Annotated[
        str | None, typer.Option("-o", metavar="FILE", help="Write to a file instead of stdout.")
    ] = None,
    plan: PlanName = None,
    all: Annotated[bool, typer.Option("--all", help="Draw the plans that it calls as well.")] = False,
    ops: Modules = None,
) -> None:
    """Draw a plan as a graph."""
    modules = effective_settings({"ops": ops}, plan_path).ops
    draw_plan(plan_path, plan, format, file, all_plans=all, modules=modules)


def draw_plan(
    path: str,
    plan: str | None,
    format: DrawingName | None,
    file: str | None,
    *,
    all_plans: bool,
    modules: Sequence[str],
) -> None:
    """Draw a plan that has no mistakes."""

    program = load_checked(path, plan, modules).program
    if format is None:
        ending = Path(file or "").suffix.lower()
        if ending not in _BY_ENDING:
            known = ", ".join(filter(None, _BY_ENDING))
            raise InputError(f"no drawing has the ending {ending!r} (there are: {known}); or say --format")
        format = _BY_ENDING[ending]
    text = draw(program, str(format), all_plans=all_plans)
    if file is None:
        sys.stdout.write(text)
    else:
        replace_file(file, text)
