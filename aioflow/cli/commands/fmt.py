"""`aioflow fmt`: plans in their one form."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from aioflow.cli.destination import replace_file
from aioflow.cli.ending import BAD_INPUT, FAILED, OK, colours, for_terminal, report
from aioflow.errors import AioflowError


def format_files(paths: Sequence[str], *, check_only: bool) -> int:
    """Format files in place, or show what would change; returns the exit code."""
    changed = mistakes = False
    for path in paths:
        try:
            changed = _format_file(path, check_only=check_only) or changed
        except AioflowError as error:
            report(error)
            mistakes = True
    return BAD_INPUT if mistakes else FAILED if changed and check_only else OK


def _format_file(path: str, *, check_only: bool) -> bool:
    from aioflow.language import format_text
    from aioflow.language.loader import read_plan_file

    content = sys.stdin.buffer.read() if path == "-" else read_plan_file(path)
    after = format_text(content, "<stdin>" if path == "-" else path)
    before = content.decode()
    if check_only:
        if after != before:
            _show_difference(path, before, after)
    elif path == "-":
        sys.stdout.write(after)
    elif after != before:
        replace_file(path, after)
    return after != before


def _show_difference(path: str, before: str, after: str) -> None:
    from aioflow.language.difference import unified_difference

    codes = {"+": "32", "-": "31", "@": "36"}
    lines = list(unified_difference(before, after, path, f"{path} (formatted)"))
    for each in lines or [f"{path}: only its line ends, or a byte order mark, would change"]:
        line = for_terminal(each, sys.stdout)
        code = codes.get(line[:1]) if colours(sys.stdout) else None
        print(f"\x1b[{code}m{line}\x1b[0m" if code else line)
