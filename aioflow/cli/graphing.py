"""`aioflow graph`: a plan as a drawing, to stdout or a file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from aioflow.cli.destination import replace_file
from aioflow.cli.options import DrawingName
from aioflow.cli.program import load_checked

_BY_ENDING = {".svg": DrawingName.SVG, ".dot": DrawingName.DOT, ".gv": DrawingName.DOT}


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
    from aioflow.drawing import draw

    program, _ = load_checked(path, plan, modules)
    if format is None:
        format = _BY_ENDING.get(Path(file or "").suffix.lower(), DrawingName.MERMAID)
    text = draw(program, str(format), all_plans=all_plans)
    if file is None:
        sys.stdout.write(text)
    else:
        replace_file(file, text)
