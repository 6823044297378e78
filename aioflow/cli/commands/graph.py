"""`aioflow graph`: a plan as a drawing, to stdout or a file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from aioflow.cli.options import DrawingName
from aioflow.cli.output.destination import replace_file
from aioflow.cli.program import load_checked
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
