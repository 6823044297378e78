"""`aioflow fmt`: plans in their one form."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from aioflow.cli.destination import replace_file
from aioflow.cli.ending import BAD_INPUT, FAILED, OK, colours, os_error_text, report
from aioflow.errors import AioflowError, InputError


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

    before = _read(path)
    after = format_text(before, "<stdin>" if path == "-" else path)
    if check_only:
        if after != before:
            _show_difference(path, before, after)
    elif path == "-":
        sys.stdout.write(after)
    elif after != before:
        replace_file(path, after)
    return after != before


def _read(path: str) -> str:
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return data.decode()
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except OSError as error:
        raise InputError(f"cannot read plan: {os_error_text(error)}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 (byte {error.start})") from error


def _show_difference(path: str, before: str, after: str) -> None:
    from aioflow.language.difference import unified_difference

    codes = {"+": "32", "-": "31", "@": "36"}
    for line in unified_difference(before, after, path, f"{path} (formatted)"):
        code = codes.get(line[:1]) if colours(sys.stdout) else None
        print(f"\x1b[{code}m{line}\x1b[0m" if code else line)
